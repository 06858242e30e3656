"""Contractions with very few columns: lanes run along the reduction, and every result is the sum over its lanes.

With three output channels a vector of columns would be mostly empty. Here the input and the weights are both read
along the innermost tap axis, where they are contiguous, and a tile of rows x columns of whole vectors is accumulated.
Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView, dense_strides, item_bytes
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import PackedBlock, Packing, WeightMatrix
from relaylab.codegen.templates.problem import Problem, whole_vectors
from relaylab.codegen.templates.product_family import PRODUCTS, ProductFamily
from relaylab.codegen.templates.program_parts import Place, ProgramParts, around
from relaylab.codegen.templates.schedule import Blocking, crowd_of, overlapped, size_of, step_cycles, tile_count
from relaylab.codegen.templates.tile_cells import TileSite
from relaylab.codegen.templates.tile_loops import TileLoops
from relaylab.loop.expr import Const, Load, Local, ScalarExpr, Tensor, as_index, cast, guard
from relaylab.loop.program import Accumulate, Body, Define, For, LoopNest, Store

FEW_COLUMNS = 4
TILES_PER_ITEM = 4
# Fitted to 288 measured products with three instruction sets, beside the ordinary tiles of the cost model: the choice
# costs 0.9 % of the time of the faster one.
TILE_CYCLES = 10.0  # of a tile besides its steps and sums
STEP_SHARE = 0.7  # of what the model says of a step: all weights of a step stay in registers
SUM_CYCLES = 3.0  # to add the lanes of a sum


def dots_schedule(problem: Problem, target: CpuTarget) -> Blocking:
    """Tiles of as many rows times all columns as registers hold; rows lie along the last row axis."""
    # Beside the sums: the weights of every column, the values of a row, and two to spare.
    accumulators = min(24, target.registers - problem.columns - 3)
    tile = (1, min(problem.rows[-1].extent, max(1, accumulators // problem.columns), crowd_of(problem)))
    return Blocking(1, tile, max(1, min(TILES_PER_ITEM, tile_count(problem, tile) // 16)), 1, False)


def padded_depth(problem: Problem, width: int) -> int:
    """Packed elements of one column: the innermost taps as whole vectors."""
    inner = problem.taps[-1].count
    return problem.depth // inner * whole_vectors(inner, width)


class DotLoops(TileLoops):
    """The loops of a contraction whose tiles are rows x columns of sums over lanes."""

    def _gathers(self) -> bool:
        return False  # columns are read where they lie

    def _sums_in_memory(self) -> bool:
        return False  # the lanes are parts

    def _tile(self, site: TileSite) -> Body:
        """One tile: sums of lanes, what they are together, the bias, the epilogue and the stores."""
        parts, p, width = self.parts, self.problem, self.width
        results = site.sizes[1] * p.columns
        sums = parts.private("registers", "sums", results * width, p.dtype)
        acc = parts.private("registers", "acc", results, p.dtype)
        n, c = parts.axis("n", results), parts.axis("c", width)
        start = Store(sums, parts.place([(n, width), (c, 1)]), Const(0, p.dtype))
        zeros = around((For(c, "vectorized", (start,)),), (n,), "unrolled")
        body = (*zeros, *self._reduction(site, sums), *self._together(sums, acc))
        if self.epilogue.bias is not None:
            biased = lambda a, b, c: (acc, cell := self._cell(site, a, b, c), Load(acc, (cell,)) + self._bias(site, c))
            body = (*body, self._over_tile(site, biased))
        return (*body, *self._finish(site, acc))

    def _pitch(self, site: TileSite) -> int:
        return site.columns

    def _together(self, sums: Tensor, acc: Tensor) -> Body:
        """The lanes of every sum as one number."""
        parts, dtype = self.parts, self.problem.dtype
        n, c = parts.axis("n", acc.shape[0]), parts.axis("c", self.width)
        total = Local(parts.name("total"), dtype)
        lanes = Accumulate(total, "sum", Load(sums, (parts.place([(n, self.width), (c, 1)]),)))
        # -0.0 is the identity of addition: +0.0 would turn a sum of -0.0 into +0.0.
        whole = (
            Define(total, Const(-0.0, dtype)),
            For(c, "vectorized", (lanes,)),
            Store(acc, parts.place([(n, 1)]), total),
        )
        return around(whole, (n,), "unrolled")

    def _reduction(self, site: TileSite, acc: Tensor) -> Body:
        """Loops over the taps; the innermost in vectors, of which the last may have fewer elements."""
        *outer, last = self.problem.taps
        whole, rest = divmod(last.count, self.width)
        axes = [self.parts.axis("k", tap.count) for tap in outer]
        block = self.parts.axis("k", whole)
        body: Body = ()
        if whole:
            body = around(self._products(site, acc, (*axes, block), self.width), (block,), "serial")
        if rest:
            body = (*body, *self._products(site, acc, (*axes, whole), rest))
        return around(body, axes, "serial")

    def _products(self, site: TileSite, acc: Tensor, at: Sequence[Place], real: int) -> Body:
        """A vector of every column's weights times one of every row, of which the first lanes are real."""
        parts, p, width = self.parts, self.problem, self.width
        n, c = parts.axis("n", p.columns), parts.axis("c", width)
        if p.weights.kind == "packed":
            column, step = padded_depth(p, width), whole_vectors(p.taps[-1].count, width)
            member = column * p.columns
        else:
            member, column, step = p.batch.w, p.weights.n, p.taps[-1].count
        terms = [(site.batch, member), (n, column), (at[-1], width), (c, 1)]
        for index, tap in zip(at[-2::-1], p.taps[-2::-1]):
            terms.append((index, step))
            step *= tap.count
        weights = parts.private("registers", "b", p.columns * width, p.dtype)
        value: ScalarExpr = Load(parts.buffers["w"], (parts.place(terms, p.weights.start),))
        if real < width and p.weights.kind != "packed":  # nothing fills the last vector
            value = guard(c < real, value, Const(0, p.dtype))
        store = Store(weights, parts.place([(n, width), (c, 1)]), value)
        return (*around((For(c, "vectorized", (store,)),), (n,), "unrolled"), *self._rows(site, acc, weights, at, real))

    def _rows(self, site: TileSite, acc: Tensor, weights: Tensor, at: Sequence[Place], real: int) -> Body:
        parts, p, width = self.parts, self.problem, self.width
        row, x = parts.axis("r", site.sizes[1]), parts.private("registers", "x", width, p.dtype)
        c = parts.axis("c", width)
        spot = (*site.position[:-1], as_index(site.position[-1]) + row)
        terms = [(site.batch, p.batch.x), *((i, axis.x) for i, axis in zip(spot, p.rows))]
        terms += [(i, tap.x) for i, tap in zip(at[:-1], p.taps)]
        value: ScalarExpr = Load(parts.buffers["x"], (parts.place([*terms, (at[-1], width), (c, 1)], p.x_start),))
        value = cast(value, p.dtype)
        if real < width:
            value = guard(c < real, value, Const(0, p.dtype))
        load = For(c, "vectorized", (Store(x, c, value),))
        n, lane = parts.axis("n", p.columns), parts.axis("c", width)
        cell = parts.place([(row, p.columns * width), (n, width), (lane, 1)])
        weight = Load(weights, (parts.place([(n, width), (lane, 1)]),))
        product = Store(acc, cell, Load(acc, (cell,)) + Load(x, (as_index(lane),)) * weight)
        products = around((For(lane, "vectorized", (product,)),), (n,), "unrolled")
        return around((load, *products), (row,), "unrolled")


