"""The one shape all contractions share: rows x columns, reduced over taps, for every member of a batch.

    out[b, r, n] = sum over taps k of  x[b*bx + r*rx + k] * w[b, k, n]

For a matrix product the rows are the rows of the left side and there is one tap axis. For a convolution over NHWC the
rows are the output pixels, the taps are (kernel row, kernel column x input channel) and the groups are the batch.
Steps are in elements; `OutputAxis.covers` keeps the extents of the output axes that a merged axis stands for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OutputAxis:
    """An output axis: its extent, what a step along it does in each operand, the output axes it covers.

    Position p of the axis is coordinate `p * scale + shift` of the output (transposed convolutions walk every
    stride-th pixel).
    """

    extent: int
    x: int
    out: int
    w: int = 0
    covers: tuple[int, ...] = ()
    scale: int = 1
    shift: int = 0

    @property
    def plain(self) -> bool:
        """Are positions coordinates?"""
        return self.scale == 1 and self.shift == 0


DTYPES = ("float32", "float64", "int32")
"""What is multiplied, beside bytes."""

Choices = tuple[tuple[str, int], ...]
"""Numbers of a plan that a user chose (see `schedule.CHOICES`), by name."""

UNIT = OutputAxis(1, 0, 0)


@dataclass(frozen=True, slots=True)
class Border:
    """Where a reduction axis reads the zeros around `lines` of data: position p of the row axis `axis` takes line
    `p * step + tap * apart - before`.
    """

    axis: int
    step: int
    apart: int
    before: int
    lines: int

    def reads_zeros(self, pixels: int, taps: int) -> bool:
        """Does any of so many pixels read zeros by any of so many taps?"""
        return self.before > 0 or (pixels - 1) * self.step + (taps - 1) * self.apart - self.before >= self.lines

    def inside(self, pixels: int, taps: int) -> float:
        """The share of the pairs of so many pixels and taps that read data."""
        firsts = (tap * self.apart - self.before for tap in range(taps))
        stops = (
            (min(pixels, -(-(self.lines - first) // self.step)), -(-max(0, -first) // self.step)) for first in firsts
        )
        return sum(max(0, stop - start) for stop, start in stops) / (pixels * taps)


@dataclass(frozen=True, slots=True)
class Tap:
    """A reduction axis: how many, and the step of the input between two. What only reads `border` may be left out."""

    count: int
    x: int
    border: Border | None = None


@dataclass(frozen=True, slots=True)
class Weights:
    """The vector side and where it comes from.

    kind "packed": panels made at build time, or from an input by a kernel of their own (not `constant`),
    [batch][panel][K][columns of a panel];
    kind "rows": element (k, n) at `start + batch + k * self.k + n`, read where it lies;
    kind "bytes": the same of words whose bytes lie `k / 4` apart, put together as they are read;
    kind "gathered": element (k, n) by steps `k` and `n`, each panel is brought into scratch first.
    Their data type is `stored`, or that of the problem.
    """

    kind: str = "packed"
    start: int = 0
    k: int = 0
    n: int = 1
    constant: bool = True
    stored: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """A contraction in the common shape. `channel` is how far a step of the batch moves the output column.

    `word` is how many products a step of the reduction does: four for bytes, which lie in the int32 of `x` and `w`.
    `x` is of the data type `given`, or that of the problem. `choices` are numbers that the plan must have. `minimal`
    allows algorithms with fewer products.
    """

    dtype: str
    out_dtype: str
    batch: OutputAxis
    rows: tuple[OutputAxis, ...]
    taps: tuple[Tap, ...]
    columns: int
    channel: int = 0
    channels: int = 0
    x_start: int = 0
    out_start: int = 0
    out_column: int = 1
    weights: Weights = Weights()
    word: int = 1
    given: str = ""
    choices: Choices = ()
    minimal: bool = False

    @property
    def stored(self) -> str:
        """The data type of the weights in memory."""
        return self.weights.stored or self.dtype

    @property
    def depth(self) -> int:
        """The number of steps, each a product or `word` of them, in one result."""
        return math.prod(tap.count for tap in self.taps)

    @property
    def row_count(self) -> int:
        """Rows of one batch member."""
        return math.prod(axis.extent for axis in self.rows)

    @property
    def flops(self) -> int:
        """Multiplications and additions."""
        return 2 * self.batch.extent * self.row_count * self.columns * self.depth * self.word


def merge_axes(axes: Sequence[OutputAxis]) -> tuple[OutputAxis, ...]:
    """Walk neighbouring axes as one where input and output steps allow it; at least two axes are given back."""
    merged: list[OutputAxis] = []
    for axis in axes:
        last = merged[-1] if merged and merged[-1].plain and axis.plain else None
        if last and (last.extent == 1 or (last.x == axis.x * axis.extent and last.out == axis.out * axis.extent)):
            merged[-1] = OutputAxis(last.extent * axis.extent, axis.x, axis.out, 0, last.covers + axis.covers)
        elif last and axis.extent == 1:
            merged[-1] = OutputAxis(last.extent, last.x, last.out, 0, last.covers + axis.covers)
        else:
            merged.append(axis)
    # Tiles lie on the last two axes, so there are always two.
    return (UNIT,) * (2 - len(merged)) + tuple(merged)


def merge_taps(taps: Sequence[Tap]) -> tuple[Tap, ...]:
    """Walk neighbouring reduction axes as one where the input is evenly spaced over both."""
    merged: list[Tap] = []
    for tap in taps:
        if tap.count == 1:
            continue
        if merged and merged[-1].x == tap.x * tap.count:
            merged[-1] = Tap(merged[-1].count * tap.count, tap.x)
        else:
            merged.append(tap)
    return tuple(merged) or (Tap(1, 0),)


def whole_vectors(count: int, width: int) -> int:
    """So many elements rounded up to vectors of `width` lanes."""
    return -(-count // width) * width


@dataclass(frozen=True, slots=True)
class Split:
    """An extent cut into `count` nearly equal pieces: the first `larger` have `size + 1` elements, others `size`."""

    extent: int
    count: int

    @staticmethod
    def at_most(extent: int, limit: int) -> Split:
        """The fewest pieces of at most `limit` elements."""
        return Split(extent, max(1, -(-extent // limit)))

    @property
    def size(self) -> int:
        """Elements of a small piece."""
        return self.extent // self.count

    @property
    def larger(self) -> int:
        """How many pieces have one element more."""
        return self.extent % self.count

    @property
    def pieces(self) -> tuple[tuple[int, int], ...]:
        """The distinct piece sizes, larger first, and how many pieces have each."""
        larger, others = (self.size + 1, self.larger), (self.size, self.count - self.larger)
        return (larger, others) if self.larger else (others,)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The distinct piece sizes, larger first."""
        return tuple(size for size, _ in self.pieces)
