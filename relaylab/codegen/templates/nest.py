"""The loops around register tiles, for what is no loop program: work items, weight panels, row tiles, epilogue, stores.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.codegen.llvm.text import Index, IRFunction, Value, llvm_type
from relaylab.codegen.templates.output_site import Epilogue, OutputSite, load_lanes, split_index, store_lanes
from relaylab.codegen.templates.problem import Problem, Split
from relaylab.codegen.templates.schedule import Blocking, packed_columns, tile_count
from relaylab.codegen.templates.tile import PanelPrefetch, RegisterTile, accumulate, unroll


@dataclass(frozen=True, slots=True)
class OperandPointers:
    """The base pointers of a contraction: input, weights, output, and side inputs by role."""

    x: Value
    w: Value
    out: Value
    side: dict[str, Value]


@dataclass(frozen=True, slots=True)
class TilePlace:
    """Where a finished tile belongs: rows at `offsets` from `position` on the last two row axes, columns from `column`.

    It is `vectors` wide, and the last vector has `active` real lanes.
    """

    batch: Index
    position: Sequence[Index]
    offsets: Sequence[tuple[int, int]]
    column: Index
    vectors: int
    active: int


class TileNest:
    """Emits a contraction into a function. One instance per contraction; `items` is its number of work items."""

    def __init__(
        self,
        f: IRFunction,
        problem: Problem,
        schedule: Blocking,
        target: CpuTarget,
        pointers: OperandPointers,
        epilogue: Epilogue,
    ):
        self.f, self.problem, self.schedule, self.pointers, self.epilogue = f, problem, schedule, pointers, epilogue
        self.target = target
        self.size = item_bytes(problem.dtype)
        self.width, self.target = target.lanes(problem.dtype), target
        self.panel = schedule.vectors * self.width
        self.splits = [Split.at_most(axis.extent, n) for axis, n in zip(problem.rows[-2:], schedule.tile)]
        self.panels = -(-problem.columns // self.panel)
        self.tiles = tile_count(problem, schedule.tile)
        self.tile_blocks = -(-self.tiles // schedule.tiles)
        self.panel_blocks = -(-self.panels // schedule.panels)

    @property
    def items(self) -> int:
        """Work items: batch members x blocks of row tiles x blocks of panels."""
        return self.problem.batch.extent * self.tile_blocks * self.panel_blocks

    def reduction(self, rows: int) -> list[str]:
        """The lines of a register tile's start and reduction."""
        p, schedule = self.problem, self.schedule
        turn = unroll(p.taps[-1].count, rows * schedule.vectors)
        outer = [f"{tap.count}" for tap in p.taps[:-1]]
        steps = " x ".join([*outer, f"{p.taps[-1].count}"]) + (f" by {turn}" if turn > 1 else "")
        prefetch = "  # and prefetch a share of the next panel" if schedule.prefetch else ""
        return [
            f"acc[{rows}, {self.panel}] = {start_text(self.epilogue)}"
            f"  # registers: {rows} rows x {schedule.vectors} vectors of {self.width}",
            f"for k in {steps}: acc[r, c] += x[row r, k] * w[k, c]  # w packed{prefetch}",
        ]

    def run(self, begin: Index, end: Index) -> None:
        """Emit the loop over work items [begin, end)."""
        self.f.loop(begin, end, self._item)

    def _item(self, item: Index) -> None:
        f, schedule = self.f, self.schedule
        blocks = (
            (self.panel_blocks, self.tile_blocks) if schedule.panels_outer else (self.tile_blocks, self.panel_blocks)
        )
        batch, first, second = split_index(f, item, (self.problem.batch.extent, *blocks))
        tile_block, panel_block = (second, first) if schedule.panels_outer else (first, second)
        tiles = _block_range(f, tile_block, schedule.tiles, self.tiles)
        panels = _block_range(f, panel_block, schedule.panels, self.panels)
        if schedule.panels == 1:
            f.loop(*panels, lambda p: self._panel(batch, tiles, p), nonempty=True)
        else:
            f.loop(*tiles, lambda t: f.loop(*panels, lambda p: self._place(batch, t, p), nonempty=True), nonempty=True)

    def _panel(self, batch: Index, tiles: tuple[Index, Index], panel: Index) -> None:
        """All row tiles of a block for one weight panel."""
        self.f.loop(*tiles, lambda t: self._place(batch, t, panel), nonempty=True)

    def _place(self, batch: Index, tile: Index, panel: Index) -> None:
        """Find where a tile lies and choose the code for its size."""
        f, rows = self.f, self.problem.rows
        outer = [axis.extent for axis in rows[:-2]]
        spot = split_index(f, tile, (*outer, self.splits[0].count, self.splits[1].count))
        full, rest = divmod(self.problem.columns, self.panel)
        position = [*spot[:-2], *(split.start(f, piece) for split, piece in zip(self.splits, spot[-2:]))]

        def columns(a: int, b: int) -> None:
            whole = lambda: self._tile(batch, position, (a, b), panel, tile, self.schedule.vectors, self.width)
            tail = -(-rest // self.width)
            edge = lambda: self._tile(batch, position, (a, b), panel, tile, tail, rest - (tail - 1) * self.width)
            choose(f, panel, full, whole if full else None, edge if rest else None)

        def second(a: int) -> None:
            by_size(f, self.splits[1], spot[-1], lambda b: columns(a, b))

        by_size(f, self.splits[0], spot[-2], second)

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
        """One register tile: accumulators from the bias, the reduction, the epilogue and the stores."""
        f, p = self.f, self.problem
        offsets = [(a, b) for a in range(sizes[0]) for b in range(sizes[1])]
        inner, last = p.rows[-2:]
        shape = RegisterTile(
            llvm_type(p.dtype),
            self.size,
            self.width,
            vectors,
            active,
            tuple((a * inner.x + b * last.x) * self.size for a, b in offsets),
            p.taps,
            vectors * self.width * self.size,  # a narrow last panel is stored narrow
        )
        x = f.add(f.mul(batch, p.batch.x), f.dot(position, [axis.x for axis in p.rows], p.x_start))
        w, prefetch = self._weights(batch, panel, tile)
        column = f.add(f.mul(batch, p.channel), f.mul(panel, self.panel))
        acc = self._start(shape, column, len(offsets))
        if p.depth:
            acc = accumulate(f, shape, f.offset(self.pointers.x, f.mul(x, self.size)), w, acc, prefetch)
        self.finish(TilePlace(batch, position, offsets, column, vectors, active), acc)

    def _weights(self, batch: Index, panel: Index, tile: Index) -> tuple[Value, PanelPrefetch | None]:
        f, p = self.f, self.problem
        panel_step = p.depth * self.panel
        batch_step = p.depth * packed_columns(p, self.schedule, self.width)
        start = f.add(f.mul(batch, batch_step), f.mul(panel, panel_step))
        pointer = f.offset(self.pointers.w, f.mul(f.add(start, p.weights.start), self.size))
        if not self.schedule.prefetch:
            return pointer, None
        # The tiles of a panel share the work of asking for the next one; after the last panel there is mapped memory.
        share = panel_step * self.size // self.tiles
        following = f.offset(pointer, f.add(panel_step * self.size, f.mul(tile, share)))
        return pointer, PanelPrefetch(following, max(1, share // p.depth))

    def _start(self, tile: RegisterTile, column: Index, rows: int) -> list[Value]:
        if self.epilogue.bias is None:
            return tile.zeros()
        f, base = self.f, self.pointers.side[self.epilogue.bias]
        f.at(self.epilogue.bias_part)
        found = []
        for j in range(tile.vectors):
            pointer = f.offset(base, f.mul(f.add(column, j * tile.width), tile.itemsize))
            active = tile.active if j == tile.vectors - 1 else tile.width
            found.append(load_lanes(f, tile.type, pointer, tile.width, active, tile.itemsize, tile.itemsize))
        f.at(0)
        return found * rows

    def finish(self, place: TilePlace, acc: Sequence[Value]) -> None:
        """Send a finished tile through the epilogue and store it."""
        # 28 copies of an exponential or an error function are larger than the loop around them.
        if self.epilogue.rolled:
            self._finish_rolled(place, acc)
            return
        for row, (a, b) in enumerate(place.offsets):
            for j in range(place.vectors):
                self._store(place, (a, b), j, acc[row * place.vectors + j])

    def _finish_rolled(self, place: TilePlace, acc: Sequence[Value]) -> None:
        """Put the tile on the stack and run a long epilogue in a loop over its rows, not once per register."""
        f, step, (high, wide) = self.f, self.width * self.size, (last + 1 for last in place.offsets[-1])
        block = f.reserve(len(acc) * step)
        for slot, value in enumerate(acc):
            f.store(value, f.offset(block, slot * step), step)

        def row(a: Index, b: Index) -> None:
            here = f.offset(block, f.mul(f.add(f.mul(a, wide), b), place.vectors * step))
            for j in range(place.vectors):
                self._store(place, (a, b), j, f.load(acc[0].type, f.offset(here, j * step), step))

        f.loop(0, high, lambda a: f.loop(0, wide, lambda b: row(a, b)))

    def _store(self, place: TilePlace, row: tuple[Index, Index], j: int, x: Value) -> None:
        """Vector `j` of one row of a tile."""
        f, p = self.f, self.problem
        active = place.active if j == place.vectors - 1 else self.width
        *outer, high, low = place.position
        spot, column = [*outer, f.add(high, row[0]), f.add(low, row[1])], f.add(place.column, j * self.width)
        groups = [
            (axis.covers, f.add(f.mul(at, axis.scale), axis.shift))
            for axis, at in zip((p.batch, *p.rows), (place.batch, *spot))
            if axis.covers
        ]
        groups.append(((p.channels or p.columns,), column))
        site = OutputSite(f, tuple(groups), self.width, active, self.pointers.side)
        result = self.epilogue.apply(f, x, site, self.target)
        where = f.add(f.mul(place.batch, p.batch.out), f.dot(spot, [axis.out for axis in p.rows], p.out_start))
        where = f.add(where, f.mul(column, p.out_column))
        size = item_bytes(p.out_dtype)
        store_lanes(f, result, f.offset(self.pointers.out, f.mul(where, size)), active, p.out_column * size, size)
        f.at(0)


def _block_range(f: IRFunction, block: Index, size: int, total: int) -> tuple[Index, Index]:
    low = f.mul(block, size)
    high = f.add(low, size)
    return (low, high) if total % size == 0 else (low, f.minimum(high, total))


# Sizes of tiles are static in the code, since accumulators are registers: a dynamic piece picks one of two codes.
def by_size(f: IRFunction, split: Split, piece: Index, body: Callable[[int], None]) -> None:
    """Run `body` with the static size of a dynamic piece."""
    if not split.larger:
        body(split.size)
    else:
        choose(f, piece, split.larger, lambda: body(split.size + 1), lambda: body(split.size))


def choose(
    f: IRFunction, index: Index, limit: int, below: Callable[[], None] | None, other: Callable[[], None] | None
) -> None:
    """`below()` where index < limit, else `other()`; one of them may be absent."""
    if below is None or other is None:
        for only in filter(None, (below, other)):
            only()
    elif isinstance(index, int):
        (below if index < limit else other)()
    else:
        f.branch(f.compare("slt", index, limit), below, other)


def loops_text(title: str, nest: TileNest, epilogue: Epilogue) -> str:
    """The loops that `run` emits, as text for people: from the same numbers, in the same order."""
    schedule, rows = nest.schedule, max(splits_product(nest.splits))
    blocks = [
        f"{nest.panel_blocks} blocks of {schedule.panels} panels",
        f"{nest.tile_blocks} blocks of {schedule.tiles} row tiles",
    ]
    order = blocks if schedule.panels_outer else blocks[::-1]
    members = [f"{nest.problem.batch.extent} of the batch"] if nest.problem.batch.extent > 1 else []
    panel = f"for panel in block:  # {nest.problem.columns} columns in {nest.panels} panels of {nest.panel}"
    tile = f"for tile in block:  # {nest.problem.row_count} rows in {nest.tiles} tiles of <= {rows}"
    lines = [f"{title}: parallel over {nest.items} items: {' x '.join([*members, *order])}"]
    depth = 1
    for line in [panel, tile] if schedule.panels == 1 else [tile, panel]:
        lines.append("  " * depth + line)
        depth += line.startswith("for")
    inner = [*nest.reduction(rows), f"out[row r, c] = {epilogue.shown('acc[r, c]')}"]
    return "\n".join([*lines, *("  " * depth + line for line in inner), ""])


def splits_product(splits: Sequence[Split]) -> list[int]:
    """The numbers of rows that tiles have."""
    return [a * b for a in splits[0].sizes for b in splits[1].sizes]


def start_text(epilogue: Epilogue) -> str:
    """What accumulators start from."""
    return "0" if epilogue.bias is None else f"{epilogue.bias}[c]"
