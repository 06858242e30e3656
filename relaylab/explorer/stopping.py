"""Stopping the work for a question: kernels answer widgets in a thread of its own, which no interrupt reaches."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_WORKING: dict[str, int] = {}


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error) if error else None)


@contextmanager
def working(key: str) -> Iterator[None]:
    """The block is work that `stop` can stop: it gets a `KeyboardInterrupt` between two steps of Python."""
    thread = threading.get_ident()
    with _LOCK:
        _WORKING[key] = thread
    try:
        yield
    finally:
        with _LOCK:
            del _WORKING[key]
            _raise_in(thread, None)  # what comes too late is forgotten


def stop(key: str) -> bool:
    """Stop the work of that key; whether there is any."""
    with _LOCK:
        thread = _WORKING.get(key)
        if thread is not None:
            _raise_in(thread, KeyboardInterrupt)
    return thread is not None
