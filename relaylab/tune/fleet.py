"""Where schedules are measured: in a process of this machine, or on the workers of a cluster.

Work is a `Batch`: some schedules of one kernel, as text. The same function measures it here and there, so that a
record says the same wherever it comes from; it names the CPU and the version of the compiler that it is true for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.cache import digest
from relaylab.codegen.operations.records import GAIN, current_version
from relaylab.support.cluster import ClusterClient, WorkCluster, cluster_at
from relaylab.support.errors import RelayError
from relaylab.support.line_process import Answer
from relaylab.tune.process import Worker

EACH = 2  # schedules that are sent to a worker of a cluster at a time
_own = threading.local()


@dataclass(frozen=True)
class Batch:
    """Schedules of the kernel with a key, to be measured one after the other."""

    kernel: str
    schedules: tuple[str, ...]

    @property
    def name(self) -> str:
        """A digest of it."""
        return digest("batch", self.kernel, *self.schedules)


@dataclass(frozen=True)
class Measured:
    """What came of a batch: an answer for each schedule, the machine, and the seconds that it took."""

    batch: Batch
    answers: tuple[Answer, ...] = ()
    cpu: str = ""
    version: str = ""
    seconds: float = 0.0


class Fleet(Protocol):
    """Where batches go. `each` is how many schedules one has."""

    each: int

    @property
    def room(self) -> bool:
        """Whether another batch is wanted."""
        ...

    @property
    def busy(self) -> bool:
        """Whether a batch is under way."""
        ...

    def submit(self, batch: Batch, text: str) -> None:
        """Have a batch measured; `text` is the kernel's program."""
        ...

    def finished(self) -> list[Measured]:
        """Batches that are done, at least one of those under way."""
        ...


def measure(text: str, target: str, threads: int, limit: float, schedules: tuple[str, ...]) -> dict[str, Any]:
    """Measure schedules of a kernel on the machine that this runs on, in this thread's own process.

    It is kept for the next batch of the same kernel. Raises RelayError `process.start`.
    """
    started, key = time.monotonic(), (text, target, threads, limit)
    cpu = CpuTarget.parse(target)
    if getattr(_own, "key", None) != key:
        release()
        _own.key, _own.worker = key, Worker(text, str(cpu), threads, limit)
    answers = tuple(_confirmed(_own.worker, s) for s in schedules)
    took = time.monotonic() - started
    return {"answers": answers, "cpu": cpu.key, "version": current_version(), "seconds": took}


def release() -> None:
    """End this thread's own process."""
    worker: Worker | None = getattr(_own, "worker", None)
    if worker is not None:
        worker.close()
    _own.key = _own.worker = None


def _confirmed(worker: Worker, schedule: str) -> Answer:
    """What a schedule gives; a gain is measured twice and the smaller one counts, since many are tried."""
    first = worker.measure(schedule)
    if first["status"] != "ok" or not schedule or first["us"] > GAIN * first["picked_us"]:
        return first
    second = worker.measure(schedule)
    return second if second["status"] != "ok" else max(first, second, key=lambda a: a["us"] / a["picked_us"])


class Here:
    """This machine: one schedule at a time, since what is measured beside something else is slower."""

    each = 1

    def __init__(self, target: str, threads: int, limit: float):
        self.settings = (target, threads, limit)
        self.waiting: list[tuple[Batch, str]] = []

    @property
    def room(self) -> bool:
        return not self.waiting

    @property
    def busy(self) -> bool:
        return bool(self.waiting)

    def submit(self, batch: Batch, text: str) -> None:
        self.waiting.append((batch, text))

    def finished(self) -> list[Measured]:
        batch, text = self.waiting.pop()
        found = measure(text, *self.settings, batch.schedules)
        return [Measured(batch, **found)]


class Workers:
    """The workers of a cluster, each with its own process. A batch that the cluster gives up has no answers."""

    each = EACH

    def __init__(self, cluster: WorkCluster, target: str, threads: int, limit: float):
        self.cluster, self.settings = cluster, (target, threads, limit)
        self.batches: dict[str, Batch] = {}

    @property
    def room(self) -> bool:
        return self.cluster.room

    @property
    def busy(self) -> bool:
        return bool(self.batches)

    def submit(self, batch: Batch, text: str) -> None:
        self.batches[batch.name] = batch
        self.cluster.submit(batch.name, measure, text, *self.settings, batch.schedules)

    def finished(self) -> list[Measured]:
        found: list[Measured] = []
        for name, result in self.cluster.finished():
            batch = self.batches.pop(name)
            found.append(Measured(batch) if isinstance(result, RelayError) else Measured(batch, **result))
        return found


@contextmanager
def fleet_of(client: ClusterClient | str | None, target: str, threads: int, limit: float) -> Generator[Fleet]:
    """This machine, or the cluster of a client or at an address. Raises RelayError `cluster.*`."""
    if client is None:
        try:
            yield Here(target, threads, limit)
        finally:
            release()
    else:
        with cluster_at(client) as cluster:
            yield Workers(cluster, target, threads, limit)
