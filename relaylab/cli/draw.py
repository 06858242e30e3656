"""The command `relaylab viz`: a program as a picture."""

from __future__ import annotations

import argparse

from relaylab.cli.command import Command, say
from relaylab.lab.options import ARRANGING, DRAWING, PROGRAM, MagicOption, chosen


def viz_command(args: argparse.Namespace) -> int:
    """`relaylab viz NET|FILE -o PICTURE`"""
    from relaylab import study, viz

    program = study.load(args.program)
    picture = viz.show(
        program.mod,
        title=program.name,
        params=args.params,
        direction=args.direction,
        engine=args.engine,
        **chosen(args),
    )
    if args.output is None:
        say(str(picture))
    else:
        say(f"wrote {picture.save(args.output)}")
    return 0


COMMAND = Command(
    "viz",
    "draw a program",
    (
        PROGRAM,
        MagicOption(
            "-o",
            "--output",
            metavar="FILE",
            help="a .svg, .pdf, .png, .html, .dot, .txt or .json file; without it a tree is printed",
        ),
        *DRAWING,
        *ARRANGING,
    ),
    ("relaylab viz mobilenet --fold -o mobilenet.pdf", "a picture; repeated blocks as one card"),
    viz_command,
)
