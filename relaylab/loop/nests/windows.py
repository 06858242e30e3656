"""Windows in two steps: what the windows of a row have in common is combined once, in a row of scratch.

Of a window of 3 x 3 elements its columns are combined first, each for the three windows that it is part of, then three
of these: six steps for nine.
Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from relaylab.loop.expr import Axis, Load, Reduce, ScalarExpr, Tensor, post_order
from relaylab.loop.nest import loops_within
from relaylab.loop.program import Accumulate, For, LoopNest, Statement
from relaylab.loop.region import (
    Assign,
    StoreRegion,
    address,
    cut_axes,
    dense_strides,
    expand_reductions,
    linear_uses,
    merge_axes,
    normalise,
    substitute,
)
from relaylab.loop.scalar import is_float
from relaylab.loop.simplify import Simplifier

KINDS = ("max", "min", "sum")
WORTH = 0.85  # of what it costs may be left
KEEPING = 3  # what a vector that is kept costs, in additions; along a line windows that lie askew cost as much
COMPARING = 3  # what the larger of two floats costs, as either may be NaN
KEPT = 8192  # elements that are kept for a work item: with what is read and written they stay in the caches
FEW_ITEMS = 8
VECTOR = 16
SHORT = 16  # taps that are written out


@dataclass(frozen=True, slots=True)
class Window:
    """A reduction over windows: element `step * along + apart * tap` of a line is read at `along` for `tap`."""

    node: Reduce
    along: Axis
    tap: Axis
    step: int
    apart: int

    @property
    def line(self) -> int:
        """The elements of a line that are read."""
        return (self.along.extent - 1) * self.step + (self.tap.extent - 1) * self.apart + 1

    @property
    def others(self) -> tuple[Axis, ...]:
        """The other axes of the reduction."""
        return tuple(a for a in self.node.axes if a is not self.tap)

    def part(self, lanes: ScalarExpr | None) -> float:
        """What two steps cost of what one does, estimated, with vectors along the axis of these lanes."""
        each = COMPARING if self.node.kind != "sum" and is_float(self.node.dtype) else 1
        many, taps = math.prod(a.extent for a in self.others), self.tap.extent
        kept = 0 if lanes is self.along else KEEPING * self.line
        return (each * (many * self.line + taps * self.along.extent) + kept) / (each * many * taps * self.along.extent)


def window_nests(region: StoreRegion, scratch: list[Tensor]) -> list[LoopNest]:
    """The loops of a region whose one reduction is over windows that share much; [] for any other."""
    simplifier = Simplifier()
    region = region.map(lambda e: simplifier(expand_reductions(e)))
    window = _window(region, simplifier)
    inside = _inside(region, window, simplifier) if window else None
    if window is None or inside is None:
        return []
    region, kept = inside
    nests, work = list[LoopNest](), [replace(region, axes=tuple(a for a in region.axes if a not in kept))]
    while work:
        current = work.pop()
        simplifier = Simplifier()
        current = current.map(simplifier)
        changed = merge_axes(current, simplifier)
        for axis in current.axes:
            changed = changed or cut_axes(current, simplifier, axis)
        if changed:
            work.extend(reversed(changed))
        else:
            nests.append(_nest(current, kept, simplifier, scratch))
    return nests


def _window(region: StoreRegion, simplifier: Simplifier) -> Window | None:
    """The reduction over windows that makes a region, and the axis along which they share most."""
    reductions = [n for n in post_order(*region.roots) if isinstance(n, Reduce)]
    if len(reductions) != 1 or len(region.stores) != 1 or any(a.size is not None for a in region.axes):
        return None
    (node,) = reductions
    if any(a.size is not None for a in node.axes):
        return None
    narrow = node.kind == "sum" and node.dtype in ("float16", "bfloat16")  # what is kept would be rounded
    if node.kind not in KINDS or narrow or sum(a.extent > 1 for a in node.axes) < 2:
        return None
    uses = [u.terms for u in linear_uses((node.value,), simplifier)]
    strides = simplifier.linear(region.stores[0].address).terms
    lanes = next((a for a in region.axes if strides.get(a) == 1), None)
    found = [w for tap in node.axes for axis in region.axes if (w := _along(node, uses, axis, tap))]
    best = min(reversed(found), key=lambda w: w.part(lanes), default=None)
    return best if best is not None and best.part(lanes) <= WORTH else None


def _along(node: Reduce, uses: Sequence[dict[ScalarExpr, int]], axis: Axis, tap: Axis) -> Window | None:
    """The windows along an axis, if all that is read depends on the sum of its place and that in the window."""
    pairs = {(u.get(axis, 0), u.get(tap, 0)) for u in uses} - {(0, 0)}
    if tap.size is not None or not pairs or any(0 in pair for pair in pairs):
        return None
    ratios = {(a // math.gcd(a, b), b // math.gcd(a, b)) for a, b in pairs}
    step, apart = ratios.pop()
    if step < 0:
        step, apart = -step, -apart
    if ratios or 1 not in (step, apart) or apart < 1:
        return None
    return Window(node, axis, tap, step, apart)


def _inside(
    region: StoreRegion, window: Window, simplifier: Simplifier
) -> tuple[StoreRegion, tuple[Axis, Axis]] | None:
    """The region, and its two innermost axes, over which a line or a few lines are kept: one may be a part of what it
    was. None where the lines are too long, or nothing lies side by side.
    """
    strides = simplifier.linear(region.stores[0].address).terms
    order = sorted((a for a in region.axes if a in strides and a.extent > 1), key=lambda a: abs(strides[a]))
    if len(order) < 2 or strides[order[0]] != 1 or window.along not in order[:2]:
        return None
    lane, other = order[:2]
    many = math.prod(a.extent for a in region.axes) // (lane.extent * other.extent)
    part = other if lane is window.along else lane
    sizes = [n for n in range(1, part.extent + 1) if part.extent % n == 0 and n * window.line <= KEPT]
    if part is lane:
        sizes = [n for n in sizes if n == part.extent or n % VECTOR == 0]
    enough = [n for n in sizes if many * (part.extent // n) >= FEW_ITEMS] or sizes[:1]
    if not enough:
        return None
    size = enough[-1]
    if size == part.extent:
        return region, (other, lane)
    outer, inner = Axis(f"{part.name}o", part.extent // size), Axis(f"{part.name}i", size)
    region = region.map(lambda e: simplifier(substitute(e, {part: outer * size + inner})))
    axes = tuple(b for a in region.axes for b in ((outer, inner) if a is part else (a,)))
    return replace(region, axes=axes), (inner, lane) if part is other else (other, inner)


def _nest(region: StoreRegion, kept: tuple[Axis, Axis], simplifier: Simplifier, scratch: list[Tensor]) -> LoopNest:
    """The loops over the axes of a region, in which a line is kept over two axes more."""
    window = _window(replace(region, axes=(*region.axes, *kept)), simplifier)
    assert window is not None
    extents = [window.line if a is window.along else a.extent for a in kept]
    row = Tensor(f"row{len(scratch)}", (math.prod(extents),), window.node.dtype)
    scratch.append(row)
    outer = sorted(region.axes or (Axis("once", 1),), key=lambda a: -a.extent)
    body = list[Statement]()
    first = _first(window, row, kept, extents)
    rows = next((a for a, own in zip(first.axes, kept) if own is not window.along))
    steps = [
        *(cut_axes(first.map(simplifier), simplifier, rows) or [first]),
        _second(region, window, row, kept, extents),
    ]
    for part, simplify in (part for step in steps for part in normalise(step)):
        body.append(written_out(loops_within(part, simplify, scratch, frozenset(outer))))
    for axis in reversed(outer[1:]):
        body = [For(axis, "serial", tuple(body))]
    return LoopNest(For(outer[0], "serial", tuple(body)))


def _first(window: Window, row: Tensor, kept: tuple[Axis, Axis], extents: list[int]) -> StoreRegion:
    """The elements of a line, each combined over all axes of the windows but one."""
    axes = tuple(Axis(a.name, n) for a, n in zip(kept, extents))
    own: dict[Axis, ScalarExpr] = dict(zip(kept, axes))
    taps = tuple(replace(a) for a in window.others)
    own |= dict(zip(window.others, taps))
    place, single = own[window.along], Axis("once", 1)
    own |= {window.along: place, window.tap: single} if window.step == 1 else {window.along: single, window.tap: place}
    value = Reduce(window.node.kind, taps, substitute(window.node.value, own), window.node.part)
    return StoreRegion(axes, (Assign(row, address(axes, dense_strides(extents)), value),))


def _second(
    region: StoreRegion, window: Window, row: Tensor, kept: tuple[Axis, Axis], extents: list[int]
) -> StoreRegion:
    """What a region stores, with windows of one axis that read the line."""
    tap = replace(window.tap)
    at = tuple(a * window.step + tap * window.apart if a is window.along else a for a in kept)
    load = Load(row, (address(at, dense_strides(extents)),))
    value = Reduce(window.node.kind, (tap,), load, window.node.part)
    (store,) = region.stores
    return StoreRegion(kept, (replace(store, value=substitute(store.value, {window.node: value})),))


def written_out(statement: Statement) -> Statement:
    """A loop whose short loops over taps are written out."""
    if not isinstance(statement, For):
        return statement
    body = tuple(written_out(s) for s in statement.body)
    short = statement.stop is statement.axis.size is None and statement.axis.extent <= SHORT
    sums = all(isinstance(s, Accumulate) or isinstance(s, For) and s.kind == "unrolled" for s in body)
    return replace(statement, kind="unrolled" if short and sums else statement.kind, body=body)
