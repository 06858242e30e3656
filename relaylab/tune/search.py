"""The search: kernels by the time that they take, schedules by what the cost model expects, each measured and kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.operations.records import RecordStore, TuningRecord, current_version
from relaylab.ir import IRModule
from relaylab.support.cluster import ClusterClient
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of
from relaylab.support.line_process import Answer
from relaylab.tune.fleet import Batch, Fleet, Measured, fleet_of
from relaylab.tune.model import CostModel, Features, features_of
from relaylab.tune.space import candidates, chosen
from relaylab.tune.task import KernelTask, tasks_of

PATIENCE = 16  # schedules without a better one before a kernel is left
LEAST = 4  # schedules of each kernel that are measured, whatever the model says
HOPELESS = 4.0  # expected times of the best measured: not measured beyond these
AGAIN = 8  # measurements before the model learns again
PICKED = ("",)  # the schedule of the picked loops


@dataclass(frozen=True)
class TuningStep:
    """A measurement: the kernel's number of all, the record, the best one of this kernel and CPU so far."""

    task: KernelTask
    number: int
    kernels: int
    record: TuningRecord
    best: TuningRecord


class KernelSearch:
    """The search of one kernel: the schedules that wait, the most promising last, and the best of each CPU so far."""

    def __init__(self, task: KernelTask, number: int, known: Sequence[TuningRecord]):
        self.task, self.number = task, number
        self.picked: TuningRecord | None = None
        self.best: dict[str, TuningRecord] = {}
        self.allowed = self.spent = 0.0
        self.since = self.measured = self.learned = 0
        self.known = {r.schedule for r in known}
        self.waiting: list[tuple[str, Features]] | None = None
        self.features: dict[str, Features] = {}
        self.chosen: list[str] | None = None
        for record in known:
            self._seen(record)

    def _seen(self, record: TuningRecord) -> bool:
        """Take a record into account; whether it is the best of its CPU."""
        if not record.schedule and record.status == "ok":  # else they are measured again: without them nothing is
            self.picked = record
        best = self.best.get(record.cpu)
        if record.status != "ok" or (best is not None and record.us >= best.us):
            return False
        self.best[record.cpu] = record
        return True

    @property
    def share(self) -> float:
        """Microseconds of a run of the program."""
        return self.picked.picked_us * self.task.uses if self.picked else 0.0

    def told(self, record: TuningRecord) -> None:
        """A measurement came."""
        self.since = 0 if self._seen(record) else self.since + 1
        self.measured += bool(record.schedule)

    def next(self, count: int, target: CpuTarget, model: CostModel) -> tuple[str, ...]:
        """The schedules to measure next, the most promising ones; none if the kernel is done."""
        if self.since >= PATIENCE or not self.best:
            return ()
        if self.chosen is None:
            self.chosen = [s for s in chosen(target) if s not in self.known] if self.task.template else []
        if self.chosen:
            first, self.chosen, self.since = self.chosen[:count], self.chosen[count:], 0
            return tuple(first)
        if self.waiting is None:
            listed = ((str(c.schedule), c.program) for c in candidates(self.task.plain, target))
            self.waiting = [(text, features_of(program, target)) for text, program in listed if text not in self.known]
        if self.measured >= self.learned:
            self.waiting.sort(key=lambda pair: -model.predicted(pair[1]))
            self.learned = self.measured + AGAIN
        best, taken = min(r.us for r in self.best.values()), list[str]()
        while self.waiting and len(taken) < count:
            schedule, features = self.waiting.pop()
            if self.measured >= LEAST and model.predicted(features) > HOPELESS * best:
                self.waiting.clear()
                break
            self.features[schedule] = features
            taken.append(schedule)
        return tuple(taken)


