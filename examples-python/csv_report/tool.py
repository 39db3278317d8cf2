"""Groups the rows of a CSV file, sums a column, and writes the table as a report."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Optional, TypedDict

from brain.patterns import Context, ToolError, WithContent, tool, workspace_path


@dataclass
class Group:
    name: str
    rows: int = 0
    numbers: list[float] = field(default_factory=list)

    @property
    def sum(self) -> float:
        return math.fsum(self.numbers)


@dataclass
class Table:
    groups: dict[str, Group] = field(default_factory=dict)
    skipped: int = 0

    @property
    def rows(self) -> int:
        return sum(group.rows for group in self.groups.values())

    @property
    def total(self) -> float:
        return math.fsum(number for group in self.groups.values() for number in group.numbers)

    def add(self, name: str, number: float | None) -> None:
        group = self.groups.setdefault(name, Group(name))
        group.rows += 1
        if number is not None:
            group.numbers.append(number)

    def sorted_groups(self) -> list[Group]:
        return [self.groups[name] for name in sorted(self.groups)]


@dataclass
class Options:
    delimiter: Annotated[str, {"minLength": 1, "maxLength": 1}] = ","


class GroupRows(TypedDict):
    group: str
    rows: Annotated[int, {"minimum": 1}]


class GroupSummary(GroupRows, total=False):
    sum: float


class ReportRows(TypedDict):
    """What is in every report.

    Attributes:
        skipped: Rows whose number could not be read
    """

    report: str
    rows: Annotated[int, {"minimum": 0}]
    skipped: Annotated[int, {"minimum": 0}]
    groups: list[GroupSummary]


class Summary(ReportRows, total=False):
    total: float


@tool(
    "Group the rows of a CSV file in the workspace by one column, sum another, and write the table as a Markdown report "
    "beside it."
)
def csv_report(
    path: Annotated[str, {"minLength": 1}],
    group_by: str,
    context: Context[Options],
    sum: Optional[str] = None,
    report: Optional[str] = None,
) -> WithContent[Summary]:
    """Reports.

    Args:
        path: A CSV file with a header row; relative paths mean the workspace
        group_by: The column whose values make the groups
        sum: The column of numbers to add up; without it, rows are only counted
        report: Where the report goes; default: the CSV's path with the ending .report.md
    """
    table_path = workspace_path(path)
    report_path = workspace_path(report) if report else table_path.with_suffix(".report.md")
    table = _read(table_path, group_by, sum, context.options.delimiter)
    context.emit("csv_read", {"path": str(table_path), "rows": table.rows, "skipped": table.skipped})
    text = _markdown(table_path.name, group_by, sum, table)
    try:
        report_path.parent.mkdir(parents=True, exist_ok=True)
        report_path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ToolError("cannot_write", f'Cannot write the report "{report_path}": {error.strerror}') from None
    return WithContent(_summary(report_path, sum, table), text)


def _read(path: Path, group_by: str, summed: str | None, delimiter: str) -> Table:
    table = Table()
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.DictReader(file, delimiter=delimiter)
            _require_columns(path, rows.fieldnames or [], [group_by] if summed is None else [group_by, summed])
            for row in rows:
                number = None if summed is None else _number(row[summed])
                if summed is not None and number is None:
                    table.skipped += 1
                else:
                    table.add(row[group_by] or "", number)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ToolError("cannot_read", f'Cannot read "{path}": {reason}') from None
    return table


def _require_columns(path: Path, present: list[str], required: list[str]) -> None:
    for column in required:
        if column not in present:
            reason = f"it has {', '.join(present)}"
            raise ToolError("unknown_column", f'Cannot find the column "{column}" in "{path}": {reason}')


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _summary(report: Path, summed: str | None, table: Table) -> Summary:
    groups: list[GroupSummary] = [{"group": group.name, "rows": group.rows} for group in table.sorted_groups()]
    summary: Summary = {"report": str(report), "rows": table.rows, "skipped": table.skipped, "groups": groups}
    if summed is not None:
        summary["total"] = table.total
        for written, group in zip(groups, table.sorted_groups()):
            written["sum"] = group.sum
    return summary


def _markdown(name: str, group_by: str, summed: str | None, table: Table) -> str:
    lines = [
        [group_by, "rows", summed],
        ["---"] * 3,
        *([group.name, str(group.rows), f"{group.sum:.15g}"] for group in table.sorted_groups()),
        ["**all**", str(table.rows), f"{table.total:.15g}"],
    ]
    columns = 2 if summed is None else 3
    skipped = f"\nRows left out because their number could not be read: {table.skipped}\n" if table.skipped else ""
    return f"# {name} by {group_by}\n\n" + "".join(_line(cells[:columns]) for cells in lines) + skipped


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"
