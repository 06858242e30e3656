"""Weights laid out the way the kernels read them: at build time, written where they stay, or by a kernel.

A packed operand is flat, for a buffer with the alignment of an arena (64 bytes). What has to be computed is computed a
few panels at a time: beside the plain and the packed weights there is a block that stays in the second-level cache.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, MemoryView, dense_strides
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.problem import whole_vectors
from relaylab.loop.builder import OutSpec
from relaylab.loop.expr import Const, Load, ScalarExpr, Tensor, guard
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder

PACKING_BYTES = 4.0  # that a kernel which lays weights out reads and writes in a cycle
TURNED = 40.0  # bytes, over the lanes of a vector, for each byte of weights that are turned round first
BLOCK = 1 << 20  # bytes that are computed before they go to their place


@dataclass(frozen=True, slots=True)
class Packing:
    """How many elements packed weights have, and what writes them into that many zeros."""

    size: int
    dtype: np.dtype
    write: Callable[[np.ndarray], object]

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    def array(self) -> np.ndarray:
        """The packed weights in memory of their own."""
        out = np.zeros(self.size, self.dtype)
        self.write(out)
        return out

    @staticmethod
    def copied(array: np.ndarray) -> Packing:
        """An array as it is, row by row."""
        return Packing(array.size, array.dtype, lambda out: np.copyto(out.reshape(array.shape), array))

    @staticmethod
    def joined(parts: Sequence[Packing]) -> Packing:
        """Some one after another."""
        ends = list(accumulate(part.size for part in parts))

        def write(out: np.ndarray) -> None:
            for part, end in zip(parts, ends):
                part.write(out[end - part.size : end])

        return Packing(ends[-1], parts[0].dtype, write)


@dataclass(frozen=True, slots=True)
class WeightMatrix:
    """Plain weights as [batch, K, N], of which `columns` gives those from one to another: a view or a copy."""

    shape: tuple[int, int, int]
    dtype: np.dtype
    columns: Callable[[int, int], np.ndarray]

    @staticmethod
    def of(matrix: np.ndarray, dtype: str = "") -> WeightMatrix:
        """An array [batch, K, N], any strides; of another data type if that is given."""
        batch, depth, columns = matrix.shape
        own = np.dtype(dtype or matrix.dtype)
        part = lambda first, last: matrix[:, :, first:last].astype(own, copy=False)
        return WeightMatrix((batch, depth, columns), own, part)


def pack_panels(matrix: WeightMatrix, panel: int, width: int) -> Packing:
    """Per batch member panels [K][panel] and a last one of the remaining columns.

    The last panel is as wide as whole vectors of `width` lanes need, zero padded.
    """
    batch, depth, columns = matrix.shape
    full, rest = divmod(columns, panel)
    pitch, tail = depth * whole_vectors(columns, width), whole_vectors(rest, width)
    step = panels_in_block(batch * depth * panel * matrix.dtype.itemsize)

    def write(out: np.ndarray) -> None:
        members = out.reshape(batch, pitch)
        for first in range(0, full, step):
            last = min(first + step, full)
            place = members[:, first * depth * panel : last * depth * panel].reshape(batch, last - first, depth, panel)
            values = matrix.columns(first * panel, last * panel).reshape(batch, depth, last - first, panel)
            np.copyto(place, values.transpose(0, 2, 1, 3))
        if rest:
            place = members[:, full * depth * panel :].reshape(batch, depth, tail)
            place[:, :, :rest] = matrix.columns(full * panel, columns)

    return Packing(batch * pitch, matrix.dtype, write)


WeightElement = Callable[[Tensor, Sequence[ScalarExpr]], ScalarExpr]


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """A part of packed weights as a kernel makes it: how it lies there, and an element of it.

    `element(w, i)` is that at the axes `i`, over the weights `w` [batch, digits of K, N], or those of them in `source`.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    element: WeightElement
    source: MemoryView | None = None


def plain_element(w: Tensor, i: Sequence[ScalarExpr]) -> ScalarExpr:
    """The element of weights at their own axes."""
    return Load(w, tuple(i))