@dataclass
class Tuner:
    """Tunes the kernels of a fused module for a target, with a number of threads, into a store.

    `limit` is how many seconds a schedule may take to be built and measured. With a `client` (of Dask, or an address)
    the workers of a cluster measure, each for its own CPU if the target is this machine's. `model(target, threads)`
    ranks what is tried.
    """

    mod: IRModule
    target: CpuTarget
    store: RecordStore
    threads: int = 1
    limit: float = 10.0
    client: ClusterClient | str | None = None
    model: Callable[[CpuTarget, int], CostModel] = CostModel
    measured: int = field(default=0, init=False)

    def run(self, seconds: float) -> Generator[TuningStep]:
        """Measure for so many seconds; what is recorded already is not measured again.

        Each step is kept before it is given: stopping at any time loses nothing. Raises RelayValueError `tune.budget`.
        """
        if not isinstance(seconds, (int, float)) or not 0 < seconds < math.inf:
            raise RelayValueError(f"a budget is some seconds, not {seconds!r}", code="tune.budget")
        end = time.monotonic() + seconds
        tasks = tasks_of(self.mod, self.target)
        searches = [KernelSearch(t, n, self._records(kernel=t.key)) for n, t in enumerate(tasks, 1)]
        target = "llvm" if self.target == CpuTarget.host() else str(self.target)
        with fleet_of(self.client, target, self.threads, self.limit) as fleet:
            yield from self._picked(searches, fleet, end)
            total = sum(s.share for s in searches) or 1.0
            for search in searches:
                search.allowed = (end - time.monotonic()) * search.share / total
            yield from self._searched(sorted(searches, key=lambda s: -s.share), fleet, end)

    def _picked(self, searches: list[KernelSearch], fleet: Fleet, end: float) -> Iterator[TuningStep]:
        """Measure the picked loops of kernels that have no record of them; the others' best is told."""
        by_key, waiting = {s.task.key: s for s in searches}, iter(searches)
        search = next(waiting, None)
        while search is not None or fleet.busy:
            while search is not None and fleet.room and time.monotonic() < end:
                if picked := search.picked:
                    best = search.best.get(picked.cpu, picked)
                    yield TuningStep(search.task, search.number, len(searches), picked, best)
                else:
                    fleet.submit(Batch(search.task.key, PICKED), search.task.text)
                search = next(waiting, None)
            if not fleet.busy:
                return
            for done in fleet.finished():
                yield from self._steps(by_key[done.batch.kernel], done, len(searches))

    def _searched(self, searches: list[KernelSearch], fleet: Fleet, end: float) -> Iterator[TuningStep]:
        """Measure schedules: each kernel within its share of the time first, then whatever is left."""
        by_key, model = {s.task.key: s for s in searches}, self._model()
        while True:
            while fleet.room and time.monotonic() < end and (batch := self._choose(searches, fleet.each, model)):
                fleet.submit(batch, by_key[batch.kernel].task.text)
            if not fleet.busy:
                return
            before = self.measured
            for done in fleet.finished():
                yield from self._steps(by_key[done.batch.kernel], done, len(searches))
            if self.measured // AGAIN > before // AGAIN:
                model = self._model()

    def _choose(self, searches: list[KernelSearch], count: int, model: CostModel) -> Batch | None:
        for within in (True, False):
            for search in searches:
                if (search.spent < search.allowed or not within) and (taken := search.next(count, self.target, model)):
                    return Batch(search.task.key, taken)
        return None

    # ---- records

    def _steps(self, search: KernelSearch, done: Measured, kernels: int) -> Iterator[TuningStep]:
        """What was measured, kept, and told step by step."""
        search.spent += done.seconds
        records = [self._record(search, s, a, done) for s, a in zip(done.batch.schedules, done.answers)]
        self.store.add(records)
        for record in records:
            self.measured += 1
            search.told(record)
            yield TuningStep(search.task, search.number, kernels, record, search.best.get(record.cpu, record))

    def _record(self, search: KernelSearch, schedule: str, answer: Answer, done: Measured) -> TuningRecord:
        numbers = {k: float(answer.get(k, 0.0)) for k in ("us", "picked_us", "error")}
        seen = search.features.get(schedule)
        return TuningRecord(
            search.task.key, done.cpu, done.version, self.threads, schedule, answer["status"],
            **numbers, name=search.task.name, features=seen.text() if seen else "",
        )  # fmt: skip

    def _records(self, **wanted: str) -> list[TuningRecord]:
        """What was measured so: here for this CPU, on a cluster for those that it has."""
        cpu = {"cpu": self.target.key} if self.client is None else {}
        return self.store.find(threads=self.threads, version=current_version(), **cpu, **wanted)

    def _model(self) -> CostModel:
        model: object = self.model(self.target, self.threads)
        if not isinstance(model, CostModel):
            message = f"a cost model is made by a class of relaylab.tune.CostModel, not {kind_of(model)}"
            raise RelayTypeError(message, code="tune.model", help="derive a class from CostModel and give it")
        model.learn(self._records(status="ok"))
        return model
