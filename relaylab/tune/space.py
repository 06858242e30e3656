"""The schedules that are tried for a kernel, from the form of its plain loops.

* A loop over elements (`map`): one loop becomes lanes, another is shared out among the threads.
* A sum for each element (`tile`): tiles of rows and columns in registers around the loops of the sum, with packed
  operands; or lanes along the sum.
* A product or a convolution that a template computes: other numbers for the template's loops (`chosen`).
* Anything else (a softmax, a norm): the innermost loops become lanes.

A listed schedule is one that can be taken: a step that is refused ends it here.

Source of the tiles: Goto and van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS 34 (2008).

Choices: docs/choices.md, Measuring.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.templates.schedule import max_rows
from relaylab.loop.expr import Axis, Load, post_order
from relaylab.loop.program import Accumulate, Define, For, LoopProgram, Statement, statements, values
from relaylab.loop.schedule import Schedule
from relaylab.loop.simplify import Simplifier
from relaylab.support.errors import RelayError

MOST_ROWS, MOST_VECTORS = 16, 4
MOST_TILES = 6  # forms of a tile, the ones with most products per load first
CHOSEN_VECTORS = (1, 2, 3, 4)
Steps = list[str]


@dataclass(frozen=True)
class Candidate:
    """A schedule that can be taken, and the loops that it gives."""

    schedule: Schedule
    program: LoopProgram


def chosen(target: CpuTarget) -> list[str]:
    """Other numbers for the loops that the compiler picks for products and convolutions, simple changes first."""
    found = [f"from picked {choice}" for choice in ("minimal=0", "unroll=1", "unroll=4", "prefetch=0", "prefetch=1")]
    found += [f"from picked outer={which}" for which in ("tiles", "panels")]
    for vectors in CHOSEN_VECTORS:
        most = max_rows(target, vectors)
        rows = dict.fromkeys(n for n in (most, most - 1, most // 2) if n > 0)
        found += [f"from picked rows={n} vectors={vectors}" for n in rows]
    return found


def candidates(plain: LoopProgram, target: CpuTarget) -> Iterator[Candidate]:
    """The schedules of a kernel that its steps allow, each once."""
    seen, before = {""}, list[tuple[str, LoopProgram]]()
    for steps in _proposals(plain, target):
        if (text := "\n".join(steps)) in seen:
            continue
        seen.add(text)
        same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1][0], zip(steps, before)))
        del before[same:]  # neighbours begin alike: what they share is not done again
        try:
            for step in steps[same:]:
                program = before[-1][1] if before else plain
                before.append((step, Schedule.parse(step).apply(program)))
            yield Candidate(Schedule.parse(text), before[-1][1])
        except RelayError:  # a step that is not allowed on these loops
            continue


def _proposals(plain: LoopProgram, target: CpuTarget) -> Iterator[Steps]:
    nests = [s for nest in plain.nests[:1] for s in nest.loop.body if isinstance(s, For)]  # nothing at all has none
    if len(plain.nests) == 1 and len(nests) == len(plain.nests[0].loop.body) == 1:
        spine, end = _spine(nests[0])
        sums = [s for s in statements(end) if isinstance(s, Accumulate)]
        inner = [s for s in end if isinstance(s, For)]
        if not inner:
            yield from _maps(spine, end, target)
        elif len(sums) == 1 and len(inner) == 1:
            yield from _tiles(spine, end, inner[0], target)
    yield from _rows(nests)


def _spine(loop: For) -> tuple[list[For], tuple[Statement, ...]]:
    """Loops that stand directly in each other, and what is in the last one."""
    found = [loop]
    while len(found[-1].body) == 1 and isinstance(found[-1].body[0], For):
        found.append(found[-1].body[0])
    return found, found[-1].body


def _rows(nests: list[For]) -> Iterator[Steps]:
    """Lanes along all innermost loops, with and without threads along the outermost."""
    loops = [s for nest in nests for s in statements((nest,)) if isinstance(s, For)]
    innermost = [s.axis.name for s in loops if not any(isinstance(x, For) for x in s.body) and s.axis.extent > 1]
    if innermost:
        lanes = ["vectorize " + " ".join(innermost)]
        yield lanes
        if len(nests) == 1 and nests[0].axis.extent > 1 and nests[0].axis.name not in innermost:
            yield [*lanes, f"parallel {nests[0].axis.name}"]


def _maps(spine: list[For], end: tuple[Statement, ...], target: CpuTarget) -> Iterator[Steps]:
    """Lanes along one loop, some rows of another one beside each other, threads along a third."""
    wide = [loop.axis for loop in spine if loop.axis.extent > 1]
    names = [loop.axis.name for loop in spine]
    for lane in reversed(wide):
        others = [a for a in wide if a is not lane]
        pieces = [0, *(n for n in _divisors(lane.extent) if target.lanes("float32") <= n <= 256)][:4]
        for piece, outer in itertools.product(pieces, [None, *others]):
            order = [n for n in names if n != lane.name and (outer is None or n != outer.name)]
            order = [*([outer.name] if outer is not None else []), *order]
            steps = [f"split {lane.name} {piece} as {lane.name}_o {lane.name}_t"] if piece else []
            inside = [f"{lane.name}_o", f"{lane.name}_t"] if piece else [lane.name]
            whole = [*order, *inside]
            if len(whole) > 1:
                steps.append("reorder " + " ".join(whole))
            steps.append(f"vectorize {inside[-1]}")
            if outer is not None:
                steps.append(f"parallel {outer.name}")
            yield steps


def _tiles(spine: list[For], end: tuple[Statement, ...], inner: For, target: CpuTarget) -> Iterator[Steps]:
    """Tiles of registers around the loops of a sum, and lanes along the sum."""
    sums, body = _chain(inner)
    kept = [s.local.name for loop in sums for s in loop.body if isinstance(s, Define)]
    inline = [f"inline {' '.join(dict.fromkeys(kept))}"] if kept else []
    first = spine[0].axis
    along = [*inline, f"vectorize {sums[-1].axis.name}"]
    yield along
    for loop in spine:  # threads along any loop that can be the outermost
        if loop.axis.extent > 1:
            rest = [x.axis.name for x in spine if x is not loop]
            order = [f"reorder {' '.join([loop.axis.name, *rest])}"] if loop.axis is not first else []
            yield [*order, *along, f"parallel {loop.axis.name}"]
    wide = [loop.axis for loop in spine if loop.axis.extent > 1]
    loads = _loads(body)
    for lane in reversed(wide):
        if not any(_depends(load, lane) for load in loads):
            continue
        for row in [a for a in reversed(wide) if a is not lane][:2] or [None]:
            for rows, columns in _shapes(row, lane, target):
                yield from _tile([x.axis for x in spine], sums, inline, (row, rows), (lane, columns))


def _tile(
    spine: list[Axis], sums: list[For], inline: Steps, row: tuple[Axis | None, int], lane: tuple[Axis, int]
) -> Iterator[Steps]:
    """The schedules of one form of a tile: what runs outermost, the order of the sum's loops, what is packed."""
    (r, rows), (v, columns) = row, lane
    vo, vt = f"{v.name}_o", f"{v.name}_t"
    steps = [f"split {v.name} {columns} as {vo} {vt}"]
    inside = [vt]
    outer = {a.name: a.name for a in spine} | {v.name: vo}
    if r is not None:
        ro, rt = f"{r.name}_o", f"{r.name}_t"
        steps.append(f"split {r.name} {rows} as {ro} {rt}")
        inside, outer[r.name] = [rt, vt], ro
    blocks = list(outer.values())
    heads = [vo, *(outer[a.name] for a in spine if a.extent > 1 and outer[a.name] != vo)][:2]
    names, body = [s.axis.name for s in sums], sums[-1].body
    (local,) = (s.local.name for s in body if isinstance(s, Accumulate))
    orders = list(dict.fromkeys((tuple(names), (*names[1:], names[0]))))
    marks = [f"vectorize {vt} {vt}_init {vt}_out"]
    if r is not None:
        marks.append(f"unroll {rt} {rt}_init {rt}_out")
    for head, order in itertools.product(heads, orders):
        blocks_ = list(dict.fromkeys([head, vo, *blocks]))
        base = [*steps, *inline, f"reorder {' '.join([*blocks_, *inside])}", f"fission {' '.join(reversed(inside))}"]
        base.append(f"reorder {' '.join([*order, *inside])}")
        for packs in _packings(_loads(body), order, blocks_, (r, v), outer):
            lanes = [f"vectorize {p.split()[-1]}_pack" for p in packs if p.split()[-1] == vt][:1]
            yield [*base, *packs, *marks, *lanes, f"registers {local}", f"parallel {head}"]


