"""How soon a thread that runs Python lets another one that waits for it go on.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

SOON = 0.0005
"""Seconds; Python's own 5 ms are half of what LLVM takes for a kernel, and were waited for at each call of it."""

_lock = threading.Lock()
_before: list[float] = []  # one for each block that is under way: the interval before it


@contextmanager
def hand_over_soon() -> Generator[None, None, None]:
    """Let threads that work outside Python come back into it within `SOON`, until the last such block has ended."""
    with _lock:
        _before.append(sys.getswitchinterval())
        sys.setswitchinterval(min(SOON, _before[0]))
    try:
        yield
    finally:
        with _lock:
            before = _before.pop()
            if not _before:
                sys.setswitchinterval(before)
