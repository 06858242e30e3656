"""The loops of a matrix product by Strassen's algorithm: see `strassen` for the algorithm and when it pays.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView, item_bytes
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.pack import PackedBlock, Packing, WeightMatrix
from relaylab.codegen.templates.problem import OutputAxis, Problem, Split
from relaylab.codegen.templates.product_family import PRODUCTS, ProductFamily
from relaylab.codegen.templates.program_parts import Place, ProgramParts, around
from relaylab.codegen.templates.schedule import packed_size, plan_reasons
from relaylab.codegen.templates.strassen import (
    SEVEN,
    SUPPLY,
    half_problem,
    half_product,
    half_schedule,
    halved_axis,
    pack_strassen,
    strassen_blocks,
    strassen_cycles,
    supports_strassen,
)
from relaylab.codegen.templates.tile_cells import TileSite
from relaylab.codegen.templates.tile_loops import TileLoops
from relaylab.loop.expr import INDEX, Axis, Const, Load, Local, ScalarExpr, Tensor, apply, as_index, of_part
from relaylab.loop.program import Body, Define, For, IfThenElse, LoopNest, Statement, Store

LEAST_DEPTH = 128  # of a reduction: below this the sums eat the gain
LEAST_TILES = 6  # of a block: they share each panel of weights, and every block reads all of them
BLOCKS = 4  # row blocks are a multiple of it if there are tiles enough
PLACES = 2  # where tiles wait


@dataclass(frozen=True, slots=True)
class HalfProduct:
    """One of the seven: a factor of A by the packed factor of B with the same number.

    Accumulators begin with what waits in place `start` (None: with zero). Then they wait in place `keep`, or they are
    the quarter `result` of C (bottom, right). With `onto` they are added to both places first: place 0 keeps its sum,
    that with place 1 is the result.
    """

    left: str
    start: int | None = None
    keep: int | None = None
    result: tuple[int, int] = (0, 0)
    onto: bool = False


QUARTERS = {"a11": (0, 0), "a12": (0, 1), "a22": (1, 1)}  # (bottom, right)
LEFT_SUMS = ("s1", "s2", "s3", "s4", "a22")  # the planes of scratch; the last one only where it has a row too few
SEVEN_PRODUCTS = (
    HalfProduct("a11", keep=0),
    HalfProduct("a12", start=0, result=(0, 0)),
    HalfProduct("s2", start=0, keep=0),  # U2
    HalfProduct("s3", start=0, keep=1),  # U3
    HalfProduct("a22", start=1, result=(1, 0)),
    HalfProduct("s1", result=(1, 1), onto=True),  # U2 + S1 T1 waits, U3 + S1 T1 is C22
    HalfProduct("s4", start=0, result=(0, 1)),
)


@dataclass(frozen=True, slots=True)
class HalfSite(TileSite):
    """A tile of one of the seven products, whose factor of A is a quarter at `quarter`, or else a plane of sums."""

    quarter: TileSite | None = None


class StrassenLoops(TileLoops):
    """The loops of the kernel. A work item is a block of row pairs times a group of weight panels.

    The seven products are a batch, which all run the same code: what differs is looked up by their number. Seven copies
    would run no faster and take several times as long to compile. Pair (y, x) is that row of the upper half and its
    fellow of the lower half, which lies `cut` further along the halved axis.
    """

    near = True  # few rows use a panel: the first tile would wait for the second-level cache

    def __init__(self, problem: Problem, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts):
        half = half_problem(problem)
        seven = replace(
            half,
            batch=OutputAxis(SEVEN, half.depth, 0),  # quarters lie side by side
            channel=half.columns,
            channels=problem.channels or problem.columns,
        )
        super().__init__(seven, half_schedule(problem, target), target.lanes(problem.dtype), epilogue, parts)
        axis = halved_axis(problem)
        self.by_image_row, self.odd = axis is problem.rows[-2], axis.extent % 2 == 1
        self.cut, self.extent = -(-axis.extent // 2), axis.extent
        self.planes = LEFT_SUMS if self.odd else LEFT_SUMS[:-1]
        self._divide_blocks(target)
        self.sums = parts.private("scratch", "sums", len(self.planes) * self.block_rows * self.pitch, problem.dtype)
        self.kept = parts.private("scratch", "kept", PLACES * self.block_rows * self.panel, problem.dtype)
        self.item, self.number = parts.axis("item", self.groups.count * self.blocks.count), parts.axis("product", 7)
        self.group, block = self.item // self.blocks.count, self.item % self.blocks.count
        self.first = Local(parts.name("first"), INDEX)
        self.at_item: list[Statement] = [Define(self.first, parts.start(self.blocks, block))]
        self.tiles_in_block = parts.stop(self.blocks, block)
        self.at_product: list[Statement] = []
        self._look_up_all()

    def _sums_in_memory(self) -> bool:
        return True  # what a product begins with, and where it goes, is decided by its number

    def _divide_blocks(self, target: CpuTarget) -> None:
        """Cut the tiles into work items whose sums fit into scratch."""
        # One cache line more than whole lines: rows of sums a power of two apart would fall into the same cache sets.
        self.pitch = -(-self.problem.depth // 16) * 16 + 16
        self.rows_of_tile = self.splits[1].sizes[0]
        row_bytes = len(self.planes) * self.pitch * item_bytes(self.problem.dtype)
        fit = max(1, target.facts.strassen_bytes // (row_bytes * self.rows_of_tile))
        most = max(1, self.tiles // LEAST_TILES)
        count = min(-(-self.tiles // fit), most)
        even = -(-count // BLOCKS) * BLOCKS
        self.blocks = Split(self.tiles, even if even <= most else count)
        items = max(BLOCKS, target.cores) * (2 if self.blocks.larger else 1)  # as few as keep all cores evenly at work:
        self.groups = Split(self.panels, min(self.panels, -(-items // self.blocks.count)))  # each makes its own sums
        self.block_rows = self.blocks.sizes[0] * self.rows_of_tile

    def _look_up_all(self) -> None:
        """Registers for what a product differs in from the others."""
        planes, none = self.planes, len(self.planes)
        look = self._look_up
        self.start = look("start", [PLACES if half.start is None else half.start for half in SEVEN_PRODUCTS])
        self.keep = look("keep", [PLACES if half.keep is None else half.keep for half in SEVEN_PRODUCTS])
        left = [half.left for half in SEVEN_PRODUCTS]
        self.plane = look("plane", [planes.index(name) if name in planes else none for name in left])
        in_place = [(0, 0) if name in planes else QUARTERS[name] for name in left]
        self.quarter = [look(name, [at[k] for at in in_place]) for k, name in enumerate(("low", "right"))]
        self.result = [look(f"out_{n}", [h.result[k] for h in SEVEN_PRODUCTS]) for k, n in enumerate(("low", "right"))]
        self.following = Local(self.parts.name("following"), INDEX)

    def _look_up(self, name: str, table: Sequence[int]) -> Place:
        """The entry for a product."""
        found = as_index(table[-1])
        for k in range(len(table) - 1, 0, -1):
            if table[k - 1] != table[k]:
                found = apply("select", self.number < k, as_index(table[k - 1]), found)
        return self.parts.named(name, found, self.at_product)

    def nest(self) -> LoopNest:
        """The parallel loop over groups of panels x blocks of row pairs."""
        parts = self.parts
        p, found = parts.axis("p", self.groups.sizes[0]), list[Statement]()
        panel = parts.named("panel", parts.start(self.groups, self.group) + p, found)
        start = self._panel_start(TileSite(self.number, (), 0, panel))
        last = parts.place([(at, step) for at, step in self._panel_start(TileSite(0, (), 0, panel))])
        # After the last product comes the first of the next panel; after the very last, memory that is mapped (see
        # plan.PREFETCHED).
        beyond = last + self.problem.depth * self.panel
        member = self._panel_start(TileSite(1, (), 0, 0))[0][1]
        ahead = apply("select", self.number < SEVEN - 1, parts.place(start, member), beyond)
        products = For(
            self.number,
            "serial",
            (
                *self.at_product,
                Define(self.following, parts.simplify(ahead)),
                *self._over_tiles(lambda tile: self._place(self.number, tile, panel)),
            ),
        )
        over_panels = around((*found, products), (p,), "serial", (parts.stop(self.groups, self.group),))
        sums = self._over_tiles(self._sums_of_tile)
        return LoopNest(For(self.item, "serial", (*self.at_item, *sums, *over_panels)))

    def _over_tiles(self, body: Callable[[ScalarExpr], Body]) -> Body:
        """The tiles of a block."""
        t = self.parts.axis("t", self.blocks.sizes[0])
        return around(body(self.parts.place([(self.first, 1), (t, 1)])), (t,), "serial", (self.tiles_in_block,))

    def _slot(self, tile: Place) -> list[tuple[Place, int]]:
        """The number of a tile's first row in scratch."""
        return [(tile, self.rows_of_tile), (self.first, -self.rows_of_tile)]

    def _moved(self, position: Sequence[Place], low: Place) -> tuple[Place, ...]:
        """Where the upper (0) or lower (1) row of a pair is."""
        *outer, y, x = position
        far = as_index(low) * self.cut
        return (*outer, as_index(y) + far, x) if self.by_image_row else (*outer, y, as_index(x) + far)

    # ---- sums of quarters

    def _sums_of_tile(self, tile: ScalarExpr) -> Body:
        """The sums of A for the row pairs of a tile; the lower row of the last ones may not exist and is zero then."""
        parts, found, split = self.parts, list[Statement](), self.splits[1]
        *outer, y, piece = self._spot(tile, found)
        b = parts.axis("q", self.rows_of_tile)
        x = parts.simplify(parts.start(split, piece) + b)
        row = [(at, step * self.pitch) for at, step in [*self._slot(tile), (b, 1)]]
        make = lambda paired: lambda: self._sum_row((*outer, y, x), row, paired)
        halved = y if self.by_image_row else x
        body = parts.choose(halved, self.cut - 1, make(True), make(False)) if self.odd else make(True)()
        return (*found, *around(body, (b,), "serial", (parts.stop(split, piece),)))

    def _sum_row(self, position: Sequence[Place], row: Sequence[tuple[Place, int]], paired: bool) -> Body:
        parts = self.parts
        k, body = parts.axis("k", self.problem.depth), list[Statement]()

        def quarter(low: int, right: int) -> ScalarExpr:
            if low and not paired:
                return Const(0, self.problem.dtype)
            return named("a", self._x(TileSite(right, self._moved(position, low), 0, 0), 0, 0, [k]))

        def named(name: str, value: ScalarExpr) -> ScalarExpr:
            local = Local(parts.name(name), value.dtype)
            body.append(Define(local, parts.simplify(value)))
            return local

        a11, a12, a21, a22 = (quarter(low, right) for low in (0, 1) for right in (0, 1))
        s1 = named("s", a21 + a22)
        s2 = named("s", s1 - a11)
        for plane, value in zip(range(len(self.planes)), (s1, s2, a11 - a21, a12 - s2, a22)):
            where = parts.place([*row, (k, 1)], plane * self.block_rows * self.pitch)
            body.append(Store(self.sums, where, parts.simplify(value)))
        return (For(k, "vectorized", tuple(body)),)

    # ---- products

    def _around_sums(self, site: TileSite, products: Body) -> Body:
        """One product for one tile of row pairs x columns."""
        parts, sums = self.parts, self._sums()
        there = self._sent_to(site)

        def kept(which: Place, *at: Axis) -> ScalarExpr:
            rows = [(row, step * self.panel) for row, step in [*self._slot(site.tile), (which, self.block_rows)]]
            return parts.place([*rows, (self._held(site, *at), 1)])

        held = lambda *at: Load(sums, (self._held(site, *at),))
        waiting = lambda which, *at: Load(self.kept, (kept(which, *at),))
        to_sums = lambda value: self._over_tile(site, lambda *at: (sums, self._held(site, *at), value(*at)), "serial")
        to_kept = lambda to, value: self._over_tile(site, lambda *at: (self.kept, kept(to, *at), value(*at)), "serial")
        waits = to_sums(lambda *at: waiting(self.start, *at))
        zero = to_sums(lambda *at: Const(0, self.problem.dtype))
        begin = IfThenElse(as_index(self.start) < PLACES, (waits,), (zero,))
        number = next(k for k, half in enumerate(SEVEN_PRODUCTS) if half.onto)
        both = (to_kept(0, lambda *at: held(*at) + waiting(0, *at)), to_sums(lambda *at: held(*at) + waiting(1, *at)))
        onto = IfThenElse(apply("eq", self.number, as_index(number)), both)
        keep = (to_kept(self.keep, held),)
        done = IfThenElse(as_index(self.keep) < PLACES, keep, (onto, *self._send(site, there)))
        ahead = IfThenElse(as_index(self.keep) >= PLACES, self._out_ahead(there))
        return (ahead, begin, *products, done)

    def _in_parts(self, site: TileSite) -> Body:
        low, right = self.quarter
        moved = replace(site, batch=right, position=self._moved(site.position, low))
        own = HalfSite(site.batch, site.position, site.tile, site.panel, site.sizes, site.columns)
        from_sums, from_place = super()._in_parts(own), super()._in_parts(replace(own, quarter=moved))
        return (IfThenElse(as_index(self.plane) < len(self.planes), from_sums, from_place),)

    def _sent_to(self, site: TileSite) -> TileSite:
        """Where a tile's result lies in C."""
        low, right = self.result
        return replace(site, batch=right, position=self._moved(site.position, low))

    def _x(self, site: TileSite, a: Place, b: Place, taps: Sequence[Place]) -> ScalarExpr:
        """The element of the factor of A for a row of a tile."""
        if not isinstance(site, HalfSite):
            return super()._x(site, a, b, taps)
        if site.quarter is not None:
            return super()._x(site.quarter, a, b, taps)
        rows = [*self._slot(site.tile), (self.plane, self.block_rows), (b, 1)]
        where = self.parts.place([*((at, step * self.pitch) for at, step in rows), (taps[0], 1)])
        return Load(self.sums, (where,))

    def _ahead(self, site: TileSite) -> tuple[list[tuple[Place, int]], int, int]:
        """The share of the panel that is read after that of this product."""
        share = -(-self.problem.depth * site.columns // self.blocks.sizes[0])
        terms = [(self.following, 1), (site.tile, share), (self.first, -share)]
        return terms, 0, -(-share // self.problem.depth)

    def _send(self, site: TileSite, there: TileSite) -> Body:
        """Bias, epilogue and stores of a tile of one quarter of C; rows that do not exist are left out."""
        sums, biased = self._sums(), list[Statement]()
        if self.epilogue.bias is not None:

            def add(a: Axis, b: Axis, c: Place) -> tuple[Tensor, ScalarExpr, ScalarExpr]:
                cell = self._held(site, a, b, c)
                return sums, cell, of_part(Load(sums, (cell,)) + self._bias(there, c), self.epilogue.bias_part)

            biased.append(self._over_tile(site, add, "serial"))
        if not self.odd:
            return (*biased, *self._finish(there, sums))
        *_, y, x = there.position
        if self.by_image_row:
            return (*biased, IfThenElse(self.parts.simplify(as_index(y) < self.extent), self._finish(there, sums)))
        left = self.extent - as_index(x)
        most = site.sizes[1] if site.stops[1] is None else site.stops[1]
        rows = self.parts.simplify(apply("min", as_index(most), left))
        return (*biased, *self._finish(replace(there, stops=(None, rows)), sums))


class Strassen(ProductFamily):
    """Seven products of halves."""

    name = "strassen"
    title = "Strassen's"
    minimal = True
    mixes = True
    advantage = 0.92  # below it costs more code and memory than it saves (measured)

    def declines(self, spec: Problem, target: CpuTarget) -> str:
        short = f"a reduction of {spec.depth}, fewer than {LEAST_DEPTH}" if spec.depth < LEAST_DEPTH else ""
        return supports_strassen(spec, target) or short

    def cycles(self, spec: Problem, target: CpuTarget) -> float:
        return strassen_cycles(spec, target)

    def reasons(self, spec: Problem, target: CpuTarget) -> list[str]:
        return plan_reasons(half_product(spec), target, SUPPLY)

    def nest(self, problem: Problem, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts) -> LoopNest:
        return StrassenLoops(problem, target, epilogue, parts).nest()

    def packed(self, problem: Problem, target: CpuTarget) -> int:
        return SEVEN * packed_size(half_problem(problem), target)

    def pack(self, problem: Problem, target: CpuTarget, matrix: WeightMatrix) -> Packing:
        return pack_strassen(problem, target, matrix)

    def blocks(self, problem: Problem, target: CpuTarget, weights: MemoryView) -> list[PackedBlock]:
        return strassen_blocks(problem, target, weights)


STRASSEN = PRODUCTS.declare(Strassen())
