"""The search for cycles rests, and does not make up for it at once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from relaylab.support.collection import no_collection


@pytest.fixture(autouse=True)
def as_in_a_program() -> Iterator[None]:
    """The suite freezes what it has loaded; a program does not."""
    gc.unfreeze()
    yield
    gc.freeze()


class Node:
    """What may be in a cycle."""


def test_what_was_made_meanwhile_is_not_looked_at_at_once() -> None:
    looks = []
    look = lambda phase, about: looks.append(about["generation"]) if phase == "start" else None
    gc.callbacks.append(look)
    try:
        with no_collection():
            kept = [[k] for k in range(100_000)]
        more = [[k] for k in range(100)]
    finally:
        gc.callbacks.remove(look)
    assert not looks and gc.isenabled() and len(kept) + len(more) == 100_100


def test_a_cycle_that_was_made_meanwhile_is_found_later() -> None:
    with no_collection():
        node = Node()
        node.itself = node
        there = weakref.ref(node)
        del node
        assert there() is not None
    gc.collect()
    assert there() is None


@pytest.mark.parametrize("frozen", [False, True])
def test_what_the_user_has_frozen_stays_so(frozen: bool) -> None:
    if frozen:
        gc.freeze()
    before = gc.get_freeze_count()
    with no_collection(), no_collection():
        assert not gc.isenabled() and [[k] for k in range(100_000)]
    after = gc.get_freeze_count()  # what is let go of in between is frozen no more
    assert gc.isenabled() and bool(before) == bool(after) == frozen


def test_a_user_who_has_turned_it_off_keeps_it_off() -> None:
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
