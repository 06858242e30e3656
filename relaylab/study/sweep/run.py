"""Running a sweep: cells in processes of this machine, or on a Dask cluster; rows are kept as they come.

A cell runs in a process of its own worker, here as on a cluster: one that crashes or hangs is a row that says so. What
has a row is not run again, so that a sweep goes on after any worker, or the client itself, has died.

What is sent is text (`SweepCell.json`); Dask moves it, runs it again where a worker was lost, and says when it is done.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import TYPE_CHECKING

from relaylab.codegen.operations.records import current_version
from relaylab.study.sweep.cell import SweepCell
from relaylab.study.sweep.table import SweepRow, SweepTable
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.line_process import Answer, LineProcess

if TYPE_CHECKING:
    from distributed import Client

WORKER = "relaylab.study.sweep.worker"
CONNECT = 10  # seconds to find a cluster
_own = threading.local()


def sweep(
    cells: Iterable[SweepCell],
    store: str | os.PathLike[str] | None = None,
    client: Client | str | None = None,
    processes: int = 1,
    limit: float = 120.0,
    on_row: Callable[[SweepRow], None] | None = None,
) -> SweepTable:
    """Measure cells, and give the table of their rows.

    `store` is a file that keeps rows: cells that have one (of this version of the compiler) are not measured again.
    `client` is a `distributed.Client` or the address of a cluster (`tcp://…`, needs `pip install relaylab[dask]`);
    without it `processes` run here, one by default, since measurements beside each other are slower. `limit` is how
    many seconds a cell may take. Ctrl-C ends it; what was measured is kept and given.

    Raises RelayValueError `sweep.processes`, `sweep.limit`, `sweep.cluster`, `runs.*`.
    """
    wanted = list(dict.fromkeys(cells))
    if not isinstance(processes, int) or processes < 1:
        raise RelayValueError(f"a sweep needs at least one process, not {processes}", code="sweep.processes")
    if not 0 < limit < 1e9:
        raise RelayValueError(f"a limit is some seconds, not {limit}", code="sweep.limit")
    table = SweepTable(store, wanted)
    known = table.known(current_version())
    missing = [c for c in wanted if c.key not in known]
    try:
        found = _local(missing, processes, limit) if client is None else _remote(missing, client, limit)
        for cell, answer in found:
            row = table.keep(cell, answer)
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


def _local(cells: Sequence[SweepCell], processes: int, limit: float) -> Iterator[tuple[SweepCell, Answer]]:
    """Cells and answers as they are done, in some processes of this machine."""
    started: list[LineProcess] = []

    def begin() -> None:
        _own.process = LineProcess(WORKER, {})
        started.append(_own.process)

    pool = ThreadPoolExecutor(processes, initializer=begin)
    try:
        futures = {pool.submit(run_cell, c.json(), limit): c for c in cells}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for process in started:
            process.close()


def _remote(cells: Sequence[SweepCell], client: Client | str, limit: float) -> Iterator[tuple[SweepCell, Answer]]:
    """Cells and answers as they are done, on a cluster."""
    with _connected(client) as cluster:
        from distributed import as_completed as done

        by_key = {f"relaylab-{c.key}": c for c in cells}
        futures = [
            cluster.submit(run_cell, c.json(), limit, key=key, pure=True, retries=2) for key, c in by_key.items()
        ]
        for future in done(futures):
            if future.status == "error":
                why = f"the cluster gave it up: {future.exception()!r}"
                yield by_key[future.key], {"cpu": "", "version": "", "status": "crashed", "why": why}
            else:
                yield by_key[future.key], future.result()


@contextmanager
def _connected(client: Client | str) -> Generator[Client]:
    """A client of a cluster; one that is made here for an address is closed again."""
    try:
        from distributed import Client
    except ImportError:
        help = "pip install relaylab[dask]"
        raise RelayError("sweeps on a cluster need Dask", code="sweep.cluster", help=help) from None
    if not isinstance(client, str):
        yield client
        return
    try:
        cluster = Client(client, timeout=CONNECT)
    except (OSError, TimeoutError, ValueError) as error:
        said = f"there is no cluster at {client}: {error}"
        raise RelayValueError(said, code="sweep.cluster", help="start one: dask scheduler, dask worker") from None
    try:
        yield cluster
    finally:
        cluster.close()
