"""The command `relaylab viz`: a program as a picture."""

from __future__ import annotations

import argparse
from pathlib import Path

from relaylab.cli.command import Command, say
from relaylab.lab.options import A4, ARRANGING, DRAWING, OUTPUT, PROGRAM, chosen, on_paper


def viz_command(args: argparse.Namespace) -> int:
    """`relaylab viz NET|FILE -o PICTURE`: a program, or a graph that was written as JSON"""
    from relaylab import study, viz
    from relaylab.study.program import text_of

    path = Path(args.program)
    if path.suffix == ".json":
        shown, title = viz.from_json(text_of(path)), path.stem
    else:
        program = study.load(args.program)
        shown, title = program.mod, program.name
    picture = viz.show(
        shown, title=title, params=args.params, direction=args.direction, engine=args.engine, **chosen(args)
    )
    if args.output is None:
        say(str(picture))
    else:
        say(f"wrote {picture.save(args.output, **on_paper(args))}")
    return 0


COMMAND = Command(
    "viz",
    "draw a program; without a file to write to, as a tree of characters",
    (
        PROGRAM.but(help="a network, a file of a program, or a graph as .json (relaylab's own, or Model Explorer's)"),
        OUTPUT,
        A4,
        *DRAWING,
        *ARRANGING,
    ),
    ("relaylab viz mobilenet --fold -o mobilenet.pdf", "a picture; repeated blocks as one card"),
    viz_command,
)
