"""Where the elements of a tile are: in registers, in memory while they are summed, in the output.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.problem import OutputAxis, Problem, Split, whole_vectors
from relaylab.codegen.templates.program_parts import Place, ProgramParts, around
from relaylab.codegen.templates.schedule import Blocking, tile_count
from relaylab.loop.expr import Axis, Const, ScalarExpr, Tensor, as_index, guard
from relaylab.loop.program import Body, For, Statement, Store

PART_OF_SUM = 128  # terms

Element = Callable[[Axis, Axis, Place], tuple[Tensor, ScalarExpr, ScalarExpr]]
"""Where an element of a tile goes (row axes, column), and its value."""


@dataclass(frozen=True, slots=True)
class TileSite:
    """Where a tile lies: member of the batch, position on the row axes, number of the tile and of the panel.

    `sizes` are its rows along the last two row axes, `columns` its columns. Where tiles of several sizes are meant,
    `sizes` are the largest and `stops` what a turn has of them.
    """

    batch: Place
    position: tuple[Place, ...]
    tile: Place
    panel: Place
    sizes: tuple[int, int] = (0, 0)
    columns: int = 0
    stops: tuple[ScalarExpr | None, ScalarExpr | None] = (None, None)


class TileCells:
    """The tiles of one contraction: their sizes, where their elements lie, and loops over these."""

    def __init__(self, problem: Problem, schedule: Blocking, width: int, epilogue: Epilogue, parts: ProgramParts):
        self.problem, self.schedule, self.width, self.epilogue, self.parts = problem, schedule, width, epilogue, parts
        self.panel = schedule.vectors * width
        self.splits = [Split.at_most(axis.extent, n) for axis, n in zip(problem.rows[-2:], schedule.tile)]
        self.panels = -(-problem.columns // self.panel)
        self.tiles = tile_count(problem, schedule.tile)
        self.rows: dict[int, Tensor] = {}  # what holds a row of weights, by its elements
        self.accumulators: dict[int, Tensor] = {}  # what holds the sums of a tile, by their number
        self.held: Tensor | None = None
        self.in_memory = self._sums_in_memory()
        self.columns_apart = problem.out_column != 1 == problem.rows[-1].out and self.splits[1].size > 1
        self.gathered: Tensor | None = None
        if self._gathers():
            self.gathered = parts.private("scratch", "panel", problem.depth * self.panel, problem.dtype)

    def _gathers(self) -> bool:
        """Is the right side brought into scratch, panel by panel?"""
        return self.problem.weights.kind == "gathered"

    def _sums_in_memory(self) -> bool:
        """Are products of a tile added in parts, of which the sums are in memory?"""
        # Rounding grows with the terms that a sum passes through: parts of c of n terms divide it by sqrt(n / c).
        p = self.problem
        return p.dtype == "float32" and p.depth >= 2 * PART_OF_SUM and p.taps[-1].count >= PART_OF_SUM // 2

    def _registers(self, site: TileSite) -> Tensor:
        """Registers for the sums of a tile."""
        count = math.prod(site.sizes) * self._pitch(site)
        if count not in self.accumulators:
            self.accumulators[count] = self.parts.private("registers", "acc", count, self.problem.dtype)
        return self.accumulators[count]

    def _sums(self) -> Tensor:
        """Where the sums of a tile are that is in memory."""
        if self.held is None:
            rows = math.prod(split.sizes[0] for split in self.splits)
            self.held = self.parts.private("scratch", "sum", rows * self.panel, self.problem.dtype)
        return self.held

    def _over_tile(self, site: TileSite, element: Element, kind: str = "unrolled", columns: int = 0) -> Statement:
        """Loops over the elements of a tile (its own columns, or so many), with a store for each.

        In a loop, where nothing is in registers, the vectors of a row are asked for side by side.
        """
        parts = self.parts
        a, b = (parts.axis(name, extent) for name, extent in zip(("r", "q"), site.sizes))
        c = parts.axis("c", columns or site.columns)
        buffer, where, value = element(a, b, c)
        store = Store(buffer, where, parts.simplify(value))
        loop = For(c, "vectorized", (store,), self._vectors(site.columns) if kind == "serial" else 1)
        (tile,) = around((store if self._pitch(site) == 1 else loop,), (a, b), kind, site.stops)
        return tile

    def _by_squares(self, site: TileSite, element: Element) -> Body:
        """Loops over the elements of a tile in memory whose rows are stored side by side: rows are the lanes."""
        # Stores of single elements reach a cache line of every column for each row, and these evict each other.
        parts, found = self.parts, list[Statement]()
        whole, rest = divmod(site.columns, self.width)
        for first, squares, size in ((0, whole, self.width), (whole * self.width, 1, rest)):
            if squares and size:
                a, b = (parts.axis(name, extent) for name, extent in zip(("r", "q"), site.sizes))
                s, c = parts.axis("s", squares), parts.axis("c", size)
                buffer, where, value = element(a, b, parts.place([(s, self.width), (c, 1)], first))
                column = around((Store(buffer, where, parts.simplify(value)),), (c,), "serial")
                found += around((For(b, "vectorized", column),), (a, s), "serial")
        return tuple(found)

    def _over_cells(self, site: TileSite, element: Element, kind: str = "unrolled") -> Statement:
        """Loops over the elements of a tile and what makes its rows whole vectors, with a store for each."""
        return self._over_tile(site, element, kind, self._pitch(site))

    def _pitch(self, site: TileSite) -> int:
        """The elements of a row of a tile: packed panels are as wide as whole vectors, and so are their sums."""
        packed = self.problem.weights.kind == "packed"
        return whole_vectors(site.columns, self.width) if packed else site.columns

    def _vectors(self, columns: int) -> int:
        return -(-columns // self.width)

    def _cell(self, site: TileSite, a: Axis, b: Axis, c: Place) -> ScalarExpr:
        """The place of an element in its tile."""
        pitch = self._pitch(site)
        terms = [(a, site.sizes[1] * pitch), (b, pitch), (c, 1)]
        return self.parts.place(terms)

    def _held(self, site: TileSite, a: Axis, b: Axis, c: Place) -> ScalarExpr:
        """The place of a sum in memory, for tiles of all sizes."""
        return self._cell(replace(site, sizes=tuple(split.sizes[0] for split in self.splits)), a, b, c)

    def _column(self, site: TileSite, c: Place) -> ScalarExpr:
        return self.parts.place([(site.batch, self.problem.channel), (site.panel, self.panel), (c, 1)])

    def _bias(self, site: TileSite, c: Place) -> ScalarExpr:
        bias = self.parts.begin(self.epilogue, self._column(site, c), self.problem.dtype)
        if isinstance(bias, Const) or self._pitch(site) == site.columns:
            return bias
        return guard(as_index(c) < site.columns, bias, Const(0, self.problem.dtype))

    def _spots(self, site: TileSite, a: Place, b: Place) -> list[tuple[OutputAxis, Place]]:
        """Where a row of a tile is on the axes of the output."""
        *outer, high, low = site.position
        rows = (*outer, as_index(high) + a, as_index(low) + b)
        return list(zip((self.problem.batch, *self.problem.rows), (site.batch, *rows)))
