"""The loop program of a contraction: work items, panels of weights, tiles of rows in registers, epilogue, stores.

The numbers are those of `schedule.Blocking`. What sizes of tiles there are is known, which of them a turn has is not:
a condition chooses its loops.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.problem import OutputAxis, Problem, Split
from relaylab.codegen.templates.program_parts import Place, ProgramParts, around, split_place, turn
from relaylab.codegen.templates.schedule import FAR_BYTES, Blocking, packed_columns, tile_count, unroll
from relaylab.loop.expr import Axis, Const, Load, Local, ScalarExpr, Tensor, apply, as_index, guard
from relaylab.loop.program import Body, Define, For, LoopNest, Prefetch, Statement, Store

LINE = 64  # bytes of a cache line
PART_OF_SUM = 128  # terms


@dataclass(frozen=True, slots=True)
class TileSite:
    """Where a tile lies: member of the batch, position on the row axes, number of the tile and of the panel.

    `sizes` are its rows along the last two row axes, `columns` its columns.
    """

    batch: Place
    position: tuple[Place, ...]
    tile: Place
    panel: Place
    sizes: tuple[int, int] = (0, 0)
    columns: int = 0


class TileLoops:
    """The loops of one contraction; `nest` gives them."""

    near = False  # do weights that are asked for come into the first-level cache?

    def __init__(self, problem: Problem, schedule: Blocking, width: int, epilogue: Epilogue, parts: ProgramParts):
        self.problem, self.schedule, self.width, self.epilogue, self.parts = problem, schedule, width, epilogue, parts
        self.panel = schedule.vectors * width
        self.splits = [Split.at_most(axis.extent, n) for axis, n in zip(problem.rows[-2:], schedule.tile)]
        self.panels = -(-problem.columns // self.panel)
        self.tiles = tile_count(problem, schedule.tile)
        self.rows: dict[int, Tensor] = {}  # what holds a row of weights, by its elements
        self.partial: Tensor | None = None
        self.gathered: Tensor | None = None
        if problem.weights.kind == "gathered":
            self.gathered = parts.private("scratch", "panel", problem.depth * self.panel, problem.dtype)

    def nest(self) -> LoopNest:
        """The parallel loop over batch members x blocks of row tiles x blocks of panels."""
        schedule, parts = self.schedule, self.parts
        blocks = [-(-self.tiles // schedule.tiles), -(-self.panels // schedule.panels)]
        order = blocks[::-1] if schedule.panels_outer else blocks
        item = parts.axis("item", self.problem.batch.extent * math.prod(blocks))
        start: list[Statement] = []
        spot = split_place(item, (self.problem.batch.extent, *order))
        batch, first, second = (parts.named(name, x, start) for name, x in zip(("batch", "i", "j"), spot))
        tiles, panels = (second, first) if schedule.panels_outer else (first, second)
        over_tiles = lambda body: parts.blocked("t", tiles, schedule.tiles, self.tiles, body)
        over_panels = lambda body: parts.blocked("p", panels, schedule.panels, self.panels, body)
        if schedule.panels == 1:
            inner = over_panels(lambda p: (*self._gather(batch, p), *over_tiles(lambda t: self._place(batch, t, p))))
        else:
            inner = over_tiles(lambda t: over_panels(lambda p: self._place(batch, t, p)))
        return LoopNest(For(item, "serial", (*start, *inner)))

    # ---- panels that are gathered

    def _gather(self, batch: Place, panel: Place) -> Body:
        """Bring the columns of a panel side by side."""
        if self.gathered is None:
            return ()
        return self._by_columns(panel, lambda columns: self._gathering(batch, panel, columns))

    def _gathering(self, batch: Place, panel: Place, columns: int) -> Body:
        p, parts, panel_buffer = self.problem, self.parts, self.gathered
        assert panel_buffer is not None
        source = parts.buffers["w"]
        start = [(batch, p.batch.w), (panel, self.panel * p.weights.n)]

        def copy(k: Place, c: Axis) -> Store:
            value = Load(source, (parts.place([*start, (k, p.weights.k), (c, p.weights.n)], p.weights.start),))
            return Store(panel_buffer, parts.place([(k, columns), (c, 1)]), parts.simplify(value))

        if p.weights.k != 1 or self.width == 1:
            k, c = parts.axis("k", p.depth), parts.axis("c", columns)
            return (For(k, "serial", (For(c, "vectorized", (copy(k, c),)),)),)
        # Squares of vectors are transposed in registers.
        whole, rest = divmod(p.depth, self.width)
        found: list[Statement] = []
        for first, blocks, size in ((0, whole, self.width), (whole * self.width, 1, rest)):
            if blocks and size:
                b, c, k = parts.axis("kb", blocks), parts.axis("c", columns), parts.axis("k", size)
                square = For(k, "serial", (copy(b * size + k + first, c),))
                found.append(For(b, "serial", (For(c, "vectorized", (square,), self._vectors(columns)),)))
        return tuple(found)

    # ---- tiles

    def _place(self, batch: Place, tile: Place, panel: Place) -> Body:
        """The loops for every size that the tile may have."""
        found: list[Statement] = []
        spot = self._spot(tile, found)
        pieces = spot[-2:]
        starts = [self.parts.start(split, piece) for split, piece in zip(self.splits, pieces)]
        position = tuple(self.parts.named("m", at, found) for at in (*spot[:-2], *starts))

        def tile_of(a: int, b: int, columns: int) -> Body:
            return self._tile(TileSite(batch, position, tile, panel, (a, b), columns))

        columns = lambda a, b: self._by_columns(panel, lambda columns: tile_of(a, b, columns))
        second = lambda a: self._by_size(self.splits[1], pieces[1], lambda b: columns(a, b))
        return (*found, *self._by_size(self.splits[0], pieces[0], second))

    def _spot(self, tile: Place, into: list[Statement]) -> list[Place]:
        """Outer coordinates of a tile, and the numbers of its pieces along the last two row axes."""
        outer = [axis.extent for axis in self.problem.rows[:-2]]
        *outside, high, low = split_place(tile, (*outer, self.splits[0].count, self.splits[1].count))
        return [*outside, *(self.parts.named("piece", piece, into) for piece in (high, low))]

    def _by_size(self, split: Split, piece: Place, body: Callable[[int], Body]) -> Body:
        if not split.larger:
            return body(split.size)
        return self.parts.choose(piece, split.larger, lambda: body(split.size + 1), lambda: body(split.size))

    def _by_columns(self, panel: Place, body: Callable[[int], Body]) -> Body:
        full, rest = divmod(self.problem.columns, self.panel)
        if not full or not rest:
            return body(self.panel if full else rest)
        return self.parts.choose(panel, full, lambda: body(self.panel), lambda: body(rest))

    def _tile(self, site: TileSite) -> Body:
        """One register tile: accumulators from the bias, the reduction, the epilogue and the stores."""
        parts, p = self.parts, self.problem
        acc = parts.private("registers", "acc", math.prod(site.sizes) * self._pitch(site), p.dtype)
        columns, (by, length) = self._pitch(site), self._steps_of(site)
        into = self._partial_sums() if length else acc
        first = lambda a, b, c: (into, self._cell(site, a, b, c), self._bias(site, c))
        start = self._over_tile(site, first, columns, memory=into is not acc)
        reduction = self._in_parts(site, acc, into, by, length) if length else self._reduction(site, acc)
        ahead = (*self._rows_ahead(site), *self._out_ahead(site))
        return (start, *ahead, *reduction, *self._finish(site, into))

    def _out_ahead(self, site: TileSite) -> Body:
        """Ask for the lines that a tile is going to write: they come while its products are done."""
        p, parts = self.problem, self.parts
        out = parts.buffers["out"]
        if p.out_column != 1 or out in parts.scratch:
            return ()
        line = LINE // item_bytes(out.dtype)
        a, b = (parts.axis(name, extent) for name, extent in zip(("r", "q"), site.sizes))
        c = parts.axis("line", -(-site.columns // line))
        spots = [(at, axis.out) for axis, at in self._spots(site, turn(a), turn(b))]
        spots.append((self._column(site, as_index(turn(c)) * line), 1))
        lines = around((Prefetch(out, parts.place(spots, p.out_start)),), (c,), "unrolled")
        return around(lines, (a, b), "serial")  # a loop is less to compile

    def _rows_ahead(self, site: TileSite) -> Body:
        """Ask for a share of the rows of the tile after the next, where rows come from beyond the caches.

        The panels of a tile share its rows out: what the first one would wait for is there when it is due.
        """
        p, parts, size = self.problem, self.parts, item_bytes(self.problem.dtype)
        last, rows = p.rows[-1], self.splits[1].sizes[0]
        side_by_side = len(p.taps) == 1 and p.taps[0].x == 1 and p.depth <= last.x <= 2 * p.depth
        if self.schedule.panels == 1 or not side_by_side or p.row_count * last.x * size <= FAR_BYTES:
            return ()
        share = -(-rows * last.x * size // (LINE * self.panels))
        spots = [(site.batch, p.batch.x), *((at, axis.x) for at, axis in zip(site.position, p.rows))]
        spots.append((site.panel, share * LINE // size))
        starts = (p.x_start + 2 * rows * last.x + line * LINE // size for line in range(share))
        return tuple(Prefetch(parts.buffers["x"], parts.place(spots, start)) for start in starts)

    def _over_tile(
        self,
        site: TileSite,
        element: Callable[[Axis, Axis, Axis], tuple[Tensor, ScalarExpr, ScalarExpr]],
        columns: int = 0,
        kind: str = "unrolled",
        memory: bool = False,
    ) -> Statement:
        """Loops over the elements of a tile (its own columns, or so many), with a store for each.

        In `memory`, where nothing is in registers, the vectors of a row are asked for side by side.
        """
        parts = self.parts
        a, b = (parts.axis(name, extent) for name, extent in zip(("r", "q"), site.sizes))
        c = parts.axis("c", columns or site.columns)
        buffer, where, value = element(a, b, c)
        store = Store(buffer, where, parts.simplify(value))
        loop = For(c, "vectorized", (store,), self._vectors(site.columns) if memory or kind == "serial" else 1)
        (tile,) = around((store if self._pitch(site) == 1 else loop,), (a, b), kind)
        return tile

    def _pitch(self, site: TileSite) -> int:
        """The elements of a row of a tile: packed panels are as wide as whole vectors, and so are their sums."""
        packed = self.problem.weights.kind == "packed"
        return self._vectors(site.columns) * self.width if packed else site.columns

    def _vectors(self, columns: int) -> int:
        return -(-columns // self.width)

    def _cell(self, site: TileSite, a: Axis, b: Axis, c: Axis) -> ScalarExpr:
        """The place of an element in its tile."""
        pitch = self._pitch(site)
        terms = [(turn(a), site.sizes[1] * pitch), (turn(b), pitch), (c, 1)]
        return self.parts.place(terms)

    def _column(self, site: TileSite, c: Place) -> ScalarExpr:
        return self.parts.place([(site.batch, self.problem.channel), (site.panel, self.panel), (c, 1)])

    def _bias(self, site: TileSite, c: Axis) -> ScalarExpr:
        zero = Const(0, self.problem.dtype)
        if self.epilogue.bias is None:
            return zero
        bias = Load(self.parts.buffers[self.epilogue.bias], (self._column(site, c),), self.epilogue.bias_part)
        return bias if self._pitch(site) == site.columns else guard(c < site.columns, bias, zero)

    # ---- the reduction

    def _reduction(self, site: TileSite, acc: Tensor) -> Body:
        """Loops over the taps; the innermost is unrolled, with a rest after it. Long sums are made of parts."""
        if not self.problem.depth:
            return ()
        by, length = self._steps_of(site)
        if not length:
            outer = self._outer_taps()
            return _nested(self._run(site, acc, outer, (0, self.problem.taps[-1].count), by), outer)
        sums = self._partial_sums()
        first, done = self._copied(site, acc, sums), self._copied(site, sums, acc)
        return (first, *self._in_parts(site, acc, sums, by, length), done)

    def _steps_of(self, site: TileSite) -> tuple[int, int]:
        """How many steps of the innermost tap are a turn of its loop, and how many are a part of the sum; 0: all."""
        last = self.problem.taps[-1].count
        by = self.schedule.unroll or unroll(last, math.prod(site.sizes) * self._vectors(site.columns))
        by = min(by, last)
        return by, self._part_of_sum(last, by)

    def _outer_taps(self) -> list[Axis]:
        taps = self.problem.taps
        return [self.parts.axis("k" if len(taps) == 2 else f"k{d}", tap.count) for d, tap in enumerate(taps[:-1])]

    def _over_cells(self, site: TileSite, into: Tensor, value: Callable[[ScalarExpr], ScalarExpr]) -> Statement:
        """A store of the value at each place of a tile."""
        cell = lambda *at: self._cell(site, *at)
        return self._over_tile(site, lambda *at: (into, cell(*at), value(cell(*at))), self._pitch(site))

    def _copied(self, site: TileSite, tile: Tensor, into: Tensor) -> Statement:
        return self._over_cells(site, into, lambda cell: Load(tile, (cell,)))

    def _in_parts(self, site: TileSite, acc: Tensor, sums: Tensor, by: int, length: int) -> Body:
        """The reduction in parts of so many steps, each in `acc` and then added to the sums of a tile."""
        last, outer = self.problem.taps[-1].count, self._outer_taps()
        part = self.parts.axis("part", last // length)

        def partial(start: Place, count: int) -> Body:
            zero = self._over_cells(site, acc, lambda _: Const(0, acc.dtype))
            added = self._over_cells(site, sums, lambda c: Load(sums, (c,)) + Load(acc, (c,)))
            return (zero, *self._run(site, acc, outer, (start, count), by), added)

        body = around(partial(as_index(turn(part)) * length, length), (part,), "serial")
        if rest := last % length:
            body = (*body, *partial(last - rest, rest))
        return _nested(body, outer)

    def _part_of_sum(self, last: int, by: int) -> int:
        """The turns of the innermost tap after which a sum is added to that of the parts before; 0 without parts."""
        # Rounding grows with the terms that a sum passes through: parts of c of n terms divide it by sqrt(n / c).
        if self.problem.dtype != "float32" or self.problem.depth < 2 * PART_OF_SUM or last < PART_OF_SUM // 2:
            return 0
        return -(-last // (max(1, round(last / PART_OF_SUM)) * by)) * by

    def _partial_sums(self) -> Tensor:
        """Where the sum of the parts of a tile is."""
        if self.partial is None:
            rows = math.prod(split.sizes[0] for split in self.splits)
            self.partial = self.parts.private("scratch", "sum", rows * self.panel, self.problem.dtype)
        return self.partial

    def _run(self, site: TileSite, acc: Tensor, outer: Sequence[Axis], turns: tuple[Place, int], by: int) -> Body:
        """So many turns of the innermost tap from a first one on, `by` of them in a turn of the loop."""
        first, count = as_index(turns[0]), turns[1]
        blocks, rest = divmod(count, by)
        block = self.parts.axis("k", blocks)
        body = self._steps(site, acc, [*outer, first + as_index(turn(block)) * by], by) if blocks else ()
        inner = around(body, (block,), "serial")
        return (*inner, *self._steps(site, acc, [*outer, first + blocks * by], rest)) if rest else inner

    def _steps(self, site: TileSite, acc: Tensor, at: Sequence[Place], turns: int) -> Body:
        """Some steps of the reduction from `at` on, written out."""
        parts, taps = self.parts, self.problem.taps
        k = parts.axis("u", turns)
        here = [*at[:-1], as_index(at[-1]) + turn(k)]
        number: ScalarExpr = as_index(0)
        for tap, index in zip(taps, here):
            number = number * tap.count + index

        pitch = self._pitch(site)
        if pitch not in self.rows:
            self.rows[pitch] = parts.private("registers", "b", pitch, acc.dtype)
        row = self.rows[pitch]
        fill, c = parts.axis("c", pitch), parts.axis("c", pitch)
        first = For(fill, "vectorized", (Store(row, fill, parts.simplify(self._weight(site, number, fill))),))
        a, b = (parts.axis(name, extent) for name, extent in zip(("r", "q"), site.sizes))
        x = Local(parts.name("x"), acc.dtype)
        cell, place = self._cell(site, a, b, c), parts.simplify(c)
        total, w = Load(acc, (cell,)), Load(row, (place,))
        value = parts.simplify(apply("dot4", total, x, w) if self.problem.word > 1 else total + x * w)
        products = For(c, "vectorized", (Store(acc, cell, value),))
        scalar = self._x(site, turn(a), turn(b), here)
        rows = around((Define(x, scalar), products), (a, b), "unrolled")
        body = (first, *rows)
        return (*around(body, (k,), "unrolled"), *self._prefetch(site, at, turns))

    def _x(self, site: TileSite, a: Place, b: Place, taps: Sequence[Place]) -> ScalarExpr:
        """The element of the input for a row of a tile."""
        p, parts = self.problem, self.parts
        inner, last = p.rows[-2:]
        terms: list[tuple[Place, int]] = [(site.batch, p.batch.x)]
        terms += [(at, axis.x) for at, axis in zip(site.position, p.rows)]
        terms += [(at, tap.x) for at, tap in zip(taps, p.taps)]
        terms += [(a, inner.x), (b, last.x)]
        return parts.simplify(Load(parts.buffers["x"], (parts.place(terms, p.x_start),)))

    def _weight(self, site: TileSite, k: ScalarExpr, c: Axis) -> ScalarExpr:
        p, parts = self.problem, self.parts
        match p.weights.kind:
            case "gathered":
                assert self.gathered is not None
                return Load(self.gathered, (parts.place([(k, site.columns), (c, 1)]),))
            case "packed":  # a narrow last panel is stored narrow, in whole vectors
                step = self._pitch(site)
                start = self._panel_start(site)
            case _:
                step = p.weights.k
                start = [(site.batch, p.batch.w), (site.panel, self.panel * p.weights.n)]
        return Load(parts.buffers["w"], (parts.place([*start, (k, step), (c, 1)], p.weights.start),))

    def _panel_start(self, site: TileSite) -> list[tuple[Place, int]]:
        p = self.problem
        member = p.depth * packed_columns(p, self.schedule, self.width)
        return [(site.batch, member), (site.panel, p.depth * self.panel)]

    def _prefetch(self, site: TileSite, at: Sequence[Place], turns: int) -> Body:
        """What is asked for while some steps are done."""
        start, first, step = self._ahead(site)
        size = item_bytes(self.problem.dtype)
        number: ScalarExpr = as_index(0)
        for tap, index in zip(self.problem.taps, at):
            number = number * tap.count + index
        # Every line exactly once over all tiles: fewer lose most of the gain, more cost loads (49 x 512 x 4608:
        # 65 to 87 % of peak).
        terms = [*start, (number, step)]
        lines = range(-(-step * size * turns // LINE))
        spots = (self.parts.place(terms, first + line * LINE // size) for line in lines)
        return tuple(Prefetch(self.parts.buffers["w"], spot, self.near) for spot in spots)

    def _ahead(self, site: TileSite) -> tuple[list[tuple[Place, int]], int, int]:
        """The share of the next panel that a tile asks for: where it begins, and the elements for each step."""
        p = self.problem
        if not self.schedule.prefetch or p.weights.kind != "packed":
            return [], 0, 0
        tiles = self.tiles if self.schedule.panels_outer else min(self.schedule.tiles, self.tiles)
        share = -(-p.depth * self.panel // tiles)
        start = [*self._panel_start(site), (as_index(site.tile) % tiles, share)]
        # Rounded up: what is left out is waited for (49 x 768 x 3072 with AVX2: 76 to 93 % of peak).
        return start, p.weights.start + p.depth * self.panel, -(-share // p.depth)

    # ---- the epilogue

    def _finish(self, site: TileSite, acc: Tensor) -> Body:
        """Send a finished tile through the epilogue and store it."""
        parts = self.parts
        memory = acc in parts.scratch
        if not self.epilogue.rolled:
            return (self._over_tile(site, lambda a, b, c: self._result(site, a, b, c, acc), memory=memory),)
        # 28 copies of an exponential or an error function are larger than the loop around them.
        tile = acc if memory else parts.private("scratch", "tile", acc.shape[0], acc.dtype)

        def copy(a: Axis, b: Axis, c: Axis) -> tuple[Tensor, ScalarExpr, ScalarExpr]:
            cell = self._cell(site, a, b, c)
            return tile, cell, Load(acc, (cell,))

        rolled = self._over_tile(site, lambda a, b, c: self._result(site, a, b, c, tile), 0, "serial")
        return (rolled,) if memory else (self._over_tile(site, copy), rolled)

    def _result(self, site: TileSite, a: Axis, b: Axis, c: Axis, tile: Tensor) -> tuple[Tensor, ScalarExpr, ScalarExpr]:
        """Where an element of a tile goes, and what it becomes."""
        p, parts = self.problem, self.parts
        spots = self._spots(site, turn(a), turn(b))
        column = self._column(site, c)
        where = parts.place([*((at, axis.out) for axis, at in spots), (column, p.out_column)], p.out_start)
        value: ScalarExpr = Load(tile, (self._cell(site, a, b, c),))
        if self.epilogue.value is not None:
            groups = [(axis.covers, parts.place([(at, axis.scale)], axis.shift)) for axis, at in spots if axis.covers]
            value = parts.finished(self.epilogue, value, [*groups, ((p.channels or p.columns,), column)])
        return parts.buffers["out"], where, value

    def _spots(self, site: TileSite, a: Place, b: Place) -> list[tuple[OutputAxis, Place]]:
        """Where a row of a tile is on the axes of the output."""
        *outer, high, low = site.position
        rows = (*outer, as_index(high) + a, as_index(low) + b)
        return list(zip((self.problem.batch, *self.problem.rows), (site.batch, *rows)))


def _nested(body: Body, axes: Sequence[Axis]) -> Body:
    """Loops around a body."""
    for axis in reversed(axes):
        body = (For(axis, "serial", body),)
    return body
