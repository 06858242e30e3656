"""The command `relaylab why`: why a pass does nothing, or which would do something."""

from __future__ import annotations

import argparse

from relaylab.cli.command import JSON, Command, json_text, passes_of, say
from relaylab.lab.options import FIRST, MOST, PROGRAM, SELECT, MagicOption


def why_command(args: argparse.Namespace) -> int:
    """`relaylab why NET|FILE [PASS]`"""
    from relaylab import study

    found = study.why(args.program, args.rules, args.select, passes_of(args.passes) or (), args.most)
    if not args.json:
        say(str(found))
    elif isinstance(found, study.Suggestions):
        say(json_text([{"pass": s.name, "ms": s.seconds * 1e3, "delta": s.delta} for s in found]))
    else:
        say(
            json_text(
                {
                    "pass": found.name,
                    "note": found.note,
                    "reasons": [
                        {
                            "rule": r.rule,
                            "at": r.location,
                            "why": r.why,
                            "near": r.near,
                            "steps": [[s.words, s.holds] for s in r.steps],
                        }
                        for r in found.reasons
                    ],
                }
            )
        )
    return 0


COMMAND = Command(
    "why",
    "why a pass does nothing to a program; without a pass: which passes would change it now",
    (
        PROGRAM,
        MagicOption("rules", nargs="?", metavar="PASS", help="a pass, with its options if need be"),
        SELECT,
        FIRST,
        MOST,
        JSON,
    ),
    ("relaylab why resnet18 FuseOps -s op:nn.dense", "why a pass does nothing there"),
    why_command,
)
