"""Convolution by minimal filtering: transform tiles, multiply point by point, transform back.

F(2, 3) and F(4, 3) do 3x3 kernels of stride one. With stride s every s-th pixel meets every s-th tap: the s x s phases
of an image are channels of an image s times smaller, and a kernel of s r taps is one of r taps. So F(3, 2) does
4x4 kernels of stride two and 8x8 of stride four, and the other two 6x6 of stride two.

Two shapes of the same work. `blocked`: one kernel whose work item takes a block of tiles through all three steps in
per-thread scratch; for weights that stay in cache. Otherwise three kernels, each parallel over the whole tensor,
with the points in two workspaces: for weights so large that they should be streamed only once.

Error: transforms amplify rounding. On the weights of trained networks the largest error is below 8e-7 of the largest
output for F(2, 3) and F(3, 2), which has its points, and below 1e-5 for F(4, 3); it grows with the square root of the
depth. Infinities in the input become NaN, as sums of opposite signs are formed.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.kernels.views import Halo
from relaylab.codegen.templates.convolution_family import ConvSpec, needed_halo
from relaylab.codegen.templates.minimal import TAPS, WEIGHT_TRANSFORM, transform_weights
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
    """The numbers of one F(m, r) convolution. `in_channels` count the phases of a stride; pitches are elements between
    two points of a workspace.
    """

    m: int
    batch: int
    high: int
    wide: int
    in_channels: int
    out_channels: int
    blocks: Split
    blocked: bool

    @property
    def block(self) -> int:
        """Tiles that the workspace holds."""
        return self.blocks.sizes[0]

    @property
    def points(self) -> int:
        """Products per tile and channel pair."""
        return points_of(self.m)

    @property
    def tiles(self) -> int:
        """Output tiles."""
        return self.batch * self.high * self.wide

    def pitch(self, channels: int) -> int:
        """Elements from one point to the next: an odd number of lines keeps points out of each other's cache sets."""
        lines = -(-self.block * channels // 16)
        return (lines + 1 | 1) * 16

    @property
    def workspaces(self) -> dict[str, int]:
        """Elements of the workspaces of input points and of products, by role."""
        channels = {"work0": self.in_channels, "work1": self.out_channels}
        return {role: self.points * self.pitch(n) for role, n in channels.items()}


def points_of(m: int) -> int:
    """The points of a tile of F(m, r)."""
    return (m + TAPS[m] - 1) ** 2


@lru_cache(maxsize=1024)
def winograd_shape(spec: ConvSpec, m: int) -> WinogradShape:
    """The tiling of a convolution by F(m, r)."""
    high, wide = (-(-n // m) for n in spec.out.shape[1:3])
    tiles, points = spec.out.shape[0] * high * wide, points_of(m)
    ic, oc = spec.data.shape[-1] * spec.strides[0] ** 2, spec.out.shape[-1]
    # Weights that stay in the second-level cache may be read once per block; larger ones are streamed once in all.
    blocked = points * ic * oc * spec.data.itemsize <= CACHED_POINTS
    # 14 tiles are the rows of the largest register tile. Blocks come in fours where there are enough tiles, so that
    # two or four threads get equal shares.
    limit = max(14, BLOCK_BYTES // (points * (ic + oc) * spec.data.itemsize)) if blocked else tiles
    count = Split.at_most(tiles, limit).count
    blocks = Split(tiles, min(tiles, -(-count // 4) * 4 if tiles >= 32 else count) if blocked else 1)
    return WinogradShape(m, spec.out.shape[0], high, wide, ic, oc, blocks, blocked)


def needed_winograd_halo(spec: ConvSpec, m: int) -> Halo:
    """The zero elements (before, after) that F(m, r) reads around each axis: whole tiles, more than `needed_halo`."""
    bare = needed_halo(spec)
    extra = [(-(-n // m) * m - n) * step for n, step in zip(spec.out.shape[1:3], spec.strides)]
    return (bare[0], *((a, b + e) for (a, b), e in zip(bare[1:3], extra)), bare[3])


def ill_shaped(spec: ConvSpec, m: int) -> str:
    """Why F(m, r) does not fit a convolution; empty when it does."""
    if len(spec.kernel) != 2 or spec.dilation != (1, 1) or spec.groups != 1:
        return "anything but one group of two axes without dilation"
    step = spec.strides[0]
    if spec.strides != (step, step) or spec.kernel != (step * TAPS[m],) * 2:
        return f"a kernel {spec.kernel} with strides {spec.strides} that is not {TAPS[m]} taps a phase"
    return f"dtype {spec.data.dtype}" if spec.data.dtype != "float32" else ""


def point_problem(shape: WinogradShape) -> Problem:
    """The products at all points as one batch of matrix products."""
    ic, oc = shape.in_channels, shape.out_channels
    member = OutputAxis(shape.points, shape.pitch(ic), shape.pitch(oc))
    return Problem("float32", "float32", member, (UNIT, OutputAxis(shape.block, ic, oc)), (Tap(ic, 1),), oc)


def pack_winograd(spec: ConvSpec, m: int, target: CpuTarget, weight: np.ndarray) -> Packing:
    """Weights [OC, IC, *kernel] transformed and laid out as the kernels of this spec read them."""
    shape, width = winograd_shape(spec, m), target.lanes("float32")
    problem, depth, taps = point_problem(shape), shape.in_channels, TAPS[m] ** 2
    panel = schedule_contraction(problem, target).vectors * width
    step = panel * panels_in_block(taps * depth * panel * weight.itemsize)

    def write(out: np.ndarray) -> None:
        points = out.reshape(shape.points, -1)
        for first in range(0, shape.out_channels, step):
            part = WeightMatrix.of(_taps(weight[first : first + step], spec.strides[0], TAPS[m]))
            packed = pack_panels(part, panel, width).array().reshape(taps, -1)
            transform_weights(m, packed, points[:, first * depth : first * depth + packed.shape[1]])

    return Packing(packed_size(problem, target), weight.dtype, write)


def _taps(weight: np.ndarray, step: int, r: int) -> np.ndarray:
    """Weights [OC, IC, *kernel] as [tap, phase x IC, OC]."""
    phases = weight.reshape(*weight.shape[:2], r, step, r, step)  # OC, IC, row tap and phase, column tap and phase
    return phases.transpose(2, 4, 3, 5, 1, 0).reshape(r * r, -1, len(weight))


def winograd_blocks(spec: ConvSpec, m: int, target: CpuTarget, weights: MemoryView) -> list[PackedBlock]:
    """What `pack_winograd` gives, of weights [1, *kernel x IC, OC] that are an input."""
    shape, width, r = winograd_shape(spec, m), target.lanes("float32"), TAPS[m]
    step, channels = spec.strides[0], spec.data.shape[-1]
    depth, columns = shape.in_channels, shape.out_channels
    panel = schedule_contraction(point_problem(shape), target).vectors * width
    matrix, edge = WEIGHT_TRANSFORM[m], m + r - 1

    def transformed(row: int, column: int) -> WeightElement:
        """The element of G g G^T there."""

        def total(factors: Sequence[float], values: Sequence[ScalarExpr]) -> ScalarExpr:
            found = [x if f == 1 else x * float(f) for f, x in zip(factors, values) if f]
            return functools.reduce(lambda a, b: a + b, found)

        def element(w: Tensor, i: Sequence[ScalarExpr]) -> ScalarExpr:
            phase, channel = i[1] // channels, i[1] % channels
            first = (phase // step * r * step + phase % step) * channels + channel
            tap = lambda a, b: Load(w, (i[0], first + (a * r * step + b) * step * channels, i[2]))
            lines = [total(matrix[row], [tap(a, b) for a in range(r)]) for b in range(r)]
            return total(matrix[column], lines)

        return element

    one = MemoryView.dense((1, depth, columns))
    pitch = depth * whole_vectors(columns, width)
    points = [(row, column) for row in range(edge) for column in range(edge)]
    return [b for k, at in enumerate(points) for b in panel_blocks(one, panel, width, transformed(*at), k * pitch)]
