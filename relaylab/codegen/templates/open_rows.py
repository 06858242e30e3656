"""Contractions whose number of rows is known when they run: whole register tiles, then shorter ones for what is left.

A work item of a product is a panel of weights and all rows: tiles of `R` rows are counted by `n // R`, then come tiles
of a few rows and single rows. No row is computed twice, so that an epilogue may write over what it reads.

The rows of a convolution are the pixels of a line of its result: a work item is a panel and a stretch of one line.
Channels lie side by side, there are no zeros around the data, and lines may be as far apart as sizes say. Where every
channel has its own kernel, the tiles of pixels are those of known images, and shorter ones for what is left of a line.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, MemoryView
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.convolution_family import ConvSpec
from relaylab.codegen.templates.depthwise import (
    DEPTHWISE,
    LEAST_OUTPUTS,
    LONGEST_ROW,
    MOST_OUTPUTS,
    DepthwiseLoops,
    PixelTile,
)
from relaylab.codegen.templates.dots import DOTS
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import Packing, WeightMatrix, tap_matrix
from relaylab.codegen.templates.problem import UNIT, OutputAxis, Problem, Split, Tap, merge_taps, whole_vectors
from relaylab.codegen.templates.program_parts import Place, ProgramParts, epilogue_buffers, split_place
from relaylab.codegen.templates.schedule import packed_size, schedule_contraction
from relaylab.codegen.templates.tile_cells import TileSite
from relaylab.codegen.templates.tile_loops import TILES, TileLoops
from relaylab.loop.expr import (
    INDEX,
    MOST_SIZE,
    Axis,
    Const,
    Load,
    ScalarExpr,
    Tensor,
    apply,
    as_index,
    axis_over,
    guard,
)
from relaylab.loop.program import SIZES, Body, For, IfThenElse, LoopNest, LoopProgram, Statement, extent_of, sizes_in

PLANNED_ROWS = 128  # the plan is the best one for so many
MOST_ROWS = 2 * MOST_SIZE * MOST_SIZE
"""The extent of operands along the rows: proofs add intervals, which together reach a little farther than the rows."""
NAMES = (("g", "p", "n", "part"), ("g", "p", "n", "h", "part"), ("g", "p", "n", "d", "h", "part"))
FEWEST_CHANNELS = 8
"""Of a group: fewer leave most of a vector empty."""
TILES_OF_ITEM = 16
"""The register tiles along a line that one work item has at most."""


@dataclass(frozen=True, slots=True)
class OpenRows:
    """out[r, n] = sum over k of x[r, k] * w[k, n], all row-major, for `rows` rows and constant weights."""

    rows: ScalarExpr
    depth: int
    columns: int
    dtype: str

    def problem(self, rows: int = PLANNED_ROWS) -> Problem:
        """The product for a number of rows; what is packed follows from the planned one."""
        axis = OutputAxis(rows, self.depth, self.columns, 0, (rows,))
        return Problem(self.dtype, self.dtype, UNIT, (UNIT, axis), (Tap(self.depth, 1),), self.columns)


@dataclass(frozen=True, slots=True)
class RowsLeft:
    """Rows along the last axis: how many, of at most how many, from which on; `outer` is where they lie along others,
    and `member` which one of the batch they belong to.

    `by_size` says that sizes alone tell how many.
    """

    count: ScalarExpr
    most: int
    outer: tuple[Place, ...] = (0,)
    first: Place = 0
    by_size: bool = True
    member: Place = 0


class OpenTileLoops(TileLoops):
    """The loops of a contraction of which a size says how many rows there are along the last axis."""

    few: tuple[int, ...] = (4, 1)
    """The rows of tiles after the whole ones."""

    def __init__(self, planned: Problem, known: Problem, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts):
        plan = replace(schedule_contraction(planned, target), panels=1, prefetch=False)
        super().__init__(known, plan, target.lanes(known.dtype), epilogue, parts)
        self.most = plan.tile[1]
        self.splits = [Split(1, 1), Split(self.most, 1)]
        self.heights = (self.most, *(n for n in self.few if n < self.most))

    def over_rows(self, rows: RowsLeft, panel: Place) -> Body:
        """The tiles of rows by the columns of a panel."""
        return self._by_columns(panel, lambda columns: self._all_rows(rows, panel, columns))

    def _all_rows(self, rows: RowsLeft, panel: Place, columns: int) -> Body:
        """Loops over the tiles of each height, as many as are left of the rows."""
        found: list[For] = []
        done: Place = 0
        most = rows.most
        for height in self.heights:
            left = rows.count - done
            tiles = left if height == 1 else left // height
            tile = Axis(self.parts.name("t"), most // height, INDEX, tiles if rows.by_size else None)
            most = height - 1  # rows that whole tiles leave
            at = self.parts.simplify(as_index(rows.first) + done + as_index(tile) * height)
            site = TileSite(rows.member, (*rows.outer, at), tile, panel, (1, height), columns)
            found.append(For(tile, "serial", self._tile(site), stop=None if rows.by_size else tiles))
            done = done + tiles * height
        return tuple(found)


def supports_open_rows(spec: OpenRows, target: CpuTarget) -> bool:
    """Whether tiles of registers serve the product."""
    return spec.depth > 0 and spec.columns > 0 and bool(DOTS.declines(spec.problem(), target))


def open_rows_program(spec: OpenRows, target: CpuTarget, epilogue: Epilogue) -> LoopProgram:
    """The product as a loop program with the operands input, weights, output, side inputs, sizes."""
    x = Tensor("in0", (MOST_ROWS * spec.depth,), spec.dtype)
    stored = spec.dtype if epilogue.value is None else epilogue.value.dtype
    out = Tensor("out0", (MOST_ROWS * spec.columns,), stored)
    w = Tensor("weight0", (packed_size(spec.problem(), target),), spec.dtype)
    buffers = {t.name: t for t in (x, w, out)} | epilogue_buffers(epilogue, spec.columns, spec.dtype)
    parts = ProgramParts({**buffers, "x": x, "w": w, "out": out})
    loops = OpenTileLoops(spec.problem(), spec.problem(MOST_ROWS), target, epilogue, parts)
    panel = parts.axis("item", loops.panels)
    nest = LoopNest(For(panel, "serial", loops.over_rows(RowsLeft(spec.rows, extent_of(spec.rows)), panel)))
    buffers[SIZES] = Tensor(SIZES, (sizes_in([nest])[-1].slot + 1,), INDEX)
    return LoopProgram("dense", tuple(buffers.items()), tuple(parts.scratch), (nest,), tuple(parts.registers))


def open_rows(spec: OpenRows, target: CpuTarget, epilogue: Epilogue) -> Kernel:
    """The kernel of the product."""
    return lower_program(open_rows_program(spec, target, epilogue), target, True).by_content("dense")


def pack_open_rows(spec: OpenRows, target: CpuTarget, matrix: np.ndarray) -> Packing:
    """The weights [K, N] as the kernel reads them."""
    return TILES.pack(spec.problem(), target, WeightMatrix.of(matrix[None]))


@dataclass(frozen=True, slots=True)
class OpenPixels:
    """A convolution: data and result as [batch, *space, channels], weights constant. `padding` is that before each
    axis of one whose every channel has its own kernel; others have none.
    """

    data: MemoryView
    out: MemoryView
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1
    padding: tuple[int, ...] = ()
    around: bool = False
    """Whether there are zeros around the images."""

    @property
    def columns(self) -> int:
        """The channels of the result in a group."""
        return self.out.shape[-1] // self.groups

    @property
    def depth(self) -> int:
        """The channels of the data in a group."""
        return self.data.shape[-1] // self.groups

    @property
    def depthwise(self) -> bool:
        """Whether every channel has its own kernel."""
        alone = self.groups == self.data.shape[-1] == self.out.shape[-1] > 1
        return alone and self.kernel[-1] <= LONGEST_ROW

    def every_channel(self) -> ConvSpec:
        """The same as the spec of a convolution of known images has it."""
        padding = self.padding or (0,) * len(self.kernel)
        return ConvSpec(self.data, self.out, self.kernel, self.strides, self.dilation, padding, self.groups)

    @property
    def batch(self) -> OutputAxis:
        """The groups as members of a batch."""
        return UNIT if self.groups == 1 else OutputAxis(self.groups, self.depth, 0)

    def _taps(self, lines: Sequence[int]) -> tuple[Tap, ...]:
        """The reduction axes, with the steps between lines and images: columns and channels go together."""
        *outer, last = zip(self.kernel, self.dilation, (*lines, self.data.strides[-2]))
        inner = merge_taps([Tap(last[0], last[1] * last[2]), Tap(self.depth, 1)])
        return (*(Tap(k, step * d) for k, d, step in outer if k > 1), *inner)

    def planned(self) -> Problem:
        """The convolution of one line of planned length: what is packed, and the tiles, follow from it."""
        row = OutputAxis(PLANNED_ROWS, self.data.strides[-2] * self.strides[-1], self.columns, 0, (PLANNED_ROWS,))
        lines = [row.x * PLANNED_ROWS for _ in self.kernel[1:]]
        dtype = self.data.dtype
        return Problem(dtype, dtype, self.batch, (UNIT, row), self._taps(lines), self.columns, self.columns)

    def known(self) -> Problem:
        """The convolution with the steps that sizes say."""
        data, out = self.data, self.out
        steps = (1, *self.strides)
        rows = [
            OutputAxis(MOST_SIZE, x * by, o, 0, (n,))
            for n, x, by, o in zip(out.shape[:-1], data.strides[:-1], steps, out.strides[:-1])
        ]
        return Problem(
            data.dtype,
            out.dtype,
            self.batch,
            tuple(rows),
            self._taps(data.strides[1:-2]),
            self.columns,
            channel=self.columns,
            channels=out.shape[-1],
            x_start=data.offset,
            out_start=out.offset,
            out_column=out.strides[-1],
        )


class OpenPixelLoops(OpenTileLoops):
    """The loops of one convolution."""

    few = (6, 4, 2, 1)  # lines are short: single pixels cost a third of a whole tile

    def __init__(self, spec: OpenPixels, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts):
        super().__init__(spec.planned(), spec.known(), target, epilogue, parts)
        self.spec = spec

    def nest(self) -> LoopNest:
        """The parallel loop over panels x lines of the result x stretches of a line."""
        parts, (*outer, width) = self.parts, self.spec.out.shape[:-1]
        stretch = self.most * TILES_OF_ITEM
        stretches = (as_index(width) + (stretch - 1)) // stretch
        whole = (self.spec.groups, self.panels, *outer, cast(int, stretches))
        item = axis_over(parts.name("item"), parts.simplify(as_index(math.prod(whole))))
        start: list[Statement] = []
        spot = split_place(item, whole)
        group, panel, *lines, part = (parts.named(name, x, start) for name, x in zip(NAMES[len(spot) - 4], spot))
        first = parts.named("first", as_index(part) * stretch, start)
        count = parts.named("count", apply("min", as_index(width) - first, as_index(stretch)), start)
        rows = RowsLeft(as_index(count), stretch, tuple(lines), first, False, group)
        return LoopNest(For(item, "serial", (*start, *self.over_rows(rows, panel))))


class OpenDepthwiseLoops(DepthwiseLoops):
    """The loops of a convolution of which every channel has its own kernel.

    Tiles at the edges of an image read nothing outside of it; those inside do not ask.
    """

    asks: bool = False
    """Whether what is read is asked to be inside."""

    def __init__(self, spec: OpenPixels, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts):
        self.spec, self.epilogue, self.parts = spec.every_channel(), epilogue, parts
        self.width, self.channels = target.lanes(spec.data.dtype), spec.out.shape[-1]
        taps, spare = math.prod(spec.kernel), target.registers - spec.kernel[-1]
        self.resident = taps + LEAST_OUTPUTS <= spare
        most = min(spare - taps if self.resident else MOST_OUTPUTS, MOST_OUTPUTS)
        self.heights = (most, *(n for n in (4, 2, 1) if n < most))
        self.around = spec.around

    def nest(self) -> LoopNest:
        """The parallel loop over lines of the result x stretches of a line: tiles of pixels, and channels within."""
        parts, (*lines, width, _) = self.parts, self.spec.out.shape
        stretch = most = self.heights[0] * TILES_OF_ITEM
        whole = (*lines, cast(int, (as_index(width) + (stretch - 1)) // stretch))
        item, start = axis_over(parts.name("item"), parts.simplify(as_index(math.prod(whole)))), list[Statement]()
        names = (*(f"i{d}" for d in range(len(lines))), "part")
        *line, part = (parts.named(name, x, start) for name, x in zip(names, split_place(item, whole)))
        first = parts.named("first", as_index(part) * stretch, start)
        count = as_index(parts.named("count", apply("min", as_index(width) - first, as_index(stretch)), start))
        done: Place = 0
        for height in self.heights:
            tiles = (count - done) // height
            tile, own = parts.axis("tile", most // height), list[Statement]()
            most = height - 1  # pixels that whole tiles leave
            at = parts.named("at", as_index(first) + done + as_index(tile) * height, own)
            start.append(For(tile, "serial", (*own, *self._over_channels((*line, at), height)), stop=tiles))
            done = done + tiles * height
        return LoopNest(For(item, "serial", tuple(start)))

    def _over_channels(self, position: tuple[Place, ...], pixels: int) -> Body:
        """What lies side by side is read in that order."""
        blocks = -(-self.channels // self.width)
        made = lambda: self.parts.blocked("b", 0, blocks, blocks, lambda b: self._block(position, pixels, b))
        if not self.around:
            return made()
        spread = [(k - 1) * d for k, d in zip(self.spec.kernel, self.spec.dilation)]
        spread[-1] += (pixels - 1) * self.spec.strides[-1]
        inside, first = made(), self._spots(position)
        self.asks = True
        edge = made()
        self.asks = False
        return (IfThenElse(self._inside([*first, *(as_index(x) + n for x, n in zip(first, spread))]), inside, edge),)

    def _spots(self, position: Sequence[Place]) -> list[ScalarExpr]:
        """Where the first tap is read along each axis of an image."""
        spec = self.spec
        return [as_index(at) * s - p for at, s, p in zip(position[1:], spec.strides, spec.padding)]

    def _inside(self, spots: Sequence[ScalarExpr]) -> ScalarExpr:
        """Whether positions, along the axes of an image again and again, are all inside."""
        extents = itertools.cycle(self.spec.data.shape[1:-1])
        found = [c for x, n in zip(spots, extents) for c in (x >= 0, x < as_index(n))]
        return self.parts.simplify(functools.reduce(lambda a, c: apply("land", a, c), found))

    def _columns(self, tile: PixelTile, rows: Sequence[Axis], row: Tensor, counts: tuple[int, int]) -> Statement:
        if not self.asks:
            return super()._columns(tile, rows, row, counts)
        spec, parts, steps = self.spec, self.parts, self.spec.data.strides
        t, q, c = (parts.axis(name, n) for name, n in zip("tqc", (*counts, tile.lanes)))
        *lines, first = self._spots(tile.position)
        spots = [x + as_index(k) * d for x, k, d in zip((*lines, first), (*rows, t), spec.dilation)]
        spots[-1] = spots[-1] + q
        terms = [*zip((tile.position[0], *spots), steps), (tile.channel, steps[-1]), (c, steps[-1])]
        value = Load(parts.buffers["in0"], (parts.place(terms, spec.data.offset),))
        cell = parts.place([(t, counts[1] * tile.lanes), (q, tile.lanes), (c, 1)])
        return self._vectors((t, q), c, row, cell, guard(self._inside(spots), value, Const(0, self.dtype)))

    def _ahead(self, tile: PixelTile) -> Body:
        """Nothing is asked for before it is read: how far the next line lies is not known."""
        return ()

    def _start(self) -> int:
        data = self.spec.data
        before = sum(p * as_index(step) for p, step in zip(self.spec.padding, data.strides[1:]) if p)
        return cast(int, data.offset - before)


def supports_open_pixels(spec: OpenPixels, target: CpuTarget) -> bool:
    """Whether tiles of registers serve the convolution."""
    if spec.depthwise:
        return True
    problem = spec.planned()
    if spec.groups > 1 and min(spec.columns, spec.depth) < FEWEST_CHANNELS:
        return False
    return problem.depth > 0 and problem.columns > 0 and bool(DOTS.declines(problem, target))


def open_pixels(spec: OpenPixels, target: CpuTarget, epilogue: Epilogue) -> Kernel:
    """The kernel, with the operands input, weights, output, side inputs, sizes."""
    anywhere = lambda role, dtype: Tensor(role, (MOST_ROWS,), dtype)
    stored = spec.data.dtype if epilogue.value is None else epilogue.value.dtype
    dtypes = {role: view.dtype for _, role, view in epilogue.reads}
    buffers = {"in0": anywhere("in0", spec.data.dtype), "out0": anywhere("out0", stored)}
    every = math.prod(spec.kernel) * whole_vectors(spec.groups, target.lanes(spec.data.dtype))
    packed = every if spec.depthwise else packed_size(spec.planned(), target)
    buffers["weight0"] = Tensor("weight0", (packed,), spec.data.dtype)
    buffers |= {role: anywhere(role, dtypes.get(role, spec.data.dtype)) for role in epilogue.operands}
    parts = ProgramParts({**buffers, "x": buffers["in0"], "w": buffers["weight0"], "out": buffers["out0"]})
    nest = (OpenDepthwiseLoops if spec.depthwise else OpenPixelLoops)(spec, target, epilogue, parts).nest()
    buffers[SIZES] = Tensor(SIZES, (sizes_in([nest])[-1].slot + 1,), INDEX)
    name = "depthwise" if spec.depthwise else "conv"
    program = LoopProgram(name, tuple(buffers.items()), tuple(parts.scratch), (nest,), tuple(parts.registers))
    return lower_program(program, target, True).by_content(name)


def pack_open_pixels(spec: OpenPixels, target: CpuTarget, weight: np.ndarray) -> Packing:
    """The weights [O, I / groups, *kernel] as the kernel reads them."""
    if spec.depthwise:
        return DEPTHWISE.pack(spec.every_channel(), target, weight)
    grouped = weight.reshape(spec.groups, spec.columns, *weight.shape[1:])
    return TILES.pack(spec.planned(), target, tap_matrix(grouped))
