#!/usr/bin/env python3
"""Builds Python tools as components.

usage: build.py [--cache DIR] [--out DIR] [FOLDER...]

A tool is a folder with ``tool.py``, whose function ``run`` is called, and ``tool.json``, its metadata; without FOLDER,
every such folder beside this file is built. Needs Python 3.10 or newer with pip and venv, and nothing installed: the
compiler goes into a virtual environment under --cache (default: .venv here). Components go to --out (default: dist).
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
WIT = HERE.parent / "wit" / "tool.wit"
REQUIREMENTS = HERE / "requirements.txt"
SECTION = "brain:tool-metadata"
OLDEST_PYTHON = (3, 10)

# The component holds a snapshot of the interpreter after its imports; the standard library itself is not in it. So
# whatever is imported later must be imported now: by the tool's functions (which are searched), or by the library on
# its own, as these are.
IMPORTED_BY_THE_LIBRARY = [
    "_strptime",
    "encodings.ascii",
    "encodings.cp1252",
    "encodings.idna",
    "encodings.latin_1",
    "encodings.punycode",
    "encodings.utf_16",
    "encodings.utf_16_be",
    "encodings.utf_16_le",
    "encodings.utf_32",
    "encodings.utf_8_sig",
    "fnmatch",
    "glob",
    "linecache",
    "shutil",
    "tempfile",
]


def say(text: str) -> None:
    print(text, flush=True)


def fail(action: str, reason: str) -> None:
    sys.exit(f"Cannot {action}: {reason}")


def prepare_compiler(cache: Path) -> Path:
    """The Python of a virtual environment that holds componentize-py; made once per version of both."""
    pinned = REQUIREMENTS.read_text().strip()
    key = hashlib.sha256(f"{sys.version}\n{pinned}".encode()).hexdigest()[:16]
    ready = cache / f"compiler-{key}"
    if not ready.exists():
        say(f"Installing {pinned}")
        cache.mkdir(parents=True, exist_ok=True)
        # Made aside and renamed, so that two builds at once, or one that is interrupted, leave no half of it.
        with tempfile.TemporaryDirectory(dir=cache, prefix="compiler-") as aside:
            install(Path(aside) / "venv")
            try:
                (Path(aside) / "venv").rename(ready)
            except OSError:
                if not ready.exists():
                    raise
    return ready / "bin" / "python"


def install(venv: Path) -> None:
    remedy = "install Python's venv and pip (on Debian and Ubuntu: apt-get install python3-venv)"
    made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True)
    if made.returncode:
        fail("make a virtual environment", f"{remedy}\n{made.stdout}{made.stderr}".rstrip())
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--quiet"]
    installed = subprocess.run([*pip, "install", "--requirement", str(REQUIREMENTS)], capture_output=True, text=True)
    if installed.returncode:
        fail(f"install {REQUIREMENTS.name}", f"pip says\n{installed.stdout}{installed.stderr}".rstrip())


def imports_in(source: Path) -> set[str]:
    """Every module that a file imports anywhere, also inside its functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"), filename=str(source))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names.add(node.module)
    return names - {"__future__"}


def entry(folder: Path) -> str:
    """The module that componentize-py starts from."""
    sources = [*sorted(folder.rglob("*.py")), HERE / "brain_guest.py"]
    preloaded = sorted(set(IMPORTED_BY_THE_LIBRARY).union(*map(imports_in, sources)))
    return f"""\
import importlib

for name in {preloaded!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        pass  # then the tool meets the same error when it comes to that import

from brain_guest import serve
from tool import run

WitWorld = serve(run)
"""


def componentize(python: Path, folder: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        # Built from a copy: the compiler's Python leaves its own files beside what it imports.
        shutil.copytree(folder, scratch, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(HERE / "brain_guest.py", scratch)
        (Path(scratch) / "brain_entry.py").write_text(entry(folder), encoding="utf-8")
        command = [str(python), "-c", "import sys, componentize_py; sys.exit(componentize_py.script())", "--quiet"]
        command += ["--wit-path", str(WIT), "--world", "tool", "componentize", "brain_entry", "--output", str(target)]
        command += ["--python-path", scratch]
        # Set by some shells and then in the way of modules of the same name.
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=scratch)
    if done.returncode:
        fail(f'compile "{folder.name}"', f"componentize-py says\n{done.stdout}{done.stderr}".rstrip())


def leb128(number: int) -> bytes:
    encoded = bytearray()
    while True:
        low, number = number & 0x7F, number >> 7
        encoded.append(low | (0x80 if number else 0))
        if not number:
            return bytes(encoded)


def metadata_section(metadata: Path) -> bytes:
    """The custom section from which Brain learns the tool's name and schemas; legal anywhere, so it goes last."""
    text = json.dumps(json.loads(metadata.read_text(encoding="utf-8")), ensure_ascii=False, separators=(",", ":"))
    name = SECTION.encode()
    body = leb128(len(name)) + name + text.encode()
    return b"\0" + leb128(len(body)) + body


def build(python: Path, folder: Path, out: Path) -> None:
    metadata = folder / "tool.json"
    for file in (folder / "tool.py", metadata):
        if not file.is_file():
            fail(f'build "{folder}"', f"there is no {file.name}")
    started = time.monotonic()
    say(f"Compiling {folder.name}")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix="build-") as aside:
        component = Path(aside) / "component.wasm"
        componentize(python, folder, component)
        with component.open("ab") as file:
            file.write(metadata_section(metadata))
        target = out / f"{folder.name}.wasm"
        shutil.move(component, target)
    size = target.stat().st_size / 1e6
    say(f"Compiled {target.name} ({size:.1f} MB, {time.monotonic() - started:.1f} s)")


def main() -> None:
    if sys.version_info < OLDEST_PYTHON:
        fail("build", f"this is Python {sys.version.split()[0]}, and 3.10 or newer is needed")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="*", type=Path)
    parser.add_argument("--cache", type=Path, default=HERE / ".venv")
    parser.add_argument("--out", type=Path, default=HERE / "dist")
    parser.add_argument("--compiler-only", action="store_true", help="print the compiler's Python and build nothing")
    arguments = parser.parse_args()
    python = prepare_compiler(arguments.cache.resolve())
    if arguments.compiler_only:
        say(str(python))
        return
    for folder in arguments.folder or sorted(path.parent for path in HERE.glob("*/tool.py")):
        build(python, folder.resolve(), arguments.out.resolve())


if __name__ == "__main__":
    main()
