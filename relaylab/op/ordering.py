"""The order of a row, in procedures: keys and their numbers that are sorted, and the first k of a row.

Keys are unsigned integers in the order of what they stand for: equal ones stand in the order of their numbers, and NaN
counts as larger than every number, as numpy sorts.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relaylab.loop.builder import b as builder
from relaylab.loop.builder import both, least, most
from relaylab.loop.expr import Local, Tensor
from relaylab.loop.program import extent_of
from relaylab.loop.scalar import compute_dtype, is_float
from relaylab.op.helpers import Element, ElementBuilder, Position

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

CHUNKS = 16, 64  # elements that are compared with the k-th best side by side, if many are better, or few
SELECTED = 4  # from how many times k on the first k are selected and not sorted out of all
ROOM = 2  # times k: how many are collected
LINE = 16  # keys that one vector loads at once
FEW = 128  # keys up to which each is compared with all others
RARE = {"uint32": 2, "uint64": 8}  # how many times as many keys, up to 2 * FEW, are searched for each of the first
NEAR = 4096  # elements that stay in the first-level cache, however they are walked
LONG = 2048  # keys from which on digits have 11 bits and not 8
MOST = 0.75  # of the keys of a row that are wanted: for more, all are sorted
SURE = 3  # digits that are counted before it is known how many there are


def key_dtype(dtype: str) -> str:
    """The data type of keys that stand for values of `dtype`."""
    return "uint64" if dtype in ("int64", "uint64", "float64") else "uint32"


def _digit_bits(count: int) -> int:
    """Of so many keys."""
    return 8 if count < LONG else 11


def _narrow(place: Element) -> Element:
    """A place of a row in 32 bits, of which a vector has as many as of keys."""
    return builder.cast(place, "int32")


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
    being written, and as much memory `behind` them.
    """

    def __init__(self, p: Procedure, capacity: int, dtype: str, ascending: bool = True, numbers: int = 0):
        self.p, self.capacity, self.ascending = p, most(capacity, 1), ascending
        # A vector with the last keys in it waits for what was stored where it ends.
        self.behind = (self.capacity + (LINE - 1)) // LINE * LINE
        self.keys = p.scratch(self.behind + self.capacity, key_dtype(dtype))
        many = max(extent_of(numbers), extent_of(capacity)) >= 2**31
        self.numbers = p.scratch(self.behind + self.capacity, "int64" if many else "int32")
        self.places: dict[int, Tensor] = {}
        """Where digits of so many bits are counted."""

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

    def cut(self, count: int, k: int) -> None:
        """Bring the k first of `count` keys into order, by leaving out those that stand behind the k-th. O(n)."""
        p, keys = self.p, self.keys
        last, found = p.let(keys(self.kth(k, count))), p.let(0)
        with p.loop(count) as at:
            stays = p.let(p.b.cast(keys(at) <= last, "int64"))
            self._move(at, found)
            p.add(found, stays)
        self._by_digits(found, _digit_bits(k))

    def sort(self, count: Position, first: int | None = None) -> None:
        """Bring the first `count` keys into order, or the `first` of them; equal ones keep theirs. O(n)."""
        p, capacity = self.p, self.capacity
        total = p.let(count)
        times = RARE[self.keys.dtype]
        few_of = first if isinstance(first, int) and first * times <= 2 * FEW else None
        for rare in p.sides(False if few_of is None else both(few_of * times <= capacity, capacity <= 2 * FEW)):
            if rare:
                self._by_search(total, few_of or 0)
                continue
            for few in p.sides(capacity <= FEW):
                if few:
                    self._by_rank(total)
                    continue
                for short in p.sides(capacity < LONG):
                    self._by_digits(total, 8 if short else 11)

    def _end(self, count: Local) -> None:
        """What lies behind few keys stands before none of them."""
        b, end = self.p.b, self.p.let(_narrow(count))
        with self.p.loop(self.capacity, kind="vectorized") as k:
            self.p.store(self.keys, k, b.select(_narrow(k) < end, self.keys(k), b.highest(self.keys.dtype)))

    def _by_search(self, count: Local, first: int) -> None:
        """Some of few keys: the least behind the last one is looked for, with its place if there are bits for it."""
        self._end(count)
        if self.keys.dtype == "uint32":
            self._by_marked_keys(first)
        else:
            self._by_two_searches(first)
        self._back(first)

    def _by_marked_keys(self, first: int) -> None:
        """Keys with their places, counted from 1, behind them: no two are equal."""
        p, b, marked = self.p, self.p.b, self.p.scratch(self.capacity, "uint64")
        bits = b.const(32, "uint64")
        with p.loop(self.capacity, kind="vectorized") as at:
            p.store(marked, at, b.bor(b.shl(b.cast(self.keys(at), "uint64"), bits), b.cast(at + 1, "uint64")))
        last, none = p.let(b.const(0, "uint64")), b.highest("uint64")
        with p.loop(first) as k:
            least = p.let(none)
            with p.loop(self.capacity, kind="vectorized") as at:
                p.add(least, b.select(marked(at) > last, marked(at), none), "min")
            p.set(last, least)
            self._move(p.let(b.index(b.band(least, b.const(2**32 - 1, "uint64"))) - 1), self.behind + k)

    def _by_two_searches(self, first: int) -> None:
        """The least key is looked for, then the first place with it, which is marked as taken."""
        p, b, keys, numbers = self.p, self.p.b, self.keys, self.numbers
        last = b.number(self.capacity - 1, "int32")
        with p.loop(first) as k:
            lowest = p.let(b.highest(keys.dtype))
            with p.loop(self.capacity, kind="vectorized") as at:
                p.add(lowest, keys(at), "min")
            place = p.let(last)
            with p.loop(self.capacity, kind="vectorized") as at:
                found = b.land(b.eq(keys(at), lowest), numbers(at) >= 0)
                p.add(place, b.select(found, b.cast(at, "int32"), last), "min")
            taken = p.let(b.index(place))
            self._move(taken, self.behind + k)
            p.store(keys, taken, b.highest(keys.dtype))
            p.store(numbers, taken, -1)

    def _by_rank(self, count: Local) -> None:
        """Few keys: how many stand before each says where it goes; all others are looked at side by side."""
        p, b, keys = self.p, self.p.b, self.keys
        self._end(count)
        few = least(self.capacity, FEW)
        ranks = p.scratch(FEW, "int32")
        with p.loop(few, kind="vectorized") as k:
            x, here, rank = p.let(keys(k)), p.let(_narrow(k)), p.let(b.const(0, "int32"))
            with p.loop(few, stop=count) as other:
                before = b.lor(keys(other) < x, b.land(b.eq(keys(other), x), _narrow(other) < here))
                p.add(rank, b.cast(before, "int32"))
            p.store(ranks, k, rank)
        with p.loop(few, stop=count) as k:
            self._move(k, self.behind + b.index(ranks(k)))
        self._back(self.capacity)

    def kth(self, k: int, count: int) -> Element:
        """The place of the k-th of the first `count` keys, counted from 1: bit by bit, from how many keys are less."""
        p, b, kind = self.p, self.p.b, self.keys.dtype
        least, span = self._range(p.let(b.index(count)))
        found = p.let(b.const(0, kind))
        if kind == "uint64":
            with p.when(b.shr(span, b.const(32, kind)) > 0):
                self._bits(found, least, range(63, 31, -1), k, count)
        self._bits(found, least, range(31, -1, -1), k, count)
        place, wanted = p.let(b.const(count - 1, "int32")), p.let(found + least)
        with p.loop(count, kind="vectorized") as at:
            p.add(place, b.select(b.eq(self.keys(at), wanted), _narrow(at), count - 1), "min")
        return p.let(b.index(place))

    def _bits(self, found: Local, least: Local, bits: range, k: int, count: int) -> None:
        """Set those bits of how far the k-th key is above the least with which fewer than k keys are less."""
        p, b, kind = self.p, self.p.b, self.keys.dtype
        with p.loop(len(bits)) as at:
            more = p.let(b.bor(found, b.shl(b.const(1, kind), b.cast(bits[0] - at, kind))))
            less = p.let(b.const(0, kind[1:]))
            with p.loop(count, kind="vectorized", unroll=4) as place:
                p.add(less, b.cast(self.keys(place) - least < more, kind[1:]))
            p.set(found, b.select(less < k, more, found))

    def _by_digits(self, count: Local, bits: int) -> None:
        """Many keys: they are moved by one digit of what they are above the least after another, from the last. Knuth,
        5.2.5.
        """
        p, b, size, keys = self.p, self.p.b, 1 << bits, self.keys
        digits = -(-int(keys.dtype[4:]) // bits)
        if bits not in self.places:
            self.places[bits] = p.scratch(digits * size, "int64")
        places = self.places[bits]
        low, span = self._range(count)
        digit_of = lambda at, level: self._digit(keys(at) - low, level, bits)
        with p.loop(digits * size, kind="vectorized") as k:
            p.store(places, k, 0)

        def tally(levels: range) -> None:
            """How often each digit occurs at some levels."""
            with p.loop(self.capacity, stop=count) as k:
                x = p.let(keys(k) - low)
                for level in levels:
                    at = p.fixed(self._digit(x, level, bits))
                    p.store(places, at, places(at) + 1)

        tally(range(min(SURE, digits)))
        wide = p.let(b.shr(span, b.const(SURE * bits, span.dtype)) > 0) if digits > SURE else None
        if wide is not None:
            with p.when(wide):
                tally(range(SURE, digits))
        source = p.let(0)
        levels = None if wide is None else b.select(wide, b.index(digits), b.index(SURE))
        with p.loop(digits, stop=levels) as level:
            with p.when(places(digit_of(source, level)) < count):  # not all the same
                total, begin = p.let(0), p.fixed(b.clamp_index(source, self.behind + 1))
                target = self.behind - begin
                with p.loop(size) as digit:
                    many = p.let(places(level * size + digit))
                    p.store(places, level * size + digit, total)
                    p.add(total, many)
                with p.loop(self.capacity, stop=count) as k:
                    at = p.fixed(digit_of(begin + k, level))
                    to = p.let(places(at))
                    p.store(places, at, to + 1)
                    self._move(begin + k, target + p.fixed(b.clamp_index(to, self.capacity)))
                p.set(source, target)
        with p.when(source > 0):
            self._back(self.capacity)

    def _range(self, count: Local) -> tuple[Local, Local]:
        """The least key, and how far the largest is above it."""
        p, b, keys = self.p, self.p.b, self.keys
        first, end = p.let(keys(0)), p.let(_narrow(count))
        low, high = p.let(first), p.let(first)
        # what lies behind the keys may never have been written: not even a load without lanes is cheap there
        small = not isinstance(self.capacity, Element) and self.capacity <= FEW
        size = self.capacity if small else FEW
        stop = None if small else b.shr(count + (FEW - 1), FEW.bit_length() - 1)
        with p.loop((self.capacity + (size - 1)) // size, stop=stop) as part:
            with p.loop(size, kind="vectorized") as lane:
                k = part * size + lane
                x = b.select(_narrow(k) < end, keys(k), first)
                p.add(low, x, "min")
                p.add(high, x, "max")
        return low, p.let(high - low)

    def _move(self, place: Element, to: Element) -> None:
        for memory in (self.keys, self.numbers):
            self.p.store(memory, to, memory(place))

    def _back(self, count: int) -> None:
        """Move what lies behind the keys to where they are."""
        with self.p.loop(count, kind="vectorized") as k:
            self._move(self.behind + k, k)

    def _digit(self, key: Element, level: Position, bits: int) -> Element:
        """Where a digit of a key is counted."""
        b, size = self.p.b, 1 << bits
        digit = b.band(b.shr(key, b.cast(b.index(level) * bits, key.dtype)), size - 1)
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
    enough = max(SELECTED * k, 2 * FEW + 1) if isinstance(k, int) and k > 0 else None
    for many in p.sides(False if enough is None else count >= enough):
        if many:
            selected = SelectedRow(p, count, k, dtype, ascending)
            row = selected.row
            selected.select(read)
        else:
            own = count if enough is None else least(count, enough - 1)
            row = SortedRow(p, own, dtype, ascending)
            with p.loop(own, kind="vectorized") as at:
                row.put(at, read(at), at)
            if isinstance(own, int) and isinstance(k, int) and 2 * FEW < own and 0 < k <= MOST * own:
                row.cut(own, k)
            else:
                row.sort(own, k)
        with p.loop(k) as at:
            number = p.let(row.number(at))
            write(at, read(number), number)


class SelectedRow:
    """The `k` first of `count` elements, many more, in the private memory of the parallel loop that is being written.

    What may stand before the k-th best so far is collected, and when there is no more room the k best of that stay. As
    many groups of elements as there is room have k best of the group: their last is where it begins. Elements are
    compared with it side by side, and only where one may stand before it looked at one by one: O(n), mostly
    comparisons of vectors.
    """

    def __init__(self, p: Procedure, count: int, k: int, dtype: str, ascending: bool = False):
        self.p, self.count, self.k, self.ascending = p, count, k, ascending
        self.room = max(ROOM * k, 32)
        self.chunk = CHUNKS[isinstance(count, Element) or count > 256 * k]
        self.row = SortedRow(p, self.room + self.chunk, dtype, ascending, numbers=count)
        self.kind = "uint8" if dtype == "bool" else compute_dtype(dtype)
        self.best = p.scratch(self.room, self.kind)

    def select(self, read: Callable[[Element], Element]) -> None:
        """Put the k first of `read(0) .. read(count - 1)` in order into `row`."""
        p, b, row, room, chunk = self.p, self.p.b, self.row, self.room, self.chunk
        value = lambda at: b.cast(read(at), self.kind)
        self._groups(value)
        found, worst = p.let(0), p.let(self.best(row.kth(self.k, room)))
        ties, parts = p.let(b.const(True, "bool")), (self.count + (chunk - 1)) // chunk
        with p.loop(parts + 1) as part:
            start, some = part * chunk, p.let(b.const(False, "bool"))
            with p.when(b.lor(found >= room, b.eq(part, parts))):
                row.sort(found, self.k)
                p.set(found, b.index(self.k))
                p.set(worst, value(row.number(self.k - 1)))
                p.set(ties, b.const(False, "bool"))
            better = lambda x: b.lor(self._before(x, worst), b.land(b.eq(x, worst), ties))
            with p.loop(chunk, kind="vectorized", unroll=4) as lane:
                p.add(some, better(value(b.min(start, self.count - chunk) + lane)), "any")
            with p.when(some), p.loop(chunk, stop=self.count - start) as lane:
                at = b.min(start + lane, self.count - 1)
                x = p.let(value(at))
                with p.when(better(x)):
                    row.put(found, x, at)
                    p.add(found, 1)

    def _before(self, x: Element, worst: Element) -> Element:
        """Whether a value may stand before the k-th best so far: NaN always may."""
        return self.p.b.lnot(x >= worst if self.ascending else x <= worst)

    def _groups(self, value: Callable[[Element], Element]) -> None:
        """The best of as many groups as there is room for, as keys."""
        for near in self.p.sides(self.count <= NEAR):
            self._groups_at_once(value) if near else self._groups_in_memory(value)

    def _groups_at_once(self, value: Callable[[Element], Element]) -> None:
        """The best of each group, of elements that stay in the first-level cache however they are walked."""
        p, best, room = self.p, self.best, self.room
        with p.loop(room, kind="vectorized") as lane:
            x = p.let(value(lane))
            with p.loop(self.count // room - 1) as part:
                p.add(x, value((part + 1) * room + lane), "min" if self.ascending else "max")
            self.row.put(lane, x, lane)
            p.store(best, lane, x)

    def _groups_in_memory(self, value: Callable[[Element], Element]) -> None:
        """The best of each group, of elements that are read in their order."""
        p, b, best, room = self.p, self.p.b, self.best, self.room
        with p.loop(room, kind="vectorized") as lane:
            p.store(best, lane, value(lane))
        with p.loop(self.count // room - 1) as part, p.loop(room, kind="vectorized", unroll=4) as lane:
            both = best(lane), value((part + 1) * room + lane)
            p.store(best, lane, b.min(*both) if self.ascending else b.max(*both))
        with p.loop(room, kind="vectorized") as lane:
            self.row.put(lane, best(lane), lane)
