"""Contractions with very few columns: lanes run along the reduction, and every result is the sum over its lanes.

With three output channels a vector of columns would be mostly empty. Here the input and the weights are both read
along the innermost tap axis, where they are contiguous, and a tile of rows x columns of whole vectors is accumulated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.text import Index, Value, constant, llvm_type, vector
from relaylab.codegen.templates.byte_products import interleaved
from relaylab.codegen.templates.nest import TileNest, TilePlace, start_text
from relaylab.codegen.templates.output_site import load_lanes
from relaylab.codegen.templates.pack import pack_panels
from relaylab.codegen.templates.problem import Problem
from relaylab.codegen.templates.schedule import Blocking, packed_size, schedule_contraction, tile_count

FEW_COLUMNS = 4
TILES_PER_ITEM = 4


def few_columns(problem: Problem, target: CpuTarget) -> bool:
    """Are results better summed over lanes than spread over them?"""
    inner, lanes = problem.taps[-1], target.lanes(problem.dtype)
    return (
        problem.weights.kind == "packed"
        and not problem.choices
        and problem.dtype.startswith("float")
        and inner.x == 1
        and problem.columns <= min(FEW_COLUMNS, lanes)
        and inner.count >= lanes
    )  # a row is one vector of results


def dots_schedule(problem: Problem, target: CpuTarget) -> Blocking:
    """Tiles of as many rows times all columns as registers hold; rows lie along the last row axis."""
    # Beside the sums: the weights of every column, the values of a row, and two to spare.
    accumulators = min(24, target.registers - problem.columns - 3)
    tile = (1, min(problem.rows[-1].extent, max(1, accumulators // problem.columns)))
    return Blocking(1, tile, max(1, min(TILES_PER_ITEM, tile_count(problem, tile) // 16)), 1, False)


def padded_depth(problem: Problem, width: int) -> int:
    """Packed elements of one column: the innermost taps as whole vectors."""
    inner = -(-problem.taps[-1].count // width) * width
    return math.prod(tap.count for tap in problem.taps[:-1]) * inner


class DotTileNest(TileNest):
    """The loops of a contraction whose tiles are rows x columns of sums over lanes."""

    def _tile(
        self,
        batch: Index,
        position: Sequence[Index],
        sizes: tuple[int, int],
        panel: Index,
        tile: Index,
        vectors: int,
        active: int,
    ) -> None:
        f, p = self.f, self.problem
        start = f.add(f.mul(batch, p.batch.x), f.dot(position, [axis.x for axis in p.rows], p.x_start))
        x = f.offset(self.pointers.x, f.mul(start, self.size))
        member = f.add(f.mul(batch, padded_depth(p, self.width) * p.columns), p.weights.start)
        w = f.offset(self.pointers.w, f.mul(member, self.size))
        zero = constant(vector(llvm_type(p.dtype), self.width), 0)
        acc = self._reduce(0, (x, w), (zero,) * (sizes[1] * p.columns), sizes[1])[1]
        column = f.mul(batch, p.channel)
        rows = [self._row(acc[row * p.columns : (row + 1) * p.columns], column) for row in range(sizes[1])]
        self.finish(TilePlace(batch, position, [(0, row) for row in range(sizes[1])], column, 1, p.columns), rows)

    def reduction(self, rows: int) -> list[str]:
        """The lines of a tile: lanes run along the reduction, and are added at the end."""
        p = self.problem
        steps = " x ".join(str(tap.count) for tap in p.taps)
        return [
            f"sums[{rows}, {p.columns}] = 0  # registers: {rows} rows x {p.columns} columns of {self.width} lanes",
            f"for k in {steps} by {self.width}: sums[r, c] += x[row r, k..] * w[c, k..]  # lanes along k, w packed",
            f"acc[r, c] = lanes of sums[r, c] together + {start_text(self.epilogue)}",
        ]

    def _row(self, sums: Sequence[Value], column: Index) -> Value:
        """The results of one row as a vector of columns, on top of the bias."""
        f = self.f
        result = constant(sums[0].type, 0)
        for lane, value in enumerate(sums):
            # -0.0 is the identity of addition: +0.0 would turn a sum of -0.0 into +0.0.
            result = f.insert(result, f.reduce("fadd", value, -0.0), lane)
        if self.epilogue.bias is None:
            return result
        f.at(self.epilogue.bias_part)
        pointer = f.offset(self.pointers.side[self.epilogue.bias], f.mul(column, self.size))
        type = llvm_type(self.problem.dtype)
        result = f.binary("fadd", result, load_lanes(f, type, pointer, self.width, len(sums), self.size, self.size))
        f.at(0)
        return result

    def _reduce(
        self, level: int, at: tuple[Value, Value], acc: Sequence[Value], rows: int
    ) -> tuple[Value, Sequence[Value]]:
        """Sum over the taps from `level` on; (the weight pointer afterwards, accumulators)."""
        f, tap = self.f, self.problem.taps[level]
        if level == len(self.problem.taps) - 1:
            return self._innermost(at, acc, rows)

        def body(_: Index, x: Value, w: Value, *sums: Value) -> tuple[Value, ...]:
            after, results = self._reduce(level + 1, (x, w), sums, rows)
            return (f.offset(x, tap.x * self.size), after, *results)

        out = f.loop(0, tap.count, body, (*at, *acc))
        return out[1], out[2:]

    def _innermost(self, at: tuple[Value, Value], acc: Sequence[Value], rows: int) -> tuple[Value, Sequence[Value]]:
        f, step = self.f, self.width * self.size
        whole, rest = divmod(self.problem.taps[-1].count, self.width)

        def turn(x: Value, w: Value, sums: Sequence[Value], active: int) -> tuple[Value, ...]:
            return (f.offset(x, step), f.offset(w, step), *self._products(x, w, sums, rows, active))

        out = f.loop(0, whole, lambda _, x, w, *sums: turn(x, w, sums, self.width), (*at, *acc))
        if rest:
            out = turn(out[0], out[1], out[2:], rest)
        return f.offset(at[1], (whole + bool(rest)) * step), out[2:]

    def _products(self, x: Value, w: Value, sums: Sequence[Value], rows: int, active: int) -> list[Value]:
        f, p, type = self.f, self.problem, llvm_type(self.problem.dtype)
        column = padded_depth(p, self.width) * self.size
        load = lambda pointer, real: load_lanes(f, type, pointer, self.width, real, self.size, self.size)
        weights = [load(f.offset(w, c * column), self.width) for c in range(p.columns)]
        results = []
        for row in range(rows):
            values = load(f.offset(x, row * p.rows[-1].x * self.size), active)
            results.extend(f.fma(values, weight, sums[row * p.columns + c]) for c, weight in enumerate(weights))
        return results


def pack_weights(problem: Problem, target: CpuTarget, matrix: np.ndarray) -> np.ndarray:
    """The constant right side [batch, K, N] as the kernel of this problem reads it, flat."""
    width = target.lanes(problem.dtype)
    if problem.word > 1:
        matrix = interleaved(matrix)
    if not few_columns(problem, target):
        return pack_panels(matrix, schedule_contraction(problem, target).vectors * width, width)
    batch, depth, columns = matrix.shape
    inner = problem.taps[-1].count
    packed = np.zeros((batch, columns, depth // inner, -(-inner // width) * width), matrix.dtype)
    packed[..., :inner] = matrix.transpose(0, 2, 1).reshape(batch, columns, depth // inner, inner)
    return packed.reshape(-1)


def weights_size(problem: Problem, target: CpuTarget) -> int:
    """Elements of what `pack_weights` gives."""
    if few_columns(problem, target):
        return problem.batch.extent * problem.columns * padded_depth(problem, target.lanes(problem.dtype))
    return packed_size(problem, target)
