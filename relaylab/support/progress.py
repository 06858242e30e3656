"""How far long work is: who works says parts, "operator 12 of 70", and whoever waits hears them in words.

    with heard(print):
        for k in range(70):
            part("operator", k + 1, 70)

A part that is said again begins anew what was said within it: "stage 2 of 4, operator 1 of 70".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar

EVERY = 0.2
"""Seconds between two words."""


class _Listener:
    def __init__(self, hear: Callable[[str], None]):
        self.hear = hear
        self.parts: dict[str, str] = {}
        self.last = time.monotonic()

    def part(self, what: str, done: int, of: int) -> None:
        if what in self.parts:
            for inner in reversed([*self.parts]):
                del self.parts[inner]
                if inner == what:
                    break
        self.parts[what] = f"{what} {done} of {of}"
        if time.monotonic() - self.last >= EVERY:
            self.last = time.monotonic()
            self.hear(", ".join(self.parts.values()))


_LISTENER: ContextVar[_Listener | None] = ContextVar("relaylab-progress", default=None)


@contextmanager
def heard(hear: Callable[[str], None]) -> Generator[None]:
    """`hear` is told how far the work in the block is, now and then; what it raises ends the work."""
    token = _LISTENER.set(_Listener(hear))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def listened() -> bool:
    """Whether anybody wants to know."""
    return _LISTENER.get() is not None


def part(what: str, done: int, of: int) -> None:
    """This part of so many is being done, counted from 1."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.part(what, done, of)
