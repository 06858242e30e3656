"""Convolution by minimal filtering: transform tiles, multiply point by point, transform back.

F(m, r) does kernels of r x r taps and stride one. Other convolutions are made of such:

- With stride s every s-th pixel meets every s-th tap: the s x s phases of an image are channels of an image s times
  smaller, and a kernel of s r taps is one of r taps. One that s does not divide gets taps of zero: 7x7 of stride two
  are four phases of 4x4.
- The results of a convolution with dilation d have d x d phases with the same weights: their tiles follow each other.
- Of a transposed convolution every s-th result meets every s-th tap: its results have s x s phases, each by weights of
  its own, turned round, and the points of all of them are multiplied as one batch.

Two shapes of the same work. `blocked`: one kernel whose work item takes a block of tiles through all three steps in
per-thread scratch; for weights that stay in cache. Otherwise three kernels, each parallel over the whole tensor,
with the points in two workspaces: for weights so large that they should be streamed only once, and phases of results.

Error: transforms amplify rounding. On the weights of trained networks the largest error is below 8e-7 of the largest
output for F(2, 2), F(2, 3) and F(3, 2), and below 1e-5 for six points; it grows with the square root of the depth.
Infinities in the input become NaN, as sums of opposite signs are formed.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.kernels.views import Halo
from relaylab.codegen.templates.convolution_family import ConvSpec
from relaylab.codegen.templates.minimal import WEIGHT_TRANSFORM, Filtering, transform_weights
from relaylab.codegen.templates.pack import (
    PackedBlock,
    Packing,
    WeightElement,
    WeightMatrix,
    pack_panels,
    panel_blocks,
    panels_in_block,
)
from relaylab.codegen.templates.problem import UNIT, OutputAxis, Problem, Split, Tap, whole_vectors
from relaylab.codegen.templates.schedule import packed_size, schedule_contraction
from relaylab.loop.expr import Load, ScalarExpr, Tensor

CACHED_POINTS = 640 << 10  # bytes of transformed weights that stay in a second-level cache
BLOCK_BYTES = 288 << 10  # bytes of points of one block of tiles


@dataclass(frozen=True, slots=True)
class WinogradShape:
    """The numbers of one convolution by F(m, r). Pitches are elements between two points of a workspace.

    A tile reads its input every `step` pixels, from `before` pixels in front of it on (behind, if negative); the
    `folded` pixels from each of these on are channels, which `in_channels` count. Results may have `phases` along an
    axis: phase f of a dilated convolution reads f pixels later, and its tiles follow those of the others (`shared`); of
    a transposed one it reads `(f + lead) // phases` pixels later, and has weights of its own.
    """

    filter: Filtering
    batch: int
    high: int
    wide: int
    in_channels: int
    out_channels: int
    blocks: Split
    blocked: bool
    folded: int
    step: int
    before: tuple[int, ...]
    phases: int = 1
    shared: bool = False
    lead: tuple[int, ...] = (0, 0)

    @property
    def block(self) -> int:
        """Tiles that the workspace holds, of each part."""
        return self.blocks.sizes[0]

    @property
    def tiles(self) -> int:
        """Tiles of results with the same weights."""
        return self.batch * self.high * self.wide * (self.phases**2 if self.shared else 1)

    @property
    def parts(self) -> int:
        """The phases of the results with weights of their own."""
        return 1 if self.shared else self.phases**2

    @property
    def members(self) -> int:
        """Products per tile and pair of channels, those of all parts."""
        return self.parts * self.filter.points

    @property
    def weights(self) -> int:
        """Elements of the weights at all points."""
        return self.members * self.in_channels * self.out_channels

    def pitch(self, channels: int) -> int:
        """Elements from one point to the next: an odd number of lines keeps points out of each other's cache sets."""
        lines = -(-self.block * channels // 16)
        return (lines + 1 | 1) * 16

    @property
    def workspaces(self) -> dict[str, int]:
        """Elements of the workspaces of input points and of products, by role."""
        channels = {"work0": self.in_channels, "work1": self.out_channels}
        return {role: self.members * self.pitch(n) for role, n in channels.items()}


@lru_cache(maxsize=1024)
def winograd_shape(spec: ConvSpec, f: Filtering) -> WinogradShape:
    """The tiling of a convolution by F(m, r)."""
    apart, step, size = spec.dilation[0], spec.strides[0], spec.data.itemsize
    high, wide = (-(-n // (f.m * apart)) for n in spec.out.shape[1:3])
    tiles = spec.out.shape[0] * high * wide * apart**2
    ic, oc = spec.data.shape[-1] * step**2, spec.out.shape[-1]
    # Weights that stay in the second-level cache may be read once per block; larger ones are streamed once in all.
    blocked = f.points * ic * oc * size <= CACHED_POINTS
    # 14 tiles are the rows of the largest register tile. Blocks come in fours where there are enough tiles, so that
    # two or four threads get equal shares.
    limit = max(14, BLOCK_BYTES // (f.points * (ic + oc) * size)) if blocked else tiles
    count = Split.at_most(tiles, limit).count
    blocks = Split(tiles, min(tiles, -(-count // 4) * 4 if tiles >= 32 else count) if blocked else 1)
    tiling = WinogradShape(f, spec.out.shape[0], high, wide, ic, oc, blocks, blocked, step, step, spec.padding)
    return replace(tiling, step=apart, phases=apart, shared=True) if apart > 1 else tiling


@lru_cache(maxsize=1024)
def transposed_shape(spec: ConvSpec, f: Filtering) -> WinogradShape:
    """The tiling of a transposed convolution by F(m, r)."""
    n, high, wide, channels = spec.out.shape
    step = spec.strides[0]
    small = replace(spec.out, shape=(n, -(-high // step), -(-wide // step), channels))
    one = winograd_shape(replace(spec, out=small, strides=(1, 1)), f)
    if step == 1:
        return replace(one, before=tuple(f.r - 1 - p for p in spec.padding))
    before = (f.r - 1, f.r - 1)
    return replace(one, before=before, phases=step, lead=spec.padding, blocks=Split(one.tiles, 1), blocked=False)


def tiled_halo(spec: ConvSpec, shape: WinogradShape) -> Halo:
    """The zero elements (before, after) that whole tiles read around each axis, some of them for nothing."""
    found = [(0, 0)]
    tiles = zip(spec.data.shape[1:3], (shape.high, shape.wide), shape.before, shape.lead)
    for extent, count, before, lead in tiles:
        first, last = (0, 0) if shape.shared else (lead // shape.phases, (shape.phases - 1 + lead) // shape.phases)
        end = (count * shape.filter.m + shape.filter.r - 1) * shape.step - before + last
        found.append((max(0, before - first), max(0, end - extent)))
    return (*found, (0, 0))


def ill_shaped(spec: ConvSpec, f: Filtering) -> str:
    """Why F(m, r) does not fit a convolution, or a transposed one; empty when it does."""
    if len(spec.kernel) != 2 or spec.groups != 1:
        return "anything but one group of two axes"
    step, edge, apart = spec.strides[0], spec.kernel[0], spec.dilation[0]
    if spec.dilation != (apart, apart) or apart > 1 and (step > 1 or spec.by_pixels):
        return f"dilation {spec.dilation} with strides {spec.strides}, or with pixels side by side"
    if spec.strides != (step, step) or spec.kernel != (edge, edge) or -(-edge // step) != f.r:
        return f"a kernel {spec.kernel} with strides {spec.strides} that is not {f.r} taps a phase"
    if edge % step and spec.weight is not None:
        return "taps of zero, which are added to constants only"
    return f"dtype {spec.data.dtype}" if spec.data.dtype != "float32" else ""


def point_problem(shape: WinogradShape) -> Problem:
    """The products at all points as one batch of matrix products."""
    ic, oc = shape.in_channels, shape.out_channels
    member = OutputAxis(shape.members, shape.pitch(ic), shape.pitch(oc))
    return Problem("float32", "float32", member, (UNIT, OutputAxis(shape.block, ic, oc)), (Tap(ic, 1),), oc)


def pack_winograd(shape: WinogradShape, target: CpuTarget, weights: Sequence[np.ndarray]) -> Packing:
    """Weights [OC, IC, *kernel] of each phase of the results, transformed and laid out as kernels read them."""
    width, f = target.lanes("float32"), shape.filter
    problem, depth, taps = point_problem(shape), shape.in_channels, f.r**2
    panel = schedule_contraction(problem, target).vectors * width
    step = panel * panels_in_block(taps * depth * panel * weights[0].itemsize)

    def write(out: np.ndarray) -> None:
        for weight, points in zip(weights, out.reshape(shape.parts, f.points, -1)):
            for first in range(0, shape.out_channels, step):
                part = WeightMatrix.of(_taps(weight[first : first + step], shape.folded, f.r))
                packed = pack_panels(part, panel, width).array().reshape(taps, -1)
                transform_weights(f, packed, points[:, first * depth : first * depth + packed.shape[1]])

    return Packing(packed_size(problem, target), weights[0].dtype, write)


def whole_taps(weight: np.ndarray, taps: int) -> np.ndarray:
    """Weights [OC, IC, *kernel] with so many taps along each axis; those that are added are zeros."""
    rest = taps - weight.shape[-1]
    return np.pad(weight, ((0, 0), (0, 0), (0, rest), (0, rest))) if rest else weight


def _taps(weight: np.ndarray, step: int, r: int) -> np.ndarray:
    """Weights [OC, IC, *kernel] as [tap, phase x IC, OC]."""
    weight = whole_taps(weight, r * step)
    phases = weight.reshape(*weight.shape[:2], r, step, r, step)  # OC, IC, row tap and phase, column tap and phase
    return phases.transpose(2, 4, 3, 5, 1, 0).reshape(r * r, -1, len(weight))


def phase_taps(spec: ConvSpec, shape: WinogradShape, phase: int) -> list[list[int]]:
    """The taps of the kernel, along each axis, that a phase of the results of a transposed convolution meets: one for
    each pixel that it reads, from the first on.
    """
    size = shape.filter.r * shape.phases
    firsts = ((f + padding) % shape.phases for f, padding in zip(divmod(phase, shape.phases), spec.padding))
    return [[*range(first, size, shape.phases)][::-1] for first in firsts]


TapRow = Callable[[ScalarExpr, int, int], ScalarExpr]
"""The number of the row of weights [*kernel x IC, OC] that an input channel meets at a tap."""


def winograd_blocks(shape: WinogradShape, target: CpuTarget, taps: Sequence[TapRow]) -> list[PackedBlock]:
    """What `pack_winograd` gives, of weights [1, *kernel x IC, OC] that are an input, from the `taps` of each phase."""
    width, f = target.lanes("float32"), shape.filter
    depth, columns = shape.in_channels, shape.out_channels
    panel = schedule_contraction(point_problem(shape), target).vectors * width
    matrix = WEIGHT_TRANSFORM[f]

    def total(factors: Sequence[float], values: Sequence[ScalarExpr]) -> ScalarExpr:
        found = [x if k == 1 else x * float(k) for k, x in zip(factors, values) if k]
        return functools.reduce(lambda a, b: a + b, found)

    def transformed(row: int, column: int, tap: TapRow) -> WeightElement:
        """The element of G g G^T there."""

        def element(w: Tensor, i: Sequence[ScalarExpr]) -> ScalarExpr:
            at = lambda a, b: Load(w, (i[0], tap(i[1], a, b), i[2]))
            lines = [total(matrix[row], [at(a, b) for a in range(f.r)]) for b in range(f.r)]
            return total(matrix[column], lines)

        return element

    one = MemoryView.dense((1, depth, columns))
    pitch = depth * whole_vectors(columns, width)
    points = [(row, column, tap) for tap in taps for row in range(f.edge) for column in range(f.edge)]
    return [b for k, at in enumerate(points) for b in panel_blocks(one, panel, width, transformed(*at), k * pitch)]


def plain_tap(spec: ConvSpec, shape: WinogradShape) -> TapRow:
    """The taps of a convolution, whose input channels are phases x channels."""
    channels, step, wide = spec.data.shape[-1], shape.folded, spec.kernel[1]

    def tap(i: ScalarExpr, a: int, b: int) -> ScalarExpr:
        phase, channel = i // channels, i % channels
        first = (phase // step * wide + phase % step) * channels + channel
        return first + (a * wide + b) * step * channels

    return tap


def turned_taps(spec: ConvSpec, shape: WinogradShape) -> list[TapRow]:
    """The taps of each phase of a transposed convolution."""

    def of(phase: int) -> TapRow:
        rows, columns = phase_taps(spec, shape, phase)
        return lambda i, a, b: i + (rows[a] * spec.kernel[1] + columns[b]) * spec.data.shape[-1]

    return [of(phase) for phase in range(shape.parts)]
