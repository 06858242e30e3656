"""The kernel of a matrix product by Strassen's algorithm: see `strassen` for the algorithm and when it pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, item_bytes
from relaylab.codegen.llvm.text import Index, IRFunction, Value, constant, llvm_type, vector
from relaylab.codegen.templates.nest import OperandPointers, TileNest, TilePlace, by_size, choose
from relaylab.codegen.templates.output_site import Epilogue, load_lanes, split_index, store_lanes
from relaylab.codegen.templates.problem import Problem, Split
from relaylab.codegen.templates.schedule import packed_columns
from relaylab.codegen.templates.strassen import PRODUCTS, half_problem, half_schedule, halved_axis
from relaylab.codegen.templates.tile import PanelPrefetch, RegisterTile, accumulate, unroll

BLOCK_BYTES = 640 << 10  # sums of a block of rows: they stay in the second-level cache beside a panel of weights
BLOCKS = 4  # row blocks are a multiple of it


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
NONE = 15  # in a table of 4-bit entries: no place


@dataclass(frozen=True, slots=True)
class _TileProduct:
    """One of the seven for one tile: its number, its weights, what is asked for meanwhile, and where the tile is.

    `at` is the first row pair, `slot` its place in scratch; the tile has `rows` row pairs and `vectors` of columns.
    """

    number: Index
    weights: Value
    prefetch: PanelPrefetch
    at: tuple[Index, Index]
    slot: Index
    rows: int
    vectors: int


class _Strassen:
    """Emits the kernel. A work item is a block of row pairs times a group of weight panels.

    A row is (y, x) on the two row axes; pair (y, x) is that row of the upper half and its fellow of the lower half,
    which lies `cut` further along the halved axis. Pairs are numbered y-major.
    """

    def __init__(self, f: IRFunction, problem: Problem, target: CpuTarget, operands: Sequence[str], epilogue: Epilogue):
        self.f, self.problem, self.half = f, problem, half_problem(problem)
        self.schedule = half_schedule(problem, target)
        self.type, self.size = llvm_type(problem.dtype), item_bytes(problem.dtype)
        self.width, self.cores = target.lanes(problem.dtype), target.cores
        self.epilogue, roles = replace(epilogue, bias=None), dict(zip(operands, f.pointers))
        self.bias = roles.get(epilogue.bias or "")
        self.x, self.w, self.out = f.pointers[:3]
        self.nest = TileNest(
            f, problem, self.schedule, target, OperandPointers(self.x, self.w, self.out, roles), self.epilogue
        )
        self.panel = self.schedule.vectors * self.width
        axis = halved_axis(problem)
        self.by_image_row, self.odd = axis is problem.rows[-2], axis.extent % 2 == 1
        self.cut, self.rows = -(-axis.extent // 2), axis.extent
        self.wide = self.half.rows[-1].extent
        self.split = Split.at_most(self.wide, self.schedule.tile[1])
        self._divide_blocks()

    def _divide_blocks(self) -> None:
        """Cut the tiles into work items whose sums fit into scratch."""
        # One cache line more than whole lines: rows of sums a power of two apart would fall into the same cache sets.
        self.pitch = -(-self.half.depth // 16) * 16 + 16
        row_bytes = self.planes * self.pitch * self.size
        tiles = self.half.rows[-2].extent * self.split.count
        most = max(1, min(BLOCK_BYTES // (row_bytes * self.split.sizes[0]), -(-tiles // BLOCKS)))
        count = -(-tiles // most)
        self.blocks = Split(tiles, min(tiles, -(-count // BLOCKS) * BLOCKS))
        panels = -(-self.half.columns // self.panel)
        items = max(BLOCKS, self.cores) * (2 if self.blocks.larger else 1)  # as few as keep all cores evenly at work:
        self.groups = Split(panels, min(panels, -(-items // self.blocks.count)))  # each makes the sums of its block
        self.block_rows = self.blocks.sizes[0] * self.split.sizes[0]
        self.sums_bytes = -(-self.block_rows * row_bytes // 64) * 64
        self.scratch = self.sums_bytes + 2 * self.block_rows * self.panel * self.size
        self.sums = self.f.offset(self.f.pointers[-1], self.f.mul(self.f.thread, self.scratch))

    @property
    def items(self) -> int:
        """Work items."""
        return self.groups.count * self.blocks.count

    @property
    def planes(self) -> int:
        """The sums of A in scratch, and a copy of A22 when its last row does not exist."""
        return 5 if self.odd else 4

    def run(self) -> None:
        """Emit the loop over work items."""
        self.f.loop(self.f.begin, self.f.end, self._block)

    def _block(self, item: Index) -> None:
        f = self.f
        group, block = split_index(f, item, (self.groups.count, self.blocks.count))
        first, last = self.blocks.start(f, block), self.blocks.start(f, f.add(block, 1))
        low, high = self._first_pair(first), self._first_pair(last)
        f.loop(low, high, lambda pair: self._sums(pair, f.sub(pair, low)), nonempty=True)
        full, rest = divmod(self.half.columns, self.panel)
        run = lambda panel, vectors: lambda: self._panel((first, last), low, panel, vectors)
        f.loop(
            self.groups.start(f, group),
            self.groups.start(f, f.add(group, 1)),
            lambda panel: choose(
                f,
                panel,
                full,
                run(panel, self.schedule.vectors) if full else None,
                run(panel, rest // self.width) if rest else None,
            ),
        )

    def _panel(self, tiles: tuple[Index, Index], low: Index, panel: Index, vectors: int) -> None:
        """The seven products, each over all tiles of a block, for one panel of columns of both halves.

        All of them run the same code: what differs is looked up by their number. Seven copies would run no faster and
        take several times as long to compile.
        """
        f = self.f

        def product(number: Index) -> None:
            weights, following = self._weights(panel, number), self._following(panel, number)

            def tile(t: Index) -> None:
                y, piece = split_index(f, t, (self.half.rows[-2].extent, self.split.count))
                at, slot = (y, self.split.start(f, piece)), f.sub(self._first_pair(t), low)
                ahead = self._prefetch_share(following, f.sub(t, tiles[0]), vectors)
                make = lambda rows: _TileProduct(number, weights, ahead, at, slot, rows, vectors)
                by_size(f, self.split, piece, lambda rows: self._tile(make(rows), panel))

            f.loop(*tiles, tile, nonempty=True)

        f.loop(0, PRODUCTS, product)

    def _look_up(self, number: Index, table: Sequence[int]) -> Value:
        """The entry (below 16) of a small table: a constant holds all of them."""
        # Seven entries of 4 bits are one constant and two instructions: a table in memory would need a relocation and
        # a load.
        packed = constant("i64", sum(entry << 4 * k for k, entry in enumerate(table)))
        return self.f.binary("and", self.f.binary("lshr", packed, self.f.value(self.f.mul(number, 4))), NONE)

    def _following(self, panel: Index, number: Index) -> Value:
        """The pointer to the panel of weights that is read after that of this product."""
        f = self.f
        # After the last product comes the first of the next panel; after the very last, memory that is mapped (see
        # plan.PREFETCHED).
        last = f.compare("eq", number, PRODUCTS - 1)
        return f.select(last, self._weights(f.add(panel, 1), 0), self._weights(panel, f.add(number, 1)))

    def _prefetch_share(self, panel: Value, tile: Index, vectors: int) -> PanelPrefetch:
        """The share of the next panel of weights that a tile asks for."""
        size = self.half.depth * vectors * self.width * self.size
        share = -(-size // self.blocks.sizes[0])
        return PanelPrefetch(self.f.offset(panel, self.f.mul(tile, share)), -(-share // self.half.depth))

    def _first_pair(self, tile: Index) -> Index:
        y, piece = split_index(self.f, tile, (self.half.rows[-2].extent, self.split.count))
        return self.f.add(self.f.mul(y, self.wide), self.split.start(self.f, piece))

    def _row(self, at: tuple[Index, Index], bottom: Index) -> tuple[Index, Index]:
        """Where the upper (0) or lower (1) row of a pair is."""
        far = self.f.mul(bottom, self.cut)
        return (self.f.add(at[0], far), at[1]) if self.by_image_row else (at[0], self.f.add(at[1], far))

    def _quarter(self, at: tuple[Index, Index], bottom: Index, right: Index) -> Value:
        """The pointer to a row of a quarter of A."""
        f = self.f
        start = f.dot(self._row(at, bottom), [axis.x for axis in self.problem.rows[-2:]], self.problem.x_start)
        return f.offset(self.x, f.mul(f.add(start, f.mul(right, self.half.depth)), self.size))

    def _plane(self, plane: Index, slot: Index) -> Value:
        """The pointer to a row of a sum."""
        f = self.f
        return f.offset(self.sums, f.mul(f.mul(f.add(slot, f.mul(plane, self.block_rows)), self.pitch), self.size))

    def _sums(self, pair: Index, slot: Index) -> None:
        """One row of the sums of A; the lower row of the last pairs may not exist and is zero then."""
        y, x = split_index(self.f, pair, (self.half.rows[-2].extent, self.wide))
        at = (y, x)
        if not self.odd:
            self._sum_row(at, slot, True)
        else:
            choose(
                self.f,
                at[0] if self.by_image_row else at[1],
                self.cut - 1,
                lambda: self._sum_row(at, slot, True),
                lambda: self._sum_row(at, slot, False),
            )

    def _sum_row(self, at: tuple[Index, Index], slot: Index, paired: bool) -> None:
        f, size = self.f, self.size
        zero = constant(vector(self.type, self.width), 0)
        sources = [self._quarter(at, bottom, right) for bottom in (0, 1) for right in (0, 1)]

        def vectors(at: Index, active: int) -> None:
            top = [self._load(source, at, active) for source in sources[:2]]
            low = [self._load(source, at, active) for source in sources[2:]] if paired else [zero, zero]
            s1 = f.binary("fadd", *low)
            s2 = f.binary("fsub", s1, top[0])
            sums = [s1, s2, f.binary("fsub", top[0], low[0]), f.binary("fsub", top[1], s2), low[1]]
            for plane in range(self.planes):
                store_lanes(f, sums[plane], f.offset(self._plane(plane, slot), f.mul(at, size)), active, size, size)

        full, rest = divmod(self.half.depth, self.width)
        f.loop(0, full, lambda k: vectors(f.mul(k, self.width), self.width))
        if rest:
            vectors(full * self.width, rest)

    def _load(self, pointer: Value, at: Index, active: int) -> Value:
        where = self.f.offset(pointer, self.f.mul(at, self.size))
        return load_lanes(self.f, self.type, where, self.width, active, self.size, self.size)

    def _tile(self, p: _TileProduct, panel: Index) -> None:
        """One product for one tile of row pairs x columns."""
        f, number, slot, count = self.f, p.number, p.slot, p.rows * p.vectors
        start, keep = (
            [NONE if at is None else at for at in column]
            for column in zip(*((half.start, half.keep) for half in SEVEN_PRODUCTS))
        )
        start, keep = self._look_up(number, start), self._look_up(number, keep)
        acc = f.branch(
            f.compare("ne", start, NONE),
            lambda: self._kept(start, slot, count),
            lambda: [constant(vector(self.type, self.width), 0)] * count,
        )
        acc = self._multiplied(p, acc)

        def done() -> None:
            bottom, right = (self._look_up(number, [half.result[axis] for half in SEVEN_PRODUCTS]) for axis in (0, 1))
            onto = f.compare("eq", number, next(k for k, half in enumerate(SEVEN_PRODUCTS) if half.onto))
            self._finish(p, panel, f.branch(onto, lambda: self._onto(slot, acc), lambda: acc), bottom, right)

        f.branch(f.compare("ne", keep, NONE), lambda: self._keep(keep, slot, acc), done)

    def _multiplied(self, p: _TileProduct, acc: Sequence[Value]) -> tuple[Value, ...]:
        """The accumulators after the product: the factor of A is a quarter in its place, or a plane of scratch."""
        f, planes = self.f, LEFT_SUMS[: self.planes]

        def reduced(pointer: Value, step: int) -> tuple[Value, ...]:
            tile = RegisterTile(
                self.type,
                self.size,
                self.width,
                p.vectors,
                self.width,
                tuple(row * step * self.size for row in range(p.rows)),
                self.half.taps,
                p.vectors * self.width * self.size,
            )
            return accumulate(f, tile, pointer, p.weights, acc, p.prefetch)

        def from_place() -> tuple[Value, ...]:
            bottom, right = (
                self._look_up(p.number, [QUARTERS.get(half.left, (0, 0))[axis] for half in SEVEN_PRODUCTS])
                for axis in (0, 1)
            )
            return reduced(self._quarter(p.at, bottom, right), self.problem.rows[-1].x)

        table = [planes.index(half.left) if half.left in planes else NONE for half in SEVEN_PRODUCTS]
        plane = self._look_up(p.number, table)
        return f.branch(
            f.compare("eq", plane, NONE), from_place, lambda: reduced(self._plane(plane, p.slot), self.pitch)
        )

    def _places(self, which: Index, slot: Index, count: int) -> list[Value]:
        """Where the accumulators of a tile wait; a tile's place begins at that of its first row pair."""
        f, step = self.f, self.width * self.size
        row = self.schedule.vectors * step
        start = f.offset(self.sums, f.add(f.mul(f.add(slot, f.mul(which, self.block_rows)), row), self.sums_bytes))
        return [f.offset(start, k * step) for k in range(count)]

    def _kept(self, which: Index, slot: Index, count: int) -> list[Value]:
        type, align = vector(self.type, self.width), self.width * self.size
        return [self.f.load(type, place, align) for place in self._places(which, slot, count)]

    def _keep(self, which: Index, slot: Index, acc: Sequence[Value]) -> None:
        for place, value in zip(self._places(which, slot, len(acc)), acc):
            self.f.store(value, place, self.width * self.size)

    def _onto(self, slot: Index, acc: Sequence[Value]) -> list[Value]:
        """Add the accumulators to what waits: place 0 keeps its sum, that with place 1 is given."""
        added = lambda which: [self.f.binary("fadd", p, u) for p, u in zip(acc, self._kept(which, slot, len(acc)))]
        self._keep(0, slot, added(0))
        return added(1)

    def _weights(self, panel: Index, member: Index) -> Value:
        """The pointer to one panel of a factor on the side of B."""
        f = self.f
        return f.offset(
            self.w, f.mul(f.add(f.mul(panel, self.half.depth * self.panel), f.mul(member, self._member())), self.size)
        )

    def _member(self) -> int:
        """Elements of the packed weights of one product."""
        return self.half.depth * packed_columns(self.half, self.schedule, self.width)

    def _finish(self, p: _TileProduct, panel: Index, acc: Sequence[Value], bottom: Index, right: Index) -> None:
        """Bias, epilogue and stores of a tile of one quarter of C; rows that do not exist are left out."""
        f, rows, vectors = self.f, p.rows, p.vectors
        column = f.add(f.mul(panel, self.panel), f.mul(right, self.half.columns))
        acc = self._with_bias(acc, column, vectors)
        y, x = self._row(p.at, bottom)
        lead = [0] * (len(self.problem.rows) - 2)
        send = lambda low, count: self.nest.finish(
            TilePlace(0, [*lead, y, f.add(x, low)], [(0, row) for row in range(count)], column, vectors, self.width),
            acc[low * vectors : (low + count) * vectors],
        )
        if not self.odd:
            send(0, rows)
        elif self.by_image_row:
            f.branch(f.compare("slt", y, self.rows), lambda: send(0, rows))
        else:
            if rows > 1:
                send(0, rows - 1)
            f.branch(f.compare("slt", f.add(x, rows - 1), self.rows), lambda: send(rows - 1, 1))

    def _with_bias(self, acc: Sequence[Value], column: Index, vectors: int) -> Sequence[Value]:
        if self.bias is None:
            return acc
        self.f.at(self.epilogue.bias_part)
        start = self.f.offset(self.bias, self.f.mul(column, self.size))
        bias = [self._load(start, j * self.width, self.width) for j in range(vectors)]
        result = [self.f.binary("fadd", value, bias[k % vectors]) for k, value in enumerate(acc)]
        self.f.at(0)
        return result

    def loops(self, title: str) -> str:
        """The same loops as text."""
        rows, columns = self.split.sizes[0], self.panel
        steps = unroll(self.half.depth, rows * self.schedule.vectors)
        turn = f" by {steps}" if steps > 1 else ""
        return "\n".join(
            [
                f"{title} (Strassen): parallel over {self.items} items",
                f"  for group in {self.groups.count} groups of <= {self.groups.sizes[0]} panels, "
                f"block in {self.blocks.count} blocks of <= {self.block_rows} row pairs:",
                "    s[1..4] = sums of the quarters of x  # scratch",
                f"    for panel in group: panels of 2 x {columns} columns: for product in 7:",
                f"      for tile in block: tiles of <= {rows} row pairs"
                f"  # registers: {rows} rows x {self.schedule.vectors} vectors",
                f"        for k in {self.half.depth}{turn}: acc[r, c] += s[product, r, k] * t[product, k, c]",
                f"        out = {self.epilogue.shown('acc[r, c]')}"
                f"  # four quarters{', the bias is added first' if self.bias else ''}",
                "",
            ]
        )


def strassen(
    prefix: str, problem: Problem, target: CpuTarget, epilogue: Epilogue, roles: tuple[str, ...], traffic: int
) -> Kernel:
    """The kernel of a product that `supports_strassen` accepts."""
    operands = (*roles, *epilogue.operands, "scratch")
    f = IRFunction.kernel(prefix, operands)
    emitter = _Strassen(f, problem, target, operands, epilogue)
    emitter.run()
    text, declares = f.finish()
    return Kernel(
        prefix, text, declares, operands, emitter.items, emitter.scratch, problem.flops, traffic, emitter.loops(prefix)
    ).by_content(prefix)
