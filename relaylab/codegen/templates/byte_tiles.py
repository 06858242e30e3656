"""Products of bytes by tiles of bytes, where a machine has them (AMX): ordinary loops around a `matrix` one.

A tile of the contraction is up to 32 rows x 2 vectors of columns, or 16 x 4: its sums are in memory before and after
all its steps, and in the machine's tiles meanwhile. Weights lie as they do for registers.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from functools import lru_cache

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.codegen.loops.matrix_tiles import SUM_TILES, TILE_ROWS, TILE_WORDS, X_TILES, row_tiles
from relaylab.codegen.templates.byte_products import WORD
from relaylab.codegen.templates.problem import Problem, Split
from relaylab.codegen.templates.product_family import PRODUCTS
from relaylab.codegen.templates.schedule import (
    L1_PANEL,
    SUPPLY_CYCLES,
    Blocking,
    loop_order,
    order_reason,
    overlapped,
    panel_vectors,
    size_of,
)
from relaylab.codegen.templates.tile_cells import TileSite
from relaylab.codegen.templates.tile_loops import TileLoops, Tiles
from relaylab.loop.expr import Load, apply, as_index
from relaylab.loop.program import Body, For, Store

LEAST_WORDS = 8  # of a step: a row of a tile that is emptier wastes more than half of it
# In the cost model's cycles, of which a machine that has tiles does two products of vectors in one. Nobody measured
# them: they follow from the manual's 16 cycles an instruction, of which others hide the loads of tiles.
PRODUCT_CYCLES = 32.0
LOAD_CYCLES = 16.0
TILE_CYCLES = 120.0  # to set tiles up and give them back
RESULT_CYCLES = 4.0  # for a vector of sums that begins, comes, goes, and is stored


def words_of_step(count: int) -> int:
    """Words of the innermost tap that are a row of a tile: as many as leave no rest."""
    return max((n for n in range(1, min(count, TILE_WORDS) + 1) if count % n == 0), default=0)


class ByteTileLoops(TileLoops):
    """The loops of a contraction whose tiles are done by tiles of bytes."""

    def _sums_in_memory(self) -> bool:
        return True

    def _in_parts(self, site: TileSite) -> Body:
        """All steps of a tile as one product."""
        p, parts, sums = self.problem, self.parts, self._sums()
        count = p.taps[-1].count
        words = words_of_step(count)
        row, column = parts.axis("r", site.sizes[1]), parts.axis("c", self._pitch(site))
        outer, block, word = self._outer_taps(), parts.axis("k", count // words), parts.axis("u", words)
        here = [*outer, as_index(block) * words + word]
        cell = parts.place([(row, self._pitch(site)), (column, 1)])
        weight = self._weight(site, parts.number(here, [tap.count for tap in p.taps]), column)
        value = apply("dot4", Load(sums, (cell,)), self._x(site, 0, row, here), parts.simplify(weight))
        body: Body = (Store(sums, cell, value),)
        for axis in reversed([*outer, block, word]):
            body = (For(axis, "serial", body),)
        return (For(row, "matrix", (For(column, "serial", body),)),)


class ByteTiles(Tiles):
    """Tiles of rows x columns of bytes."""

    name = "tiles"
    title = "tiles of bytes"
    choices = frozenset[str]()
    loops = ByteTileLoops

    def declines(self, spec: Problem, target: CpuTarget) -> str:
        if not target.byte_tiles:
            return "the target has no tiles of bytes"
        if spec.word != WORD or spec.weights.kind != "packed" or not spec.weights.constant:
            return "anything but bytes by constant weights"
        if words_of_step(spec.taps[-1].count) < LEAST_WORDS:
            return f"a reduction that is not in steps of {LEAST_WORDS} to {TILE_WORDS} words"
        return ""

    def plan(self, problem: Problem, target: CpuTarget) -> Blocking:
        _, (vectors, rows) = _best(problem)
        return loop_order(problem, target, vectors, (1, rows))

    def cycles(self, spec: Problem, target: CpuTarget) -> float:
        weights = spec.batch.extent * spec.depth * spec.columns * item_bytes(spec.dtype)
        return overlapped(spec.batch.extent * _best(spec)[0], weights, target)

    def reasons(self, spec: Problem, target: CpuTarget) -> list[str]:
        plan, words = self.plan(spec, target), words_of_step(spec.taps[-1].count)
        shape = f"{plan.tile[1]} rows x {plan.vectors} vectors, {words} words a step"
        return [size_of(spec), f"tiles of bytes hold the sums of {shape}", order_reason(plan)]


@lru_cache(maxsize=1024)
def _best(problem: Problem) -> tuple[float, tuple[int, int]]:
    """The shape of tiles that is estimated to take the fewest cycles, and these."""
    return min((_shape_cycles(problem, *shape), shape) for shape in _shapes(problem))


def _shapes(problem: Problem) -> list[tuple[int, int]]:
    """Vectors and the most rows of the tiles that are considered."""
    most, extent = -(-problem.columns // TILE_WORDS), problem.rows[-1].extent
    by = {vectors: min(X_TILES, SUM_TILES // vectors) * TILE_ROWS for vectors in range(1, min(most, SUM_TILES) + 1)}
    return [(vectors, min(rows, extent)) for vectors, rows in by.items()]


def _shape_cycles(problem: Problem, vectors: int, rows: int) -> float:
    """Estimated cycles of one member of the batch by tiles of a shape."""
    words, total = words_of_step(problem.taps[-1].count), 0.0
    split, outer = Split.at_most(problem.rows[-1].extent, rows), math.prod(axis.extent for axis in problem.rows[:-1])
    for size, times in split.pieces:
        tiles = len(row_tiles(size))
        for wide, often in panel_vectors(problem.columns, TILE_WORDS, vectors).items():
            panel = problem.depth * wide * TILE_WORDS * item_bytes(problem.dtype)
            supply = wide * words * SUPPLY_CYCLES if outer * split.count == 1 or panel > L1_PANEL else 0.0
            step = max(tiles * wide * PRODUCT_CYCLES, (tiles + wide) * LOAD_CYCLES, supply)
            each = problem.depth // words * step + TILE_CYCLES + RESULT_CYCLES * size * wide
            total += times * often * each
    return total * outer


BYTE_TILES = PRODUCTS.declare(ByteTiles())
