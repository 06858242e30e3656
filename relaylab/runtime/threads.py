"""How many threads compiled code uses, and the state of the one native pool of the process.

The pool's code is part of the compiled entry (`codegen/native/entry.py`); its state lives here, so that all
modules share its workers. Workers start with the first parallel run, sleep when idle, and are started
again in a child after a fork.
"""

from __future__ import annotations

import ctypes
import operator
import os
import reprlib
from collections.abc import Generator
from contextlib import contextmanager
from typing import SupportsIndex

from relaylab.runtime import abi
from relaylab.support.errors import RelayValueError

VARIABLE = "RELAYLAB_NUM_THREADS"
SPIN = 4000
SPIN_OVERSUBSCRIBED = 100

_pool = ctypes.create_string_buffer(abi.POOL_BYTES + abi.SLOT_BYTES)
# Workers look at the pool until the process ends, later than the interpreter frees its objects: never free it.
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_pool))
_start = -ctypes.addressof(_pool) % abi.SLOT_BYTES
_chosen: int | None = None


def available_processors() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def num_threads() -> int:
    """Threads per run: what `set_num_threads` chose, else RELAYLAB_NUM_THREADS, else one per processor."""
    if _chosen is not None:
        return _chosen
    text = os.environ.get(VARIABLE, "").strip()
    if text:
        return checked(int(text) if text.isascii() and text.isdigit() and len(text) < 9 else text, VARIABLE)
    return min(available_processors(), abi.MAX_THREADS)


def set_num_threads(count: int | None) -> None:
    """Choose the threads per run for modules made from now on; None returns to the default."""
    global _chosen
    _chosen = None if count is None else checked(count)


@contextmanager
def threads_used(count: int) -> Generator[None]:
    """Modules that are made inside run on so many threads; after it, what was chosen before holds again."""
    global _chosen
    before = _chosen
    set_num_threads(count)
    try:
        yield
    finally:
        _chosen = before


def checked(count: object, what: str = "the number of threads") -> int:
    """`count` as a number of threads, or a RelayValueError."""
    try:
        number = operator.index(count) if isinstance(count, SupportsIndex) and not isinstance(count, bool) else 0
    except TypeError:
        number = 0
    if not 1 <= number <= abi.MAX_THREADS:
        raise RelayValueError(
            f"{what} must be a whole number from 1 to {abi.MAX_THREADS}, got {reprlib.repr(count)}",
            code="runtime.num-threads",
            help="leave it out for one thread per processor",
        )
    return number


def pool_address() -> int:
    """Where the state of the pool lies."""
    return ctypes.addressof(_pool) + _start


def worker_count() -> int:
    """The workers that exist in this process."""
    return ctypes.c_int64.from_buffer(_pool, _start + abi.POOL_WORKERS).value


def _reset() -> None:
    """An empty pool: at import, and in a child process, where no worker has survived the fork."""
    ctypes.memset(pool_address(), 0, abi.POOL_BYTES)
    spin = SPIN if available_processors() > 1 else SPIN_OVERSUBSCRIBED
    ctypes.c_int64.from_buffer(_pool, _start + abi.POOL_SPIN).value = spin


_reset()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset)
