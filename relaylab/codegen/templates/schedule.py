"""The cost model: which register tile, which loop order and how much work per item, from shapes and weight bytes.

The model counts cycles per step of the reduction for a tile of R rows x V vectors: the longest of products, loads and
supply of weights, plus a price per tile for its prologue, epilogue and stores. Candidates that would spill are never
considered.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.codegen.templates.problem import Choices, Problem, Split, whole_vectors
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

SMALL_WEIGHTS = 512 << 10  # bytes that stay in a second-level cache together with the activations of a tile
FAR_BYTES = 1 << 20  # activations that are larger were pushed out of the second-level cache before they are read
L1_PANEL = 20 << 10  # bytes of a weight panel that stays in the first-level cache beside the activations
LEAST_TILES = 8  # of a block of rows: while they are done, the next panel of weights comes from beyond the caches
CACHE_WAYS = 8
ITEMS_WANTED = 16  # enough work items to keep a few threads evenly loaded
TILE_OVERHEAD = 40.0  # cycles per tile besides the reduction
SUPPLY_CYCLES = 3.2  # cycles per vector of weights from the second-level cache
BEYOND = 2.0  # times as long takes a vector of a panel that does not stay in that cache
UNROLLED_PRODUCTS = 28  # vector products in a loop body: more gains nothing measurable and costs compile time
SHOWN = 5  # register tiles that `why` lists
STORE_CYCLES = 1.5  # cycles per accumulator vector for epilogue and store

MOST_PRODUCTS = 256  # vector products in the body of a loop over the reduction
CHOICES = {
    "high": (1, 64),
    "rows": (1, 64),
    "vectors": (1, 16),
    "unroll": (1, 64),
    "tiles": (1, 2**31),
    "panels": (1, 2**31),
    "outer": (0, 1),
    "prefetch": (0, 1),
    "minimal": (0, 0),
}
"""The name of each choice and between what it lies. `high` and `rows` are the rows of a register tile along the last
two row axes; `minimal=0` asks for loops without minimal products, as every choice does."""
WORDS = {"tiles": 0, "panels": 1}  # of `outer`


@dataclass(frozen=True, slots=True)
class Blocking:
    """The decisions for one contraction.

    A register tile is `tile` = (rows of the last but one row axis, rows of the last) x `vectors`. A work item is
    `tiles` row tiles x `panels` weight panels; items run over panels first when `panels_outer`. A turn of the loop over
    the reduction does `unroll` steps, as many as fit if that is 0.
    """

    vectors: int
    tile: tuple[int, int]
    tiles: int
    panels: int
    panels_outer: bool
    prefetch: bool = False
    unroll: int = 0


def max_rows(target: CpuTarget, vectors: int) -> int:
    """The most rows of a register tile that is `vectors` wide without spilling: accumulators, weights, a scalar."""
    facts = target.facts
    limit = min(facts.accumulators, facts.registers - vectors - facts.spare)
    return max(0, limit) // vectors


def estimate(problem: Problem, target: CpuTarget, weight_bytes: int) -> float:
    """Cycles of a contraction by register tiles while so many bytes of weights come from memory."""
    schedule = schedule_contraction(problem, target)
    work = problem.batch.extent * _cost(problem, target, schedule.vectors, schedule.tile)
    return overlapped(work, weight_bytes, target)


def overlapped(work: float, weight_bytes: int, target: CpuTarget) -> float:
    """Cycles of `work` while `weight_bytes` stream in: the longer of both, and a part of the shorter."""
    # Inside a network other layers have pushed these weights out: warm measurements would prefer too many bytes.
    memory = weight_bytes / target.facts.cold_bytes
    return max(work, memory) + 0.2 * min(work, memory)


@lru_cache(maxsize=4096)
def schedule_contraction(problem: Problem, target: CpuTarget, supply: float = SUPPLY_CYCLES) -> Blocking:
    """The cheapest plan of the cost model for this problem on this target, with what is chosen already.

    `supply` is what it costs to get a vector of weights that are not in the first-level cache, in cycles.
    """
    _, vectors, tile = candidates(problem, target, supply)[0]
    vectors, tile = chosen_tile(problem, vectors, tile)
    plan, chosen = loop_order(problem, target, vectors, tile), dict(problem.choices)
    return replace(
        plan,
        tiles=chosen.get("tiles", plan.tiles),
        panels=chosen.get("panels", plan.panels),
        panels_outer=bool(chosen.get("outer", plan.panels_outer)),
        prefetch=bool(chosen.get("prefetch", plan.prefetch)),
        unroll=chosen.get("unroll", target.byte_products.unroll if problem.word > 1 else 0),
    )


def candidates(
    problem: Problem, target: CpuTarget, supply: float = SUPPLY_CYCLES
) -> list[tuple[float, int, tuple[int, int]]]:
    """(estimated cycles of one batch member, vectors, tile) of every register tile considered, the best first."""
    found = [(_cost(problem, target, *t, supply), *t) for t in _tiles(problem, target)]
    return sorted(found, key=lambda c: c[0])


def crowd_of(problem: Problem) -> int:
    """The most rows of a tile that the first-level cache holds beside each other."""
    pitch = problem.rows[-1].x * item_bytes(problem.dtype)
    return CACHE_WAYS if pitch and pitch % 4096 == 0 else 64  # such rows fall into one set


def _tiles(problem: Problem, target: CpuTarget) -> list[tuple[int, tuple[int, int]]]:
    width = target.lanes(problem.dtype)
    most = -(-problem.columns // width)
    outer, inner = problem.rows[-2].extent, problem.rows[-1].extent
    crowd, found = crowd_of(problem), []
    # More than 8 vectors leave registers for three rows at most: loads of weights would bound such tiles.
    for vectors in range(1, min(most, 8) + 1):
        rows = min(max_rows(target, vectors), crowd)
        if problem.word > 1:  # halves of words take registers of their own
            rows = int(rows * target.byte_products.rows)
        if rows < 1:
            continue
        found.append((vectors, (1, min(rows, inner))))
        # Short image rows (7 pixels) would leave registers empty: several whole ones make one tile.
        if inner * 2 <= rows and outer > 1:
            found.append((vectors, (min(outer, rows // inner), inner)))
    return found


def _cost(
    problem: Problem, target: CpuTarget, vectors: int, tile: tuple[int, int], supply: float = SUPPLY_CYCLES
) -> float:
    """Estimated cycles of the whole contraction for one batch member."""
    width = target.lanes(problem.dtype)
    panels = panel_vectors(problem.columns, width, vectors)
    splits = [Split.at_most(axis.extent, limit) for axis, limit in zip(problem.rows[-2:], tile)]
    outer = math.prod(axis.extent for axis in problem.rows[:-2])
    total, once = 0.0, outer * splits[0].count * splits[1].count == 1
    for rows, row_times in _pieces(splits):
        for wide, wide_times in panels.items():
            products = rows * wide
            # A panel that does not stay in the first-level cache comes anew for every tile; with one tile all come.
            panel = problem.depth * wide * width * item_bytes(problem.dtype)
            far = once or panel > L1_PANEL
            # One that leaves no room for the next beside it comes from beyond the second-level cache for every tile.
            kept = once or problem.weights.kind == "gathered" or 2 * panel <= target.facts.second_cache
            beyond = 1.0 if kept else BEYOND
            step = step_cycles(rows, wide, supply * beyond if far else 0.0)
            each = problem.depth * step + TILE_OVERHEAD + STORE_CYCLES * products
            total += each * row_times * wide_times
    # Every size of tile is code of its own: a little is charged for compiling it and for the instruction cache.
    variants = len(panels) * math.prod(len(split.sizes) for split in splits)
    return total * outer * (1 + 0.003 * variants)


def step_cycles(rows: int, vectors: int, supply: float = 0.0) -> float:
    """Cycles of one step of the reduction: products, loads, or weights that come from farther away."""
    loads = rows + vectors
    # 4.0: the latency of a multiply-add, which too few accumulators cannot hide. The rest are the loop's own
    # instructions.
    return max(rows * vectors, loads, supply * vectors, 4.0) + 0.1 * loads + 0.5


def panel_vectors(columns: int, width: int, vectors: int) -> dict[int, int]:
    """How many panels have how many vectors."""
    full, rest = divmod(columns, vectors * width)
    found = {vectors: full} if full else {}
    if rest:
        tail = -(-rest // width)
        found[tail] = found.get(tail, 0) + 1
    return found


def _pieces(splits: list[Split]) -> list[tuple[int, int]]:
    """(rows in a tile, how many such tiles) over both tiled axes."""
    first, second = (split.pieces for split in splits)
    return [(a * b, times * often) for a, times in first for b, often in second]


def packed_size(problem: Problem, target: CpuTarget) -> int:
    """Elements of the packed weights of all batch members: whole panels, then whole vectors."""
    return problem.batch.extent * problem.depth * whole_vectors(problem.columns, target.lanes(problem.dtype))


def tile_count(problem: Problem, tile: tuple[int, int]) -> int:
    """Row tiles of one batch member."""
    splits = [Split.at_most(axis.extent, limit) for axis, limit in zip(problem.rows[-2:], tile)]
    return math.prod(axis.extent for axis in problem.rows[:-2]) * splits[0].count * splits[1].count


def loop_order(problem: Problem, target: CpuTarget, vectors: int, tile: tuple[int, int]) -> Blocking:
    """The order of the loops around such tiles, and how much is a work item."""
    width, size = target.lanes(problem.dtype), item_bytes(problem.dtype)
    tiles = tile_count(problem, tile)
    panels = -(-problem.columns // (vectors * width))
    weight_bytes = problem.columns * problem.depth * size
    if problem.weights.kind == "gathered":  # a panel is gathered once per item: give it all the rows it can have
        parts = max(1, min(tiles, -(-4 // (panels * problem.batch.extent))))
        return Blocking(vectors, tile, -(-tiles // parts), 1, True)
    if panels == 1 or weight_bytes <= SMALL_WEIGHTS and tiles >= ITEMS_WANTED:
        # Weights that stay in the cache bind nothing: items are about 112 rows, fewer if threads want them.
        per_item = max(1, min(tiles * problem.batch.extent // (4 * ITEMS_WANTED), -(-112 // (tile[0] * tile[1]))))
        return Blocking(vectors, tile, per_item if panels == 1 else 1, panels, False)
    # Rows that are read again for every panel: a quarter of the second-level cache.
    rows_of_block = max(1, target.facts.second_cache // 4 // (max(1, problem.depth) * size))
    block = max(LEAST_TILES, rows_of_block // (tile[0] * tile[1]))
    large = weight_bytes > SMALL_WEIGHTS
    if tiles > 2 * block:  # both sides are large: walk the weights once per block of rows
        return Blocking(vectors, tile, block, 1, False, prefetch=large)
    parts = max(1, min(tiles, -(-ITEMS_WANTED // (panels * problem.batch.extent))))
    # One tile reads its panel once, as fast as the hardware streams it: asking for the next panel only costs.
    return Blocking(vectors, tile, -(-tiles // parts), 1, True, prefetch=large and tiles > 1)


def plan_reasons(problem: Problem, target: CpuTarget, supply: float = SUPPLY_CYCLES) -> list[str]:
    """The register tiles that were considered, the best first, and what follows for the loops."""
    schedule = schedule_contraction(problem, target, supply)
    lines = [
        f"{'  ' if k else '->'} {tile[0]} x {tile[1]} rows x {vectors} vectors {cost:14,.0f} cycles"
        for k, (cost, vectors, tile) in enumerate(candidates(problem, target, supply)[:SHOWN])
    ]
    return [size_of(problem), *lines, order_reason(schedule)]


def size_of(problem: Problem) -> str:
    """The extents of a contraction in words."""
    extents = " x ".join(str(axis.extent) for axis in problem.rows)
    return f"product of {extents} rows x {problem.columns} columns over {problem.depth}, batch {problem.batch.extent}:"


def order_reason(schedule: Blocking) -> str:
    """The order of the loops in words."""
    if schedule.panels_outer:
        order = "panels outside: a panel of weights stays in the cache for its tiles"
    elif schedule.panels > 1:
        order = "tiles outside: a block of rows meets all panels"
    else:
        order = "tiles outside, one panel at a time"
    prefetch = ", the next panel is prefetched" if schedule.prefetch else ""
    return f"an item is {schedule.tiles} tiles x {schedule.panels} panels, {order}{prefetch}"


def unroll(count: int, products: int) -> int:
    """How many reduction steps a loop body holds."""
    best = max(1, min(4, UNROLLED_PRODUCTS // max(1, products)))
    return count if count <= best else max(u for u in range(1, best + 1) if u == 1 or count // u > 1)


# ---- what a user chose instead: `rows=2x7 vectors=2 unroll=4`; kept with the problem, weights are packed for it


def choices_of(words: Sequence[str]) -> Choices:
    """Choices as they are written, `NAME=NUMBER`, rows also as `2x7`; RelayValueError `schedule.arguments`."""
    found: dict[str, int] = {}
    for word in words:
        name, _, value = word.partition("=")
        if name not in CHOICES or name == "high":
            known = [n for n in CHOICES if n != "high"]
            help = did_you_mean(name, known) or f"the choices are {', '.join(known)}"
            raise RelayValueError(f"a plan has no choice `{name}`", code="schedule.arguments", help=help)
        numbers = value.split("x") if name == "rows" else [value]
        if name == "outer":
            numbers = [str(WORDS.get(value, value))]
        for key, text in zip(("high", "rows") if len(numbers) == 2 else (name,), numbers):
            low, high = CHOICES[key]
            if len(numbers) > 2 or not text.isdecimal() or len(text) > 10 or not low <= int(text) <= high:
                what = "tiles or panels" if name == "outer" else f"a number from {low} to {high}"
                raise RelayValueError(f"`{name}` is {what}, not `{value}`", code="schedule.arguments")
            found[key] = int(text)
    return tuple(sorted(found.items()))


def check_products(products: int) -> None:
    """RelayValueError `schedule.illegal` for more vector products than the body of a loop may have."""
    if products > MOST_PRODUCTS:
        raise RelayValueError(
            f"a loop would contain {products} vector products", code="schedule.illegal", help=f"at most {MOST_PRODUCTS}"
        )


def chosen_tile(problem: Problem, vectors: int, tile: tuple[int, int]) -> tuple[int, tuple[int, int]]:
    """Vectors and rows of a register tile, those that are chosen instead of the given ones."""
    chosen = dict(problem.choices)
    if "rows" in chosen:
        tile = chosen.get("high", 1), chosen["rows"]
    inner = [min(n, axis.extent) for n, axis in zip(tile, problem.rows[-2:])]
    vectors = chosen.get("vectors", vectors)
    if problem.choices:
        check_products(math.prod(inner) * vectors * chosen.get("unroll", 1))
    if problem.weights.kind == "gathered" and chosen.get("panels", 1) != 1:
        raise RelayValueError("a panel that is copied belongs to one item", code="schedule.illegal", help="panels=1")
    return vectors, (inner[0], inner[1])
