"""What tuning has measured: a database (SQLite) of kernels, schedules and times, and what a build takes of it.

A record says what one schedule gave for one kernel, on one CPU, with one number of threads, under one version of the
compiler. Several processes may write at the same time; each record is whole once it is written. A file holds texts
and numbers: what is read from it becomes steps of schedules, which are checked as any other, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.cache import default_directory, digest
from relaylab.codegen.network.digests import function_digest
from relaylab.codegen.network.network import Network, Operation, flatten
from relaylab.codegen.operations.memo import code_version
from relaylab.loop.schedule import Schedule
from relaylab.runtime.threads import num_threads
from relaylab.support.database import Database, TableLayout
from relaylab.support.errors import RelayError, warn
from relaylab.transform import PassContext

RECORDS = "relay.codegen.records"
VARIABLE = "RELAYLAB_RECORDS"
GAIN = 0.97  # a schedule is taken if it takes at most this part of the picked loops' time


@dataclass(frozen=True, slots=True)
class TuningRecord:
    """What a schedule gave for a kernel: median microseconds beside those of the picked loops, or why it gave nothing.

    An empty schedule is the record of the picked loops. `kernel` is the digest of what it computes, `cpu` the key of
    the target, `error` the largest difference from the results of the picked loops over the largest result. `features`
    are what the cost model saw.
    """

    kernel: str
    cpu: str
    version: str
    threads: int
    schedule: str
    status: str
    us: float = 0.0
    picked_us: float = 0.0
    error: float = 0.0
    name: str = ""
    features: str = ""

    @property
    def better(self) -> bool:
        """Whether a build takes it instead of the picked loops."""
        return bool(self.schedule) and self.status == "ok" and self.us <= GAIN * self.picked_us


class RecordsWarning(RelayError, UserWarning):
    """Records are there and are not used, and why."""


COLUMNS = tuple(f.name for f in fields(TuningRecord))
_NUMBERS = {"threads": "INTEGER", "us": "REAL", "picked_us": "REAL", "error": "REAL"}
TABLE = TableLayout("measured", {c: _NUMBERS.get(c, "TEXT") for c in COLUMNS}, COLUMNS[:5], "records", 0x52656C61)


class RecordStore:
    """The records of one file. With `create` it is made if it is not there; readers need no right to write.

    Raises RelayValueError `records.missing`, `records.foreign`, `records.version`, `records.damaged`.
    """

    def __init__(self, path: str | os.PathLike[str], create: bool = False):
        self.base = Database(TABLE, path, create)
        self.path = self.base.path

    def add(self, records: Iterable[TuningRecord]) -> int:
        """Keep records, in place of older ones of the same key; how many."""
        return self.base.put(astuple(r) for r in records)

    def find(self, **wanted: str | int) -> list[TuningRecord]:
        """The records whose columns have the wanted values, the fastest of each kernel first."""
        return [TuningRecord(*row) for row in self.base.rows("kernel, threads, status <> 'ok', us, schedule", **wanted)]

    def merge(self, other: RecordStore) -> int:
        """Take over the records of another file; where both measured the same, those that are here stay."""
        key = lambda r: astuple(r)[: len(TABLE.key)]
        known = {key(r) for r in self.find()}
        return self.add(r for r in other.find() if key(r) not in known)

    def best(self, cpu: str, threads: int) -> dict[str, str]:
        """The schedule that is taken for each kernel for which one is better than the picked loops, as text."""
        found: dict[str, str] = {}
        for record in self.find(cpu=cpu, threads=threads, version=current_version(), status="ok"):
            if record.better:
                found.setdefault(record.kernel, record.schedule)
        return found


def current_version() -> str:
    """The version of records that count: a digest of the compiler's code, since its picked loops are what they beat."""
    return code_version()[:16]


_USED: ContextVar[Path | None] = ContextVar("records", default=None)


@contextmanager
def records_used(path: str | os.PathLike[str]) -> Generator[None]:
    """Builds inside take the records of a file, as `autotvm.apply_history_best(path)` does it."""
    token = _USED.set(RecordStore(path).path)
    try:
        yield
    finally:
        _USED.reset(token)


def default_records() -> Path | None:
    """Where the records lie that builds read: the file of `records_used`, else what RELAYLAB_RECORDS says (empty:
    nowhere), else beside the cache of kernels."""
    if (used := _USED.get()) is not None:
        return used
    if (chosen := os.environ.get(VARIABLE)) is not None:
        return Path(chosen) if chosen else None
    directory = default_directory()
    return directory / "records.sqlite" if directory else None


def kernel_key(operation: Operation) -> str:
    """What an operation computes, as a digest: its function, and which operands are constants. Empty if it has
    operators from outside the package, whose code is not known by their names."""
    function = function_digest(operation.function)
    constants = [t.origin == "constant" for v in operation.inputs for t in flatten(v)]
    return digest("kernel", function, repr(constants)) if function is not None else ""


def tuned_schedules(network: Network, target: CpuTarget) -> dict[Operation, Schedule]:
    """The schedules of `PassContext(config={"relay.codegen.records": path})`, or of this user's records.

    An empty path takes none. Raises RelayValueError `records.*` for a named file that cannot be used; of the user's own
    it is said, and that of single records.
    """
    named = PassContext.current().get_config(RECORDS)
    path = default_records() if named is None else Path(named) if named else None
    if path is None or (named is None and not path.is_file()):
        return {}
    try:
        best = RecordStore(path).best(target.key, num_threads())
    except RelayError as error:
        if named is not None:
            raise
        tell_unused(f"the records of tuning are not used: {error}")
        return {}
    if not best:
        return {}
    found = {
        o: text for o in network.operations if not o.reshape_only and (text := best.get(kernel_key(o))) is not None
    }
    return {operation: steps for operation, text in found.items() if (steps := _steps(operation, text)) is not None}


def _steps(operation: Operation, text: str) -> Schedule | None:
    """The steps of a record; None, and a warning, for what is none: loops may compute anything."""
    why = "it holds loops that are written out, not steps"
    try:
        if not (schedule := Schedule.parse(text)).loops:
            return schedule
    except RelayError as error:
        why = str(error)
    tell_unused(f"the record of `{operation.name}` is not used: {why}")
    return None


def tell_unused(said: str) -> None:
    """Warn of records that a build leaves out."""
    warn(RecordsWarning(said, code="records.unusable"))
