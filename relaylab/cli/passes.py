"""The command `relaylab passes`: the table of passes, or a pipeline run."""

from __future__ import annotations

import argparse
import json

from relaylab.cli.command import JSON, Command, passes_of, save_exploration, say
from relaylab.lab.options import LEVEL, NO_VERIFY, PASSES, PROGRAM, WORTH, MagicOption


def passes_command(args: argparse.Namespace) -> int:
    """`relaylab passes [NET|FILE]`"""
    from relaylab.transform import PASSES

    if args.program is None:
        rows = [{"name": e.name, "opt_level": e.info.opt_level, "summary": e.summary} for e in PASSES.values()]
        say(
            json.dumps(rows, indent=1)
            if args.json
            else "\n".join(f"{r['name']:<28}{r['opt_level']}  {r['summary']}" for r in rows)
        )
        return 0
    from relaylab import explorer, study

    chosen = passes_of(args.passes)
    exploration = study.explore(args.program, args.opt_level, chosen, not args.no_verify)
    if args.heat:
        say(f"wrote {explorer.heat(exploration).save(args.heat)}", quiet=args.json)
    for path in args.output or ():
        say(f"wrote {save_exploration(exploration, chosen, path)}", quiet=args.json)
    if args.worth and exploration.history.error is None:
        say(str(study.worth(exploration)), quiet=args.json)
    if args.json:
        say(json.dumps(exploration.to_dict(), indent=1))
    elif not args.worth:
        for row in exploration.rows:
            say(str(row))
    if args.text:
        say(f"\n{exploration.history.mod}")
    if exploration.history.error is not None:
        raise exploration.history.error
    return 0


COMMAND = Command(
    "passes",
    "list the passes, or run the pipeline and list what each did",
    (
        PROGRAM.but(nargs="?"),
        LEVEL,
        JSON,
        PASSES,
        MagicOption("--text", action="store_true", help="print the program at the end"),
        NO_VERIFY,
        WORTH,
        MagicOption(
            "--heat", metavar="FILE", help="write one picture of how much each pass changed (.svg .pdf .html .png .txt)"
        ),
        MagicOption(
            "-o",
            "--output",
            metavar="FILE",
            action="append",
            help="write the explorer (.html), the pictures (.pdf …) or the run (.rlab)",
        ),
    ),
    ("relaylab passes resnet18 -p FoldConstant,FuseOps", "what two passes do"),
    passes_command,
)
