"""Large matrix products with seven instead of eight half-size products.

Strassen (1969) in Winograd's form, one level: with A and B cut into quarters,

    S1 = A21 + A22   S2 = S1 - A11    S3 = A11 - A21   S4 = A12 - S2
    T1 = B12 - B11   T2 = B22 - T1    T3 = B22 - B12   T4 = T2 - B21
    C11 = A11 B11 + A12 B21                    U2 = A11 B11 + S2 T2     U3 = U2 + S3 T3
    C21 = U3 - A22 T4    C22 = U3 + S1 T1      C12 = U2 + S1 T1 + S4 B22

The sums of B are made when the weights are packed. The sums of A are made per block of rows in scratch. The products
run one after another over all tiles of a block, so that a panel of weights is read from afar once per block; what a
tile has so far waits in two places in scratch, and nothing the size of C is ever written but C.

Error: a few times that of the ordinary product, as F(2, 3) minimal filtering (see the tests). The gain is 1/8 of the
products less the sums, so both halves have to be large.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from relaylab.codegen.irtext import Index, IRFunction, Value, constant, llvm_type, vector
from relaylab.codegen.kernel import Kernel, item_bytes
from relaylab.codegen.target import Target
from relaylab.codegen.templates.nest import Nest, Pointers, by_size, choose
from relaylab.codegen.templates.pack import pack_panels
from relaylab.codegen.templates.problem import UNIT, Axis, Problem, Split, Tap
from relaylab.codegen.templates.schedule import Plan, estimate, packed_columns, plan_contraction
from relaylab.codegen.templates.site import Epilogue, load_lanes, split_index, store_lanes
from relaylab.codegen.templates.tile import Prefetch, Tile, accumulate, unroll

SUM_CYCLES = 12.0        # per vector of the four sums (measured)
LEAST_DEPTH = 128        # below this the sums eat the gain
BLOCK_BYTES = 640 << 10  # sums of a block of rows
BLOCKS = 4               # row blocks are a multiple of it
SUPPLY = 4.0             # cycles to get a vector of weights nearer, of which seven panels are used in turn
ADVANTAGE = 0.92         # below it costs more code and memory than it saves (measured)
PRODUCTS = 7


def supports_strassen(problem: Problem, target: Target) -> str:
    """Why one level of Strassen's algorithm does not apply; empty when it does."""
    width = target.lanes(problem.dtype)
    if not problem.dtype.startswith("float") or problem.weights.kind != "packed" or problem.batch.extent > 1:
        return "anything but one product of floats by packed weights"
    if len(problem.taps) != 1 or problem.taps[0].x != 1 or any(axis.extent > 1 for axis in problem.rows[:-2]):
        return "rows or a reduction that are not evenly spaced"
    if problem.columns % (2 * width) or problem.depth % 2 or halved_axis(problem).extent < 2:
        return "extents that do not halve into whole vectors"
    return ""


def halved_axis(problem: Problem) -> Axis:
    """The row axis that is cut: image rows where the output has gaps between them, else all rows as one axis."""
    return problem.rows[-2] if problem.rows[-2].extent > 1 else problem.rows[-1]


