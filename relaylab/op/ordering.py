"""The order of a row, in procedures: a stable merge sort of keys and their numbers, and the first k of a long row."""

from __future__ import annotations

from collections.abc import Callable

from relaylab.loop.expr import Local
from relaylab.loop.procedure import Procedure
from relaylab.op.helpers import Element, ElementBuilder, Position

CHUNK = 256  # elements that are compared with the k-th best at once
SELECTED = 4  # from how many times k on the first k are selected and not sorted out of all


def key_dtype(dtype: str) -> str:
    """The data type in which keys are compared."""
    return {"bool": "uint8", "float16": "float32"}.get(dtype, dtype)


def before(b: ElementBuilder, a: Element, c: Element, ascending: bool) -> Element:
    """Whether key `a` must stand before key `c`; NaN counts as larger than every number, as numpy sorts."""
    if not a.dtype.startswith("float"):
        return a < c if ascending else a > c
    if ascending:
        return b.all_of(b.lnot(a >= c), b.lnot(b.isnan(a)))
    return b.all_of(b.lnot(a <= c), b.lnot(b.isnan(c)))


class Row:
    """Up to `capacity` keys, each with a number, in the private memory of the parallel loop that is being written."""

    def __init__(self, p: Procedure, capacity: int, dtype: str, ascending: bool = True, numbers: int = 0):
        self.p, self.capacity, self.dtype, self.ascending = p, max(capacity, 1), dtype, ascending
        # An even number of passes between the two halves of the memory ends where it began.
        self.passes = (self.capacity - 1).bit_length() + 1 & ~1
        self.keys = p.scratch(2 * self.capacity, key_dtype(dtype))
        self.numbers = p.scratch(2 * self.capacity, "int32" if max(numbers, capacity) < 2**31 else "int64")

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

    def sort(self, count: Position) -> None:
        """Bring the first `count` keys into order; equal ones keep theirs. O(n log n): runs are merged in pairs."""
        p, b, total = self.p, self.p.b, self.p.b.index(count)
        with p.loop(self.passes) as level:
            width, source = p.let(b.shl(b.index(1), level)), p.let(level % 2 * self.capacity)
            pairs = b.shr(total + 2 * width - 1, level + 1)
            with p.loop((self.capacity + 1) // 2, stop=pairs) as pair:
                low = p.let(2 * width * pair)
                middle, high = p.let(b.min(low + width, total)), p.let(b.min(low + 2 * width, total))
                self._merge(source, low, middle, high)

    def _merge(self, source: Local, low: Local, middle: Local, high: Local) -> None:
        """Merge the runs low .. middle-1 and middle .. high-1 of one half into the other half."""
        p, b = self.p, self.p.b
        left, right, target = p.let(low), p.let(middle), p.let(self.capacity - source + low)
        with p.loop(self.capacity, stop=high - low) as k:
            x, y = p.let(self.keys(source + left)), p.let(self.keys(source + right))
            take = p.let(b.land(right < high, b.lor(left >= middle, self.before(y, x))))
            which = p.let(source + b.select(take, right, left))
            p.store(self.keys, target + k, b.select(take, y, x))
            p.store(self.numbers, target + k, self.numbers(which))
            step = p.let(b.cast(take, "int64"))
            p.add(right, step)
            p.add(left, 1 - step)


def ordered(p: Procedure, count: int, read: Callable[[Element], Element], dtype: str, ascending: bool) -> Row:
    """All of `read(0) .. read(count - 1)` in order."""
    row = Row(p, count, dtype, ascending)
    with p.loop(count, kind="vectorized") as k:
        row.put(k, read(k), k)
    row.sort(count)
    return row


def first(p: Procedure, count: int, k: int, read: Callable[[Element], Element], dtype: str, ascending: bool) -> Row:
    """The k first of `read(0) .. read(count - 1)` in order, as `ordered` has them.

    A chunk of elements is compared with the k-th of those found so far; what comes before it is put behind them, and
    they are sorted again: O(n log k) at worst, and nearly always O(n) comparisons side by side.
    """
    if SELECTED * k > count or count <= CHUNK:
        return ordered(p, count, read, dtype, ascending)
    b, chunk = p.b, max(k, CHUNK)
    row, found = Row(p, k + chunk, dtype, ascending, numbers=count), p.let(0)
    keyed = lambda x: b.cast(x, row.keys.dtype)
    with p.loop(-(-count // chunk)) as part:
        last, few = p.let(row.keys(k - 1)), p.let(found < k)
        some, start = p.let(found < k), b.min(part * chunk, count - chunk)
        with p.loop(chunk, kind="vectorized") as lane:
            p.add(some, row.before(keyed(read(start + lane)), last), "any")
        with p.when(some):
            with p.loop(chunk, stop=count - part * chunk) as lane:
                at = b.min(part * chunk + lane, count - 1)
                x = p.let(keyed(read(at)))
                with p.when(b.lor(few, row.before(x, last))):
                    row.put(found, b.cast(x, dtype), at)
                    p.add(found, 1)
            row.sort(found)
            p.add(found, b.min(k - found, 0))
    return row
