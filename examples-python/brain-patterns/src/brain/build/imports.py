"""What a component must have imported before it is frozen.

It holds a snapshot of the interpreter after its imports; the standard library itself is not in it. So whatever a tool
imports later must be imported then.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

#: What the library imports on its own, inside of functions.
IMPORTED_BY_THE_LIBRARY: frozenset[str] = frozenset(
    "_ast_unparse _strptime encodings.ascii encodings.cp1252 encodings.idna encodings.latin_1 encodings.punycode "
    "encodings.utf_16 encodings.utf_16_be encodings.utf_16_le encodings.utf_32 encodings.utf_8_sig fnmatch glob "
    "linecache shutil tempfile".split()
)
#: They do something when they are imported.
_NEVER = frozenset(("__future__", "antigravity", "this"))
_LIBRARY = Path(sysconfig.get_paths()["stdlib"]).resolve()
_PACKAGE = Path(__file__).resolve().parent.parent


def imports_in(source: str, filename: str) -> set[str]:
    """Every module that a file imports anywhere, also inside of functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source, filename)):
        if isinstance(node, ast.Import):
            names.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            # `from package import module` imports a module, too.
            names.add(node.module)
            names.update(f"{node.module}.{one.name}" for one in node.names if one.name != "*")
    return names - _NEVER


def is_library(name: str) -> bool:
    return name.partition(".")[0] in sys.stdlib_module_names


def loaded_sources(known: set[str]) -> Iterator[tuple[str, Path]]:
    """Modules that were loaded since, with their files: neither of the library, nor of this package."""
    for name, module in list(sys.modules.items()):
        path = _source_of(module)
        if name in known or path is None or _PACKAGE in path.parents:
            continue
        if _LIBRARY not in path.parents or "site-packages" in path.parts:
            yield name, path


def _source_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) and file.endswith(".py") else None


def preloaded(folder: Path, known: set[str]) -> tuple[list[str], list[Path]]:
    """What is to be imported before the tool is frozen, and the files that were loaded.

    The author's own files are searched, and what they import late is loaded now and searched as well; of packages that
    others wrote, only what they import of the library counts.
    """
    names = set(IMPORTED_BY_THE_LIBRARY)
    searched: dict[str, Path] = {}
    while True:
        fresh = {name: path for name, path in loaded_sources(known) if name not in searched}
        if not fresh:
            return sorted(names), sorted(set(searched.values()))
        searched.update(fresh)
        for path in fresh.values():
            found = imports_in(path.read_text(encoding="utf-8"), str(path))
            is_own = folder in path.parents and "site-packages" not in path.parts
            names.update(one for one in found if is_own or is_library(one))
            for one in found if is_own else ():
                # What cannot be imported fails where the tool comes to it.
                with contextlib.suppress(Exception):
                    importlib.import_module(one)
