"""The command `relaylab explain`: what an error means."""

from __future__ import annotations

import argparse

from relaylab.cli.command import JSON, Command, json_text, say
from relaylab.lab.options import MagicOption


def explain_command(args: argparse.Namespace) -> int:
    """`relaylab explain CODE`"""
    from relaylab import study

    found = study.explain(args.code)
    if args.json:
        lesson = found.lesson._asdict() if found.lesson else None
        says = [{"message": message, "help": help} for message, help in found.says]
        say(json_text({"code": found.code, "says": says, "lesson": lesson}))
    else:
        say(str(found))
    return 0


COMMAND = Command(
    "explain",
    "what an error means, with an example and how to mend it",
    (MagicOption("code", metavar="CODE", help="what stands in the brackets: error[CODE]"), JSON),
    ("relaylab explain parse.unexpected-token", "what an error means"),
    explain_command,
)
