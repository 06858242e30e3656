"""The memory of an open program's results: blocks that are lent, and given back when no array over them lives.

A result that continues an input (a cache, joined with what is new) lies in a block with room for more: the next run
writes what is new behind it, and nothing is copied. Arrays of both lengths look at the same memory then, each at what
was there when it was made, so an array takes memory of its own before anyone may write to it.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from relaylab.ir.dims import SizeVar, SymbolicDim
from relaylab.loop.expr import MOST_SIZE
from relaylab.runtime.memory import ALIGNMENT, address, aligned

SPARE = 2
"""How many blocks of memory per result are kept that nobody looks at."""


class Lent:
    """What arrays over a block hang on: as long as one of them lives, slices of it too, it belongs to them.

    Of a cache `written` says what is in it.
    """

    __slots__ = ("__array_interface__", "__weakref__", "block", "place", "written")

    def __init__(self, block: np.ndarray, place: int):
        self.block, self.place = block, place
        self.written: CacheFilling | None = None
        self.__array_interface__ = {"shape": block.shape, "typestr": "|u1", "data": (place, False), "version": 3}


@dataclass(eq=False, slots=True)
class CacheFilling:
    """What lies in caches that were written together: who wrote it, how many places there are along the axis, and how
    many of them are used.
    """

    rooms: Rooms
    room: int
    used: int


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


Held = tuple[np.ndarray, Lent]
"""An array over the whole room of a cache, and the memory that it lies in."""


@dataclass(slots=True)
class Turn:
    """Where the caches of one length lie in a run: their room before it and after it, as strides tell it.

    `held` is the memory of each if they stay in it; `strided` says that they lie in memory with room, in this or other.
    """

    length: int
    before: int
    after: int
    strided: bool = False
    held: tuple[Held, ...] = ()


class Rooms:
    """The caches that have one length: inputs, by number, and the results that continue them, along `axis`.

    `length`, `before` and `after` are the sizes that say how long a run makes them, and their room before and after it.
    """

    def __init__(
        self, inputs: list[int], results: list[int], axis: int, length: SymbolicDim, before: SizeVar, after: SizeVar
    ):
        self.inputs, self.results, self.axis, self.along = inputs, results, axis, (slice(None),) * axis
        self.length, self.before, self.after = length, before, after
        self.settle()
        self.forget()

    def settle(self) -> None:
        """Begin with new code."""
        self.steps: list[tuple[int, Callable[[Sequence[int]], int]]] = []
        """Where the items of the steps stand that bring what a cache held, and how many they are."""
        self.still = False
        """Whether those steps have no items."""
        self.home: tuple[Held, ...] = ()
        """The memory of caches that stay in it, where the code reads and writes them there."""

    def forget(self) -> None:
        """Let go of the caches of the last run, and of their memory: what others let go serves again."""
        self.last: list[np.ndarray] = []
        self.held: tuple[Held, ...] = ()
        self.written = CacheFilling(self, 0, 0)

    def turn(self, arrays: Sequence[np.ndarray], length: int) -> Turn:
        """How the next run begins, which makes the caches `length` long.

        They stay where they are if there is room for it in the memory of each, and nobody has written there yet.
        """
        old, room = arrays[self.inputs[0]].shape[self.axis], self.written.room
        if self._go_on(arrays, old) and length <= room:
            return Turn(length, room, room, True, self.held)
        self.forget()
        held: list[tuple[np.ndarray, Lent]] = []
        rooms: set[int] = set()
        strides: dict[tuple[object, ...], tuple[int, ...]] = {}
        for k in self.inputs:
            x = arrays[k]
            lent = lent_of(x)
            written = None if lent is None else lent.written
            if lent is None or written is None or written.rooms is not self or address(x) != lent.place:
                return Turn(length, old, _roomy(length))  # a part begins elsewhere
            form = x.shape, written.room, x.itemsize
            if form not in strides:
                strides[form] = strides_of(x.shape, self.axis, written.room, x.itemsize)
            rooms.add(written.room if x.strides == strides[form] else 0)
            if written.used == old:
                held.append((x, lent))
        room = rooms.pop()
        if rooms or not room:
            return Turn(length, old, _roomy(length))
        if length <= room and len({id(lent) for _, lent in held}) == len(self.inputs):
            wholes = [(whole(x.base, x.shape, x.dtype, self.axis, room), lent) for x, lent in held]
            return Turn(length, room, room, True, tuple(wholes))
        return Turn(length, room, max(room, _roomy(length)), True)

    def _go_on(self, arrays: Sequence[np.ndarray], old: int) -> bool:
        """Whether these are the very caches of the last run, and nobody has written behind them."""
        if not self.last or self.written.used != old:
            return False
        for k, last in zip(self.inputs, self.last):
            if arrays[k] is not last:
                return False
        return True

    def wrote(self, turn: Turn, held: tuple[Held, ...]) -> list[np.ndarray]:
        """The caches that a run wrote to this memory; the next one may go on there."""
        if held is self.held:
            self.written.used = turn.length
        else:
            self.held, self.written = held, CacheFilling(self, turn.after, turn.length)
            for _, lent in held:
                lent.written = self.written
        part = (*self.along, slice(turn.length))
        self.last = [array[part] for array, _ in held]
        return self.last


def whole(owner: np.ndarray | None, shape: Sequence[int], dtype: np.dtype, axis: int, room: int) -> np.ndarray:
    """An array over all the memory of a cache of this shape, of which a cache is the first part."""
    return np.ndarray((*shape[:axis], room, *shape[axis + 1 :]), dtype, owner)


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
