"""A dense layer whose weight has 4 bits a number, in blocks that share a scale: the weights of language models.

Choices: docs/choices.md, Importing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from relaylab.ir.types import IntImm, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, Position, TypeSolver
from relaylab.op.products import dims, elements
from relaylab.op.shapes import extent, same_dim

if TYPE_CHECKING:
    from relaylab.loop.expr import Local, Tensor
    from relaylab.loop.procedure import Procedure

MOST = 127.0
"""The largest of the numbers that data is rounded to."""
WORD = 8
"""How many numbers an int32 holds."""
PANEL = 64
"""How many columns lie side by side: vectors of any instruction set, and more than one to hide an addition behind."""
ROWS = 6
"""How many rows share the numbers that a weight was made into."""
ITEMS = 8
"""How many parts a layer has at least, if it has so many panels: each makes the data ready for itself."""
FEW = 4
"""How many vectors are side by side for a single row."""


def packed(values: np.ndarray, lanes: int) -> np.ndarray:
    """Numbers 0 .. 15 of shape `(units, k)` as `(panels, k / 8, lanes)` int32, the first of eight in the lowest bits.

    Columns that are missing in the last panel are 0. `k` is a multiple of 8.
    """
    units, depth = values.shape
    bits = np.zeros((-(-units // lanes) * lanes, depth), "uint32")
    bits[:units] = values
    words = (bits.reshape(-1, depth // WORD, WORD) << np.arange(0, 32, 4, dtype="uint32")).sum(-1, dtype="uint32")
    return np.ascontiguousarray(in_panels(words, lanes)).view("int32")


def in_panels(rows: np.ndarray, lanes: int) -> np.ndarray:
    """What a column has in a row each, `(units, n)`, as `(panels, n, lanes)`; missing columns are 0."""
    units, count = rows.shape
    whole = np.zeros((-(-units // lanes) * lanes, count), rows.dtype)
    whole[:units] = rows
    return np.ascontiguousarray(whole.reshape(-1, lanes, count).swapaxes(1, 2))


def unpacked(weight: np.ndarray) -> np.ndarray:
    """The numbers of `(panels, k / 8, lanes)` words, as `(panels, k, lanes)` uint8."""
    panels, words, lanes = weight.shape
    parts = [weight.view("uint32") >> (4 * k) & 15 for k in range(WORD)]
    return np.stack(parts, 2).astype("uint8").reshape(panels, words * WORD, lanes)


@op("nn.contrib_dense_uint4", level=10, attrs_key="DenseUInt4")
class contrib_dense_uint4(Opaque):
    """nn.dense with a weight of 4 bits: blocks of it share a scale and a zero point, (number - zero) * scale is meant.

    An int32 of the weight holds eight numbers 0 .. 15 of one unit, the first in the lowest bits; a panel has some units
    side by side. They stay packed in memory and become floats in registers. Sums are of float32.

    With `rounded` a block of data becomes whole numbers -127 .. 127 with a scale of its own, halves to even, and the
    sums of a block are exact: faster, and what ONNX Runtime does with `accuracy_level=4`.
    """

    data: Input = arg("what the layer is applied to", "(..., k)", "floats")
    weight: Input = arg("the numbers, eight in a word", "(panels, k / 8, lanes)", "int32")
    scales: Input = arg("the scales of the blocks", "(panels, k / block, lanes)", "floats")
    zeros: Input = arg("the zero points of the blocks", "that of scales, or (1, 1, 1) for all", "any but bool")
    units: int = attr(doc="how many of the panels * lanes units there are")
    rounded: bool = attr(False, "whether each block of data is rounded to 8 bits first")
    yields = "(..., units), the dtype of data"
    source = "ONNX Runtime, com.microsoft.MatMulNBits"

    def result_type(
        self, s: TypeSolver, data: TensorType, weight: TensorType, scales: TensorType, zeros: TensorType
    ) -> Type | None:
        for t, name in ((data, "data"), (scales, "scales")):
            rules.floats(s, t, name)
        if weight.dtype != "int32":
            s.fail(f"`weight` must be int32, not {weight.dtype}")
        rules.rank(s, weight, 3, "weight")
        rules.numbers(s, zeros, "zeros")
        if not data.shape:
            s.fail(f"`data` must have dimensions, not {type_text(data)}")
        panels, words, lanes = map(extent, weight.shape)
        rules.shaped(s, scales, (panels, None, lanes), "scales")
        blocks = extent(scales.shape[1])
        if not same_dim(data.shape[-1], IntImm(words * WORD)):
            s.fail(f"the inner dimensions of {type_text(data)} and {type_text(weight)} do not match")
        if blocks < 1 or words % blocks:
            s.fail(f"{words} words of eight numbers are not {blocks} blocks of one length")
        if zeros.shape != (1, 1, 1):
            rules.shaped(s, zeros, scales.shape, "zeros")
        if not 0 < self.units <= panels * lanes:
            s.fail(f"units is {self.units}, there are {panels} panels of {lanes}")
        return TensorType((*data.shape[:-1], self.units), data.dtype)

    def reference(self, data: np.ndarray, weight: np.ndarray, scales: np.ndarray, zeros: np.ndarray) -> np.ndarray:
        panels, blocks, lanes = scales.shape
        numbers = unpacked(weight).astype("float64").reshape(panels, blocks, -1, lanes)
        if self.rounded:
            data = self._rounded(data, blocks)
        plain = (numbers - zeros[:, :, None].astype("float64")) * scales[:, :, None].astype("float64")
        matrix = plain.reshape(panels, -1, lanes).swapaxes(0, 1).reshape(-1, panels * lanes)[:, : self.units]
        return (data.astype("float64") @ matrix).astype(data.dtype)

    @staticmethod
    def _rounded(data: np.ndarray, blocks: int) -> np.ndarray:
        """Data as its 8 bits say it."""
        with np.errstate(all="ignore"):
            parts = data.astype("float32").reshape(*data.shape[:-1], blocks, data.shape[-1] // blocks)
            most = np.abs(parts).max(-1, keepdims=True)
            numbers = np.rint(parts * np.where(most > 0, np.float32(MOST) / most, np.float32(0)))
            return (numbers * (most / np.float32(MOST))).astype("float64").reshape(data.shape).astype(data.dtype)

    def procedure(self, p: Procedure, out: Tensor, data: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor) -> None:
        """Lanes are columns. Rows are done `ROWS` at a time, the same numbers for all of them."""
        lead, lanes = data.shape[:-1], weight.shape[2]
        most = ROWS // 2 if self.rounded else ROWS
        count = math.prod(lead)
        whole = count // most * most
        rest = 1 if isinstance(count, Element) else count - whole  # rows that are left are one item, or one each
        layer = (_RoundedLayer if self.rounded else _FloatLayer)(p, out, data, weight, scales, zeros)
        for first, last, rows in ((0, whole, most), (whole, count, rest)):
            tiles = (last - first) // rows if rows else 0
            for panel, panels, width in ((0, self.units // lanes, lanes), (self.units // lanes, 1, self.units % lanes)):
                if not (isinstance(tiles, Element) or tiles) or not width or not panels:
                    continue
                each = max(n for n in range(1, max(panels // ITEMS, 1) + 1) if panels % n == 0)
                with p.parallel(panels // each * tiles) as item:
                    start = item % tiles * rows + first
                    made = [layer.row(_unravelled(start + k, lead)) for k in range(rows)]
                    with p.loop(each) as k:
                        layer.write(item // tiles * each + k + panel, width, made)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        inner = dims(types[0])[-1]
        return elements(out) * int(inner) if isinstance(inner, int) else 0

    @classmethod
    def samples(cls) -> list[Sample]:
        random = np.random.default_rng(4)
        made = []
        for lead, depth, blocks, units, lanes in (((1,), 32, 2, 16, 16), ((2, 4), 16, 1, 5, 8), ((), 24, 3, 33, 32)):
            panels = -(-units // lanes)
            weight = packed(random.integers(0, 16, (units, depth)), lanes)
            scales = random.uniform(0.1, 0.9, (panels, blocks, lanes)).astype("float32")
            zeros = random.integers(0, 16, (panels, blocks, lanes) if blocks > 1 else (1, 1, 1)).astype("uint8")
            made.append(sample((*lead, depth), weight, scales, zeros, units=units))
            made.append(sample((*lead, depth), weight, scales, zeros, units=units, rounded=True))
        return made


@dataclass(frozen=True)
class _Row:
    """A row of the result: its factors as the numbers of a word want them, and for each block their sum and scale."""

    at: Sequence[Position]
    factors: Tensor
    sums: Tensor
    scales: Tensor | None = None


@dataclass(frozen=True)
class _Layer:
    """The operands of a layer, as a procedure sees them."""

    p: Procedure
    out: Tensor
    data: Tensor
    weight: Tensor
    scales: Tensor
    zeros: Tensor

    def row(self, at: Sequence[Position]) -> _Row:
        """What is made of a row of data before the columns."""
        raise NotImplementedError

    def add(
        self, totals: Sequence[Local], scale: Local, shift: Local, place: Sequence[Element], rows: Sequence[_Row]
    ) -> None:
        """Add the products of a block to the totals of the rows; `place` is the panel, the block and the lane."""
        raise NotImplementedError

    def write(self, panel: Element, width: int, rows: Sequence[_Row]) -> None:
        """The first `width` columns of a panel, in some rows."""
        p, b = self.p, self.p.b
        with p.loop(width, kind="vectorized", unroll=FEW if len(rows) == 1 else 2) as lane:
            totals = [p.let(b.const(0, "float32"), "total") for _ in rows]
            with p.loop(self.scales.shape[1]) as block:
                scale = p.let(b.cast(self.scales(panel, block, lane), "float32"), "scale")
                zero = self.zeros(*((0, 0, 0) if self.zeros.shape == (1, 1, 1) else (panel, block, lane)))
                shift = p.let(-b.cast(zero, "float32"), "shift")
                self.add(totals, scale, shift, (panel, block, lane), rows)
            for row, total in zip(rows, totals):
                p.store(self.out, (*row.at, panel * self.weight.shape[2] + lane), b.cast(total, self.out.dtype))

    @property
    def steps(self) -> int:
        """The words of a block."""
        return self.weight.shape[1] // self.scales.shape[1]

    def x(self, at: Sequence[Position], k: Element) -> Element:
        """An element of the data."""
        return self.p.b.cast(self.data(*at, k), "float32")


class _FloatLayer(_Layer):
    """Number k of a word is not shifted down but taken for one of 16^k times its value: its factor is divided.

    But for the last one, whose value would be that of a sign.
    """

    def row(self, at: Sequence[Position]) -> _Row:
        p, b, words, blocks = self.p, self.p.b, self.weight.shape[1], self.scales.shape[1]
        row = _Row(at, p.scratch(words * WORD, "float32"), p.scratch(blocks, "float32"))
        divisors = p.scratch(WORD, "float32")
        for k in range(WORD):
            p.store(divisors, k, 16.0**-k if k < WORD - 1 else 1.0)
        with p.loop(words) as word, p.loop(WORD, kind="vectorized") as k:
            p.store(row.factors, word * WORD + k, self.x(at, word * WORD + k) * divisors(k))
        with p.loop(blocks) as block:
            total = p.let(b.const(0, "float32"), "sum")
            with p.loop(self.steps * WORD, kind="vectorized") as k:
                p.add(total, self.x(at, block * (self.steps * WORD) + k))
            p.store(row.sums, block, total)
        return row

    def add(
        self, totals: Sequence[Local], scale: Local, shift: Local, place: Sequence[Element], rows: Sequence[_Row]
    ) -> None:
        p, block = self.p, place[1]
        if len(rows) == 1:  # one product with the scale for each block, not one for each number
            inner = p.let(shift * rows[0].sums(block), "inner")
            self._products([inner], None, place, rows)
            p.add(totals[0], inner * scale)
        else:
            for total, row in zip(totals, rows):
                p.add(total, shift * scale * row.sums(block))
            self._products(totals, scale, place, rows)

    def _products(
        self, totals: Sequence[Local], scale: Local | None, place: Sequence[Element], rows: Sequence[_Row]
    ) -> None:
        p, b, (panel, block, lane) = self.p, self.p.b, place
        with p.loop(self.steps) as step:
            at = block * self.steps + step
            word = p.let(self.weight(panel, at, lane), "word")
            for k in range(WORD):
                bits = b.band(word, 15 << 4 * k) if k < WORD - 1 else b.band(b.shr(word, 28), 15)
                number = b.cast(bits, "float32")
                number = p.let(number if scale is None else number * scale, "number")
                for total, row in zip(totals, rows):
                    p.add(total, number * row.factors(at * WORD + k))


class _RoundedLayer(_Layer):
    """The even numbers of a word are four bytes, the odd ones four more, and so is the data (`dot4`)."""

    def row(self, at: Sequence[Position]) -> _Row:
        p, b, words, blocks = self.p, self.p.b, self.weight.shape[1], self.scales.shape[1]
        row = _Row(at, p.scratch(words * 2, "int32"), p.scratch(blocks, "float32"), p.scratch(blocks, "float32"))
        with p.loop(blocks) as block:
            most = p.let(b.const(0, "float32"), "most")
            with p.loop(self.steps * WORD, kind="vectorized") as k:
                p.add(most, b.abs(self.x(at, block * (self.steps * WORD) + k)), "max")
            by = p.let(b.select(most > 0.0, MOST / most, 0.0), "by")
            total = p.let(b.const(0, "int32"), "sum")
            with p.loop(self.steps, kind="vectorized") as step:
                first = (block * self.steps + step) * WORD
                rounded = lambda k: b.cast(b.roundeven(self.x(at, first + k) * by), "int32")
                for odd in range(2):
                    numbers = [p.let(rounded(2 * k + odd), "number") for k in range(4)]
                    parts = [b.shl(b.band(number, 255), 8 * k) for k, number in enumerate(numbers)]
                    p.store(row.factors, (block * self.steps + step) * 2 + odd, reduce(b.bor, parts))
                    for number in numbers:
                        p.add(total, number)
            p.store(row.sums, block, b.cast(total, "float32"))
            assert row.scales is not None
            p.store(row.scales, block, most / MOST)
        return row

    def add(
        self, totals: Sequence[Local], scale: Local, shift: Local, place: Sequence[Element], rows: Sequence[_Row]
    ) -> None:
        p, b, (panel, block, lane) = self.p, self.p.b, place
        inner = [p.let(b.const(0, "int32"), "inner") for _ in rows]
        with p.loop(self.steps) as step:
            at = block * self.steps + step
            word = p.let(self.weight(panel, at, lane), "word")
            halves = [p.let(b.band(b.shr(word, 4 * odd) if odd else word, 0x0F0F0F0F), "half") for odd in range(2)]
            for total, row in zip(inner, rows):
                even = b.dot4(b.const(0, "int32"), halves[0], row.factors(at * 2))
                p.add(total, b.dot4(even, halves[1], row.factors(at * 2 + 1)))
        for total, number, row in zip(totals, inner, rows):
            assert row.scales is not None
            p.add(total, (b.cast(number, "float32") + shift * row.sums(block)) * (scale * row.scales(block)))


def _unravelled(index: Element, shape: Sequence[int]) -> list[Position]:
    """The indices along axes of a place in their row-major order."""
    found: list[Position] = []
    for n in reversed(shape[1:]):
        found.append(index % n)
        index = index // n
    return [index, *reversed(found)] if shape else []
