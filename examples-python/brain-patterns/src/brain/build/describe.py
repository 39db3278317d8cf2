"""Imports a file and says which tools are in it. It runs on its own, since it runs the author's code."""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..component.metadata import metadata_of
from ..patterns.tools import ToolSpec
from .imports import preloaded


def tools_in(module: ModuleType, source: str) -> dict[str, ToolSpec]:
    """The tools that a file declares, by the names of their variables; those that it imports belong to other files.

    :raises ValueError: when two have one name, or there is none
    """
    imported = {
        one.asname or one.name.partition(".")[0]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for one in node.names
    }
    found: dict[str, ToolSpec] = {}
    for variable, value in vars(module).items():
        if not isinstance(value, ToolSpec) or variable in imported or any(value is one for one in found.values()):
            continue
        if value.name in {one.name for one in found.values()}:
            raise ValueError(f'two tools are named "{value.name}": give one of them another name=')
        found[variable] = value
    if not found:
        raise ValueError('there is no tool in it. Decorate a function with @tool("what it does")')
    return found


def description_of(path: Path) -> dict[str, Any]:
    known = set(sys.modules)
    sys.path.insert(0, str(path.parent))
    module = importlib.import_module(path.stem)
    specs = tools_in(module, path.read_text(encoding="utf-8"))
    tools = [{"variable": variable, "metadata": metadata_of(spec)} for variable, spec in specs.items()]
    names, files = preloaded(path.parent, known)
    return {"tools": tools, "imports": names, "files": [str(one) for one in files]}


def main() -> None:
    path, answer = Path(sys.argv[1]), Path(sys.argv[2])
    # What the file prints when it is imported is not for who reads our lines.
    with contextlib.redirect_stdout(sys.stderr):
        description = description_of(path)
    answer.write_text(json.dumps(description), encoding="utf-8")


if __name__ == "__main__":
    main()
