"""Products whose number of rows is known when they run: whole register tiles, then shorter ones for what is left.

A work item is a panel of weights and all rows: tiles of `R` rows are counted by `n // R`, then come tiles of a few rows
and single rows. No row is computed twice, so that an epilogue may write over what it reads.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.dots import DOTS
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import Packing, WeightMatrix
from relaylab.codegen.templates.problem import UNIT, OutputAxis, Problem, Split, Tap
from relaylab.codegen.templates.program_parts import Place, ProgramParts, epilogue_buffers
from relaylab.codegen.templates.schedule import packed_size, schedule_contraction
from relaylab.codegen.templates.tile_cells import TileSite
from relaylab.codegen.templates.tile_loops import TILES, TileLoops
from relaylab.loop.expr import INDEX, MOST_SIZE, Axis, ScalarExpr, Tensor, as_index
from relaylab.loop.program import SIZES, Body, For, LoopNest, LoopProgram, extent_of, sizes_in

PLANNED_ROWS = 128  # the plan is the best one for so many
FEW_ROWS = 4  # of the tiles after the whole ones
MOST_ROWS = 2 * MOST_SIZE * MOST_SIZE
"""The extent of operands along the rows: proofs add intervals, which together reach a little farther than the rows."""


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
        return Problem(self.dtype, self.dtype, OutputAxis(1, 0, 0), (UNIT, axis), (Tap(self.depth, 1),), self.columns)


@dataclass(frozen=True, slots=True)
class RowsLeft:
    """Rows along the last axis: how many, of at most how many, from which on; `outer` is where they lie along others.

    `by_size` says that sizes alone tell how many.
    """

    count: ScalarExpr
    most: int
    outer: tuple[Place, ...] = (0,)
    first: Place = 0
    by_size: bool = True


class OpenTileLoops(TileLoops):
    """The loops of a contraction of which a size says how many rows there are along the last axis."""

    def __init__(self, planned: Problem, known: Problem, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts):
        plan = replace(schedule_contraction(planned, target), panels=1, prefetch=False)
        super().__init__(known, plan, target.lanes(known.dtype), epilogue, parts)
        self.most = plan.tile[1]
        self.splits = [Split(1, 1), Split(self.most, 1)]
        self.heights = (self.most, *(n for n in (FEW_ROWS, 1) if n < self.most))

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
            site = TileSite(0, (*rows.outer, at), tile, panel, (1, height), columns)
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
