"""The commands `relaylab profile` and `relaylab asm`: the kernels of a program, their times and their code."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from relaylab.cli.command import JSON, Command, code, json_text, say
from relaylab.lab.options import (
    A4,
    KERNEL,
    LEVEL,
    LLVM_PASSES,
    NUMBER,
    OPERATORS,
    OUTPUT,
    PROGRAM,
    TARGET,
    MagicOption,
    on_paper,
)
from relaylab.support.formats import words


def profile_command(args: argparse.Namespace) -> int:
    """`relaylab profile NET|FILE`"""
    from relaylab import study

    program = study.load(args.program)
    if args.operators:
        table = study.operator_table(program, args.opt_level, args.number, args.target).sorted(args.operators)
        say(json_text([asdict(row) for row in table.rows]) if args.json else str(table))
        return 0
    report = study.profile(program, args.opt_level, args.number, args.target)
    say(report.json() if args.json else report.table())
    return 0


def asm_command(args: argparse.Namespace) -> int:
    """`relaylab asm NET|FILE [KERNEL]`"""
    from relaylab import study
    from relaylab.text import colours
    from relaylab.viz.diffs.tokens import for_stream

    program = study.load(args.program)
    lib = study.compiled(program, args.opt_level, args.target)
    if args.output:
        say(f"wrote {study.control_flow(lib, args.kernel).save(args.output, **on_paper(args))}")
        return 0
    if args.llvm_passes:
        steps = study.llvm_steps(lib, args.kernel or "")
        say(for_stream("\n".join(f"{step}\n{step.diff()}".rstrip() for step in steps), sys.stdout))
        return 0
    say(code(study.listing(lib, args.kernel, args.stage), colours.STAGES.get(args.stage or "", "")))
    return 0


PROFILE = Command(
    "profile",
    "measure the time of each kernel",
    (PROGRAM, LEVEL, TARGET, JSON, NUMBER, OPERATORS),
    ("relaylab profile resnet18 --operators", "how the time is shared among operators"),
    profile_command,
)
ASM = Command(
    "asm",
    "show a kernel: loops, why it has them, LLVM IR, assembly; without a name the table of kernels",
    (
        PROGRAM,
        LEVEL,
        TARGET,
        KERNEL,
        LLVM_PASSES,
        MagicOption(
            "--stage", default="asm", help="relay, loop, why, llvm, llvm-optimized, flow, asm (default), or all"
        ),
        OUTPUT.but(help=f"draw the kernel's control flow: {words()}"),
        A4,
    ),
    ("relaylab asm resnet18 conv2d --stage llvm", "a kernel on its way down"),
    asm_command,
)
