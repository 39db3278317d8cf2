"""Lists what lies at one path of the workspace. The same tool as ``examples-rust/inspect``, for comparison."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from brain.patterns import Context, ToolError, tool, workspace_path

# With paths of 200 bytes, this many entries still fit the megabyte that one result may have.
MAX_ENTRIES = 4_000


@dataclass
class Options:
    depth: Annotated[int, "How many levels of directories to list", {"minimum": 1}] = 1


Kind = Literal["file", "directory", "symlink", "other"]


@dataclass
class Entry:
    path: str
    kind: Kind
    size: Annotated[int, {"minimum": 0}]


@dataclass
class Listing:
    path: str
    entries: list[Entry]
    total_bytes: Annotated[int, {"minimum": 0}]
    truncated: bool


@tool("Inspect one path: what lies there, of which kind and how large. Relative paths mean the workspace.")
def inspect(
    path: Annotated[str, 'A file or directory, for example "notes" or "/workspace/notes"'], context: Context[Options]
) -> Listing:
    root = workspace_path(path)
    context.emit("inspect_started", {"path": str(root)})
    entries: list[Entry] = []
    try:
        truncated = not _list(root, context.options.depth, entries)
    except OSError as error:
        raise ToolError("cannot_inspect", f'Cannot inspect "{root}": {error.strerror}') from None
    return Listing(str(root), entries, sum(entry.size for entry in entries), truncated)


def _list(root: Path, depth: int, entries: list[Entry]) -> bool:
    """Adds what ``root`` is or holds; False when there was more than a result can hold."""
    if root.is_dir():
        return _list_directory(root, depth, entries)
    entries.append(Entry(str(root), "file", root.stat().st_size))
    return True


def _list_directory(directory: Path, depth: int, entries: list[Entry]) -> bool:
    with os.scandir(directory) as scan:
        children = sorted(scan, key=lambda child: os.fsencode(child.name))
    for child in children:
        if len(entries) == MAX_ENTRIES:
            return False
        kind = _kind(child)
        # Only files are worth the round trip that their size costs.
        size = child.stat(follow_symlinks=False).st_size if kind == "file" else 0
        entries.append(Entry(str(directory / child.name), kind, size))
        if kind == "directory" and depth > 1 and not _list_directory(directory / child.name, depth - 1, entries):
            return False
    return True


def _kind(child: os.DirEntry[str]) -> Kind:
    if child.is_symlink():
        return "symlink"
    if child.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if child.is_file(follow_symlinks=False) else "other"
