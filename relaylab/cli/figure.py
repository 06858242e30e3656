"""The command `relaylab figure`: what one pass does, as a figure for a paper."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from relaylab.cli.command import Command, passes_of, say
from relaylab.lab.options import A4, LEVEL, OUTPUT, PASSES, PROGRAM, MagicOption, on_paper
from relaylab.support.errors import RelayValueError
from relaylab.support.quoting import shell_words
from relaylab.support.words import counted

if TYPE_CHECKING:
    from relaylab.viz import Picture, View

POINT = 72 / 25.4
"""Points in a millimetre."""
UNITS = {"": 1.0, "mm": 1.0, "cm": 10.0, "in": 25.4, "pt": 25.4 / 72}
"""Millimetres in a unit of length."""
LEGIBLE = 5.0
"""Points that the smallest text of a figure should have on paper."""


def figure_command(args: argparse.Namespace) -> int:
    """`relaylab figure NET PASS -o FIGURE`"""
    from relaylab import study, viz

    pipeline = study.explore(args.program, args.opt_level, passes_of(args.passes)).pipeline
    stage = pipeline.segments[pipeline.acting(args.name)].main
    merged = viz.diff(stage.before, stage.result, stage, attrs="none").merged if stage else viz.View()
    kinds = viz.exemplars(merged)
    if not kinds:
        raise RelayValueError(
            f"{args.name} changes nothing in this program",
            code="cli.figure",
            help=f"`relaylab why {shell_words(args.program)}` says what would",
        )
    chosen = kinds if args.all else kinds[:1]
    title = args.name + (f" ×{chosen[0].count}" if len(chosen) == 1 and chosen[0].count > 1 else "")
    shown = [name for kind in chosen for name in kind.nodes]
    fewer = (2, 1, 0) if args.hops is None else (args.hops,)
    tries = [(hops, bare) for bare in (False, True) for hops in fewer]
    first = _drawn(merged, shown, title, *tries[0], args.width)
    tried = (first if t == tries[0] else _drawn(merged, shown, title, *t, args.width) for t in tries)
    picture, scale, smallest, hops, bare = next((t for t in tried if t[2] >= LEGIBLE), first)
    options = (
        on_paper(args) or {"width": args.width} if args.output.lower().endswith(".pdf") else {"scale": scale * 96 / 72}
    )
    say(f"wrote {picture.save(args.output, **options)}")
    width = picture.scene.width * scale / POINT
    say(
        f"{counted(len(picture.view.nodes), 'node')}, {counted(hops, 'edge')} around; "
        f"{width:.0f} mm wide, text of at least {smallest:.1f} pt{', names only' if bare else ''}"
    )
    if smallest < LEGIBLE:
        say(f"text below {LEGIBLE:.0f} pt is hard to read: give it a larger --width")
    return 0


def _drawn(
    view: View, shown: list[str], title: str, hops: int, bare: bool, width: float | None
) -> tuple[Picture, float, float, int, bool]:
    """The picture of what is shown and of what is near, its scale on paper, the smallest text in points, the hops,
    and whether names stand alone, without operands, types and notes."""
    from relaylab import viz
    from relaylab.viz.scene.scene import Text

    part = replace(viz.focus(view, shown, hops), title=title, notes=())
    picture = viz.show(_bare(part) if bare else part, attrs="none", types="none" if bare else "nodes", caption=True)
    scale = width * POINT / picture.scene.width if width else 1.0
    sizes = [shape.size for e in picture.scene.elements for shape in e.shapes if isinstance(shape, Text)]
    return picture, scale, scale * min(sizes, default=LEGIBLE), hops, bare


def _bare(view: View) -> View:
    """Names alone; a box around everything goes."""
    whole = len(view.groups) == 1
    nodes = tuple(replace(n, operands=(), note="", group="" if whole else n.group) for n in view.nodes)
    return replace(view, nodes=nodes, groups=() if whole else view.groups)


def millimetres(text: str) -> float:
    """A length as it is written: a number and mm, cm, in or pt; millimetres without a unit. ValueError otherwise."""
    found = re.fullmatch(r"\s*([\d.]+)\s*(mm|cm|in|pt|)\s*", text)
    length = float(found[1]) * UNITS[found[2]] if found else 0.0
    if not length:
        raise ValueError(text)
    return length


COMMAND = Command(
    "figure",
    "what one pass does, as one legible figure",
    (
        PROGRAM,
        MagicOption("name", metavar="PASS", help="the pass, by its name"),
        OUTPUT.but(required=True),
        A4,
        MagicOption("--width", metavar="84mm", type=millimetres, help="how wide it is on paper: mm, cm, in or pt; mm"),
        MagicOption(
            "--hops", metavar="N", type=int, help="how many edges around what changed (2, or as text can be read)"
        ),
        MagicOption("--all", action="store_true", help="every kind of change, not only the most frequent"),
        LEVEL,
        PASSES,
    ),
    ("relaylab figure resnet18 SimplifyInference -o fig.pdf", "a figure for a paper; equal changes once"),
    figure_command,
)
