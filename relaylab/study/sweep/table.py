"""The rows of a sweep: kept in a file or in memory, as text, as data for other tools, as pictures."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from relaylab.codegen.llvm.cache import digest
from relaylab.codegen.operations.records import current_version
from relaylab.study.sweep.cell import SweepCell
from relaylab.support.database import Database, Row, TableLayout
from relaylab.support.errors import RelayValueError
from relaylab.support.line_process import Answer
from relaylab.support.table import did_you_mean
from relaylab.support.words import counted
from relaylab.viz.figures.chart import ChartBar, ChartPoint, bars, grid, points
from relaylab.viz.scene.scene import Scene

COLUMNS: dict[str, str] = dict.fromkeys("cell cpu version status spec why measures".split(), "TEXT")
ASKED = 8  # columns of data before those that were measured
TABLE = TableLayout("runs", COLUMNS, ("cell", "cpu", "version"), "runs", 0x52656C62)


@dataclass(frozen=True)
class SweepRow:
    """A cell and what came of it: `status` is ok, refused (`why` says it), crashed or slow.

    The cell's text is kept as its digest.
    """

    cell: SweepCell
    cpu: str
    version: str
    status: str
    why: str = ""
    measures: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def flat(self) -> dict[str, Any]:
        """As one row of a table of data: what was asked, and what was measured."""
        asked = {
            "program": self.cell.program,
            "how": self.cell.how,
            "pipeline": self.cell.pipeline,
            "target": self.cell.target,
            "opt_level": self.cell.opt_level,
            "threads": self.cell.threads,
            "cpu": self.cpu.split("|")[1] if "|" in self.cpu else self.cpu,
            "status": self.status,
        }
        return asked | {k: v for k, v in self.measures.items() if not isinstance(v, Mapping)}


class SweepTable:
    """The rows of some cells, in their order, in a file or in one that goes with the table.

    `stopped` says that the sweep was interrupted.
    """

    def __init__(self, store: str | os.PathLike[str] | None, cells: Sequence[SweepCell]):
        if store is None:
            store = Path(folder := tempfile.mkdtemp(prefix="relaylab-sweep-")) / "runs.sqlite"
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.base, self.cells, self.stopped = Database(TABLE, store, create=True), list(cells), False

    @property
    def rows(self) -> list[SweepRow]:
        """The rows of these cells under this version, those of several CPUs after each other; a process that was lost
        is told of until its cell is measured."""
        order, versions = {c.key: k for k, c in enumerate(self.cells)}, ("", current_version())
        found = [r for r in self.base.rows("cell, cpu, version") if r[0] in order and r[2] in versions]
        measured = {r[0] for r in found if r[1]}
        kept = [r for r in found if r[1] or r[0] not in measured]
        return [self._row(r) for r in sorted(kept, key=lambda r: order[str(r[0])])]

    def known(self, **where: str) -> set[str]:
        """The keys of cells that were measured by a version (and CPU), with any result but a lost process."""
        return {str(r[0]) for r in self.base.rows("cell", **where) if r[3] in ("ok", "refused")}

    def keep(self, done: Iterable[tuple[SweepCell, Answer]]) -> list[SweepRow]:
        """Keep what workers answered."""
        rows = [_kept(cell, answer) for cell, answer in done]
        self.base.put(rows)
        return [self._row(row) for row in rows]

    def _row(self, row: Row) -> SweepRow:
        _, cpu, version, status, spec, why, measures = row
        try:
            return SweepRow(SweepCell.parse(spec), cpu, version, status, why, dict(json.loads(measures)))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise self.base.damaged(f"a row that is none of a sweep: {error}") from None

    def records(self) -> list[dict[str, Any]]:
        """One dict for each row: `pandas.DataFrame(table.records())`."""
        return [row.flat for row in self.rows]

    def values(self, measure: str) -> dict[tuple[str, str], float]:
        """A measure by program and by how it was compiled, with threads and CPU where rows differ in them.

        Of programs of one name the second is `name-2`. RelayValueError `sweep.measure` for an unknown measure.
        """
        rows = self._named()
        known = sorted({k for r in rows.values() for k, v in r.measures.items() if isinstance(v, (int, float))})
        if measure not in known:
            help = did_you_mean(measure, known) or f"measured were {', '.join(known) or 'none'}"
            raise RelayValueError(f"the sweep has no measure `{measure}`", code="sweep.measure", help=help)
        return {name: float(r.measures[measure]) for name, r in rows.items() if measure in r.measures}

    def _named(self) -> dict[tuple[str, str], SweepRow]:
        """The rows that are ok by program and by how it was compiled."""
        rows = [r for r in self.rows if r.status == "ok"]
        threads, cpus = (len({of(r) for r in rows}) > 1 for of in (lambda r: r.cell.threads, lambda r: r.cpu))
        texts: dict[str, list[str]] = {}
        found: dict[tuple[str, str], SweepRow] = {}
        for row in rows:
            same = texts.setdefault(row.cell.program, [])
            same += [row.cell.text] if row.cell.text not in same else []
            number = same.index(row.cell.text)
            parts = [
                row.cell.how,
                counted(row.cell.threads, "thread") if threads else "",
                row.flat["cpu"] if cpus else "",
            ]
            name = row.cell.program + (f"-{number + 1}" if number else "")
            found[name, ", ".join(filter(None, parts))] = row
        return found

    def heat(self, measure: str = "time_us") -> Scene:
        """Programs × ways of compiling, each cell relative to the best of its program."""
        found = self.values(measure)
        best = {p: min(v for (q, _), v in found.items() if q == p) for p, _ in found}
        shares = {k: v / best[k[0]] if best[k[0]] else math.inf if v else 1.0 for k, v in found.items()}
        return grid(shares, f"{measure}, relative to the best of each row")

    def bars(self, measure: str = "time_us") -> Scene:
        """For each program a bar for each way of compiling; times with their intervals."""
        spans = {
            name: (r.measures["time_low_us"], r.measures["time_high_us"])
            for name, r in self._named().items()
            if measure == "time_us" and "time_low_us" in r.measures
        }
        return bars([ChartBar(p, h, v, spans.get((p, h))) for (p, h), v in self.values(measure).items()], measure)

    def pareto(self, program: str, x: str = "time_us", y: str = "code_bytes") -> Scene:
        """The ways of compiling a program as points of two measures; those that no other beats in both are marked."""
        across, up = self.values(x), self.values(y)
        if program not in {p for p, _ in across}:
            known = list(dict.fromkeys(p for p, _ in across))
            help = did_you_mean(program, known) or f"there are {', '.join(known)}"
            raise RelayValueError(f"the sweep has no program `{program}`", code="sweep.program", help=help)
        return points([ChartPoint(across[k], up[k], k[1]) for k in across if k in up and k[0] == program], x, y)

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        if not (rows := self.records()):
            return "no row yet"
        asked = ("program", "how", "threads", "cpu", "status")
        names = list(dict.fromkeys(n for r in rows for n in (*asked, *list(r)[ASKED:])))
        lines = [[_shown(r.get(n, "")) for n in names] for r in rows]
        widths = [max(len(n), *(len(line[k]) for line in lines)) for k, n in enumerate(names)]
        table = [names, *lines]
        return "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(line, widths)).rstrip() for line in table)

    __repr__ = __str__


def _kept(cell: SweepCell, answer: Answer) -> Row:
    spec = replace(cell, text=digest(cell.text) if cell.text else "").json()  # a table of texts would be large
    row = (cell.key, *(answer[k] for k in ("cpu", "version", "status")), spec, answer.get("why", ""))
    return (*row, json.dumps(answer.get("measures", {})))


def _shown(value: object) -> str:
    if isinstance(value, float) and not value.is_integer():
        return f"{value:.4g}"
    return f"{value:,.0f}" if isinstance(value, (int, float)) else " ".join(str(value).split())
