"""A pipeline run in one file, to be opened elsewhere or compared with another run: a `.rlab` archive.

It is a zip of plain text: `run.json` (the program, the passes, what each did), `stages/NNN.relay` for programs that a
pass made (constants included), and `trace.jsonl` with every rewrite.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

from relaylab import relay
from relaylab.ir import IRModule
from relaylab.ir.trail import Step
from relaylab.study.compare import UNITS, Quantity, end_figures
from relaylab.study.exploration import Exploration
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.quoting import python_text
from relaylab.support.schema import Within, read, read_json
from relaylab.support.table import did_you_mean
from relaylab.support.words import counted
from relaylab.support.zipped import read_entries
from relaylab.viz.write import files

VERSION = 1
SUFFIX = ".rlab"
RUN, TRACE = "run.json", "trace.jsonl"
_STAGE = re.compile(r"stages/([0-9]{1,9})\.relay")
Time = Annotated[float, Within(0, 1 << 53)]
WHEN = (1980, 1, 1, 0, 0, 0)
"""The time of all entries, so that equal runs are equal files (but for the times that they took)."""
NAMES = {
    "macs": "MACs",
    "flops": "MACs",
    "bytes": "bytes moved",
    "operators": "operator calls",
    "text": "IR text",
    "passes": "passes",
    "ms": "time of the passes",
}
"""What a limit may be on, and the figure that it means."""


@dataclass(frozen=True)
class Recording:
    """A run as it was recorded: `run` is plain data, `texts` the programs by the number of passes before them."""

    run: dict[str, Any]
    texts: dict[int, str]
    trace: list[dict[str, Any]]

    def __repr__(self) -> str:
        return f"<recorded run of {self.run['program']}: {counted(len(self.run['passes']), 'pass')}>"

    def module(self, frame: int = -1) -> IRModule:
        """The program before the first pass (0), after pass `frame`, or from the end on (-1)."""
        last = len(self.run["passes"])
        at = frame + last + 1 if frame < 0 else frame
        if not 0 <= at <= last:
            raise RelayValueError(f"there is no stage {frame}; there are 0 to {last}", code="record.stage")
        known = max(k for k in self.texts if k <= at)
        return relay.parse(self.texts[known], f"{self.run['program']}.{known}.relay")

    @property
    def views(self) -> dict[str, Any]:
        """The named views that were recorded with the run: give them to another explorer as its `views`."""
        return dict(self.run.get("views", {}))

    @cached_property
    def figures(self) -> dict[str, float]:
        """The figures of the end of the run, by name."""
        spent = {
            "passes": float(sum(p["ran"] for p in self.run["passes"])),
            "time of the passes": sum(p["ms"] for p in self.run["passes"]),
        }
        return spent | end_figures(self.module())


@checked
def record(exploration: Exploration, path: str | Path, views: Mapping[str, Any] | None = None) -> Path:
    """Write a run as a `.rlab` file; `views` are the named views of an explorer (`PassExplorer.views`)."""
    if Path(path).suffix != SUFFIX:
        raise RelayValueError(f"`{path}` does not end in {SUFFIX}", code="record.suffix")
    pipeline = exploration.pipeline
    passes = [
        {
            "name": i.name,
            "text": i.text,
            "ran": s.ran and i.enabled,
            "changed": s.changed,
            "ms": s.seconds * 1e3,
            "error": str(s.error or ""),
        }
        for i, s in zip(pipeline.items, pipeline.segments)
    ]
    run = {
        "version": VERSION,
        "program": exploration.program.name,
        "opt_level": exploration.opt_level,
        "passes": passes,
        "views": dict(views or {}),
    }
    steps = [
        json.dumps(_step(k, step))
        for k, s in enumerate(pipeline.segments, 1)
        for stage in s.stages
        for step in stage.steps
    ]
    entries = {RUN: json.dumps(run, indent=1), TRACE: "".join(f"{line}\n" for line in steps)}
    for k, mod in enumerate(pipeline.modules):
        if k == 0 or mod is not pipeline.modules[k - 1]:
            entries[f"stages/{k:03}.relay"] = mod.astext()
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in entries.items():
            archive.writestr(zipfile.ZipInfo(name, WHEN), text, zipfile.ZIP_DEFLATED)
    return files.write(path, out.getvalue())


def _step(frame: int, step: Step) -> dict[str, Any]:
    return {"frame": frame, "rule": step.rule, "at": step.location, "us": step.seconds * 1e6, "note": step.note}


class _PassRow(TypedDict):
    """What a pass of a recorded run did."""

    name: str
    text: str
    ran: bool
    changed: bool
    ms: Time
    error: str


class _Run(TypedDict):
    """What `run.json` must hold."""

    version: int
    program: str
    opt_level: int
    passes: list[_PassRow]


class _RunWithViews(_Run, total=False):
    """What it may hold besides."""

    views: dict[str, object]


class _Rewrite(TypedDict):
    """A line of `trace.jsonl`."""

    frame: int
    rule: str
    at: str
    us: Time
    note: str


@checked
def reopen(path: str | Path) -> Recording:
    """Read a `.rlab` file; raises `RelayValueError` for one that is none, is damaged, or would unpack to too much."""
    entry = ""
    try:
        entries = read_entries(path)
        entry = RUN
        run = read_json(entries[RUN])
        if not isinstance(run, dict) or run.get("version") != VERSION:
            raise RelayValueError(f"{path} is no recorded run of version {VERSION}", code="record.version")
        read(_RunWithViews, run)
        entry = TRACE
        trace = [cast("dict[str, Any]", read(_Rewrite, read_json(line))) for line in entries[TRACE].splitlines()]
        entry = ""
        texts = {int(found[1]): text for name, text in entries.items() if (found := _STAGE.fullmatch(name))}
        if 0 not in texts or max(texts) > len(run["passes"]):
            raise ValueError("its programs are not those before and after its passes")
    except (ValueError, KeyError) as error:
        if isinstance(error, RelayValueError):
            raise
        why = f"the entry {error} is missing" if isinstance(error, KeyError) else error
        place = getattr(error, "entry", "") or entry
        raise RelayValueError(
            f"{path} is no recorded run: {why}",
            code="record.unreadable",
            place=f"  --> {python_text(place)} in it" if place else "",
            help="copy the file again, or record the run again",
        ) from None
    return Recording(run, texts, trace)


@checked
def compare_recordings(a: Recording, b: Recording) -> list[Quantity]:
    """The figures of two runs beside each other."""
    return [Quantity(name, UNITS.get(name, ""), value, b.figures[name]) for name, value in a.figures.items()]


@checked
def exceeded(quantities: Sequence[Quantity], limits: Sequence[str]) -> list[str]:
    """Which limits B breaks, in words; a limit such as `flops+5%` says by how much a figure may be larger than A's."""
    table = {q.name: q for q in quantities}
    named = {name: table[meant] for name, meant in NAMES.items() if meant in table}
    broken = []
    for limit in limits:
        found = re.fullmatch(r"([A-Za-z]+)\+(\d+(?:\.\d+)?)%", limit)
        if not found or found[1].lower() not in named:
            help = (
                did_you_mean(found[1].lower(), named) if found else ""
            ) or f"write for example flops+5%; there are {', '.join(named)}"
            raise RelayValueError(f"`{limit}` is not a limit", code="record.limit", help=help)
        figure = named[found[1].lower()]
        if figure.a is None or figure.b is None:
            said = f"`{limit}` cannot be judged: {figure.name} is not known, since sizes are open"
            raise RelayValueError(said, code="record.limit", help="tell the sizes, as in net.relay:x=1x64")
        if figure.b > figure.a * (1 + float(found[2]) / 100) + 1e-12:
            broken.append(f"{figure.name} grew from {figure.a:,.6g} to {figure.b:,.6g}, more than {limit} allows")
    return broken
