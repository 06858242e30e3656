"""Runs a program that was written for TVM, and shows of its errors what the program itself wrote."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import relaylab
from relaylab.compat.install import install_as_tvm
from relaylab.support.errors import RelayError, RelayValueError

_HOME = f"{Path(relaylab.__file__).parent}/"


def run_script(script: str, args: Sequence[str] = ()) -> int:
    """Run a Python program as `python script args` would, with relaylab as `tvm`; 1 if it raises, else 0.

    An error is printed with the lines of the program that led to it; those of relaylab are left out of
    relaylab's own errors, which are about the program.
    """
    if not Path(script).is_file():
        raise RelayValueError(f"there is no file {script}", code="cli.no-file", help="relaylab run-tvm SCRIPT [ARGS]")
    install_as_tvm()
    sys.argv = [script, *args]
    sys.path.insert(0, str(Path(script).resolve().parent))
    try:
        runpy.run_path(script, run_name="__main__")
    except Exception as error:
        print(told(error, script), file=sys.stderr)
        return 1
    return 0


def told(error: Exception, script: str) -> str:
    """An error with its traceback from the first line of the script on."""
    frames = traceback.extract_tb(error.__traceback__)
    first = next((i for i, frame in enumerate(frames) if frame.filename == script), len(frames))
    ours = isinstance(error, (RelayError, ImportError))
    lines = [f for f in frames[first:] if not (ours and f.filename.startswith(_HOME))]
    last = [str(error)] if isinstance(error, RelayError) else traceback.format_exception_only(error)
    before = [] if lines or isinstance(error, SyntaxError) and error.filename else [f"{script}: "]
    return "".join([*traceback.format_list(lines), *before, *last]).rstrip()
