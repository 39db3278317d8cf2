"""Lists what lies at one path of the workspace. The same tool as ``examples-rust/inspect``, for comparison."""

from __future__ import annotations

import os
from pathlib import Path

from brain_guest import Call, Failure, emit, workspace_path

# With paths of 200 bytes, this many entries still fit the megabyte that one result may have.
MAX_ENTRIES = 4_000


def run(call: Call) -> dict:
    depth = call.options.get("depth", 1)
    if type(depth) is not int or depth < 1:
        raise Failure("invalid_options", f"Cannot list to depth {depth!r}: it must be a positive integer")
    root = workspace_path(call.input["path"])
    emit("inspect_started", {"path": str(root)})
    entries: list[dict] = []
    try:
        truncated = not _list(root, depth, entries)
    except OSError as error:
        raise Failure("cannot_inspect", f'Cannot inspect "{root}": {error.strerror}') from None
    total = sum(entry["size"] for entry in entries)
    return {"path": str(root), "entries": entries, "total_bytes": total, "truncated": truncated}


def _list(root: Path, depth: int, entries: list[dict]) -> bool:
    """Adds what ``root`` is or holds; False when there was more than a result can hold."""
    if root.is_dir():
        return _list_directory(root, depth, entries)
    entries.append({"path": str(root), "kind": "file", "size": root.stat().st_size})
    return True


def _list_directory(directory: Path, depth: int, entries: list[dict]) -> bool:
    with os.scandir(directory) as scan:
        children = sorted(scan, key=lambda child: os.fsencode(child.name))
    for child in children:
        if len(entries) == MAX_ENTRIES:
            return False
        kind = _kind(child)
        # Only files are worth the round trip that their size costs.
        size = child.stat(follow_symlinks=False).st_size if kind == "file" else 0
        entries.append({"path": str(directory / child.name), "kind": kind, "size": size})
        if kind == "directory" and depth > 1 and not _list_directory(directory / child.name, depth - 1, entries):
            return False
    return True


def _kind(child: os.DirEntry) -> str:
    if child.is_symlink():
        return "symlink"
    if child.is_dir(follow_symlinks=False):
        return "directory"
    return "file" if child.is_file(follow_symlinks=False) else "other"
