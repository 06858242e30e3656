"""The command `relaylab site`: networks, steps and lessons as a site of files."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from relaylab.cli.command import Command, folder, progress, say
from relaylab.lab.options import MagicOption
from relaylab.support.errors import RelayValueError

if TYPE_CHECKING:
    from relaylab.lab.site import Built
    from relaylab.lab.site.lessons import LessonGroup


def site_command(args: argparse.Namespace) -> int:
    """`relaylab site OUT`"""
    from relaylab.cli.notebooks import shipped
    from relaylab.lab.site import build
    from relaylab.lab.site.lessons import LessonGroup
    from relaylab.study import load, timed
    from relaylab.zoo.catalog import NETWORKS

    networks = None if args.networks is None else [n for n in args.networks.split(",") if n]
    for name in {*(networks or ())} - {*NETWORKS}:
        load(name)  # a mistyped name is said before anything is written
    out = folder(args.folder)
    own = Path(args.notebooks) if args.notebooks else None
    if own is not None and not own.is_dir():
        raise RelayValueError(f"there is no folder {own}", code="cli.no-folder")
    groups = (
        lesson_groups(shipped()) if own is None else [LessonGroup("Lessons", "lessons", sorted(own.glob("*.ipynb")))]
    )
    lessons = [] if args.lessons == "none" else [g for g in groups if g.paths]
    progress("building the site …")
    built, seconds = timed(lambda: list(map(_told, build(out, networks, lessons, args.lessons == "run"))))
    total = sum(b.stat().st_size for b in out.rglob("*") if b.is_file())
    say(f"{len(built)} files and notebooks, {total / 1e6:.1f} MB, {seconds:.1f} s")
    say(f"Open {out / 'index.html'} in a browser.")
    return 0


def lesson_groups(notebooks: Path) -> list[LessonGroup]:
    """What comes along: the course in its languages, the other notebooks, and the notes where there is a checkout."""
    from relaylab.lab.site.lessons import LessonGroup

    notes = notebooks.parent / "docs" / "notes"
    return [
        LessonGroup("The course", "course", sorted((notebooks / "course").glob("*.ipynb"))),
        LessonGroup("Notebooks", "lessons", sorted(notebooks.glob("*.ipynb"))),
        LessonGroup("Notes of one page", "notes", [p for p in sorted(notes.glob("*.md")) if p.stem != "index"]),
        LessonGroup("课程", "course/zh", sorted((notebooks / "course" / "zh").glob("*.ipynb"))),
    ]


def _told(made: Built) -> Built:
    """Say what was written, its size and its time."""
    progress("")
    say(f"{made.path}  {made.size / 1e3:.0f} kB  {made.seconds:.1f} s")
    return made


COMMAND = Command(
    "site",
    "write a searchable site of networks with every step, and of the lessons; it works from a file system",
    (
        MagicOption("folder", metavar="OUT", help="the folder of the site"),
        MagicOption("--networks", metavar="A,B", help="these networks or files of programs instead of the whole zoo"),
        MagicOption("--notebooks", metavar="DIR", help="a folder of lessons instead of the ones that come along"),
        MagicOption(
            "--lessons",
            choices=("run", "stored", "none"),
            default="run",
            help="run lessons that have no stored outputs (default), show them as they are, or leave them out",
        ),
    ),
    ("relaylab site out --networks mlp,resnet8", "a site of two networks and the lessons"),
    site_command,
)
