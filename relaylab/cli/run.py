"""The commands `relaylab run` and `relaylab run-tvm`: a program of numbers, and a program in Python that uses Relay."""

from __future__ import annotations

import argparse
import json

from relaylab.cli.command import JSON, Command, say
from relaylab.lab.options import LEVEL, PROGRAM, SEED, MagicOption


def run_command(args: argparse.Namespace) -> int:
    """`relaylab run NET|FILE`"""
    from relaylab import relay, study
    from relaylab.interp import random_inputs

    program = study.load(args.program)
    mod = relay.transform.InferType()(program.mod)
    given = dict(program.params)
    values = [given.get(p.name_hint, v) for p, v in zip(mod["main"].params, random_inputs(mod["main"], args.seed))]
    kind = args.executor or ("vm" if study.needs_vm(mod) else "graph")
    with relay.transform.PassContext(opt_level=args.opt_level):
        leaves = study.leaves(relay.create_executor(kind, mod).evaluate()(*values))
    if args.json:
        say(
            json.dumps(
                [{"shape": list(a.shape), "dtype": str(a.dtype), "values": a.ravel()[:1000].tolist()} for a in leaves]
            )
        )
    else:
        say("\n".join(f"{a.dtype}{list(a.shape)}\n{a}" for a in leaves))
    return 0


def run_tvm_command(args: argparse.Namespace) -> int:
    """`relaylab run-tvm SCRIPT [ARGS]`"""
    from relaylab.compat.script import run_script

    return run_script(args.script, args.rest)


RUN = Command(
    "run",
    "run a program on seeded inputs and print what it gives",
    (
        PROGRAM,
        LEVEL,
        JSON,
        SEED,
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
