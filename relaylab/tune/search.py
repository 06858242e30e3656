"""The search: kernels by the time that they take, schedules by what the cost model expects, each measured and kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.operations.records import GAIN, RecordStore, TuningRecord, current_version
from relaylab.ir import IRModule
from relaylab.support.errors import RelayValueError
from relaylab.tune.model import CostModel, Features, features_of
from relaylab.tune.process import Answer, Worker
from relaylab.tune.space import candidates
from relaylab.tune.task import KernelTask, tasks_of

PATIENCE = 16  # schedules without a better one before a kernel is left
LEAST = 4  # schedules of each kernel that are measured, whatever the model says
HOPELESS = 4.0  # expected times of the best measured: not measured beyond these
AGAIN = 8  # measurements before the model learns again
Measure = Callable[[str], Answer]


def confirmed(worker: Worker, schedule: str) -> Answer:
    """What a schedule gives; a gain is measured twice and the smaller one counts, since many are tried."""
    first = worker.measure(schedule)
    if first["status"] != "ok" or first["us"] > GAIN * first["picked_us"]:
        return first
    second = worker.measure(schedule)
    return second if second["status"] != "ok" else max(first, second, key=lambda a: a["us"] / a["picked_us"])


@dataclass(frozen=True)
class TuningStep:
    """A measurement: the kernel's number of all, the record, the best one of this kernel so far."""

    task: KernelTask
    number: int
    kernels: int
    record: TuningRecord
    best: TuningRecord


@dataclass
class Tuner:
    """Tunes the kernels of a fused module for a target, with a number of threads, into a store.

    `limit` is how many seconds a schedule may take to be built and measured.
    """

    mod: IRModule
    target: CpuTarget
    store: RecordStore
    threads: int = 1
    limit: float = 10.0
    measured: int = field(default=0, init=False)

    def run(self, seconds: float) -> Iterator[TuningStep]:
        """Measure for so many seconds; what is recorded already is not measured again.

        Each step is kept before it is given: stopping at any time loses nothing.
        """
        if not seconds > 0 or math.isinf(seconds):
            raise RelayValueError(f"a budget is some seconds, not {seconds:g}", code="tune.budget")
        end = time.monotonic() + seconds
        tasks = tasks_of(self.mod, self.target)
        shares: dict[str, float] = {}
        for number, task in enumerate(tasks, 1):
            if time.monotonic() < end:
                first, best = self._start(task)
                shares[task.key] = first.picked_us * task.uses
                yield TuningStep(task, number, len(tasks), first, best)
        order = sorted((t for t in tasks if t.key in shares), key=lambda t: -shares[t.key])
        for k, task in enumerate(order):
            left = sum(shares[t.key] for t in order[k:])
            until = time.monotonic() + (end - time.monotonic()) * shares[task.key] / max(left, 1e-9)
            yield from self._kernel(task, tasks.index(task) + 1, len(tasks), until)

    # ---- one kernel

    def _kernel(self, task: KernelTask, number: int, kernels: int, until: float) -> Iterator[TuningStep]:
        """Measure schedules of one kernel, the most promising first."""
        known = self._records(task)
        waiting = self._listed(task, {r.schedule for r in known}, until)
        worker = Worker(task.text, str(self.target), self.threads, self.limit)
        best, since, measured, model = _best(known), 0, 0, self._model()
        try:
            while waiting and since < PATIENCE and time.monotonic() < until:
                if measured % AGAIN == 0:
                    model = self._model() if measured else model
                    waiting.sort(key=lambda pair: -model.microseconds(pair[1]))
                schedule, features = waiting.pop()
                if measured >= LEAST and model.microseconds(features) > HOPELESS * best.us:
                    break
                record = self._record(task, schedule, features.text(), confirmed(worker, schedule))
                better = record.status == "ok" and record.us < best.us
                best, since, measured = (record, 0, measured + 1) if better else (best, since + 1, measured + 1)
                yield TuningStep(task, number, kernels, record, best)
        finally:
            worker.close()

    def _listed(self, task: KernelTask, known: set[str], until: float) -> list[tuple[str, Features]]:
        """The schedules that are not measured yet, with what the model sees of them."""
        found: list[tuple[str, Features]] = []
        for candidate in candidates(task.plain, self.target):
            if (text := str(candidate.schedule)) not in known:
                found.append((text, features_of(candidate.program, self.target)))
            if time.monotonic() > until:
                break
        return found

    def _start(self, task: KernelTask) -> tuple[TuningRecord, TuningRecord]:
        """The records of the picked loops, measured once, and of the best schedule."""
        known = self._records(task)
        if picked := [r for r in known if not r.schedule]:
            return picked[0], _best(known)
        worker = Worker(task.text, str(self.target), self.threads, self.limit)
        try:
            first = self._record(task, "", "", worker.measure(""))
        finally:
            worker.close()
        return first, _best([*known, first])

    # ---- records

    def _record(self, task: KernelTask, schedule: str, features: str, answer: Answer) -> TuningRecord:
        """What was measured, kept."""
        numbers = {k: float(answer.get(k, 0.0)) for k in ("us", "picked_us", "error")}
        record = TuningRecord(
            task.key,
            self.target.key,
            current_version(),
            self.threads,
            schedule,
            answer["status"],
            **numbers,
            name=task.name,
            features=features,
        )
        self.store.add([record])
        self.measured += 1
        return record

    def _records(self, task: KernelTask) -> list[TuningRecord]:
        return self.store.find(kernel=task.key, cpu=self.target.key, threads=self.threads, version=current_version())

    def _model(self) -> CostModel:
        model = CostModel(self.target, self.threads)
        model.learn(self.store.find(cpu=self.target.key, threads=self.threads, status="ok"))
        return model


def _best(records: Sequence[TuningRecord]) -> TuningRecord:
    """The fastest right schedule of a kernel, the picked loops among them."""
    return min((r for r in records if r.status == "ok"), key=lambda r: r.us)
