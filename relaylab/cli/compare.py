"""The command `relaylab compare`: what another compiler fuses in a program that relaylab does not, and back."""

from __future__ import annotations

import argparse

from relaylab.cli.command import JSON, Command, json_text, say
from relaylab.lab.options import LEVEL, OUTPUT, PROGRAM, MagicOption


def compare_command(args: argparse.Namespace) -> int:
    """`relaylab compare NET|FILE --with onnxruntime|DUMP`"""
    from relaylab import study

    found = study.compare_compilers(args.program, args.other, args.opt_level)
    if args.output:
        say(f"wrote {found.save(args.output)}", quiet=args.json)
    say(json_text(found.to_dict()) if args.json else str(found))
    return 0


COMMAND = Command(
    "compare",
    "what another compiler fuses in a program that relaylab does not, and the other way round",
    (
        PROGRAM,
        MagicOption(
            "--with",
            dest="other",
            metavar="COMPILER|DUMP",
            default="onnxruntime",
            help="onnxruntime (default), the optimized .onnx that it wrote, a trace of TorchInductor, or XLA's text",
        ),
        OUTPUT,
        LEVEL,
        JSON,
    ),
    ("relaylab compare resnet18 -o kernels.svg", "our kernels beside those of ONNX Runtime"),
    compare_command,
)
