"""The command `relaylab passes`: the table of passes, or a pipeline run."""

from __future__ import annotations

import argparse

from relaylab.cli.command import JSON, Command, code, json_text, passes_of, save_exploration, say, stopped
from relaylab.lab.options import A4, LANGUAGE, LEVEL, NO_VERIFY, PASSES, PROGRAM, WORTH, MagicOption, on_paper
from relaylab.support.formats import SEVERAL, SHAPES, words


def passes_command(args: argparse.Namespace) -> int:
    """`relaylab passes [NET|FILE]`"""
    from relaylab.transform import PASSES

    if args.program is None:
        rows = [{"name": e.name, "opt_level": e.info.opt_level, "summary": e.summary} for e in PASSES.values()]
        table = "\n".join(f"{r['name']:<26}  {r['opt_level']}  {r['summary']}" for r in rows)
        say(json_text(rows, indent=1) if args.json else table)
        return 0
    from relaylab import explorer, study

    exploration = study.explore(args.program, args.opt_level, passes_of(args.passes), not args.no_verify)
    if args.heat:
        say(f"wrote {explorer.heat(exploration).save(args.heat, **on_paper(args))}", quiet=args.json)
    for path in args.output or ():
        written = save_exploration(exploration, path, language=args.lang, **on_paper(args))
        say(f"wrote {written}", quiet=args.json)
    if args.worth and exploration.crash is None:
        say(str(study.worth(exploration)), quiet=args.json)
    if args.json:
        say(json_text(exploration.to_dict(), indent=1))
    elif not args.worth:
        for row in exploration.rows:
            say(str(row))
    if args.text:
        say(code(f"\n{exploration.history.mod}", "relay"))
    return stopped(exploration, args)


COMMAND = Command(
    "passes",
    "list the passes, or run the pipeline and list what each did",
    (
        PROGRAM.but(nargs="?"),
        LEVEL,
        JSON,
        PASSES,
        LANGUAGE,
        MagicOption("--text", action="store_true", help="print the program at the end"),
        NO_VERIFY,
        WORTH,
        MagicOption("--heat", metavar="FILE", help=f"write one picture of how much each pass changed: {words(SHAPES)}"),
        MagicOption(
            "-o",
            "--output",
            metavar="FILE",
            action="append",
            help=f"write the explorer (.html), the run (.rlab), or the pictures: {words(SEVERAL)}",
        ),
        A4,
    ),
    ("relaylab passes resnet18 -p FoldConstant,FuseOps", "what two passes do"),
    passes_command,
)