def panel_blocks(
    weights: MemoryView, panel: int, width: int, element: WeightElement = plain_element, start: int = 0
) -> list[PackedBlock]:
    """What `pack_panels` gives, of weights [batch, digits of K, N] that are an input, from `start` on."""
    batch, *digits, columns = weights.shape
    full, rest = divmod(columns, panel)
    tail, depth = whole_vectors(rest, width), math.prod(digits)
    pitch = depth * whole_vectors(columns, width)
    steps = dense_strides((*digits, 1))[:-1]
    whole = PackedBlock(
        (batch, full, *digits, panel),
        (pitch, depth * panel, *(s * panel for s in steps), 1),
        start,
        lambda w, i: element(w, (i[0], *i[2:-1], i[1] * panel + i[-1])),
    )
    zero = Const(0, weights.dtype)
    last = PackedBlock(
        (batch, *digits, tail),
        (pitch, *(s * tail for s in steps), 1),
        start + depth * full * panel,
        lambda w, i: guard(i[-1] < rest, element(w, (*i[:-1], full * panel + i[-1])), zero),
    )
    return [block for block in (whole, last) if 0 not in block.shape]


@dataclass(frozen=True, slots=True)
class WeightPacking:
    """How a kernel lays out weights [batch, digits of K, N] that are an input: so many elements, in these blocks.

    With `mixes`, an element is made of several; those are read side by side along the columns.
    """

    size: int
    blocks: Callable[[MemoryView], list[PackedBlock]]
    mixes: bool = False

    def cycles(self, weights: MemoryView, target: CpuTarget) -> float:
        """Estimated cycles of the kernels."""
        turned = TURNED / target.lanes(weights.dtype) * weights.bytes if self._turned_first(weights) else 0.0
        return (weights.bytes + self.size * weights.itemsize + turned) / PACKING_BYTES

    def kernels(self, weights: MemoryView, target: CpuTarget) -> tuple[tuple[Kernel, ...], tuple[tuple[str, int], ...]]:
        """What makes "weight0" of the operand "in1", and the workspaces that this takes."""
        work = (("weight0", self.size * weights.itemsize),)
        if not self._turned_first(weights):
            return (packing_kernel(weights, self.size, self.blocks(weights), target),), work
        turned = PackedBlock(weights.shape, dense_strides(weights.shape), 0, plain_element)
        first = packing_kernel(weights, weights.size, [turned], target, into="rows0")
        batch, *digits, columns = weights.shape
        rows = MemoryView.dense((batch, math.prod(digits), columns), weights.dtype)
        second = packing_kernel(rows, self.size, self.blocks(rows), target, "rows0")
        return (first, second), (*work, ("rows0", rows.bytes))

    def _turned_first(self, weights: MemoryView) -> bool:
        """Do columns have to lie side by side first? Squares are transposed where single elements are moved."""
        return self.mixes and (weights.strides[-1] != 1 or len(weights.shape) > 3)


def packing_kernel(
    weights: MemoryView,
    size: int,
    blocks: Sequence[PackedBlock],
    target: CpuTarget,
    role: str = "in1",
    into: str = "weight0",
) -> Kernel:
    """The kernel that lays out weights [batch, digits of K, N], the operand `role`, as `size` elements of `into`."""
    group = ProgramBuilder("pack")
    whole = group.read(role, weights)
    memory = group.memory(into, size, weights.dtype)
    for block in blocks:
        lower = lambda b, out, i, w, block=block: block.element(w, i)
        source = whole if block.source is None else group.read(role, block.source, whole)
        value = group.compute(OutSpec(block.shape, weights.dtype), lower, [source])
        group.write(into, value, BufferLayout(weights.dtype, block.shape, block.strides, block.offset), memory)
    cost = (0, weights.bytes + size * weights.itemsize)
    return lower_program(group.program(), target, cost=cost).by_content("pack")


def panels_in_block(nbytes: int) -> int:
    """How many panels of so many bytes are computed at once."""
    return max(1, BLOCK // max(1, nbytes))


def tap_matrix(weight: np.ndarray) -> WeightMatrix:
    """[group, OC / groups, IC / groups, *kernel] as [group, *kernel x IC / groups, OC / groups]."""
    groups, out_channels, *inner = weight.shape

    def columns(first: int, last: int) -> np.ndarray:
        taps = np.moveaxis(weight[:, first:last], (1, 2), (-1, -2))  # group, *kernel, IC, OC
        return taps.reshape(groups, -1, last - first)

    return WeightMatrix((groups, math.prod(inner), out_channels), weight.dtype, columns)