@lru_cache(maxsize=1024)
def half_problem(problem: Problem) -> Problem:
    """One of the seven products: a quarter of A times a quarter of B."""
    axis = halved_axis(problem)
    cut = replace(axis, extent=-(-axis.extent // 2))
    rows = tuple(cut if row is axis else row for row in problem.rows[-2:])
    return replace(problem, rows=rows, columns=problem.columns // 2, taps=(Tap(problem.depth // 2, 1),))


def half_plan(problem: Problem, target: Target) -> Plan:
    """The plan of the products: tiles lie along the last row axis."""
    return plan_contraction(half_product(problem), target, SUPPLY)


def half_product(problem: Problem) -> Problem:
    """One of the seven products as it is tiled: rows along the last row axis."""
    half = half_problem(problem)
    return replace(half, rows=(UNIT, half.rows[-1]))


def strassen_pays(problem: Problem, target: Target, cold: bool = True, threads: int = 1) -> bool:
    """Is it estimated to be faster than the ordinary product?"""
    if declined(problem, target):
        return False
    plain = estimate(problem, target, weight_bytes(problem), cold, threads)
    return strassen_cycles(problem, target, cold, threads) < ADVANTAGE * plain


def declined(problem: Problem, target: Target) -> str:
    """Why the product is not considered at all; empty when it is."""
    short = f"a reduction of {problem.depth}, fewer than {LEAST_DEPTH}" if problem.depth < LEAST_DEPTH else ""
    return supports_strassen(problem, target) or short


def weight_bytes(problem: Problem) -> int:
    """Bytes of the plain weights."""
    return problem.depth * problem.columns * item_bytes(problem.dtype)


def strassen_cycles(problem: Problem, target: Target, cold: bool = True, threads: int = 1) -> float:
    """Estimated cycles: the sums of quarters and the seven products."""
    half = half_problem(problem)
    sums = half.row_count * half.depth / target.lanes(problem.dtype) * SUM_CYCLES / threads
    return sums + PRODUCTS * estimate(half, target, weight_bytes(problem) // 4, cold, threads)


@dataclass(frozen=True, slots=True)
class Product:
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
PLAN = (
    Product("a11", keep=0),
    Product("a12", start=0, result=(0, 0)),
    Product("s2", start=0, keep=0),           # U2
    Product("s3", start=0, keep=1),           # U3
    Product("a22", start=1, result=(1, 0)),
    Product("s1", result=(1, 1), onto=True),  # U2 + S1 T1 waits, U3 + S1 T1 is C22
    Product("s4", start=0, result=(0, 1)),
)
NONE = 15  # in a table: no place


class _Strassen:
    """Emits the kernel. A work item is a block of row pairs times a group of weight panels.

    A row is (y, x) on the two row axes; pair (y, x) is that row of the upper half and its fellow of the lower half,
    which lies `cut` further along the halved axis. Pairs are numbered y-major.
    """

    def __init__(self, f: IRFunction, problem: Problem, target: Target, operands: Sequence[str], epilogue: Epilogue):
        self.f, self.problem, self.half = f, problem, half_problem(problem)
        self.plan = half_plan(problem, target)
        self.type, self.size = llvm_type(problem.dtype), item_bytes(problem.dtype)
        self.width, self.cores = target.lanes(problem.dtype), target.cores
        self.epilogue, roles = replace(epilogue, bias=None), dict(zip(operands, f.pointers))
        self.bias = roles.get(epilogue.bias or "")
        self.x, self.w, self.out = f.pointers[:3]
        self.nest = Nest(f, problem, self.plan, target, Pointers(self.x, self.w, self.out, roles), self.epilogue)
        self.panel = self.plan.vectors * self.width
        axis = halved_axis(problem)
        self.by_image_row, self.odd = axis is problem.rows[-2], axis.extent % 2 == 1
        self.cut, self.rows = -(-axis.extent // 2), axis.extent
        self.wide = self.half.rows[-1].extent
        self.split = Split.at_most(self.wide, self.plan.tile[1])
        self._divide_blocks()

    def _divide_blocks(self) -> None:
        """Cut the tiles into work items whose sums fit into scratch."""
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
        f.loop(self.groups.start(f, group), self.groups.start(f, f.add(group, 1)), lambda panel: choose(
            f, panel, full, run(panel, self.plan.vectors) if full else None, run(panel, rest // self.width) if rest else None))

    def _panel(self, tiles: tuple[Index, Index], low: Index, panel: Index, vectors: int) -> None:
        """The seven products, each over all tiles of a block, for one panel of columns of both halves.

        All of them run the same code: what differs is looked up by their number. Seven copies would run no faster and
        take several times as long to compile.
        """
        f = self.f

        def product(number: Index) -> None:
            weights, ahead = self._weights(panel, number), self._following(panel, number)

            def tile(t: Index) -> None:
                y, piece = split_index(f, t, (self.half.rows[-2].extent, self.split.count))
                at, slot = (y, self.split.start(f, piece)), f.sub(self._first_pair(t), low)
                supply = weights, self._ahead(ahead, f.sub(t, tiles[0]), vectors)
                by_size(f, self.split, piece, lambda rows: self._tile(number, supply, at, slot, rows, panel, vectors))

            f.loop(*tiles, tile, nonempty=True)

        f.loop(0, PRODUCTS, product)

    def _look_up(self, number: Index, table: Sequence[int]) -> Value:
        """The entry (below 16) of a small table: a constant holds all of them."""
        packed = constant("i64", sum(entry << 4 * k for k, entry in enumerate(table)))
        return self.f.binary("and", self.f.binary("lshr", packed, self.f.value(self.f.mul(number, 4))), NONE)

    def _following(self, panel: Index, number: Index) -> Value:
        """The pointer to the panel of weights that is read after that of this product."""
        f = self.f
        last = f.compare("eq", number, PRODUCTS - 1)
        return f.select(last, self._weights(f.add(panel, 1), 0), self._weights(panel, f.add(number, 1)))

    def _ahead(self, panel: Value, tile: Index, vectors: int) -> Prefetch:
        """The share of the next panel of weights that a tile asks for."""
        size = self.half.depth * vectors * self.width * self.size
        share = -(-size // self.blocks.sizes[0])
        return Prefetch(self.f.offset(panel, self.f.mul(tile, share)), -(-share // self.half.depth))

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
        at = tuple(split_index(self.f, pair, (self.half.rows[-2].extent, self.wide)))
        if not self.odd:
            self._sum_row(at, slot, True)
        else:
            choose(self.f, at[0] if self.by_image_row else at[1], self.cut - 1, lambda: self._sum_row(at, slot, True),
                   lambda: self._sum_row(at, slot, False))

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

    def _tile(self, number: Index, supply: tuple[Value, Prefetch], at: tuple[Index, Index], slot: Index, rows: int,
              panel: Index, vectors: int) -> None:
        """One product for one tile of row pairs x columns."""
        f, count = self.f, rows * vectors
        start, keep = ([NONE if at is None else at for at in column] for column in zip(*((p.start, p.keep) for p in PLAN)))
        start, keep = self._look_up(number, start), self._look_up(number, keep)
        acc = f.branch(f.compare("ne", start, NONE), lambda: self._kept(start, slot, count),
                       lambda: [constant(vector(self.type, self.width), 0)] * count)
        acc = self._multiplied(number, supply, at, slot, rows, vectors, acc)

        def done() -> None:
            bottom, right = (self._look_up(number, [p.result[axis] for p in PLAN]) for axis in (0, 1))
            onto = f.compare("eq", number, next(k for k, p in enumerate(PLAN) if p.onto))
            self._finish(at, rows, panel, vectors, f.branch(onto, lambda: self._onto(slot, acc), lambda: acc), bottom, right)

        f.branch(f.compare("ne", keep, NONE), lambda: self._keep(keep, slot, acc), done)

    def _multiplied(self, number: Index, supply: tuple[Value, Prefetch], at: tuple[Index, Index], slot: Index,
                    rows: int, vectors: int, acc: Sequence[Value]) -> tuple[Value, ...]:
        """The accumulators after the product: the factor of A is a quarter in its place, or a plane of scratch."""
        f, planes = self.f, LEFT_SUMS[: self.planes]

        def reduced(pointer: Value, step: int) -> tuple[Value, ...]:
            tile = Tile(self.type, self.size, self.width, vectors, self.width, tuple(row * step * self.size for row in range(rows)),
                        self.half.taps, vectors * self.width * self.size, True)
            return accumulate(f, tile, pointer, supply[0], acc, supply[1])

        def from_place() -> tuple[Value, ...]:
            bottom, right = (self._look_up(number, [QUARTERS.get(p.left, (0, 0))[axis] for p in PLAN]) for axis in (0, 1))
            return reduced(self._quarter(at, bottom, right), self.problem.rows[-1].x)

        plane = self._look_up(number, [planes.index(p.left) if p.left in planes else NONE for p in PLAN])
        return f.branch(f.compare("eq", plane, NONE), from_place, lambda: reduced(self._plane(plane, slot), self.pitch))

    def _places(self, which: Index, slot: Index, count: int) -> list[Value]:
        """Where the accumulators of a tile wait; a tile's place begins at that of its first row pair."""
        f, step = self.f, self.width * self.size
        row = self.plan.vectors * step
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
        return f.offset(self.w, f.mul(f.add(f.mul(panel, self.half.depth * self.panel), f.mul(member, self._member())), self.size))

    def _member(self) -> int:
        """Elements of the packed weights of one product."""
        return self.half.depth * packed_columns(self.half, self.plan, self.width)

    def _finish(self, at: tuple[Index, Index], rows: int, panel: Index, vectors: int, acc: Sequence[Value],
                bottom: Index, right: Index) -> None:
        """Bias, epilogue and stores of a tile of one quarter of C; rows that do not exist are left out."""
        f = self.f
        column = f.add(f.mul(panel, self.panel), f.mul(right, self.half.columns))
        acc = self._with_bias(acc, column, vectors)
        y, x = self._row(at, bottom)
        lead = [0] * (len(self.problem.rows) - 2)
        send = lambda low, count: self.nest.finish(
            0, [*lead, y, f.add(x, low)], [(0, row) for row in range(count)], column,
            acc[low * vectors: (low + count) * vectors], vectors, self.width)
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
        steps = unroll(self.half.depth, rows * self.plan.vectors)
        turn = f" by {steps}" if steps > 1 else ""
        return "\n".join([
            f"{title} (Strassen): parallel over {self.items} items",
            f"  for group in {self.groups.count} groups of <= {self.groups.sizes[0]} panels, block in {self.blocks.count} blocks"
            f" of <= {self.block_rows} row pairs:",
            "    s[1..4] = sums of the quarters of x  # scratch",
            f"    for panel in group: panels of 2 x {columns} columns: for product in 7:",
            f"      for tile in block: tiles of <= {rows} row pairs  # registers: {rows} rows x {self.plan.vectors} vectors",
            f"        for k in {self.half.depth}{turn}: acc[r, c] += s[product, r, k] * t[product, k, c]",
            f"        out = {self.epilogue.shown('acc[r, c]')}  # four quarters{', the bias is added first' if self.bias else ''}", ""])


def strassen(prefix: str, problem: Problem, target: Target, epilogue: Epilogue, roles: tuple[str, ...],
             traffic: int) -> Kernel:
    """The kernel of a product that `supports_strassen` accepts."""
    operands = (*roles, *epilogue.operands, "scratch")
    f = IRFunction.kernel(prefix, operands)
    emitter = _Strassen(f, problem, target, operands, epilogue)
    emitter.run()
    text, declares = f.finish()
    return Kernel(prefix, text, declares, operands, emitter.items, emitter.scratch, problem.flops, traffic,
                  emitter.loops(prefix)).by_content(prefix)


def pack_strassen(problem: Problem, target: Target, matrix: np.ndarray) -> np.ndarray:
    """The right side [K, N] as its seven factors, each in panels, flat."""
    width = target.lanes(problem.dtype)
    (b11, b12), (b21, b22) = (np.hsplit(rows, 2) for rows in np.vsplit(matrix, 2))
    t1 = b12 - b11
    t2 = b22 - t1
    factors = np.stack([b11, b21, t2, b22 - b12, b21 - t2, t1, b22])
    return pack_panels(factors, half_plan(problem, target).vectors * width, width)
