"""The command `relaylab diff`: what differs between programs, recorded runs, pipelines."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from relaylab.cli.command import JSON, Command, json_text, say
from relaylab.lab.options import A4, LEVEL, OUTPUT, PIPELINES, PROGRAM, REWRITES, TIME, MagicOption, on_paper
from relaylab.support.errors import RelayValueError

if TYPE_CHECKING:
    from relaylab.study import Comparison, Quantity, Recording, Rewrites


def diff_command(args: argparse.Namespace) -> int:
    """`relaylab diff A B`"""
    from relaylab import study, viz
    from relaylab.study.compare import end_quantities
    from relaylab.viz.diffs.tokens import for_stream

    if args.other and args.program.endswith(".rlab") and args.other.endswith(".rlab"):
        return runs_compared([study.reopen(args.program), study.reopen(args.other)], args)
    if args.pipelines:
        a, b = args.pipelines
        return compared(study.compare(args.program, a, b, args.opt_level), args)
    if args.rewrites:
        return rewrites_told(study.rewrites(args.program, args.rewrites), args)
    if args.other is None:
        raise RelayValueError(
            "there is nothing to compare with", code="cli.other", help="name another program, or --pipelines A B"
        )
    first, second = study.load(args.program), study.load(args.other)
    difference = viz.diff(first.mod, second.mod)
    if args.output:
        say(f"wrote {difference.save(args.output, **on_paper(args))}", quiet=args.json)
    lines = for_stream(str(difference), sys.stdout)
    say(json_text(difference.counts) if args.json else f"{lines}\n{difference!r}")
    return judged(end_quantities(first.mod, second.mod) if args.fail_on else (), args)


def compared(comparison: Comparison, args: argparse.Namespace) -> int:
    """Two pipelines over one program: the table, or data."""
    if args.output:
        say(f"wrote {comparison.difference().save(args.output, **on_paper(args))}", quiet=args.json)
    if args.json:
        found = {q.name: [q.a, q.b] for q in comparison.quantities}
        say(json_text({"names": comparison.names, "figures": found, "roles": comparison.difference().counts}))
    else:
        say("\n".join(map(str, [comparison, *(comparison.measured() if args.time else [])])))
    return judged(comparison.quantities, args)


def runs_compared(runs: list[Recording], args: argparse.Namespace) -> int:
    """Two recorded runs: their figures, and the picture of what differs at the ends if asked for."""
    from relaylab import study, viz
    from relaylab.study.compare import headed

    quantities = study.compare_recordings(*runs)
    if args.output:
        difference = viz.diff(runs[0].module(), runs[1].module())
        say(f"wrote {difference.save(args.output, **on_paper(args))}", quiet=args.json)
    table = "\n".join([headed(Path(args.program).name, Path(args.other).name), *map(str, quantities)])
    say(json_text({q.name: [q.a, q.b] for q in quantities}) if args.json else table)
    return judged(quantities, args)


def rewrites_told(found: Rewrites, args: argparse.Namespace) -> int:
    """The single rewrites of a pass: text with the changed lines, or data; the pairs of pictures as a file."""
    from relaylab.viz.diffs.tokens import for_stream

    if args.output:
        say(f"wrote {found.save(args.output, **on_paper(args))}", quiet=args.json)
    if args.json:
        told = [
            {"rule": r.rule, "at": r.location, "names": {b.name: b.words for b in r.bindings}, "lines": r.text}
            for r in found
        ]
        say(json_text(told))
    else:
        say(for_stream(str(found), sys.stdout))
    return 0


def judged(quantities: Sequence[Quantity], args: argparse.Namespace) -> int:
    """Status 1 if a limit of `--fail-on` is broken."""
    from relaylab import study

    broken = study.exceeded(quantities, args.fail_on or ())
    for words in broken:
        say(words, quiet=args.json)
    return 1 if broken else 0


COMMAND = Command(
    "diff",
    "what differs between two programs, two recorded runs, or two pipelines",
    (
        PROGRAM,
        MagicOption("other", metavar="OTHER", nargs="?", help="the program to compare with"),
        PIPELINES,
        REWRITES,
        TIME,
        MagicOption(
            "--fail-on",
            metavar="FIGURE+N%",
            action="append",
            help="status 1 if a figure of B is larger by more: flops+5%% bytes+0%% …",
        ),
        OUTPUT,
        A4,
        LEVEL,
        JSON,
    ),
    ("relaylab diff before.relay after.relay", "what differs"),
    diff_command,
)
