"""The order of a row, in procedures: a merge sort of keys and their numbers, a heap of them, and the first k of a row.

Equal keys stand in the order of their numbers, and NaN counts as larger than every number, as numpy sorts.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from relaylab.loop.expr import Local
from relaylab.loop.scalar import compute_dtype, is_float
from relaylab.op.helpers import Element, ElementBuilder, Position

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

CHUNK = 32  # elements that are compared with the k-th best side by side
SELECTED = 4  # from how many times k on the first k are selected and not sorted out of all
Write = Callable[[Element, Element, Element], None]
"""What is done with a place in the order, the key there and its number."""


def key_dtype(dtype: str) -> str:
    """The data type in which keys are compared."""
    return "uint8" if dtype == "bool" else compute_dtype(dtype)


def before(b: ElementBuilder, a: Element, c: Element, ascending: bool) -> Element:
    """Whether key `a` must stand before key `c`."""
    if not is_float(a.dtype):
        return a < c if ascending else a > c
    if ascending:
        return b.all_of(b.lnot(a >= c), b.lnot(b.isnan(a)))
    return b.all_of(b.lnot(a <= c), b.lnot(b.isnan(c)))


class Keys:
    """Up to `capacity` keys, each with a number, in the private memory of the parallel loop that is being written."""

    def __init__(self, p: Procedure, capacity: int, dtype: str, ascending: bool = True, numbers: int = 0):
        self.p, self.capacity, self.dtype, self.ascending = p, max(capacity, 1), dtype, ascending
        self.keys = p.scratch(self.copies * self.capacity, key_dtype(dtype))
        self.numbers = p.scratch(self.copies * self.capacity, "int32" if max(numbers, capacity) < 2**31 else "int64")

    copies = 1

    def put(self, place: Position, key: Element, number: Position) -> None:
        """Write a key, of the dtype of the row, and its number."""
        b = self.p.b
        self.p.store(self.keys, place, b.cast(key, self.keys.dtype))
        self.p.store(self.numbers, place, b.cast(b.index(number), self.numbers.dtype))

    def key(self, place: Position) -> Element:
        """The key at a place."""
        return self.p.b.cast(self.keys(place), self.dtype)

    def number(self, place: Position) -> Element:
        """The number of the key at a place, as an index."""
        return self.p.b.index(self.numbers(place))

    def before(self, a: Element, c: Element) -> Element:
        """Whether key `a` must stand before key `c`."""
        return before(self.p.b, a, c, self.ascending)


class SortedRow(Keys):
    """Keys that are sorted, with an equal amount of memory beside them."""

    copies = 2

    def sort(self, count: Position) -> None:
        """Bring the first `count` keys into order; equal ones keep theirs. O(n log n): runs are merged in pairs."""
        p, b, total = self.p, self.p.b, self.p.b.index(count)
        # An even number of passes between the two halves of the memory ends where it began.
        passes = (self.capacity - 1).bit_length() + 1 & ~1
        with p.loop(passes) as level:
            width, source = p.let(b.shl(b.index(1), level)), p.let(level % 2 * self.capacity)
            pairs = b.shr(total + 2 * width - 1, level + 1)
            with p.loop((self.capacity + 1) // 2, stop=pairs) as pair:
                low = p.let(2 * width * pair)
                middle, high = p.let(b.min(low + width, total)), p.let(b.min(low + 2 * width, total))
                self._merge(source, low, middle, high)

    def _merge(self, source: Local, low: Local, middle: Local, high: Local) -> None:
        """Merge the runs low .. middle-1 and middle .. high-1 of one half into the other half, from both ends at once:
        two chains of comparisons that do not wait for each other. The element in the middle may be written twice.
        """
        p, b, target = self.p, self.p.b, self.p.let(self.capacity - source)
        left, right = p.let(low), p.let(middle)
        last_left, last_right = p.let(middle - 1), p.let(high - 1)
        with p.loop((self.capacity + 1) // 2, stop=b.shr(high - low + 1, 1)) as k:
            x, y = self._entry(source + left), self._entry(source + right)
            take = p.let(b.land(right < high, b.lor(left >= middle, self.before(y[0], x[0]))))
            self._move(target + low + k, take, y, x)
            step = p.let(b.cast(take, "int64"))
            p.add(right, step), p.add(left, 1 - step)
            x, y = self._entry(source + last_left), self._entry(source + last_right)
            take = p.let(b.land(last_left >= low, b.lor(last_right < middle, self.before(y[0], x[0]))))
            self._move(target + high - 1 - k, take, x, y)
            step = p.let(b.cast(take, "int64"))
            p.add(last_left, -step), p.add(last_right, step - 1)

    def _entry(self, place: Element) -> tuple[Local, Local]:
        return self.p.let(self.keys(place)), self.p.let(self.numbers(place))

    def _move(self, place: Element, first: Element, x: Sequence[Element], y: Sequence[Element]) -> None:
        for memory, a, c in zip((self.keys, self.numbers), x, y):
            self.p.store(memory, place, self.p.b.select(first, a, c))


class Heap(Keys):
    """Keys of which the first in the order, or the last, is found in O(log n): a binary heap with it at the root."""

    def __init__(self, p: Procedure, capacity: int, dtype: str, ascending: bool = True, last: bool = False, numbers=0):
        super().__init__(p, capacity, dtype, ascending, numbers)
        self.last = last

    def precedes(self, a: Element, i: Element, c: Element, j: Element) -> Element:
        """Whether key `a` with number `i` stands before key `c` with number `j`."""
        b = self.p.b
        return b.lor(self.before(a, c), b.land(b.lnot(self.before(c, a)), i < j))

    def build(self, count: Element) -> None:
        """Make a heap of the first `count` keys: O(n)."""
        p, half = self.p, self.p.let(count // 2)
        with p.loop(self.capacity // 2, stop=half) as k:
            place = p.let(half - 1 - k)
            self.sift(place, p.let(self.keys(place)), p.let(self.numbers(place)), count)

    def pop(self, count: Local) -> tuple[Local, Local]:
        """Take the key at the root, and its number as an index, out of a heap of `count`, which falls by one."""
        p = self.p
        key, number = p.let(self.key(0)), p.let(self.number(0))
        p.add(count, -1)
        self.sift(p.let(0), p.let(self.keys(count)), p.let(self.numbers(count)), count)
        return key, number

    def sift(self, start: Local, key: Element, number: Element, count: Element) -> None:
        """Put a key, in place of what is at `start`, down to where it belongs in a heap of `count`."""
        p, b = self.p, self.p.b
        above = (lambda a, i, c, j: self.precedes(c, j, a, i)) if self.last else self.precedes
        hole, sinks = p.let(start), p.let(b.const(True, "bool"))
        with p.loop(self.capacity.bit_length()), p.when(sinks):
            left, right = (p.let(2 * hole + side) for side in (1, 2))
            pair = [p.let(x(side)) for side in (left, right) for x in (self.keys, self.numbers)]
            second = p.let(b.land(right < count, above(*pair[2:], *pair[:2])))
            x, i = (p.let(b.select(second, pair[2 + k], pair[k])) for k in (0, 1))
            p.add(sinks, b.land(left < count, above(x, i, key, number)), "all")
            with p.when(sinks):
                p.store(self.keys, hole, x)
                p.store(self.numbers, hole, i)
                p.set(hole, b.select(second, right, left))
        p.store(self.keys, hole, key)
        p.store(self.numbers, hole, number)


def first_in_order(
    p: Procedure, count: int, k: int, read: Callable[[Element], Element], dtype: str, ascending: bool, write: Write
) -> None:
    """Write the k first of `read(0) .. read(count - 1)` in order: sorted out of all, or selected if they are few."""
    if 0 < SELECTED * k <= count:
        _selected(p, count, k, read, Heap(p, k, dtype, ascending, last=True, numbers=count), write)
        return
    row = SortedRow(p, count, dtype, ascending)
    with p.loop(count, kind="vectorized") as at:
        row.put(at, read(at), at)
    row.sort(count)
    with p.loop(k, kind="vectorized") as at:
        write(at, row.key(at), row.number(at))


def _selected(p: Procedure, count: int, k: int, read: Callable[[Element], Element], heap: Heap, write: Write) -> None:
    """The k first are in a heap whose root is the last of them.

    A chunk of elements is compared with the root side by side, and only where one comes before it is the chunk looked
    through: O(n log k) at worst, mostly O(n) comparisons of vectors.
    """
    b, chunk, none = p.b, min(CHUNK, count), int(np.iinfo(heap.numbers.dtype).max)
    kind = heap.keys.dtype
    with p.loop(k) as at:  # places without an element come after all elements
        p.store(heap.keys, at, _last(b, kind, heap.ascending))
        p.store(heap.numbers, at, none)
    root, few = p.let(heap.keys(0)), p.let(b.const(True, "bool"))
    with p.loop(-(-count // chunk)) as part:
        start, some = b.min(part * chunk, count - chunk), p.let(few)
        with p.loop(chunk, kind="vectorized") as lane:
            p.add(some, heap.before(b.cast(read(start + lane), kind), root), "any")
        with p.when(some), p.loop(chunk, stop=count - part * chunk) as lane:
            at = b.min(part * chunk + lane, count - 1)
            x = p.let(b.cast(read(at), kind))
            with p.when(b.lor(few, heap.before(x, root))):
                heap.sift(p.let(0), x, p.let(b.cast(at, heap.numbers.dtype)), b.index(k))
                p.set(root, heap.keys(0))
                p.set(few, b.eq(heap.numbers(0), none))
    left = p.let(k)
    with p.loop(k):
        key, number = heap.pop(left)
        write(left, key, number)


def _last(b: ElementBuilder, dtype: str, ascending: bool) -> Element:
    """The key that comes after all others."""
    if not ascending:
        return b.lowest(dtype)
    return b.const(math.nan, dtype) if is_float(dtype) else b.highest(dtype)
