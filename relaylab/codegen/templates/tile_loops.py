"""The loop program of a contraction: work items, panels of weights, tiles of rows in registers, epilogue, stores.

The numbers are those of `schedule.Blocking`. What sizes of tiles there are is known, which of them a turn has is not:
a condition chooses its loops.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView, item_bytes
from relaylab.codegen.templates.byte_products import WORD, interleaved, word_of
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import PackedBlock, Packing, WeightMatrix, pack_panels, panel_blocks
from relaylab.codegen.templates.problem import Problem, whole_vectors
from relaylab.codegen.templates.product_family import PRODUCTS, ProductFamily
from relaylab.codegen.templates.program_parts import Place, ProgramParts, around, split_place
from relaylab.codegen.templates.schedule import (
    CHOICES,
    FAR_BYTES,
    Blocking,
    estimate,
    packed_size,
    plan_reasons,
    schedule_contraction,
    unroll,
)
from relaylab.codegen.templates.tile_cells import PART_OF_SUM, TileCells, TileSite
from relaylab.loop.expr import Axis, Const, Load, Local, ScalarExpr, Tensor, apply, as_index, cast
from relaylab.loop.program import Body, Define, For, IfThenElse, LoopNest, Prefetch, Statement, Store

LINE = 64  # bytes of a cache line


class TileLoops(TileCells):
    """The loops of one contraction; `nest` gives them."""

    near = False  # do weights that are asked for come into the first-level cache?

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
            return Store(panel_buffer, parts.place([(k, columns), (c, 1)]), parts.simplify(cast(value, p.dtype)))

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
        site = TileSite(batch, position, tile, panel)
        if self.in_memory and not self.columns_apart:
            found += self._by_columns(panel, lambda columns: self._of_any_size(replace(site, columns=columns), pieces))
        else:
            of = lambda sizes: self._by_columns(
                panel, lambda columns: self._tile(replace(site, sizes=sizes, columns=columns))
            )
            found += self._by_sizes(pieces, of)
        return tuple(found)

    def _spot(self, tile: Place, into: list[Statement]) -> list[Place]:
        """Outer coordinates of a tile, and the numbers of its pieces along the last two row axes."""
        outer = [axis.extent for axis in self.problem.rows[:-2]]
        *outside, high, low = split_place(tile, (*outer, self.splits[0].count, self.splits[1].count))
        return [*outside, *(self.parts.named("piece", piece, into) for piece in (high, low))]

    def _by_sizes(self, pieces: Sequence[Place], body: Callable[[tuple[int, int]], Body]) -> Body:
        """The loops for every size that a tile may have along the last two row axes."""

        def of(axis: int, body: Callable[[int], Body]) -> Body:
            split = self.splits[axis]
            if not split.larger:
                return body(split.size)
            return self.parts.choose(pieces[axis], split.larger, lambda: body(split.size + 1), lambda: body(split.size))

        return of(0, lambda a: of(1, lambda b: body((a, b))))

    def _by_columns(self, panel: Place, body: Callable[[int], Body]) -> Body:
        full, rest = divmod(self.problem.columns, self.panel)
        if not full or not rest:
            return body(self.panel if full else rest)
        return self.parts.choose(panel, full, lambda: body(self.panel), lambda: body(rest))

    def _tile(self, site: TileSite) -> Body:
        """One tile of rows x columns."""
        if self.in_memory:
            return self._around_sums(site, self._in_parts(site))
        acc = self._registers(site)
        start = self._over_cells(site, lambda a, b, c: (acc, self._cell(site, a, b, c), self._bias(site, c)))
        return (start, *self._ahead_of(site), *self._reduction(site, acc), *self._finish(site, acc))

    def _of_any_size(self, site: TileSite, pieces: Sequence[Place]) -> Body:
        """A tile whose sums are in memory: only its products depend on its size, all else are loops."""
        found: list[Statement] = []
        named = lambda name, stop: None if stop is None else as_index(self.parts.named(name, stop, found))
        stops = [named("rows", self.parts.stop(split, piece)) for split, piece in zip(self.splits, pieces)]
        first, last = (split.sizes[0] for split in self.splits)
        site = replace(site, sizes=(first, last), stops=(stops[0], stops[1]))
        of = lambda sizes: self._in_parts(replace(site, sizes=sizes, stops=(None, None)))
        return (*found, *self._around_sums(site, self._by_sizes(pieces, of)))

    def _around_sums(self, site: TileSite, products: Body) -> Body:
        """Sums in memory begin with the bias, and go through the epilogue."""
        sums = self._sums()
        start = self._over_cells(site, lambda a, b, c: (sums, self._held(site, a, b, c), self._bias(site, c)), "serial")
        return (start, *self._ahead_of(site), *products, *self._finish(site, sums))

    def _ahead_of(self, site: TileSite) -> Body:
        return (*self._rows_ahead(site), *self._out_ahead(site))

    def _out_ahead(self, site: TileSite) -> Body:
        """Ask for the lines that a tile is going to write: they come while its products are done."""
        p, parts = self.problem, self.parts
        out = parts.buffers["out"]
        if p.out_column != 1 or out in parts.scratch:
            return ()
        line = LINE // item_bytes(out.dtype)
        a, b = (parts.axis(name, extent) for name, extent in zip(("r", "q"), site.sizes))
        c = parts.axis("line", -(-site.columns // line))
        spots = [(at, axis.out) for axis, at in self._spots(site, a, b)]
        spots.append((self._column(site, c * line), 1))
        lines = around((Prefetch(out, parts.place(spots, p.out_start)),), (c,), "unrolled")
        return around(lines, (a, b), "serial", site.stops)  # a loop is less to compile

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

    # ---- the reduction

    def _reduction(self, site: TileSite, acc: Tensor) -> Body:
        """Loops over the taps; the innermost is unrolled, with a rest after it."""
        if not self.problem.depth:
            return ()
        outer, last = self._outer_taps(), self.problem.taps[-1].count
        return self._over_taps(site, outer, self._run(site, acc, outer, (0, last), self._unroll(site, last)))

    def _unroll(self, site: TileSite, count: int) -> int:
        """How many of so many steps are a turn of their loop; one of about this size that leaves no rest is taken."""
        own = self.schedule.unroll
        most = min(own or unroll(count, math.prod(site.sizes) * self._vectors(site.columns)), count)
        even = max(by for by in range(1, most + (0 if own else most // 3) + 1) if count % by == 0)
        return even if 2 * even > most else most

    def _outer_taps(self) -> list[Axis]:
        taps = self.problem.taps
        return [self.parts.axis("k" if len(taps) == 2 else f"k{d}", tap.count) for d, tap in enumerate(taps[:-1])]

    def _over_taps(self, site: TileSite, outer: Sequence[Axis], body: Body) -> Body:
        """The loops over all taps but the innermost, without those of which a tile reads the border only."""
        rows = (*(1 for _ in site.position[:-2]), *site.sizes)
        for axis, tap in reversed([*zip(outer, self.problem.taps)]):
            if (border := tap.border) is not None:
                spot = [(site.position[border.axis], border.step), (axis, border.apart)]
                last = self.parts.place(spot, (rows[border.axis] - 1) * border.step - border.before)
                first = self.parts.place(spot, -border.before)
                body = (IfThenElse((last >= 0) & (first < border.lines), body),)
            body = around(body, (axis,), "serial")
        return body

    def _in_parts(self, site: TileSite) -> Body:
        """The products of a tile in parts, each in registers and then added to the sums in memory."""
        acc, sums, outer = self._registers(site), self._sums(), self._outer_taps()
        last = self.problem.taps[-1].count
        length = -(-last // max(1, round(last / PART_OF_SUM)))
        by = self._unroll(site, length)
        length = -(-length // by) * by
        part = self.parts.axis("part", last // length)

        def partial(start: Place, count: int) -> Body:
            zero = self._over_cells(site, lambda *at: (acc, self._cell(site, *at), Const(0, acc.dtype)))
            added = lambda *at: Load(sums, (self._held(site, *at),)) + Load(acc, (self._cell(site, *at),))
            store = self._over_cells(site, lambda *at: (sums, self._held(site, *at), added(*at)))
            return (zero, *self._run(site, acc, outer, (start, count), by), store)

        # The same code serves all products with such tiles, however far their rows are apart.
        body: Body = (For(part, "outlined", partial(part * length, length)),) if part.extent else ()
        if rest := last % length:
            body = (*body, For(self.parts.axis("rest", 1), "outlined", partial(last - rest, rest)))
        return self._over_taps(site, outer, body)

    def _run(self, site: TileSite, acc: Tensor, outer: Sequence[Axis], turns: tuple[Place, int], by: int) -> Body:
        """So many turns of the innermost tap from a first one on, `by` of them in a turn of the loop."""
        first, count = as_index(turns[0]), turns[1]
        blocks, rest = divmod(count, by)
        block = self.parts.axis("k", blocks)
        body = self._steps(site, acc, [*outer, first + block * by], by) if blocks else ()
        inner = around(body, (block,), "serial")
        return (*inner, *self._steps(site, acc, [*outer, first + blocks * by], rest)) if rest else inner

    def _steps(self, site: TileSite, acc: Tensor, at: Sequence[Place], turns: int) -> Body:
        """Some steps of the reduction from `at` on, written out."""
        parts, taps = self.parts, self.problem.taps
        k = parts.axis("u", turns)
        here = [*at[:-1], as_index(at[-1]) + k]
        number = parts.number(here, [tap.count for tap in taps])
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
        scalar = self._x(site, a, b, here)
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
        return parts.simplify(cast(Load(parts.buffers["x"], (parts.place(terms, p.x_start),)), p.dtype))

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
        place = lambda first: parts.place([*start, (k, step), (c, 1)], p.weights.start + first)
        at = lambda first: Load(parts.buffers["w"], (place(first),))
        if p.weights.kind == "bytes":
            return word_of([at(byte * (step // WORD)) for byte in range(WORD)])
        return cast(at(0), p.dtype)

    def _panel_start(self, site: TileSite) -> list[tuple[Place, int]]:
        p = self.problem
        member = p.depth * whole_vectors(p.columns, self.width)
        return [(site.batch, member), (site.panel, p.depth * self.panel)]

    def _prefetch(self, site: TileSite, at: Sequence[Place], turns: int) -> Body:
        """What is asked for while some steps are done."""
        start, first, step = self._ahead(site)
        size = item_bytes(self.problem.stored)
        number = self.parts.number(at, [tap.count for tap in self.problem.taps])
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
        sent = lambda tile, place: lambda a, b, c: self._result(site, a, b, c, Load(tile, (place(site, a, b, c),)))
        across = self.columns_apart and site.stops == (None, None)
        over = self._by_squares if across else lambda site, cell: (self._over_tile(site, cell, "serial"),)
        if acc is self.held:
            return over(site, sent(acc, self._held))
        if not self.epilogue.rolled and not across:
            return (self._over_tile(site, sent(acc, self._cell)),)
        # 28 copies of an exponential or an error function are larger than the loop around them.
        tile = self.parts.private("scratch", "tile", acc.shape[0], acc.dtype)
        copied = lambda *at: (tile, self._cell(site, *at), Load(acc, (self._cell(site, *at),)))
        return (self._over_cells(site, copied), *over(site, sent(tile, self._cell)))

    def _result(
        self, site: TileSite, a: Axis, b: Axis, c: Axis, value: ScalarExpr
    ) -> tuple[Tensor, ScalarExpr, ScalarExpr]:
        """Where an element of a tile goes, and what becomes of its value."""
        position = [at for _, at in self._spots(site, a, b)]
        store = self.parts.sent(self.problem, self.epilogue, position, self._column(site, c), value)
        return store.buffer, store.address, store.value


class Tiles(ProductFamily):
    """Register tiles of rows x vectors of columns: the ordinary product."""

    name = "ordinary"
    title = "ordinary"
    choices = frozenset(CHOICES)
    loops = TileLoops
    widens = ("x", "w")

    def plan(self, problem: Problem, target: CpuTarget) -> Blocking:
        """The tiles and the order of the loops."""
        return schedule_contraction(problem, target)

    def declines(self, spec: Problem, target: CpuTarget) -> str:
        return ""

    def cycles(self, spec: Problem, target: CpuTarget) -> float:
        weights = spec.batch.extent * spec.depth * spec.columns
        return estimate(spec, target, weights * item_bytes(spec.stored))

    def reasons(self, spec: Problem, target: CpuTarget) -> list[str]:
        return plan_reasons(spec, target)

    def nest(self, problem: Problem, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts) -> LoopNest:
        return self.loops(problem, self.plan(problem, target), target.lanes(problem.dtype), epilogue, parts).nest()

    def packed(self, problem: Problem, target: CpuTarget) -> int:
        return packed_size(problem, target)

    def pack(self, problem: Problem, target: CpuTarget, matrix: WeightMatrix) -> Packing:
        width = target.lanes(problem.dtype)
        matrix = interleaved(matrix) if problem.word > 1 else matrix
        return pack_panels(matrix, self.plan(problem, target).vectors * width, width)

    def blocks(self, problem: Problem, target: CpuTarget, weights: MemoryView) -> list[PackedBlock]:
        width = target.lanes(problem.dtype)
        return panel_blocks(weights, self.plan(problem, target).vectors * width, width)


TILES = PRODUCTS.declare(Tiles())
