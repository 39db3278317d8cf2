"""One file of tools, compiled: one component for each."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..component.metadata import metadata_text

SECTION = b"brain:tool-metadata"
_PACKAGE = Path(__file__).resolve().parent.parent
_WIT = Path(__file__).resolve().parent / "tool.wit"
_ENTRY = "brain_component_entry"
#: Files beside a tool that it may read while it is imported, in bytes each.
_MAX_DATA_FILE = 1024 * 1024
_COMPILE = "import sys, componentize_py; sys.exit(componentize_py.script())"


class BuildError(Exception):
    """Why a tool cannot be built, and what would help."""


@dataclass(frozen=True)
class Built:
    """One component that was made."""

    name: str
    component: Path
    bytes: int


def build(source: Path, out: Path, compiler: str, say: Callable[[str], None]) -> list[Built]:
    """Compiles every tool of a file to ``NAME.wasm``.

    :param compiler: the Python that has componentize-py
    :param say: told what is going on, in lines for people
    :raises BuildError:
    """
    source = source.resolve()
    _check(source)
    with tempfile.TemporaryDirectory(prefix="brain-build-") as scratch:
        described = _described(source, Path(scratch))
        sources = Path(scratch) / "sources"
        paths = _copy_sources(source, [Path(one) for one in described["files"]], sources)
        out.mkdir(parents=True, exist_ok=True)
        compiling = _Compiling(source.stem, described["imports"], sources, paths, out, compiler, say)
        return [compiling.build(tool) for tool in described["tools"]]


def _check(source: Path) -> None:
    if source.suffix != ".py" or not source.is_file():
        raise BuildError(f'Cannot build "{source}": there is no such Python file')
    if not source.stem.isidentifier():
        raise BuildError(f'Cannot build "{source.name}": Python cannot import a file of this name. Use letters and "_"')
    if source.stem in sys.stdlib_module_names or source.stem == "brain":
        raise BuildError(f'Cannot build "{source.name}": a module of Python has this name. Rename the file')


def _described(source: Path, scratch: Path) -> dict[str, Any]:
    answer = scratch / "description.json"
    command = [sys.executable, "-m", "brain.build.describe", str(source), str(answer)]
    path = os.pathsep.join(filter(None, (str(_PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["Python ended without a word"]
        reason = lines[-1].removeprefix("ValueError: ")
        if reason.startswith("Cannot "):
            raise BuildError(reason)
        trace = "" if lines[-1].startswith("ValueError: ") else f"\n{done.stderr.strip()}"
        raise BuildError(f'Cannot build "{source.name}": {reason}{trace}')
    described: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    return described


def _copy_sources(source: Path, files: list[Path], target: Path) -> list[Path]:
    """A copy, since the compiler's Python leaves its own files beside what it imports.

    :returns: where packages of others lie, of which no copy is made
    """
    ignored = shutil.ignore_patterns("__pycache__", ".*")
    shutil.copytree(_PACKAGE, target / "brain", ignore=shutil.ignore_patterns("__pycache__", "build"))
    folder = source.parent
    own = [one for one in files if folder in one.parents and "site-packages" not in one.parts]
    for top in {folder / one.relative_to(folder).parts[0] for one in own}:
        if top.is_dir():
            shutil.copytree(top, target / top.name, ignore=ignored, dirs_exist_ok=True)
        else:
            shutil.copy(top, target)
    for one in folder.iterdir():
        is_data = one.is_file() and not one.name.startswith(".") and one.suffix != ".py"
        if is_data and one.stat().st_size <= _MAX_DATA_FILE:
            shutil.copy(one, target)
    others = [one for one in files if one not in own]
    homes = [Path(entry).resolve() for entry in sys.path if entry and Path(entry).is_dir()]
    return [home for home in dict.fromkeys(homes) if any(home in one.parents for one in others)]


@dataclass(frozen=True)
class _Compiling:
    """What the components of one file have in common."""

    module: str
    imports: list[str]
    sources: Path
    paths: list[Path]
    out: Path
    compiler: str
    say: Callable[[str], None]

    def build(self, tool: dict[str, Any]) -> Built:
        name = tool["metadata"]["name"]
        started = time.monotonic()
        self.say(f"Compiling {name}")
        entry = _entry(self.module, tool["variable"], self.imports)
        (self.sources / f"{_ENTRY}.py").write_text(entry, encoding="utf-8")
        target = self.out / f"{name}.wasm"
        # Named beforehand: an interrupt right after it was made must find it too, which a temporary directory's own does not.
        aside = self.out / f".{name}-{os.getpid()}"
        try:
            aside.mkdir()
            component = aside / "component.wasm"
            _componentize(name, self.compiler, [self.sources, *self.paths], component)
            with component.open("ab") as file:
                file.write(_section(metadata_text(tool["metadata"])))
            component.replace(target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        size = target.stat().st_size
        self.say(f"Compiled {target.name} ({size / 1e6:.1f} MB, {time.monotonic() - started:.1f} s)")
        return Built(name, target.resolve(), size)


def _entry(module: str, variable: str, imports: list[str]) -> str:
    """The module that the compiler starts from.

    Its last lines save two megabytes: memory is frozen with what was in it, also where it is free. What compiling the
    imported sources left there is overwritten with zeros, which are not stored. Blocks below 1 KiB would save nothing,
    since each run of zeros costs an entry in a table.
    """
    return f"""\
import gc
import importlib

for name in {imports!r}:
    try:
        importlib.import_module(name)
    except Exception:
        pass  # then the tool meets the same error when it comes to that import

from brain.component.serve import serve
from {module} import {variable}

WitWorld = serve({variable})

gc.collect()
zeros = [bytes(size) for size in (65536, 32768, 16384, 8192, 4096, 2048, 1024) for _ in range(2**20 // size)]
del zeros
"""


def _componentize(name: str, compiler: str, paths: list[Path], target: Path) -> None:
    command = [compiler, "-c", _COMPILE, "--quiet", "--wit-path", str(_WIT), "--world", "tool"]
    command += ["componentize", _ENTRY, "--output", str(target)]
    for path in paths:
        command += ["--python-path", str(path)]
    # Set by some shells, and then in the way of modules of the same name.
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=paths[0])
    if done.returncode:
        raise BuildError(f'Cannot compile "{name}": componentize-py says\n{done.stdout}{done.stderr}'.rstrip())


def _leb128(number: int) -> bytes:
    encoded = bytearray()
    while True:
        low, number = number & 0x7F, number >> 7
        encoded.append(low | (0x80 if number else 0))
        if not number:
            return bytes(encoded)


def _section(text: bytes) -> bytes:
    """A custom section, which is legal anywhere in a component: so it goes last."""
    body = _leb128(len(SECTION)) + SECTION + text
    return b"\0" + _leb128(len(body)) + body
