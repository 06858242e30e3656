"""Python's search for reference cycles, at rest while very many objects are made.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

MANY = 50_000
"""Objects that take longer to look at than it matters: a few milliseconds."""


@contextmanager
def no_collection() -> Generator[None, None, None]:
    """Let the search for reference cycles rest: passes, builds and pictures make many objects, few in cycles."""
    if not gc.isenabled():  # by one around this, or by the user
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > MANY and not gc.get_freeze_count():  # which counts what is frozen one by one
            gc.freeze()  # as if they had been looked at: else all of them are, as soon as one more object is made
            gc.unfreeze()
        gc.enable()
