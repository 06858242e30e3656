"""From a normalised region to a loop nest: the order of the loops, what is vectorised, what is computed where.

* Loops run from large to small stride of the first store; axes that every reduction depends on go outside.
* The axis of unit stride is vectorised, unless the reductions that depend on it read better along their own axis.
* A reduction, and any value that an inner loop does not change, is computed in the outermost loop that it needs.
* A reduction turns only while its guard holds, where that is the same in all lanes: windows at the border of an image.
* Expensive values that would be computed again (the exponentials of softmax) are kept in scratch.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import count

from relaylab.loop.dependence import Dependence, Turns, guarded_turns
from relaylab.loop.evaluate import guarded_only
from relaylab.loop.expr import (
    INDEX,
    MOST_SIZE,
    Axis,
    Cast,
    Const,
    Guard,
    Load,
    Local,
    Reduce,
    ScalarExpr,
    Tensor,
    children,
    post_order,
)
from relaylab.loop.keep import EXPENSIVE, ROW, KeptRows, by_lines, repeated_value, shared_row
from relaylab.loop.program import Accumulate, Define, For, LoopNest, Statement, Store, identity
from relaylab.loop.region import INTERLEAVED, SQUARES, StoreRegion, substitute, transposed_axes
from relaylab.loop.simplify import Simplifier
from relaylab.loop.sizes import factors
from relaylab.loop.weight import FAR, LOADED, folding_cost, lane_cost, spread, weight

GRAIN = 4096
FEW_ITEMS = 8
LEAST_TURNS = 3  # of a loop for which what it does not change is kept
ROW_BLOCK = 1024  # the most elements of a row that is kept where the whole is divided among work items
LONG_ROW = 4096  # elements that are kept where their results go: the caches have room for one row more
SHORT = 3  # turns that are no vector if a guard leaves some of them out
LANES = 16  # what vector lengths are judged by; the target decides the real width

Roots = tuple[ScalarExpr, ...]


def build_nest(region: StoreRegion, simplifier: Simplifier, scratch: list[Tensor]) -> LoopNest:
    """The loops that do the stores of a normalised region; private buffers that they need are added to `scratch`."""
    region = _with_items(region, simplifier)
    squared = _with_squares(region, simplifier)
    builder = _Builder(squared, simplifier, scratch, squared is not region)
    return builder.nest()


def plain_nest(region: StoreRegion, simplifier: Simplifier) -> LoopNest:
    """The loops as they are written down, for schedules to begin with: in the order of the axes, one turn at a time."""
    whole = StoreRegion((Axis("once", 1), *region.axes), region.stores)
    return _Builder(whole, simplifier, [], plain=True).nest()


def loops_within(
    region: StoreRegion, simplifier: Simplifier, scratch: list[Tensor], around: frozenset[Axis]
) -> Statement:
    """The loops that do the stores of a normalised region inside of other loops, which are `around`."""
    axes = loop_order(region, simplifier) or (Axis("once", 1),)
    return _Builder(StoreRegion(axes, region.stores), simplifier, scratch, around=around).nest().loop


def _with_items(region: StoreRegion, simplifier: Simplifier) -> StoreRegion:
    """The region with its axes in loop order and an axis of work items first."""
    region, order, around = _with_rows(region, list(loop_order(region, simplifier)), simplifier)
    shared = _shared_by_reductions(region)
    if not order or (shared is not None and order[0] not in shared):
        return StoreRegion((Axis("p", 1), *order), region.stores)
    strides = strides_of(region, simplifier)
    innermost = min(order, key=lambda a: abs(strides.get(a, 1)))
    fusable = len(order) > 2 and innermost not in order[:2] and (shared is None or order[1] in shared) and around != 1
    fusable = fusable and all(a.size is None for a in order[:2]) and order[0].extent < FEW_ITEMS
    # blocks of squares make more items, of which no number is a quotient
    if fusable and all(along not in order[:2] for along, _ in transposed_axes(region, simplifier)):
        lanes = interleaving_axis(region, innermost, simplifier) is order[1]
        return _with_fused_items(region, order, lanes, simplifier)
    return StoreRegion(tuple(order), region.stores)


def _with_fused_items(region: StoreRegion, order: list[Axis], lanes: bool, simplifier: Simplifier) -> StoreRegion:
    """The region with one axis of items for its first two, of which the second keeps a block if it has the `lanes`."""
    outer, inner, *rest = order
    blocks, size = inner.extent, 1
    if lanes:
        enough = (n for n in range(1, FEW_ITEMS + 1) if inner.extent % n == 0 and n * outer.extent >= FEW_ITEMS)
        blocks = next(enough, 1)
        size = inner.extent // blocks
    items, place = Axis(f"{outer.name}{inner.name}", outer.extent * blocks), Axis(f"{inner.name}i", size)
    within = items % blocks * size + place if lanes else items % blocks
    values: dict[Axis, ScalarExpr] = {outer: items // blocks, inner: within}
    region = region.map(lambda e: simplifier(substitute(e, values)))
    return StoreRegion((items, *([place] if lanes else []), *rest), region.stores)


def _with_rows(region: StoreRegion, order: list[Axis], simplifier: Simplifier) -> tuple[StoreRegion, list[Axis], int]:
    """The region, and its axes so that loops which do not change an expensive value have those that do around them, and
    how many those are.

    Of the innermost axis a block goes outside: a work item computes a row of such values for all turns in between.
    """
    *outer, vector = order or [Axis("p", 1)]
    if any(a.size is not None for a in order) or _shared_by_reductions(region) is not None:
        return region, order, 0
    depends = Dependence()
    values = (repeated_value(region.roots, depends, frozenset(), a, None) for a in outer if a.extent >= LEAST_TURNS)
    changing = next((depends(v) for v in values if v is not None), frozenset[Axis]())
    if vector not in changing:
        return region, order, 0
    around = [a for a in outer if a in changing]
    if not around:
        limit = max(LANES, min(ROW_BLOCK, vector.extent // FEW_ITEMS))
        size = max((n for n in range(LANES, limit + 1) if vector.extent % n == 0), default=vector.extent)
        if size > ROW_BLOCK:
            return region, order, 0
        region = _split(replace(region, axes=tuple(order)), vector, size, simplifier)
        *_, block, vector = region.axes
        around = [block]
    return region, [*around, *(a for a in outer if a not in changing), vector], len(around)


def _with_squares(region: StoreRegion, simplifier: Simplifier) -> StoreRegion:
    """The region with a part of the axis along which loads are contiguous inside the vectors that would gather them.

    A copy that transposes is then done in squares; the same region where there is nothing to transpose.
    """
    for along, vector in transposed_axes(region, simplifier):
        if vector is region.axes[0]:
            return region
        size = max((t for t in SQUARES if along.extent % t == 0), default=0)
        if size:
            return _with_more_items(_split(region, along, size, simplifier), vector)
    return region


def _with_more_items(region: StoreRegion, vector: Axis) -> StoreRegion:
    """The region with its second axis in front where the first has been split into few blocks."""
    first, second, *rest = region.axes
    better = first.size is None and first.extent < FEW_ITEMS and second.size is None and second.extent > first.extent
    if not better or second is vector or len(rest) < 2:
        return region
    return StoreRegion((second, first, *rest), region.stores)


def _split(region: StoreRegion, axis: Axis, size: int, simplifier: Simplifier) -> StoreRegion:
    """The region with an axis in two: blocks in its place, `size` neighbours innermost."""
    outer, inner = Axis(f"{axis.name}o", axis.extent // size), Axis(f"{axis.name}i", size)
    region = region.map(lambda e: simplifier(substitute(e, {axis: outer * size + inner})))
    return StoreRegion((*(outer if a is axis else a for a in region.axes), inner), region.stores)


def strides_of(region: StoreRegion, simplifier: Simplifier) -> dict[ScalarExpr, int]:
    """By how much the first store moves along each axis; for a product with sizes, as if they were large."""
    terms = simplifier.linear(region.stores[0].address).terms
    return {part: n if part is atom else n * MOST_SIZE for atom, n in terms.items() for part in factors(atom)}


def loop_order(region: StoreRegion, simplifier: Simplifier) -> tuple[Axis, ...]:
    """The axes from outermost to innermost."""
    strides = strides_of(region, simplifier)
    by_stride = sorted(region.axes, key=lambda a: -abs(strides.get(a, 1)))
    uses = [n for n in post_order(*region.roots) if isinstance(n, Reduce)]
    depends = Dependence()
    return tuple(sorted(by_stride, key=lambda a: -sum(a in depends(n) for n in uses)))


def _shared_by_reductions(region: StoreRegion) -> frozenset[Axis] | None:
    """The axes that every reduction depends on, directly or through those around it; None without reductions."""
    depends = Dependence()
    outer = [depends(n) for n in post_order(*region.roots) if isinstance(n, Reduce)]
    return outer[0].intersection(*outer) if outer else None


def contiguity(simplifier: Simplifier, bodies: list[ScalarExpr], axis: Axis) -> float:
    """How well the loads under some expressions vectorise along an axis: +1 for unit or no stride, else -1."""
    score = sum((1.0 if n < 2 else 0.5) if 0 <= n <= 2 else -1.0 for n in spread(simplifier, bodies, axis))
    return (score + 0.1) * min(axis.extent, LANES) if score >= 0 else score  # 0.1: at a tie the longer axis wins


def interleaving_axis(region: StoreRegion, best: Axis, simplifier: Simplifier) -> Axis | None:
    """The axis around a short innermost one along which loads are contiguous: its vectors can be interleaved."""
    strides = strides_of(region, simplifier)
    if best.extent > INTERLEAVED or strides.get(best) != 1 or len(region.stores) != 1:
        return None
    around = [a for a in region.axes if strides.get(a) == best.extent]
    values = [region.stores[0].value]
    if not around:
        return None
    if any(2 < n <= FAR for n in spread(simplifier, values, around[0])):
        each = LOADED.get(best.extent, math.inf)  # as many vectors are sorted again where they are stored
        cheaper = lane_cost(simplifier, values, around[0], each) <= lane_cost(simplifier, values, best, 1)
        return around[0] if cheaper else None
    ours, theirs = (contiguity(simplifier, values, axis) for axis in (best, around[0]))
    return around[0] if theirs > ours else None


@dataclass
class _Builder:
    region: StoreRegion
    simplifier: Simplifier
    scratch: list[Tensor]
    squared: bool = False
    plain: bool = False
    around: frozenset[Axis] = frozenset()  # of loops that the nest stands in
    depends: Dependence = field(default_factory=Dependence)
    names: count[int] = field(default_factory=count)
    lane: Axis | None = None  # the axis that the stores are vectorised along

    def nest(self) -> LoopNest:
        """The parallel loop with everything in it."""
        self.lane = self.vector_axis()
        axis, vector = self.region.axes[0], self.lane
        body = self._inside(self.region.roots, 1, vector)
        if axis is not vector:
            whole = For(axis, "serial", body)
            return LoopNest(whole if self.plain else by_lines(whole, self.scratch))
        block = 4 * LANES
        grain = max(GRAIN // max(math.prod(a.extent for a in self.region.axes[1:]), 1) // block, 1) * block
        return LoopNest(For(axis, "vectorized", body, self._unroll(axis, self.region.roots)), grain)

    def vector_axis(self) -> Axis | None:
        """The axis that the stores are vectorised along; None if their reductions are vectorised instead."""
        strides = strides_of(self.region, self.simplifier)
        axes = [a for a in self.region.axes if a.extent > 1 and a in strides]
        if not axes or self.plain:
            return None
        best = min(axes, key=lambda a: abs(strides[a]))
        inner = [n for n in post_order(*self.region.roots) if isinstance(n, Reduce) and best in self.depends(n)]
        if not inner:
            partner = interleaving_axis(self.region, best, self.simplifier)
            if partner is not None:
                return partner
            scattered = abs(strides[best]) != 1 and weight(self.region.stores[0].value) < EXPENSIVE
            return None if scattered else best
        bodies = [n.value for n in inner]
        axes = [k for n in inner for k in n.axes]
        if any(2 < n <= FAR for axis in (best, *axes) for n in spread(self.simplifier, bodies, axis)):
            cost, once = lane_cost(self.simplifier, bodies, best), folding_cost(inner)
            least = min(lane_cost(self.simplifier, bodies, k, once=once) for k in axes)
            if min(cost, least) < math.inf:
                return best if cost <= least else None
        own = contiguity(self.simplifier, bodies, best)
        rival = max(contiguity(self.simplifier, bodies, k) for k in axes)
        return best if own >= rival else None

    def _inside(self, roots: Roots, depth: int, vector: Axis | None) -> tuple[Statement, ...]:
        """What the loops of `axes[:depth]` contain."""
        available, later = self.around.union(self.region.axes[:depth]), self.region.axes[depth:]
        lanes = vector is not None and vector in available
        body, roots = self._place(roots, available, later, lanes)
        if not later:
            pairs = zip(self.region.stores, roots[::2], roots[1::2])
            return (*body, *(Store(s.buffer, address, value) for s, address, value in pairs))
        axis = later[0]
        kind = "vectorized" if axis is vector else "serial"
        unroll = self._unroll(axis, roots) if kind == "vectorized" and not self.squared else 1
        return (*body, For(axis, kind, self._inside(roots, depth + 1, vector), unroll))

    # ---- what is computed before an inner loop

    def _place(
        self, roots: Roots, available: frozenset[Axis], later: tuple[Axis, ...], lanes: bool
    ) -> tuple[list[Statement], Roots]:
        """Statements for all that needs only the available axes, and the roots with registers in its place."""
        body: list[Statement] = []
        while True:
            reduces = (n for n in post_order(*roots) if isinstance(n, Reduce))
            ready = next((n for n in reduces if self.depends(n) <= available), None)
            if ready is None:
                break
            value, kept = self._keep_row(ready, roots, later, lanes)
            roots = tuple(self.simplifier(r, kept) for r in roots)
            statements, local = self._reduction(ready, value, available, lanes)
            self.depends.stands_for(local, ready)
            body += statements
            roots = tuple(self.simplifier(r, {ready: local}) for r in roots)
        if later:
            rows, roots = ([], roots) if lanes or self.plain else self._keep(roots, available, later[0])
            hoisted, roots = self._hoist(roots, available)
            body += [*rows, *hoisted]
        return body, roots

    def _keep(self, roots: Roots, available: frozenset[Axis], following: Axis) -> tuple[list[Statement], Roots]:
        """Scratch for what the loop over `following` would compute again at each of its turns."""
        rows = KeptRows(self.simplifier, self.scratch)
        while (value := repeated_value(roots, self.depends, available, following)) is not None:
            own = self.depends(value) - available
            changing = [n for n in post_order(value) if isinstance(n, Axis) and n in own]  # sets have no order
            ranks = {a: (contiguity(self.simplifier, [value], a), a.extent) for a in changing}
            element = rows.keep(value, sorted(changing, key=ranks.__getitem__))
            roots = tuple(self.simplifier(r, {value: element}) for r in roots)
        return rows.loops(), roots

    def _hoist(self, roots: Roots, available: frozenset[Axis]) -> tuple[list[Statement], Roots]:
        """Registers for the largest values that the loops further in do not change."""
        guarded = set[int]().union(*(guarded_only(r) for r in roots))
        found: dict[ScalarExpr, Local] = {}
        seen: set[ScalarExpr] = set()
        stack = list(roots)
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            if self._worth_hoisting(node, available, guarded):
                found[node] = self._local("t", node.dtype)
                self.depends.stands_for(found[node], node)
            else:
                stack.extend(children(node))
        body: list[Statement] = [Define(local, node) for node, local in reversed(found.items())]
        return body, tuple(self.simplifier(r, found) for r in roots) if found else roots

    def _worth_hoisting(self, node: ScalarExpr, available: frozenset[Axis], guarded: set[int]) -> bool:
        if isinstance(node, (Const, Axis, Local, Reduce)) or not self.depends(node) <= available:
            return False
        if isinstance(node, Cast) and isinstance(node.value, (Const, Local)):
            return False
        loads = any(isinstance(n, Load) for n in post_order(node))
        return (loads or node.dtype != INDEX) and not (loads and id(node) in guarded)

    def _local(self, prefix: str, dtype: str) -> Local:
        return Local(f"{prefix}{next(self.names)}", dtype)

    # ---- reductions

    def _reduction(
        self, node: Reduce, kept: Store | None, available: frozenset[Axis], lanes: bool
    ) -> tuple[list[Statement], Local]:
        """An accumulator and the loops that fill it; the innermost is vectorised unless lanes are in use already."""
        local = self._local(node.kind, node.dtype)
        axes = list(node.axes)
        vector: Axis | None = None
        if not lanes and not self.plain:
            vector = self._along(node)
            cut = isinstance(node.value, Guard) and vector in self.depends(node.value.condition)
            vector = vector if vector.extent > (SHORT if cut else 1) else None
        if vector is not None:
            axes.remove(vector)
            axes.append(vector)
        loops = self._reduction_loops(node, local, kept, axes, vector, available)
        return [Define(local, identity(node.kind, node.dtype)), *loops], local

    def _along(self, node: Reduce) -> Axis:
        """The axis of a reduction that its vectors lie along best."""
        costs = {a: lane_cost(self.simplifier, [node.value], a) for a in node.axes}
        far = any(2 < n <= FAR for a in costs for n in spread(self.simplifier, [node.value], a))
        if far and min(costs.values()) < math.inf:
            return min(costs, key=costs.__getitem__)
        return max(node.axes, key=lambda a: (contiguity(self.simplifier, [node.value], a), a.extent))

    def _reduction_loops(
        self, node: Reduce, local: Local, kept: Store | None, axes: list[Axis], vector: Axis | None,
        available: frozenset[Axis],
    ) -> list[Statement]:  # fmt: skip
        turns, value = Turns(), node.value
        if not kept and not self.plain:
            serial = [a for a in axes if a is not vector and a.size is None]
            around = self.around.union(self.region.axes) - {self.lane}
            turns, value = guarded_turns(node, serial, around, self.simplifier)
            axes.sort(key=lambda a: (a is vector, a in turns))  # masks of lanes serve all turns within
        starts, begin = self._starts(turns)
        before, roots = self._hoist((self.simplifier(value, begin) if begin else value,), available)
        levels: list[list[Statement]] = []
        for d, axis in enumerate(axes):
            available |= {axis}
            within = axis is vector or vector is None
            body, roots = self._place(roots, available, tuple(axes[d + 1 :]), within)
            levels.append(body)
        levels[-1] += self._accumulation(local, node.kind, roots[0], kept)
        inner = levels[-1]
        for axis, outer in zip(reversed(axes[1:]), reversed(levels[:-1])):
            inner = [*outer, self._loop(axis, vector, node, inner, turns)]
        return [*starts, *before, self._loop(axes[0], vector, node, inner, turns)]

    def _starts(self, turns: Turns) -> tuple[list[Statement], dict[ScalarExpr, ScalarExpr]]:
        """Registers for the first turns of axes, and the axes as sums of these and of turns from there on."""
        starts: list[Statement] = []
        begin: dict[ScalarExpr, ScalarExpr] = {}
        for axis, (low, _) in turns.items():
            first = low
            if not isinstance(low, Const):
                first = self._local("first", INDEX)
                starts.append(Define(first, low))
                self.depends.stands_for(first, low)
            begin[axis] = self.simplifier(axis + first)
        return starts, begin

    def _loop(
        self, axis: Axis, vector: Axis | None, node: Reduce, body: list[Statement],
        turns: Turns
    ) -> For:  # fmt: skip
        if axis in turns:
            low, end = turns[axis]
            return For(axis, "serial", tuple(body), stop=self.simplifier(end - low))
        if axis is not vector:
            return For(axis, "serial", tuple(body))
        return For(axis, "vectorized", tuple(body), self._unroll(axis, (node.value,)))

    def _accumulation(self, local: Local, kind: str, value: ScalarExpr, kept: Store | None) -> list[Statement]:
        if kept is None:
            return [Accumulate(local, kind, value)]
        element = self._local("t", value.dtype)
        self.depends.stands_for(element, value)
        store = Store(kept.buffer, kept.address, element)
        total = self.simplifier(value, {kept.value: element})
        return [Define(element, self.simplifier(kept.value)), store, Accumulate(local, kind, total)]

    def _keep_row(
        self, node: Reduce, roots: Roots, later: tuple[Axis, ...], lanes: bool
    ) -> tuple[Store | None, dict[ScalarExpr, ScalarExpr]]:
        """The store that keeps an expensive value of a row reduction, and where the row reads it back."""
        if lanes or self.plain or len(node.axes) != 1 or len(later) != 1:
            return None, {}
        axis, other = node.axes[0], later[0]
        found = shared_row(node.value, axis, other, set(post_order(*roots)), self.simplifier)
        if found is None:
            return None, {}
        if axis.extent >= LONG_ROW and len(roots) == 2 and roots[1].dtype == found[0].dtype:
            out, place = self.region.stores[0].buffer, self.simplifier(substitute(roots[0], {other: axis}))
            return Store(out, place, found[0]), {found[1]: self.simplifier.intern(Load(out, (roots[0],)))}
        if axis.extent > ROW:
            return None, {}
        row = Tensor(f"row{len(self.scratch)}", (axis.extent,), found[0].dtype)
        self.scratch.append(row)
        return Store(row, axis, found[0]), {found[1]: self.simplifier.intern(Load(row, (other,)))}

    def _unroll(self, axis: Axis, roots: Roots) -> int:
        """How many vectors go side by side: more for light bodies, at most what the axis has."""
        total = sum(weight(n, shallow=True) for n in post_order(*roots) if axis in self.depends(n))
        wanted = 4 if total <= 14 else 2 if total <= 40 else 1
        return max(1, min(wanted, axis.extent // LANES))
