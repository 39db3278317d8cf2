"""Compiles the tools of a Python file to components.

usage: python -m brain.build [--out DIR] [--json] [--compiler PYTHON] SOURCE
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import signal
import sys
from pathlib import Path

from .compile import BuildError, build

_REMEDY = 'componentize-py is not installed here. Run: pip install "brain-patterns[build]"'


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m brain.build", description="Compile tools to components.")
    parser.add_argument("source", type=Path, help="a Python file with functions under @tool")
    parser.add_argument("--out", type=Path, default=Path("dist"), help="where NAME.wasm goes (default: dist)")
    parser.add_argument("--json", action="store_true", help="end with one line of JSON that lists what was made")
    parser.add_argument("--compiler", help="a Python that has componentize-py (default: this one)")
    options = parser.parse_args()
    if options.compiler is None and importlib.util.find_spec("componentize_py") is None:
        print(f'Cannot build "{options.source}": {_REMEDY}', file=sys.stderr)
        return 1
    try:
        built = build(
            options.source, options.out, options.compiler or sys.executable, lambda line: print(line, flush=True)
        )
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    if options.json:
        listed = [{"name": one.name, "component": str(one.component), "bytes": one.bytes} for one in built]
        print(json.dumps({"tools": listed}))
    return 0


if __name__ == "__main__":
    # Asked to stop, it removes what it has begun, as for Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
