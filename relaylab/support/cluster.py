"""Calls on a Dask cluster (docs.dask.org): sent as texts and numbers, run again where a worker is lost, their results
as they come. What runs where and when is Dask's business; one cluster serves sweeps and tuning.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol, cast

from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError, kind_of

CONNECT = 10  # seconds to find a cluster
RETRIES = 2  # of a call whose worker was lost
AHEAD = 4  # calls that are sent for each one that can run: none waits for the client, and few lie in the scheduler


class ClusterCall(Protocol):
    """What is used of a `distributed.Future`."""

    key: str
    status: str

    def exception(self) -> object:
        """Why it failed."""
        ...


class ClusterClient(Protocol):
    """What is used of a `distributed.Client`."""

    @property
    def loop(self) -> object:
        """The loop that its messages come in by."""
        ...

    def nthreads(self) -> dict[str, int]:
        """The threads of each worker."""
        ...

    def submit(
        self, call: Callable[..., object], *arguments: object, key: str, pure: bool, retries: int
    ) -> ClusterCall:
        """Have a call done."""
        ...

    def cancel(self, futures: list[ClusterCall]) -> object:
        """Give calls up."""
        ...

    def close(self) -> object:
        """Part from the cluster."""
        ...


class WorkCluster:
    """A cluster at work on calls that have names: `submit` while there is `room`, `finished` gives what is done."""

    def __init__(self, client: ClusterClient):
        completed: Callable[..., Any] = import_module("distributed").as_completed
        self.client = client
        self.done = completed(loop=client.loop, with_results=True, raise_errors=False)
        self.open: dict[str, ClusterCall] = {}
        self._count()

    def _count(self) -> None:
        self.wanted = AHEAD * max(1, sum(self.client.nthreads().values()))

    @property
    def room(self) -> bool:
        """Whether another call is wanted to keep all workers busy."""
        return len(self.open) < self.wanted

    def submit(self, name: str, call: Callable[..., object], *arguments: object) -> None:
        """Have a call done; calls of one name are one call."""
        future = self.client.submit(call, *arguments, key=f"relaylab-{name}", pure=True, retries=RETRIES)
        self.open[name] = future
        self.done.add(future)

    def finished(self) -> list[tuple[str, Any]]:
        """Calls that are done, at least one of those that are open: names with results, or with a RelayError
        `cluster.lost` for one that the cluster gave up."""
        found: list[tuple[str, Any]] = []
        batch: list[tuple[ClusterCall, object]] = self.done.next_batch()
        for future, result in batch:
            name = future.key.removeprefix("relaylab-")
            del self.open[name]
            if future.status in ("error", "cancelled"):
                why = future.exception() if future.status == "error" else result
                result = RelayError(f"the cluster gave it up: {why!r}", code="cluster.lost")
            found.append((name, result))
        self._count()  # workers come and go
        return found

    def cancel(self) -> None:
        """Give up what is open."""
        self.client.cancel([*self.open.values()])
        self.open.clear()


@contextmanager
def cluster_at(client: ClusterClient | str) -> Generator[WorkCluster]:
    """The cluster of a client, or at an address (`tcp://host:8786`); a client that is made here is closed again, and
    what is still open is given up.

    Raises RelayError `cluster.dask` if Dask is not installed, `cluster.lost` if the cluster goes away meanwhile,
    RelayValueError `cluster.unreachable`, RelayTypeError `cluster.client` for what is neither.
    """
    try:
        connect: Callable[..., ClusterClient] = import_module("distributed").Client
    except ImportError:
        help = 'pip install "relaylab[dask]"'
        raise RelayError("work on a cluster needs Dask", code="cluster.dask", help=help) from None
    try:
        used = connect(client, timeout=CONNECT) if isinstance(client, str) else client
    except (OSError, TimeoutError, ValueError) as error:
        said, help = f"there is no cluster at {client}: {error}", "start one: dask scheduler, dask worker"
        raise RelayValueError(said, code="cluster.unreachable", help=help) from None
    if not isinstance(used, cast("type[object]", connect)):
        said, help = (
            f"work is sent to a distributed.Client or an address, not to {kind_of(used)}",
            "give Client(cluster)",
        )
        raise RelayTypeError(said, code="cluster.client", help=help)
    try:
        cluster = WorkCluster(used)
        try:
            yield cluster
        finally:
            cluster.cancel()
    except OSError as error:
        if error.errno is not None and not isinstance(error, (ConnectionError, TimeoutError)):
            raise  # a file's: Dask says what happened to a connection in words
        said, help = f"the cluster went away: {error}", "what it gave is kept: start it again, and go on from there"
        raise RelayError(said, code="cluster.lost", help=help) from None
    finally:
        if used is not client:
            used.close()
