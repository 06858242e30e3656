"""Attention: what each query makes of the values, by softmax of its products with the keys.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from relaylab.ir.types import TensorType, Type, type_text
from relaylab.loop.scalar import compute_dtype
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, TypeSolver
from relaylab.op.indexing import unravel
from relaylab.op.products import dims, elements
from relaylab.op.shapes import extent, same_dim

if TYPE_CHECKING:
    from relaylab.loop.expr import Tensor
    from relaylab.loop.procedure import Procedure

QUERIES = 64
"""How many queries lie side by side: vectors of any instruction set, two at a time."""
KEYS = 128
"""How many keys a block has: its scores, keys and values stay in a second-level cache."""
ROWS = 6
"""How many rows share a vector that was loaded, two vectors wide: what 16 registers hold."""
STEPS = 4
"""How many steps of a sum are written out: address arithmetic is done once for them."""
FINITE = 1e38
"""What products that are all smaller may sum up to without being infinite."""
SQUARE = 8
"""How many columns are transposed together."""


@op("nn.attention", level=10, attrs_key="Attention")
class attention(Opaque):
    """softmax(query key^T * scale + mask) value, for each matrix of a batch.

    The scores are never in memory as a whole: a block of queries walks over blocks of keys and keeps for each query the
    largest score so far, the sum of exponentials below it, and the values weighted by them. A query whose scores are
    all -inf gives NaN, as softmax does, or with `zero_empty` zeros.
    """

    query: Input = arg("a row for each result", "(..., m, d)", "floats")
    key: Input = arg("a row for each value", "(..., n, d)", "that of query")
    value: Input = arg("the rows that are mixed", "(..., n, e)", "that of query")
    mask: Input = arg(
        "what is added to the scores; 0 for nothing", "one that broadcasts to (..., m, n)", "that of query"
    )
    scale: float = attr(1.0, "what the products are multiplied by, often 1 / sqrt(d)")
    zero_empty: bool = attr(False, "whether a query whose scores are all -inf weighs every value with 0")
    yields = "(..., m, e), of the dtype of query"
    source = (
        "Vaswani et al., Attention is all you need, 2017; Milakov and Gimelshein, Online normalizer calculation for "
        "softmax, 2018; Rabe and Staats, Self-attention does not need O(n^2) memory, 2021; Dao et al., "
        "FlashAttention, 2022"
    )

    def result_type(
        self, s: TypeSolver, query: TensorType, key: TensorType, value: TensorType, mask: TensorType
    ) -> Type | None:
        rules.floats(s, query, "query")
        rules.same_dtype(s, query, key, value, mask)
        if len(query.shape) < 2:
            s.fail(f"`query` must be matrices, not {type_text(query)}")
        *lead, m, d = query.shape
        rules.shaped(s, key, (*lead, None, d), "key")
        n = key.shape[-2]
        rules.shaped(s, value, (*lead, n, None), "value")
        if same_dim(n, TensorType((0,)).shape[0]):
            s.fail("there is no key to look at")
        rules.broadcasts_to(s, mask, (*lead, m, n))
        return TensorType((*lead, m, value.shape[-1]), query.dtype)

    def reference(self, query: np.ndarray, key: np.ndarray, value: np.ndarray, mask: np.ndarray) -> np.ndarray:
        q, k, v, added = (x.astype("float64") for x in (query, key, value, mask))
        scores = q @ k.swapaxes(-1, -2) * self.scale + added
        with np.errstate(invalid="ignore"):
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights = weights / weights.sum(-1, keepdims=True)
        if self.zero_empty:
            weights = np.where((scores == -np.inf).all(-1, keepdims=True), 0.0, weights)
        return (weights @ v).astype(query.dtype)

    def procedure(self, p: Procedure, out: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> None:
        *lead, m, _ = query.shape
        whole, rest = divmod(m, QUERIES)
        blocks = whole + (rest > 0)
        with p.parallel(math.prod(lead) * blocks) as item:
            at = unravel(p.b, item // blocks, lead) if lead else ()
            # no register: an index that is one is data to a store, which it limits
            first = item % blocks * QUERIES

            def write(start: Element, width: int) -> None:
                _Queries(p, (query, key, value, mask), at, start, width).write(out, self.scale, self.zero_empty)

            if not whole or not rest:
                write(first, QUERIES if whole else rest)
            else:
                with p.when(first < whole * QUERIES):
                    write(first, QUERIES)
                with p.when(first >= whole * QUERIES):
                    write(p.b.index(whole * QUERIES), rest)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        query, value = dims(types[0]), dims(types[2])
        if not all(isinstance(d, int) for d in (*query, *value)):
            return 0
        return elements(out) // max(extent(value[-1]), 1) * extent(value[-2]) * (extent(query[-1]) + extent(value[-1]))

    @classmethod
    def samples(cls) -> list[Sample]:
        double = [TensorType(shape, "float64") for shape in ((5, 3), (2, 3), (2, 1), ())]
        narrow = [TensorType(shape, "bfloat16") for shape in ((1, 2, 8), (1, 3, 8), (1, 3, 4), (2, 1))]
        return [
            sample((2, 3, 5, 8), (2, 3, 7, 8), (2, 3, 7, 4), (2, 1, 1, 7), scale=0.35),
            sample((2, 100, 4), (2, 9, 4), (2, 9, 3), (100, 9), scale=0.5),
            sample((3, 2), (259, 2), (259, 2), (1, 259)),
            sample(*double),
            sample(*narrow, scale=0.35),
        ]


class _Queries:
    """Some queries side by side: the loops of one work item. `at` is their place in the batch, `first` the first one.

    Scores lie by key, so that the lanes of a vector are queries: no sum or maximum crosses lanes.
    """

    def __init__(self, p: Procedure, operands: Sequence[Tensor], at: Sequence[Element], first: Element, width: int):
        self.p, self.at, self.first, self.width = p, at, first, width
        self.query, self.key, self.value, self.mask = operands
        self.dtype = compute_dtype(self.query.dtype)
        self.depth, self.columns = self.query.shape[-1], self.value.shape[-1]
        self.block = min(KEYS, self.key.shape[-2])
        self.q = p.scratch(self.depth * width, self.dtype)
        self.scores = p.scratch(self.block * width, self.dtype)
        self.mixed = p.scratch(width * self.columns, self.dtype)
        if self._per_query:
            self.far = p.scratch(max(self.depth, self.columns), self.dtype)
        self.most, self.total, self.fade = (p.scratch(width, self.dtype) for _ in range(3))

    def write(self, out: Tensor, scale: float, zero_empty: bool) -> None:
        """The results of these queries."""
        p, b = self.p, self.p.b
        self._begin(scale)
        blocks, rest = divmod(self.key.shape[-2], self.block)
        with p.loop(blocks) as block:
            self._look(block * self.block, self.block)
        if rest:
            self._look(b.index(blocks * self.block), rest)
        with p.loop(self.width) as row, p.loop(self.columns, kind="vectorized", unroll=2) as c:
            total = self.total(row)
            if zero_empty:  # what was mixed is the sum of the values times 0
                total = b.select(b.eq(total, 0.0), 1.0, total)
            p.store(out, (*self.at, self.first + row, c), b.cast(self.mixed(row * self.columns + c) / total, out.dtype))

    def _begin(self, scale: float) -> None:
        """The queries as columns; nothing is seen."""
        p = self.p
        for start, step in self._squares(self.depth):
            with p.loop(self.width, kind="vectorized") as c, p.loop(step) as k:
                x = self._read(self.query, self.first + c, start + k)
                p.store(self.q, (start + k) * self.width + c, x * scale)
        with p.loop(self.width, kind="vectorized") as c:
            p.store(self.most, c, -math.inf)
            p.store(self.total, c, 0.0)
        with p.loop(self.width * self.columns, kind="vectorized") as k:
            p.store(self.mixed, k, 0.0)

    def _look(self, start: Element, count: int) -> None:
        """See some more keys, and mix their values in; nothing where the mask hides all of them from all queries."""
        if not self._per_query:
            return self._see(start, count)
        with self.p.when(~self._hidden(start, count)):
            self._see(start, count)

    def _see(self, start: Element, count: int) -> None:
        self._products(start, count)
        if self._per_query:
            self._masks(start, count)
        self._weights(count)
        self._mix(start, count)

    def _hidden(self, start: Element, count: int) -> Element:
        """Whether these keys weigh 0 for all queries: the mask is -inf, and scores and values are finite, so that none
        is made a NaN of.
        """
        p, b = self.p, self.p.b
        none = lambda row, key: b.eq(self._added(self.first + row, start + key), -math.inf)
        corners = [none(row, key) for row, key in ((0, 0), (self.width - 1, 0), (self.width - 1, count - 1))]
        hidden = p.let(b.all_of(*corners), "hidden")
        with p.when(hidden):
            with p.loop(self.width) as row, p.loop(count, kind="vectorized") as k:
                p.add(hidden, none(row, k), "all")
        with p.when(hidden):
            most = [p.let(b.const(0, self.dtype), "far") for _ in range(3)]
            for total, tensor, n in zip(most, (self.key, self.value), (self.depth, self.columns)):
                with p.loop(n, kind="vectorized") as c:
                    p.store(self.far, c, 0.0)
                with p.loop(count) as k, p.loop(n, kind="vectorized") as c:
                    p.store(self.far, c, b.max(self.far(c), b.abs(self._read(tensor, start + k, c))))
                with p.loop(n, kind="vectorized") as c:
                    p.add(total, self.far(c), "max")
            with p.loop(self.width * self.depth, kind="vectorized") as k:
                p.add(most[2], b.abs(self.q(k)), "max")
            finite = most[0] * most[2] * self.depth < FINITE
            p.add(hidden, b.all_of(finite, most[1] < math.inf), "all")
        return hidden

    def _products(self, start: Element, count: int) -> None:
        p = self.p
        for first, rows in self._tiles(count):
            with p.loop(self.width, kind="vectorized", unroll=2) as c:
                keys = [start + first + r for r in range(rows)]
                sums = [p.let(p.b.const(0, self.dtype) if self._per_query else self._added(0, k), "sum") for k in keys]
                for d in self._steps(self.depth):
                    x = p.let(self.q(d * self.width + c))
                    for total, key in zip(sums, keys):
                        p.add(total, x * self._read(self.key, key, d))
                for r, total in enumerate(sums):
                    p.store(self.scores, (first + r) * self.width + c, total)

    def _masks(self, start: Element, count: int) -> None:
        p = self.p
        for first, step in self._squares(count):
            with p.loop(self.width, kind="vectorized") as c, p.loop(step) as k:
                at = (first + k) * self.width + c
                p.store(self.scores, at, self.scores(at) + self._added(self.first + c, start + first + k))

    def _weights(self, count: int) -> None:
        """exp(score - the largest so far), and by how much what was seen before fades."""
        p, b = self.p, self.p.b
        with p.loop(self.width, kind="vectorized") as c:
            most = p.let(self.most(c), "most")
            with p.loop(count) as k:
                p.add(most, self.scores(k * self.width + c), "max")
            # -inf - -inf is no number, but exp(-inf - 0) is the 0 that a score of -inf weighs.
            least = p.let(b.select(b.eq(most, -math.inf), 0.0, most), "least")
            fade = p.let(b.exp(self.most(c) - least), "fade")
            # Sums of a quarter of a block each, and then of blocks: one long sum would round more than two passes do.
            sums = [p.let(b.const(0, self.dtype), "sum") for _ in range(STEPS)]
            for first, steps in self._pieces(count, STEPS):
                for k in range(steps):
                    at = (first + k) * self.width + c
                    weight = p.let(b.exp(self.scores(at) - least), "weight")
                    p.store(self.scores, at, weight)
                    p.add(sums[k], weight)
            total = p.let(self.total(c) * fade + ((sums[0] + sums[1]) + (sums[2] + sums[3])), "total")
            for tensor, value in ((self.most, most), (self.fade, fade), (self.total, total)):
                p.store(tensor, c, value)

    def _mix(self, start: Element, count: int) -> None:
        p = self.p
        with p.loop(self.columns, kind="vectorized", unroll=2) as c:
            for first, rows in self._tiles(self.width):
                row = [first + r for r in range(rows)]
                sums = [p.let(p.b.const(0, self.dtype), "sum") for _ in row]
                for k in self._steps(count):
                    x = p.let(self._read(self.value, start + k, c))
                    for r, total in zip(row, sums):
                        p.add(total, x * self.scores(k * self.width + r))
                for r, total in zip(row, sums):
                    at = r * self.columns + c
                    p.store(self.mixed, at, self.mixed(at) * self.fade(r) + total)

    # ---- parts

    def _tiles(self, count: int) -> Iterator[tuple[Element, int]]:
        """Loops over rows by tiles: the first row of each, and how many there are."""
        return self._pieces(count, ROWS)

    def _squares(self, count: int) -> Iterator[tuple[Element, int]]:
        return self._pieces(count, SQUARE)

    def _steps(self, count: int) -> Iterator[Element]:
        for first, steps in self._pieces(count, STEPS):
            yield from (first + k for k in range(steps))

    def _pieces(self, count: int, size: int) -> Iterator[tuple[Element, int]]:
        whole, rest = divmod(count, size)
        if whole:
            with self.p.loop(whole) as piece:
                yield piece * size, size
        if rest:
            yield self.p.b.index(whole * size), rest

    def _read(self, tensor: Tensor, row: Element, column: Element) -> Element:
        return self.p.b.cast(tensor(*self.at, row, column), self.dtype)

    @property
    def _per_query(self) -> bool:
        """Has each query a mask of its own?"""
        return len(self.mask.shape) > 1 and self.mask.shape[-2] > 1

    def _added(self, query: Element | int, key: Element) -> Element:
        """An element of the mask, broadcast."""
        rank = len(self.mask.shape)
        index = [*self.at, query, key][len(self.at) + 2 - rank :]
        return self.p.b.cast(self.mask(*(i if n > 1 else 0 for i, n in zip(index, self.mask.shape))), self.dtype)
