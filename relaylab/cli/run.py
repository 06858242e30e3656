"""The commands `relaylab run` and `relaylab run-tvm`: a program of numbers, and a program in Python that uses Relay."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from relaylab.cli.command import JSON, Command, json_text, say
from relaylab.lab.options import LEVEL, PROGRAM, SEED, MagicOption
from relaylab.support.errors import RelayValueError
from relaylab.support.words import counted

if TYPE_CHECKING:
    import numpy as np


def run_command(args: argparse.Namespace) -> int:
    """`relaylab run NET|FILE`"""
    from relaylab import study

    given = dict(_given(text) for text in args.input or ())
    found = study.run(study.load(args.program), given, args.opt_level, args.seed, args.executor)
    leaves = found if isinstance(found, list) else [found]
    if (args.output or args.json) and any(a.dtype.hasobject for a in leaves):
        raise RelayValueError("the program gives a function or a cell, which is no array", code="cli.output")
    if args.output:
        _write(args.output, leaves)
        say(f"wrote {args.output}", quiet=args.json)
    if args.json:
        say(json_text([{"shape": a.shape, "dtype": str(a.dtype), "values": a.ravel().tolist()} for a in leaves]))
    elif not args.output:
        say("\n".join(f"{a.dtype}{list(a.shape)}\n{a}" for a in leaves))
    return 0


def _given(text: str) -> tuple[str, np.ndarray]:
    """The name and the array of `x=file.npy`."""
    from zipfile import BadZipFile

    import numpy as np
    from ml_dtypes import bfloat16

    name, separator, path = text.partition("=")
    if not separator:
        raise RelayValueError(f"`{text}` names no file", code="cli.input", help="write --input NAME=FILE.npy")
    try:
        loaded = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        why = getattr(error, "strerror", None) or "it is no array that numpy wrote"
        raise RelayValueError(f"cannot read {path}: {why}", code="cli.input", help="numpy.save writes it") from None
    if not isinstance(loaded, np.ndarray):
        raise RelayValueError(f"{path} holds several arrays", code="cli.input", help="numpy.save writes one")
    return name, loaded.view(bfloat16) if loaded.dtype == "V2" else loaded  # numpy has no name for it


def _write(path: str, leaves: list[np.ndarray]) -> None:
    """The result as `.npy`, or several of them as `.npz`: arr_0, arr_1 …"""
    import numpy as np

    try:
        if path.endswith(".npz"):
            np.savez(path, *leaves)
        elif len(leaves) == 1 and path.endswith(".npy"):  # numpy would append it
            np.save(path, leaves[0])
        else:
            raise RelayValueError(
                f"the program gives {counted(len(leaves), 'array')}, which {path} cannot hold",
                code="cli.output",
                help=f"name a file that ends in {'.npy or ' if len(leaves) == 1 else ''}.npz",
            )
    except OSError as error:
        raise RelayValueError(f"cannot write {path}: {error.strerror}", code="cli.output") from None


def run_tvm_command(args: argparse.Namespace) -> int:
    """`relaylab run-tvm SCRIPT [ARGS]`"""
    from relaylab.compat.script import run_script

    return run_script(args.script, args.rest)


RUN = Command(
    "run",
    "run a program on given or seeded inputs and print what it gives",
    (
        PROGRAM,
        LEVEL,
        JSON,
        SEED,
        MagicOption(
            "--input", metavar="NAME=FILE", action="append", help="an input from a .npy file; others are seeded"
        ),
        MagicOption("-o", "--output", metavar="FILE", help="write the result (.npy; several: .npz), print nothing"),
        MagicOption(
            "--executor", choices=("graph", "vm", "debug"), help="default: graph, or vm for programs with control flow"
        ),
    ),
    ("relaylab run mlp --seed 3", "what it gives"),
    run_command,
)
RUN_TVM = Command(
    "run-tvm",
    "run a Relay program written for TVM",
    (
        MagicOption("script", help="a program in Python that imports tvm"),
        MagicOption("rest", nargs=argparse.REMAINDER, metavar="...", default=[], help="arguments for the program"),
    ),
    ("relaylab run-tvm tutorial.py", "a program written for TVM"),
    run_tvm_command,
)
