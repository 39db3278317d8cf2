"""What a docstring in Google's style says of each parameter."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(r"^(?P<indent>\s*)(?:Args|Arguments|Parameters|Keyword Args|Keyword Arguments|Attributes):\s*$")
_ITEM = re.compile(r"^\*{0,2}(?P<name>\w+)\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*:(?:\s+(?P<text>.*))?$")


def described_parameters(docstring: str | None) -> dict[str, str]:
    """Descriptions by name, each on one line. What is not documented is not in it."""
    found: dict[str, list[str]] = {}
    section: int | None = None
    level: int | None = None
    current: list[str] | None = None
    for number, line in enumerate(inspect.cleandoc(docstring or "").splitlines()):
        start = _SECTION.match(line)
        if start:
            # How far the first line of a docstring was indented is not known.
            section, level, current = len(start["indent"]) if number else -1, None, None
            continue
        if section is None or not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        if indent <= section:
            section = None
            continue
        level = indent if level is None else level
        item = _ITEM.match(line.strip()) if indent <= level else None
        if item:
            current = found.setdefault(item["name"], [])
            current.append((item["text"] or "").strip())
        elif current is not None:
            current.append(line.strip())
    described = {name: " ".join(part for part in parts if part) for name, parts in found.items()}
    return {name: text for name, text in described.items() if text}
