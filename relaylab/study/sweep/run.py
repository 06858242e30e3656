"""Running a sweep: cells in processes of this machine, or on a Dask cluster; rows are kept as they come.

A cell runs in a process of its own worker, here as on a cluster: one that crashes or hangs is a row that says so. What
has a row is not run again, so that a sweep goes on after any worker, or the client itself, has died.

What is sent is text (`SweepCell.json`); Dask moves it, runs it again where a worker was lost, and says when it is done.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.operations.records import current_version
from relaylab.study.sweep.cell import SweepCell
from relaylab.study.sweep.table import SweepRow, SweepTable
from relaylab.support.checked import checked
from relaylab.support.cluster import ClusterClient, cluster_at
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.line_process import Answer, LineProcess

WORKER = "relaylab.study.sweep.worker"
Done = list[tuple[SweepCell, Answer]]
_own = threading.local()


@checked
def sweep(
    cells: Iterable[SweepCell],
    store: str | os.PathLike[str] | None = None,
    client: ClusterClient | str | None = None,
    processes: int = 1,
    limit: float = 120.0,
    on_row: Callable[[SweepRow], None] | None = None,
) -> SweepTable:
    """Measure cells, and give the table of their rows.

    `store` is a file that keeps rows: cells that were measured or refused (by this version of the compiler, and without
    a `client` on this CPU) are not measured again; those that crashed or were too slow are.
    `client` is a `distributed.Client` or the address of a cluster (`tcp://…`, needs `pip install "relaylab[dask]"`);
    without it `processes` run here, one by default, since measurements beside each other are slower. `limit` is how
    many seconds a cell may take. Ctrl-C ends it; what was measured is kept and given.

    Raises RelayValueError `sweep.processes`, `sweep.limit`, `cluster.*`, `runs.*`.
    """
    wanted = list(dict.fromkeys(cells))
    if not isinstance(processes, int) or processes < 1:
        raise RelayValueError(f"a sweep needs at least one process, not {processes}", code="sweep.processes")
    if not 0 < limit < 1e9:
        raise RelayValueError(f"a limit is some seconds, not {limit}", code="sweep.limit")
    table = SweepTable(store, wanted)
    here = {"cpu": CpuTarget.host().key} if client is None else {}
    known = table.known(version=current_version(), **here)
    missing = [c for c in wanted if c.key not in known]
    try:
        found = _local(missing, processes, limit) if client is None else _remote(missing, client, limit)
        with closing(found):  # whatever ends it ends its processes, and what waits for them
            for done in found:
                for row in table.keep(done):
                    if on_row is not None:
                        on_row(row)
    except KeyboardInterrupt:
        table.stopped = True
    return table


def run_cell(text: str, limit: float) -> Answer:
    """The answer to a cell from this thread's own process, which is started when it is first needed."""
    process: LineProcess | None = getattr(_own, "process", None)
    if process is None:
        process = _own.process = LineProcess(WORKER, {})
    found = process.ask({"cell": text}, limit)
    return {"cpu": "", "version": current_version(), **found}


def _local(cells: Sequence[SweepCell], processes: int, limit: float) -> Generator[Done]:
    """Cells and answers as they are done, in some processes of this machine."""
    started: list[LineProcess] = []

    def begin() -> None:
        _own.process = LineProcess(WORKER, {})
        started.append(_own.process)

    pool = ThreadPoolExecutor(processes, initializer=begin)
    try:
        futures = {pool.submit(run_cell, c.json(), limit): c for c in cells}
        for future in as_completed(futures):
            yield [(futures[future], future.result())]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in started:
            process.close()


def _remote(cells: Sequence[SweepCell], client: ClusterClient | str, limit: float) -> Generator[Done]:
    """Cells and answers as they are done, on a cluster."""
    by_key, waiting = {c.key: c for c in cells}, iter(cells)
    with cluster_at(client) as cluster:
        while True:
            while cluster.room and (cell := next(waiting, None)) is not None:
                cluster.submit(cell.key, run_cell, cell.json(), limit)
            if not cluster.open:
                return
            yield [(by_key[key], _answered(found)) for key, found in cluster.finished()]


def _answered(found: Answer | RelayError) -> Answer:
    if isinstance(found, RelayError):
        return {"cpu": "", "version": "", "status": "crashed", "why": str(found)}
    return found
