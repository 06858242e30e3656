"""The order of a row, in procedures: keys and their numbers that are sorted, and the first k of a row.

Keys are unsigned integers in the order of what they stand for: equal ones stand in the order of their numbers, and NaN
counts as larger than every number, as numpy sorts.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relaylab.loop.expr import Local, Tensor
from relaylab.loop.scalar import compute_dtype, is_float
from relaylab.op.helpers import Element, ElementBuilder, Position

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

CHUNKS = 16, 64  # elements that are compared with the k-th best side by side, if many are better, or few
SELECTED = 4  # from how many times k on the first k are selected and not sorted out of all
ROOM = 2  # times k: how many are collected
FEW = 128  # keys up to which each is compared with all others
RARE = 8  # from how many times as many keys on each of the first is looked for in all of them
LONG = 2048  # keys from which on digits have 11 bits and not 8


def key_dtype(dtype: str) -> str:
    """The data type of keys that stand for values of `dtype`."""
    return "uint64" if dtype in ("int64", "uint64", "float64") else "uint32"


def key_of(b: ElementBuilder, x: Element, ascending: bool) -> Element:
    """The key of a value: a number that is less if the value stands before."""
    kind = key_dtype(x.dtype)
    if is_float(x.dtype):
        key = b.ordinal(b.cast(x, compute_dtype(x.dtype)))
    elif x.dtype.startswith("int"):
        key = b.bxor(b.cast(x, kind), b.const(1 << int(kind[4:]) - 1, kind))
    else:
        key = b.cast(x, kind)
    return key if ascending else b.bnot(key)


class SortedRow:
    """Up to `capacity` keys, each with a number below `numbers`, in the private memory of the parallel loop that is
    being written, and as much memory behind them.
    """

    def __init__(self, p: Procedure, capacity: int, dtype: str, ascending: bool = True, numbers: int = 0):
        self.p, self.capacity, self.ascending = p, max(capacity, 1), ascending
        self.keys = p.scratch(2 * self.capacity, key_dtype(dtype))
        self.numbers = p.scratch(2 * self.capacity, "int32" if max(numbers, capacity) < 2**31 else "int64")
        self.bits = 8 if self.capacity < LONG else 11
        self.digits = -(-int(self.keys.dtype[4:]) // self.bits)
        few = self.capacity <= FEW
        self.places = None if few else p.scratch(self.digits << self.bits, "int64")

    def key_of(self, x: Element) -> Element:
        """The key of a value of the row."""
        return key_of(self.p.b, x, self.ascending)

    def put(self, place: Position, x: Element, number: Position) -> None:
        """Write the key of a value, and its number."""
        b = self.p.b
        self.p.store(self.keys, place, self.key_of(x))
        self.p.store(self.numbers, place, b.cast(b.index(number), self.numbers.dtype))

    def number(self, place: Position) -> Element:
        """The number of the key at a place, as an index."""
        return self.p.b.index(self.numbers(place))

    def sort(self, count: Position, first: int | None = None) -> None:
        """Bring the first `count` keys into order, or the `first` of them; equal ones keep theirs. O(n)."""
        total = self.p.let(count)
        if self.places is not None:
            self._by_digits(total, self.places)
        elif first is not None and first * RARE <= self.capacity:
            self._by_search(total, first)
        else:
            self._by_rank(total)

    def _end(self, count: Local) -> None:
        """What lies behind few keys stands before none of them."""
        with self.p.loop(self.capacity, kind="vectorized") as k:
            last = self.p.b.highest(self.keys.dtype)
            self.p.store(self.keys, k, self.p.b.select(k < count, self.keys(k), last))

    def _by_search(self, count: Local, first: int) -> None:
        """Very few of few keys: the least is looked for, then the first place with it; it is marked as taken."""
        p, b, keys, numbers = self.p, self.p.b, self.keys, self.numbers
        self._end(count)
        with p.loop(first) as k:
            least = p.let(b.highest(keys.dtype))
            with p.loop(self.capacity, kind="vectorized") as at:
                p.add(least, keys(at), "min")
            place = p.let(b.const(self.capacity - 1, "int32"))
            with p.loop(self.capacity, kind="vectorized") as at:
                found = b.land(b.eq(keys(at), least), numbers(at) >= 0)
                p.add(place, b.select(found, b.cast(at, "int32"), self.capacity - 1), "min")
            taken = p.let(b.index(place))
            self._move(taken, self.capacity + k)
            p.store(keys, taken, b.highest(keys.dtype))
            p.store(numbers, taken, -1)
        self._back(first)

    def _by_rank(self, count: Local) -> None:
        """Few keys: how many stand before each says where it goes; all others are looked at side by side."""
        p, b, keys = self.p, self.p.b, self.keys
        self._end(count)
        with p.loop(self.capacity, stop=count) as k:
            x, rank = p.let(keys(k)), p.let(b.const(0, "int32"))
            with p.loop(self.capacity, kind="vectorized") as other:
                before = b.lor(keys(other) < x, b.land(b.eq(keys(other), x), other < k))
                p.add(rank, b.cast(before, "int32"))
            self._move(k, self.capacity + b.index(rank))
        self._back(self.capacity)

    def _by_digits(self, count: Local, places: Tensor) -> None:
        """Many keys: they are moved by one digit after another, from the last. Knuth, 5.2.5."""
        p, size, keys = self.p, 1 << self.bits, self.keys
        with p.loop(self.digits * size, kind="vectorized") as k:
            p.store(places, k, 0)
        with p.loop(self.capacity, stop=count) as k:
            x = p.let(keys(k))
            for level in range(self.digits):
                at = p.let(self._digit(x, level))
                p.store(places, at, places(at) + 1)
        source = p.let(0)
        with p.loop(self.digits) as level, p.when(places(self._digit(keys(source), level)) < count):  # not all the same
            total, target = p.let(0), p.let(self.capacity - source)
            with p.loop(size) as digit:
                many = p.let(places(level * size + digit))
                p.store(places, level * size + digit, total)
                p.add(total, many)
            with p.loop(self.capacity, stop=count) as k:
                at = p.let(self._digit(keys(source + k), level))
                to = p.let(places(at))
                p.store(places, at, to + 1)
                self._move(source + k, target + to)
            p.set(source, target)
        with p.when(source > 0):
            self._back(self.capacity)

    def _move(self, place: Element, to: Element) -> None:
        for memory in (self.keys, self.numbers):
            self.p.store(memory, to, memory(place))

    def _back(self, count: int) -> None:
        """Move what lies behind the keys to where they are."""
        with self.p.loop(count, kind="vectorized") as k:
            self._move(self.capacity + k, k)

    def _digit(self, key: Element, level: Position) -> Element:
        """Where a digit of a key is counted."""
        b, size = self.p.b, 1 << self.bits
        digit = b.band(b.shr(key, b.cast(b.index(level) * self.bits, key.dtype)), size - 1)
        return b.index(level) * size + b.index(digit)


def first_in_order(
    p: Procedure,
    count: int,
    k: int,
    read: Callable[[Element], Element],
    dtype: str,
    ascending: bool,
    write: Callable[[Element, Element, Element], None],
) -> None:
    """The k first of `read(0) .. read(count - 1)` in order, sorted out of all or selected if they are few:
    `write(place, value, number)`.
    """
    if count > 2 * FEW and 0 < SELECTED * k <= count:
        row = _selected(p, count, k, read, dtype, ascending)
    else:
        row = SortedRow(p, count, dtype, ascending)
        with p.loop(count, kind="vectorized") as at:
            row.put(at, read(at), at)
        row.sort(count, k)
    with p.loop(k) as at:
        number = p.let(row.number(at))
        write(at, read(number), number)


def _selected(
    p: Procedure, count: int, k: int, read: Callable[[Element], Element], dtype: str, ascending: bool
) -> SortedRow:
    """The k first of many, sorted.

    What may stand before the k-th best so far is collected, and when there is no more room the k best of that stay. As
    many groups of elements as there is room have k best of the group: their last is where it begins. Elements are
    compared with it side by side, and only where one may stand before it looked at one by one: O(n), mostly
    comparisons of vectors.
    """
    b, room, chunk = p.b, max(ROOM * k, 32), CHUNKS[count > 256 * k]
    row = SortedRow(p, room + chunk, dtype, ascending, numbers=count)
    kind = "uint8" if dtype == "bool" else compute_dtype(dtype)
    best, value = p.scratch(room, kind), lambda at: b.cast(read(at), kind)
    with p.loop(room, kind="vectorized") as lane:
        p.store(best, lane, value(lane))
    with p.loop(count // room - 1) as part, p.loop(room, kind="vectorized", unroll=4) as lane:
        both = best(lane), value((part + 1) * room + lane)
        p.store(best, lane, b.min(*both) if ascending else b.max(*both))
    with p.loop(room, kind="vectorized") as lane:
        row.put(lane, best(lane), lane)
    row.sort(room, k)
    found, worst, ties = p.let(0), p.let(best(row.number(k - 1))), p.let(b.const(True, "bool"))
    before = lambda x: b.lnot(x >= worst if ascending else x <= worst)  # NaN always may be
    parts = -(-count // chunk)
    with p.loop(parts + 1) as part:
        start, some = part * chunk, p.let(b.const(False, "bool"))
        with p.when(b.lor(found >= room, b.eq(part, parts))):
            row.sort(found, k)
            p.set(found, b.index(k))
            p.set(worst, value(row.number(k - 1)))
            p.set(ties, b.const(False, "bool"))
        better = lambda x: b.lor(before(x), b.land(b.eq(x, worst), ties))
        with p.loop(chunk, kind="vectorized", unroll=4) as lane:
            p.add(some, better(value(b.min(start, count - chunk) + lane)), "any")
        with p.when(some), p.loop(chunk, stop=count - start) as lane:
            at = b.min(start + lane, count - 1)
            x = p.let(value(at))
            with p.when(better(x)):
                row.put(found, x, at)
                p.add(found, 1)
    return row