class Dots(ProductFamily):
    """Sums over lanes."""

    name = "dots"
    title = "few columns"
    widens = ("x",)

    def declines(self, spec: Problem, target: CpuTarget) -> str:
        inner, lanes = spec.taps[-1], target.lanes(spec.dtype)
        if spec.columns > (most := min(FEW_COLUMNS, lanes)):
            return f"more than {most} columns"
        beside = spec.weights.kind == "packed" or spec.weights.kind == "gathered" and spec.weights.k == 1
        if not beside or not spec.dtype.startswith("float"):
            return "anything but floats by packed weights or by columns that lie side by side"
        if not spec.weights.constant and len(spec.taps) > 1:
            return "weights that are an input, by more than one tap"
        return "" if inner.x == 1 and inner.count >= lanes else "a reduction that is not a vector long, side by side"

    def cycles(self, spec: Problem, target: CpuTarget) -> float:
        rows = dots_schedule(spec, target).tile[1]
        steps = padded_depth(spec, lanes := target.lanes(spec.dtype)) / lanes
        tile = steps * STEP_SHARE * step_cycles(rows, spec.columns) + TILE_CYCLES + rows * spec.columns * SUM_CYCLES
        work = spec.batch.extent * tile_count(spec, (1, rows)) * tile
        return overlapped(work, self.packed(spec, target) * item_bytes(spec.dtype), target)

    def reasons(self, spec: Problem, target: CpuTarget) -> list[str]:
        rows = dots_schedule(spec, target).tile[1]
        few = f"{spec.columns} columns are too few for vectors"
        return [size_of(spec), f"{few}: lanes run along the reduction, tiles of {rows} rows"]

    def nest(self, problem: Problem, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts) -> LoopNest:
        width = target.lanes(problem.dtype)
        return DotLoops(problem, dots_schedule(problem, target), width, epilogue, parts).nest()

    def packed(self, problem: Problem, target: CpuTarget) -> int:
        return problem.batch.extent * problem.columns * padded_depth(problem, target.lanes(problem.dtype))

    def pack(self, problem: Problem, target: CpuTarget, matrix: WeightMatrix) -> Packing:
        (batch, depth, columns), inner = matrix.shape, problem.taps[-1].count
        width = target.lanes(problem.dtype)
        shape = (batch, columns, depth // inner, whole_vectors(inner, width))

        def write(out: np.ndarray) -> None:
            values = matrix.columns(0, columns).transpose(0, 2, 1)
            out.reshape(shape)[..., :inner] = values.reshape(*shape[:3], inner)

        return Packing(math.prod(shape), matrix.dtype, write)

    def blocks(self, problem: Problem, target: CpuTarget, weights: MemoryView) -> list[PackedBlock]:
        batch, *digits, columns = weights.shape
        depth = math.prod(digits)
        column = padded_depth(problem, target.lanes(problem.dtype))
        strides, zero = (columns * column, column), Const(0, weights.dtype)
        whole = PackedBlock(
            (batch, columns, *digits),
            (*strides, *dense_strides(tuple(digits))),
            0,
            lambda w, i: Load(w, (i[0], *i[2:], i[1])),
        )
        rest = PackedBlock((batch, columns, column - depth), (*strides, 1), depth, lambda w, i: zero)
        return [block for block in (whole, rest) if 0 not in block.shape]


DOTS = PRODUCTS.declare(Dots())
