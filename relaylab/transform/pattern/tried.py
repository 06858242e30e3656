"""Which rules, callbacks and patterns a piece of work tries: to ask a pass that does not declare them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_open: ContextVar[dict[object, None] | None] = ContextVar("relaylab_tried", default=None)


def tried(rules: Iterable[object]) -> None:
    """These are tried now."""
    found = _open.get()
    if found is not None:
        found.update(dict.fromkeys(rules))


@contextmanager
def watching() -> Iterator[dict[object, None]]:
    """What the block tries, in order, each once."""
    found: dict[object, None] = {}
    token = _open.set(found)
    try:
        yield found
    finally:
        _open.reset(token)
