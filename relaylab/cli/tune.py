"""The command `relaylab tune`: search schedules for the kernels of a program, list and merge records."""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from relaylab.cli.command import CLUSTER, JSON, Command, json_text, progress, say
from relaylab.lab.options import LEVEL, PROGRAM, MagicOption
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.words import counted

if TYPE_CHECKING:
    from relaylab.study import Tuning
    from relaylab.tune import TuningStep

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


def seconds_of(text: str) -> float:
    """Seconds of a budget such as 90, 90s, 5m or 1h; RelayValueError `tune.budget` for anything else and for 0."""
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smh]?)", text.strip())
    seconds = float(found[1]) * _UNITS[found[2]] if found else 0.0
    if not seconds:
        raise RelayValueError(f"`{text}` is no budget", code="tune.budget", help="write seconds, or 90s, 5m, 1h")
    return seconds


def tune_command(args: argparse.Namespace) -> int:
    """`relaylab tune NET|FILE [--budget 5m] [--records FILE]`"""
    from relaylab import study
    from relaylab.codegen.operations.records import RecordStore, default_records
    from relaylab.zoo.catalog import NETWORKS

    path = args.records or default_records()
    if args.merge or args.table:
        store = RecordStore(path or "", create=bool(args.merge))
        if args.merge:
            say(f"{counted(store.merge(RecordStore(args.merge)), 'record')} taken over into {store.path}")
        if args.table:
            say(json_text([asdict(r) for r in store.find()]) if args.json else study.records_table(store))
        return 0
    names = [*args.program, *(list(NETWORKS) if args.catalogue else [])]
    if not names:
        said = "tune which program?"
        raise RelayValueError(said, code="tune.program", help="relaylab tune resnet18, or a file of a model")
    budget = seconds_of(args.budget) / len(names)
    watch = None if args.json else _shown
    gains: list[study.TuningGain] = []
    status = 0
    for name in names:
        try:
            tuning = study.tune(study.load(name), budget, path, args.threads, args.opt_level, watch, args.cluster)
        except RelayError as error:
            if len(names) == 1:
                raise
            progress("")  # the others do not wait for one that cannot be tuned
            print(f"{name} is left out: {str(error).splitlines()[0]}", file=sys.stderr)
            status |= name in args.program
            continue
        progress("")
        if len(names) == 1 or not args.json:
            _report(tuning, args.json)
        if tuning.best:
            gains.append(tuning.gain)
        if tuning.stopped:
            break
    if len(names) > 1 and gains:
        say(json_text([asdict(g) for g in gains]) if args.json else study.comparison(gains))
    return status


def _report(tuning: Tuning, as_json: bool) -> None:
    before, after = tuning.milliseconds if tuning.best else (0.0, 0.0)
    if as_json:
        kernels = [asdict(r) for r in tuning.best.values()]
        found = {"kernels": kernels, "measured": tuning.measured, "picked_ms": before, "tuned_ms": after}
        say(json_text(found))
        return
    say(str(tuning))
    if tuning.stopped:
        say("stopped; what was measured is kept, the same command goes on from there")
    if tuning.best:
        say(f"{tuning.program.name}: {before:.3f} ms with the picked loops, {after:.3f} ms with the records")
        say(f"records: {tuning.store.path}")


def _shown(step: TuningStep) -> None:
    """One line that says where the search is and the best so far; in a file only what is new."""
    if not sys.stderr.isatty() and step.record is not step.best:
        return
    name = step.task.name.partition("_fused_")[2]
    gain = step.best.picked_us / step.best.us if step.best.better else 1.0
    progress(f"kernel {step.number}/{step.kernels}  {name:<40.40} {step.record.status:<8} best {gain:.2f} x")


COMMAND = Command(
    "tune",
    "search schedules for the kernels of a program; what is measured is kept, and builds use what is better",
    (
        PROGRAM.but(nargs="*"),
        MagicOption("--catalogue", action="store_true", help="every network that there is, and the mean of the gains"),
        MagicOption("--budget", default="5m", metavar="TIME", help="how long in all: 90 or 90s, 5m, 1h (default 5m)"),
        MagicOption("--records", metavar="FILE", help="the file of records (default: this user's, which builds read)"),
        MagicOption("--threads", type=int, metavar="N", help="threads of a run (default: as runs have)"),
        CLUSTER,
        MagicOption("--table", action="store_true", help="list the records and do nothing else"),
        MagicOption("--merge", metavar="FILE", help="take over the records of another file and do nothing else"),
        LEVEL,
        JSON,
    ),
    ("relaylab tune resnet18 --budget 2m", "search better loops for its kernels"),
    tune_command,
)
