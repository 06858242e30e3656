"""The command `relaylab schedule`: the loops of a kernel by a schedule, with their time."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from relaylab.cli.command import JSON, Command, json_text, say
from relaylab.lab.options import CODE, LEVEL, PROGRAM, TIMELINE, MagicOption


def schedule_command(args: argparse.Namespace) -> int:
    """`relaylab schedule NET|FILE KERNEL [-f FILE]`"""
    from relaylab import study
    from relaylab.study.program import text_of

    if args.steps:
        say(study.schedule_steps())
        return 0
    if args.program is None:
        return args.parser.error("the following arguments are required: NET|FILE")
    text = "\n".join([*([text_of(Path(args.file))] if args.file else []), *args.step])
    trial = study.schedule(study.load(args.program), args.named or args.kernel, text, args.opt_level)
    if args.json:
        before, after = trial.microseconds
        found = {"kernel": trial.kernel, "loops": trial.loops, "us": after, "picked_us": before}
        found |= {"roofline": trial.share, "error": trial.error, "evaluated": trial.evaluated}
        found |= {"timeline": [asdict(moment) for moment in trial.timeline]} if args.timeline else {}
        found |= {"before": trial.before, "llvm": trial.llvm, "asm": trial.assembly} if args.code else {}
        say(json_text(found))
    else:
        say(trial.listing if args.code else str(trial))
        if args.timeline:
            say(trial.history)
    return 0


COMMAND = Command(
    "schedule",
    "the loops of a kernel by a schedule, and their time; without a schedule its plain loops",
    (
        PROGRAM.but(nargs="?"),
        MagicOption("kernel", nargs="?", default="", metavar="KERNEL", help="a kernel's name, or a part of it"),
        MagicOption("--kernel", dest="named", metavar="KERNEL", help="the same by its option"),
        MagicOption("-f", "--file", metavar="FILE", help="the steps, one a line, or loops written out"),
        MagicOption(
            "-s", "--step", action="append", default=[], metavar="STEP", help="one step more, as 'from picked rows=4'"
        ),
        MagicOption("--steps", action="store_true", help="list the steps"),
        CODE,
        TIMELINE,
        LEVEL,
        JSON,
    ),
    ("relaylab schedule mlp nn_dense_add -f tiles.txt", "a kernel by your own loops"),
    schedule_command,
)
