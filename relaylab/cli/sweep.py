"""The command `relaylab sweep`: programs × pipelines × levels × threads as a table, here or on a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from relaylab.cli.command import CLUSTER, JSON, Command, json_text, progress, say
from relaylab.lab.options import MagicOption
from relaylab.support.errors import RelayValueError
from relaylab.support.formats import format_of
from relaylab.support.table import did_you_mean

PICTURES = ("bars", "heat")


def sweep_command(args: argparse.Namespace) -> int:
    """`relaylab sweep NET... [--pipelines A B] [--store FILE] [--cluster tcp://…]`"""
    from relaylab import study, viz
    from relaylab.viz.write import plugins

    measures = args.measures or study.DEFAULT_MEASURES
    cells = study.cells(args.programs, args.pipelines, opt_levels=args.levels, threads=args.threads, measures=measures)
    drawn = ""
    if args.output:  # what can be wrong with it is said before anything is measured
        format_of(args.output, plugins.formats(), graph=False)
        drawn = _drawn(args.measure, measures)
    done = 0

    def watch(row: study.SweepRow) -> None:
        nonlocal done
        done += 1
        progress(f"{done} of at most {len(cells)}  {row.cell.program}, {row.cell.how}: {row.status}")

    table = study.sweep(cells, args.store, args.cluster, args.processes, args.limit, watch)
    progress("")
    say(json_text(table.records()) if args.json else str(table))
    for row in table.rows:
        if row.why and not args.json:
            say(f"{row.cell.program}, {row.cell.how}: {row.why}")
    if table.stopped:
        say("stopped; with --store the same command goes on from there")
    if args.output:
        picture = table.heat(drawn) if args.picture == "heat" else table.bars(drawn)
        say(f"wrote {viz.save(picture, args.output)}", quiet=args.json)
    return 1 if table.rows and all(row.status != "ok" for row in table.rows) else 0


def _drawn(wanted: str | None, measures: Sequence[str]) -> str:
    """What the picture shows of what is measured: the wanted number, else the time, else the first."""
    from relaylab.study.sweep import COLUMNS

    known = sorted((c for measure in measures for c in COLUMNS[measure]), key=lambda c: c != COLUMNS["time"][0])
    if not known:
        said = f"{' and '.join(measures)} give no number that a picture could show"
        raise RelayValueError(said, code="sweep.measure", help="add --measures counts")
    if wanted is not None and wanted not in known:
        help = did_you_mean(wanted, known) or f"measured are {', '.join(known)}"
        raise RelayValueError(f"the sweep does not measure `{wanted}`", code="sweep.measure", help=help)
    return wanted or known[0]


COMMAND = Command(
    "sweep",
    "measure programs under several pipelines, levels and numbers of threads, here or on a Dask cluster",
    (
        MagicOption("programs", nargs="+", metavar="NET|FILE", help="networks or files"),
        MagicOption("--pipelines", nargs="+", default=["default"], metavar="P", help="A,B(…), default, default-A-B"),
        MagicOption("--levels", nargs="+", type=int, default=[3], choices=range(5), help="levels of default passes"),
        MagicOption("--threads", nargs="+", type=int, default=[1], metavar="N", help="threads of a run (default 1)"),
        MagicOption("--measures", nargs="+", metavar="M", help="time, build, counts, memory, error, passes"),
        MagicOption("--store", metavar="FILE", help="keep rows there, and measure only what has none"),
        CLUSTER,
        MagicOption("--processes", type=int, default=1, metavar="N", help="at a time on this machine (default 1)"),
        MagicOption("--limit", type=float, default=120.0, metavar="S", help="seconds that a cell may take"),
        MagicOption("-o", "--output", metavar="FILE", help="a picture of the rows: svg, pdf, png"),
        MagicOption("--picture", choices=PICTURES, default="bars", help="which picture (default bars)"),
        MagicOption("--measure", metavar="M", help="what the picture shows (default: time_us, or what is measured)"),
        JSON,
    ),
    ("relaylab sweep resnet18 mlp --pipelines default default-FuseOps", "what a pass is worth, as a table"),
    sweep_command,
)