def _packings(
    loads: list[Load], order: tuple[str, ...], blocks: Steps, tile: tuple[Axis | None, Axis], outer: dict[str, str]
) -> Iterator[Steps]:
    """What is packed: one operand, in the loop over blocks from which on it stays the same, or nothing if the lanes
    lie beside each other as they are."""
    if all(_step(load, tile[1]) for load in loads if _depends(load, tile[1])):
        yield []
    for axis, load in itertools.product((a for a in tile if a is not None), loads):
        used = {n.name for n in post_order(load.indices[0]) if isinstance(n, Axis)}
        fixed = max((blocks.index(outer[x]) for x in used if x in outer), default=0)
        if axis.name in used and fixed + 1 < len(blocks):
            axes = " ".join([*(x for x in order if x in used), f"{axis.name}_t"])
            yield [f"pack {load.tensor.name} {blocks[fixed]} {axes}"]


def _chain(inner: For) -> tuple[list[For], tuple[Statement, ...]]:
    """The loops of a sum, outermost first, and what the last one does; registers may be set beside them."""
    found = [inner]
    while deeper := [s for s in found[-1].body if isinstance(s, For)]:
        found.append(deeper[0])
    return found, found[-1].body


def _loads(body: tuple[Statement, ...]) -> list[Load]:
    return [n for s in body for e in values(s) for n in post_order(e) if isinstance(n, Load)]


def _depends(load: Load, axis: Axis) -> bool:
    return any(n is axis for n in post_order(load.indices[0]))


def _step(load: Load, axis: Axis) -> bool:
    """Whether neighbouring turns of a loop read neighbours."""
    simplify = Simplifier()
    return simplify.linear(simplify(load.indices[0])).terms.get(axis, 0) == 1


def _shapes(row: Axis | None, lane: Axis, target: CpuTarget) -> list[tuple[int, int]]:
    """Rows and columns of tiles that fit into the registers, those with most products per load first."""
    width = target.lanes("float32")
    columns = [n for n in _divisors(lane.extent) if n <= MOST_VECTORS * width and (n >= 4 or n == lane.extent)]
    rows = [n for n in _divisors(row.extent) if n <= MOST_ROWS] if row is not None else [1]

    def work(shape: tuple[int, int]) -> float:
        vectors = -(-shape[1] // width)
        return shape[0] * shape[1] / width / (shape[0] + vectors)

    fitting = [(r, c) for r in rows for c in columns if r * -(-c // width) <= target.registers - 3]
    return sorted(fitting, key=work, reverse=True)[:MOST_TILES]


def _divisors(extent: int) -> list[int]:
    return [n for n in range(1, min(extent, 256) + 1) if extent % n == 0]
