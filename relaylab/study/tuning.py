"""Tuning a program: its kernels' schedules searched for some time, what was found, and what it is worth."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from relaylab import relay
from relaylab.codegen.build import parse_target
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.operations.records import RECORDS, RecordStore, TuningRecord, current_version, default_records
from relaylab.runtime.threads import checked as checked_threads
from relaylab.runtime.threads import num_threads, threads_used
from relaylab.study.measure import race
from relaylab.study.program import Loadable, Program, load, with_known_sizes
from relaylab.study.running import built
from relaylab.support.checked import checked
from relaylab.support.cluster import ClusterClient
from relaylab.support.errors import RelayValueError
from relaylab.support.words import counted
from relaylab.transform import PassContext
from relaylab.tune import CostModel, Tuner, TuningStep


@dataclass
class Tuning:
    """What a search has measured so far, and the best of each kernel: `best` by its digest, in order of their use.

    `stopped` says that it was interrupted; what it measured is kept all the same.
    """

    program: Program
    store: RecordStore
    threads: int
    opt_level: int = 3
    best: dict[str, TuningRecord] = field(default_factory=dict)
    measured: int = 0
    stopped: bool = False

    @property
    def gains(self) -> list[TuningRecord]:
        """The kernels whose schedule a build takes."""
        return [r for r in self.best.values() if r.better]

    @cached_property
    def milliseconds(self) -> tuple[float, float]:
        """The median time of the whole program, with the picked loops and with the records, measured in turn.

        Where no kernel has a better schedule both are one program, measured once.
        """
        with threads_used(self.threads):
            paths = ("", str(self.store.path)) if self.gains else ("",)
            ways = [built(self.program, self.opt_level, {RECORDS: path}) for path in paths]
            times = [statistics.median(spent) / 1e3 for spent in race(ways)]
            return times[0], times[-1]

    @property
    def gain(self) -> TuningGain:
        """What the records are worth now, measured."""
        records = self.store.find(threads=self.threads, version=current_version())
        here = [r for r in records if r.schedule and r.kernel in self.best]
        rest = [r.picked_us / r.us for r in here if r.status == "ok" and not self.best[r.kernel].better]
        counts = len(self.best), len(self.gains), len(here)
        return TuningGain(self.program.name, *self.milliseconds, *counts, max(rest, default=0.0))

    def __str__(self) -> str:
        width = max((len(_short(r.name)) for r in self.best.values()), default=6)
        lines = [f"{'kernel':<{width}}  picked us   best us  schedule"]
        for record in self.best.values():
            steps = "; ".join(record.schedule.splitlines()) if record.better else "picked loops"
            picked, own = (record.picked_us, record.us) if record.better else (record.picked_us, record.picked_us)
            lines.append(f"{_short(record.name):<{width}}  {picked:9.1f}  {own:8.1f}  {steps}")
        gains = f"{len(self.gains)} of {len(self.best)} kernels have a better one"
        return "\n".join([*lines, f"{counted(self.measured, 'schedule')} measured, {gains}"])

    __repr__ = __str__


@checked
def tune(
    what: Loadable,
    seconds: float = 300.0,
    records: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    opt_level: int = 3,
    on_step: Callable[[TuningStep], None] | None = None,
    client: ClusterClient | str | None = None,
    model: Callable[[CpuTarget, int], CostModel] = CostModel,
) -> Tuning:
    """Search schedules for the kernels of a program for so many seconds, and keep what is measured.

    `records` is a file (made if it is not there); by default this user's, which builds look into. What it holds already
    is not measured again. Ctrl-C ends the search at any time. With `client`, a `distributed.Client` or the address of
    a cluster, its workers measure, each for its own CPU (needs `pip install "relaylab[dask]"`).

    `model`, a `CostModel` of one's own, ranks the schedules that wait to be measured.

    Raises RelayValueError `tune.budget`, `records.*`, `cluster.*`, RelayTypeError `tune.model`.
    """
    program = with_known_sizes(load(what))
    path = Path(records) if records is not None else default_records()
    if path is None:
        help = "name a file of records, or set RELAYLAB_RECORDS"
        raise RelayValueError("there is no place to keep records", code="records.missing", help=help)
    target, count = parse_target("llvm"), num_threads() if threads is None else checked_threads(threads)
    with PassContext(opt_level=opt_level):
        mod, _ = relay.optimize(program.mod, "llvm", dict(program.params))
    found = Tuning(program, RecordStore(path, create=True), count, opt_level)
    tuner = Tuner(mod, target, found.store, count, client=client, model=model)
    try:
        with closing(tuner.run(seconds)) as steps:  # whatever ends it ends its processes
            for step in steps:
                found.best[step.task.key] = step.best
                found.measured = tuner.measured
                if on_step is not None:
                    on_step(step)
    except KeyboardInterrupt:
        found.stopped = True
    return found


@dataclass(frozen=True)
class TuningGain:
    """What the records are worth for a program: milliseconds with the picked loops and with the records, measured in
    turn; kernels, those with a better schedule, schedules measured; of kernels that have none, the fastest schedule.
    """

    name: str
    picked: float
    tuned: float
    kernels: int
    better: int
    schedules: int
    other: float

    @property
    def gain(self) -> float:
        """How many times as fast as the picked loops."""
        return self.picked / self.tuned

    def __str__(self) -> str:
        better = f"{self.better} of {self.kernels}"
        other = f"{self.other:.2f} x as fast as picked" if self.other else ""
        times = f"{self.picked:9.3f}  {self.tuned:9.3f}  {self.gain:5.3f}"
        return f"{self.name:<14}  {times}  {self.schedules:9}  {better:>14}  {other}"


@checked
def comparison(gains: Sequence[TuningGain]) -> str:
    """Programs with the picked loops and with the records, and the geometric mean of what they gain."""
    head = f"{'program':<14}  picked ms   tuned ms   gain  schedules  better kernels  the fastest of the others"
    mean = statistics.geometric_mean(g.gain for g in gains)
    return "\n".join([head, *map(str, gains), f"geometric mean of {len(gains)}: {mean:.3f}"])


def records_table(store: RecordStore) -> str:
    """The records of a file as a table: kernel, CPU, threads, status, times, schedule."""
    lines = [f"{'kernel':<40} {'CPU':<28} threads  {'status':<8} {'us':>10} {'picked us':>10}  schedule"]
    for r in store.find():
        old = "" if r.version == current_version() else " (another version)"
        steps = "; ".join(r.schedule.splitlines()) or "picked loops"
        cpu = r.cpu.split("|")[1] if "|" in r.cpu else r.cpu
        lines.append(
            f"{_short(r.name):<40.40} {cpu:<28.28} {r.threads:>7}  {r.status:<8} {r.us:>10.1f} {r.picked_us:>10.1f}"
            f"  {steps}{old}"
        )
    return "\n".join(lines)


def _short(name: str) -> str:
    return name.partition("_fused_")[2] or name
