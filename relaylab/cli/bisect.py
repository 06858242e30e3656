"""The command `relaylab bisect`: which rewrite changed the numbers."""

from __future__ import annotations

import argparse

from relaylab.cli.command import JSON, Command, json_text, passes_of, say
from relaylab.lab.options import LEVEL, PASSES, PROGRAM, MagicOption
from relaylab.support.formats import SHAPES, words


def bisect_command(args: argparse.Namespace) -> int:
    """`relaylab bisect NET|FILE`: status 1 if a pass changes the numbers, or raises."""
    from relaylab import study

    finding = study.bisect(study.load(args.program), args.opt_level, passes_of(args.passes))
    if finding is not None and args.output:
        say(f"wrote {finding.save(args.output)}", quiet=args.json)
    found = None if finding is None else finding.to_dict()
    unwritten = f": {args.output} is not written" if args.output else ""
    say(json_text(found) if args.json else str(finding or f"every pass keeps the numbers{unwritten}"))
    return 0 if finding is None else 1


COMMAND = Command(
    "bisect",
    "name the pass and the rewrite that first changes the numbers, or the pass that raises",
    (
        PROGRAM,
        LEVEL,
        JSON,
        PASSES,
        MagicOption(
            "-o",
            "--output",
            metavar="FILE",
            help=f"write a program that shows it (.py), or the picture of the values: {words(SHAPES)}",
        ),
    ),
    ("relaylab bisect resnet8 -o reproducer.py", "which rewrite changed the numbers, as a program"),
    bisect_command,
)
