"""The command `relaylab viz`: a program as a picture."""

from __future__ import annotations

import argparse

from relaylab.cli.command import Command, say
from relaylab.lab.options import A4, ARRANGING, DRAWING, OUTPUT, PROGRAM, chosen, on_paper


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
        say(f"wrote {picture.save(args.output, **on_paper(args))}")
    return 0


COMMAND = Command(
    "viz",
    "draw a program; without a file to write to, as a tree of characters",
    (PROGRAM, OUTPUT, A4, *DRAWING, *ARRANGING),
    ("relaylab viz mobilenet --fold -o mobilenet.pdf", "a picture; repeated blocks as one card"),
    viz_command,
)
