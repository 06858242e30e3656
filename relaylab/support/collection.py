"""Python's search for reference cycles, at rest while very many objects are made.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


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
        if not gc.get_freeze_count():
            gc.freeze()  # as if they had been looked at: else all of them are, as soon as one more object is made
            gc.unfreeze()
        gc.enable()
