"""The memory of an open program's results: blocks that are lent, and given back when no array over them lives.

A result that continues an input (a cache, joined with what is new) lies in a block with room for more: the next run
writes what is new behind it, and nothing is copied. Arrays of both lengths look at the same memory then, each at what
was there when it was made, so an array takes memory of its own before anyone may write to it.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from relaylab.loop.expr import MOST_SIZE
from relaylab.runtime.memory import ALIGNMENT, address, aligned

SPARE = 2
"""How many blocks of memory per result are kept that nobody looks at."""


class Lent:
    """What arrays over a block hang on: as long as one of them lives, slices of it too, it belongs to them.

    Of a cache `rooms` is who wrote it, `room` how many places along its axis there are, `used` how many are written.
    """

    __slots__ = ("__array_interface__", "__weakref__", "block", "place", "rooms", "room", "used")

    def __init__(self, block: np.ndarray, place: int):
        self.block, self.place = block, place
        self.rooms: object = None
        self.room = self.used = 0
        self.__array_interface__ = {"shape": block.shape, "typestr": "|u1", "data": (place, False), "version": 3}


class ResultMemory:
    """The blocks of one result."""

    def __init__(self) -> None:
        self.lent: list[tuple[weakref.ref[Lent], np.ndarray, int]] = []

    def lend(self, nbytes: int) -> tuple[np.ndarray, Lent]:
        """The bytes of a block of at least `nbytes` that nobody looks at, and what arrays over them hang on."""
        busy: list[tuple[weakref.ref[Lent], np.ndarray, int]] = []
        free: list[tuple[weakref.ref[Lent], np.ndarray, int]] = []
        found = None
        for entry in self.lent:
            if entry[0]() is not None:
                busy.append(entry)
            elif found is None and entry[1].nbytes >= nbytes:
                found = entry
            elif len(free) < SPARE:
                free.append(entry)
        if found is None:
            block = aligned(max(nbytes, 1), "a result")
            place = address(block)
        else:
            _, block, place = found
        lent = Lent(block, place)
        self.lent = [*busy, *free, (weakref.ref(lent), block, place)]
        return np.asarray(lent), lent


@dataclass(slots=True)
class Turn:
    """Where the caches of one length lie in a run: their room before it and after it, as strides tell it.

    `held` is the memory of each if they stay in it; `strided` says that they lie in memory with room, in this or other.
    """

    length: int
    before: int
    after: int
    strided: bool = False
    held: tuple[tuple[np.ndarray, Lent], ...] = ()


class Rooms:
    """The caches that have one length: inputs, by number, and the results that continue them, along `axis`."""

    def __init__(self, inputs: Sequence[int], axis: int):
        self.inputs, self.axis = list(inputs), axis
        self.last: list[weakref.ref[np.ndarray]] = []
        self.held: tuple[tuple[np.ndarray, Lent], ...] = ()
        """The caches of the last run, and their memory."""

    def turn(self, arrays: Sequence[np.ndarray], length: int) -> Turn:
        """How the next run begins, which makes the caches `length` long.

        They stay where they are if there is room for it in the memory of each, and nobody has written there yet.
        """
        old = arrays[self.inputs[0]].shape[self.axis]
        if self._go_on(arrays, old) and length <= (room := self.held[0][1].room):
            return Turn(length, room, room, True, self.held)
        self.last, self.held = [], ()  # what others let go serves again
        held: list[tuple[np.ndarray, Lent]] = []
        rooms: set[int] = set()
        strides: dict[tuple[object, ...], tuple[int, ...]] = {}
        for k in self.inputs:
            x = arrays[k]
            owner, lent = cast(np.ndarray, x.base), lent_of(x)
            if lent is None or lent.rooms is not self or address(x) != lent.place:  # a part begins elsewhere
                return Turn(length, old, _roomy(length))
            form = x.shape, lent.room, x.itemsize
            if form not in strides:
                strides[form] = strides_of(x.shape, self.axis, lent.room, x.itemsize)
            rooms.add(lent.room if x.strides == strides[form] else 0)
            if lent.used == old:
                held.append((owner, lent))
        room = rooms.pop()
        if rooms or not room:
            return Turn(length, old, _roomy(length))
        if length <= room and len({id(lent) for _, lent in held}) == len(self.inputs):
            return Turn(length, room, room, True, tuple(held))
        return Turn(length, room, max(room, _roomy(length)), True)

    def _go_on(self, arrays: Sequence[np.ndarray], old: int) -> bool:
        """Whether these are the very caches of the last run, and nobody has written behind them."""
        for k, last, (_, lent) in zip(self.inputs, self.last, self.held):
            if last() is not arrays[k] or lent.used != old:
                return False
        return bool(self.held)

    def wrote(self, turn: Turn, arrays: Sequence[np.ndarray], memory: Sequence[Lent]) -> None:
        """Note what a run wrote: these arrays, in this memory."""
        self.last = [weakref.ref(x) for x in arrays]
        for lent in memory:
            lent.rooms, lent.room, lent.used = self, turn.after, turn.length
        if turn.held is not self.held:
            self.held = tuple([(cast(np.ndarray, x.base), lent) for x, lent in zip(arrays, memory)])


def _roomy(length: int) -> int:
    """Room for more: twice as much at most."""
    return max(length, min(1 << length.bit_length(), MOST_SIZE))


def strides_of(shape: Sequence[int], axis: int, room: int, itemsize: int) -> tuple[int, ...]:
    """The strides, in bytes, of an array in memory where its axis has room for so many."""
    strides, step = [0] * len(shape), itemsize
    for k in range(len(shape) - 1, -1, -1):
        strides[k] = step
        step *= room if k == axis else shape[k]
    return tuple(strides)


def lent_of(x: np.ndarray) -> Lent | None:
    """What an array over lent memory hangs on."""
    owner = x.base
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner if isinstance(owner, Lent) else None


def readable(x: np.ndarray, place: int) -> bool:
    """Whether kernels can read an array where it lies: they may read whole cache lines."""
    return place % ALIGNMENT == 0 and x.flags.c_contiguous
