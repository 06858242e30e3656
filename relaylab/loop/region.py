"""Regions: stores over a box of axes, brought into the form that loops are made from.

`normalise` turns one region into a list of regions that together store the same, where

* argmax and argmin are a maximum and the least index that attains it, empty reductions are constants,
* a reduction that is needed only under a guard carries the guard inside,
* adjacent axes that are only used as one flat index are one axis,
* an axis that is used only through quotient and remainder is two axes,
* an axis on which guards change their verdict (concatenation, padding) is cut at these places.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from relaylab.loop.affine import Linear
from relaylab.loop.expr import (
    INDEX,
    Apply,
    Axis,
    Const,
    Guard,
    Load,
    Local,
    Reduce,
    ScalarExpr,
    Tensor,
    apply,
    as_index,
    children,
    const,
    guard,
    limited,
    post_order,
    rebuild,
)
from relaylab.loop.program import identity
from relaylab.loop.rewriting import rewrite
from relaylab.loop.scalar import is_float
from relaylab.loop.simplify import Simplifier

SEGMENTS = 32  # pieces of a region that is cut along several axes
MOST_SEGMENTS = 512  # along one: a long concatenation would look at all its operands for every element
MANY_PIECES = 8
INTERLEAVED = 8  # the longest innermost axis whose elements are interleaved from vectors along the next one
SQUARES = range(7, 17)  # how many neighbours of a load are worth a transposition in registers
WORDS = {2: "uint16", 4: "uint32", 8: "uint64"}  # what moves a group of so many bytes that lie side by side
LONG = 64  # lanes whose ends are worth loops of their own
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Assign:
    """`buffer[address] = value`, for every point of the axes of its region."""

    buffer: Tensor
    address: ScalarExpr
    value: ScalarExpr


@dataclass(frozen=True, slots=True)
class StoreRegion:
    """Stores over a box of axes; `segments` limits into how many pieces guards may still cut it."""

    axes: tuple[Axis, ...]
    stores: tuple[Assign, ...]
    segments: int = SEGMENTS

    @property
    def roots(self) -> tuple[ScalarExpr, ...]:
        """The expressions of all stores: addresses and values."""
        return tuple(e for s in self.stores for e in (s.address, s.value))

    def map(self, rule: Callable[[ScalarExpr], ScalarExpr]) -> StoreRegion:
        """The region with `rule` applied to every address and value."""
        stores = tuple(Assign(s.buffer, rule(s.address), rule(s.value)) for s in self.stores)
        return replace(self, stores=stores)


def normalise(region: StoreRegion) -> list[tuple[StoreRegion, Simplifier]]:
    """The regions, with the simplifiers that interned their expressions, that together store what `region` does."""
    finished: list[tuple[StoreRegion, Simplifier]] = []
    work = [region.map(expand_reductions)]
    while work:
        current = work.pop()
        if any(a.extent == 0 for a in current.axes):
            continue
        simplifier = Simplifier()
        current = current.map(simplifier)
        changed = merge_axes(current, simplifier) or split_axes(current) or cut_axes(current, simplifier)
        changed = changed or cut_squares(current, simplifier)
        if changed:
            work.extend(reversed(changed))
        else:
            used = {n for n in post_order(*current.roots) if isinstance(n, Axis)}
            finished.append((replace(current, axes=tuple(a for a in current.axes if a in used)), simplifier))
    return finished


# ---- reductions


def expand_reductions(root: ScalarExpr) -> ScalarExpr:
    """`root` without argmax, argmin and empty reductions, with guards moved into the reductions under them."""

    def plain(node: ScalarExpr) -> ScalarExpr:
        if isinstance(node, Reduce):
            return _plain_reduction(node)
        return _guard_inside(node) if isinstance(node, Guard) else node

    return rewrite(root, plain)


def _plain_reduction(node: Reduce) -> ScalarExpr:
    if any(a.extent == 0 for a in node.axes):
        return identity(node.kind, node.dtype)
    if not node.kind.startswith("arg"):
        return node
    best = Reduce(node.kind[3:], node.axes, node.value, node.part)
    axes = {a: replace(a) for a in node.axes}
    value = substitute(node.value, axes)
    hit = apply("lor", apply("eq", value, best), apply("isnan", value))
    flat: ScalarExpr = as_index(0)
    for axis in axes.values():
        flat = flat * axis.length + axis
    size = math.prod(a.length for a in node.axes)
    return Reduce("min", tuple(axes.values()), apply("select", hit, flat, size - 1), node.part)


def _guard_inside(node: Guard) -> Guard:
    """A guard whose reductions have its condition in their bodies, so that they can be computed outside of it."""

    def guarded(n: ScalarExpr) -> ScalarExpr:
        if not isinstance(n, Reduce) or isinstance(n.value, Guard) and n.value.condition is node.condition:
            return n
        return Reduce(n.kind, n.axes, guard(node.condition, n.value, Const(0, n.value.dtype)), n.part)

    value = rewrite(node.value, guarded)
    return node if value is node.value else Guard(node.condition, value, node.otherwise)


Leaf = TypeVar("Leaf", bound=ScalarExpr)


def substitute(
    root: ScalarExpr, values: Mapping[Leaf, ScalarExpr], axes: dict[Axis, tuple[Axis, ...]] | None = None
) -> ScalarExpr:
    """`root` with axes or registers replaced by `values`; reductions over a replaced axis run over `axes[axis]`."""
    axes = axes or {}
    done: dict[ScalarExpr, ScalarExpr] = {**values}
    for node in post_order(root, known=done):
        new = rebuild(node, tuple(done[c] for c in children(node)))
        if isinstance(new, Reduce) and any(a in axes for a in new.axes):
            new = Reduce(new.kind, tuple(b for a in new.axes for b in axes.get(a, (a,))), new.value, new.part)
        done[node] = new
    return done[root]


# ---- axes


def _exchange(
    region: StoreRegion, values: Mapping[Axis, ScalarExpr], axes: dict[Axis, tuple[Axis, ...]]
) -> StoreRegion:
    own = tuple(b for a in region.axes for b in axes.get(a, (a,)))
    return replace(region.map(lambda e: substitute(e, values, axes)), axes=own)


def linear_uses(roots: tuple[ScalarExpr, ...], simplifier: Simplifier) -> Iterator[Linear]:
    """Every sum of index arithmetic that something other than a sum uses, and the roots that are indices."""
    seen: set[ScalarExpr] = set()
    stack = list(roots)
    for root in roots:
        if root.dtype == INDEX:
            yield simplifier.linear(root)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        sum_of = simplifier.linear(node) if node.dtype == INDEX else None
        if sum_of is not None and sum_of.atom is not node:
            stack.extend(sum_of.terms)
            continue
        for child in children(node):
            if child.dtype == INDEX:
                yield simplifier.linear(child)
            stack.append(child)


def merge_axes(region: StoreRegion, simplifier: Simplifier) -> list[StoreRegion]:
    """The region with one pair of axes merged that is only used as `outer * extent + inner`; [] if there is none."""
    uses = list(linear_uses(region.roots, simplifier))
    boxes = dict.fromkeys((region.axes, *(n.axes for n in post_order(*region.roots) if isinstance(n, Reduce))))
    for box in boxes:
        for outer, inner in ((a, c) for a in box for c in box if a is not c and c.size is None):
            if all(u.terms.get(outer, 0) == u.terms.get(inner, 0) * inner.extent for u in uses):
                merged = _merged(outer, inner)
                values = {outer: Const(0, INDEX), inner: merged}
                return [_exchange(region, values, {outer: (), inner: (merged,)})]
    return []


def _merged(outer: Axis, inner: Axis) -> Axis:
    """The axis that runs over both."""
    size = None if outer.size is None else outer.size * inner.extent
    return Axis(outer.name if outer.extent > 1 else inner.name, outer.extent * inner.extent, size=size)


def split_axes(region: StoreRegion) -> list[StoreRegion]:
    """The region with one axis split that is divided by a divisor of its extent; [] if there is none."""
    for node in post_order(*region.roots):
        if isinstance(node, Apply) and node.op in ("floordiv", "floormod") and isinstance(node.args[0], Axis):
            axis, divisor = node.args[0], node.args[1]
            size = int(divisor.value) if isinstance(divisor, Const) else 0
            if axis.size is None and 1 < size < axis.extent and axis.extent % size == 0:
                outer, inner = Axis(axis.name, axis.extent // size), Axis(f"{axis.name}_", size)
                return [_exchange(region, {axis: outer * size + inner}, {axis: (outer, inner)})]
    return []


def cut_axes(region: StoreRegion, simplifier: Simplifier, ends: Axis | None = None) -> list[StoreRegion]:
    """The region cut along one of its axes where conditions on that axis alone change; [] if none does.

    Along lanes, or the axis `ends`, also where they hold from then on, whatever other loops run over: masks cost more
    there than a loop.
    """
    cuts: dict[Axis, set[int]] = {}
    strides = simplifier.linear(region.stores[0].address).terms
    lanes = next((a for a in region.axes if strides.get(a) == 1 and a.extent >= LONG), None) if ends is None else ends
    for node in post_order(*region.roots):
        if isinstance(node, Apply) and node.op in _COMPARISONS and node.args[0].dtype == INDEX:
            difference = simplifier.linear(node.args[0]) - simplifier.linear(node.args[1])
            axes = [a for a in difference.terms if a in region.axes]
            axis = axes[0] if len(axes) == 1 else None
            if isinstance(axis, Axis) and axis.size is None:
                for known in [difference] if len(difference.terms) == 1 else _ends(difference, axis, lanes):
                    cuts.setdefault(axis, set()).update(_changes(node.op, known, axis))
    most = MOST_SEGMENTS if region.segments == SEGMENTS else region.segments
    for axis, places in cuts.items():
        if places and len(places) < most:
            return _cut(region, axis, sorted(places))
    return []


def _ends(difference: Linear, axis: Axis, lanes: Axis | None) -> list[Linear]:
    """The difference with the axes of reductions in it at their ends; nothing of others, and but for lanes."""
    steps = [(a, factor) for a, factor in difference.terms.items() if a is not axis]
    if axis is not lanes or not all(isinstance(a, Axis) and a.size is None for a, _ in steps):
        return []
    ends = [(0, factor * (a.extent - 1)) for a, factor in steps if isinstance(a, Axis)]
    return [Linear({axis: difference.terms[axis]}, difference.const + sum(map(end, ends))) for end in (min, max)]


def _changes(op: str, difference: Linear, axis: Axis) -> set[int]:
    """The positions of an axis at which `difference op 0` is not what it was one before."""
    factor, start = difference.terms[axis], difference.const
    near = -start // factor
    holds = _COMPARISONS[op]
    return {
        p for p in range(max(near - 1, 1), min(near + 3, axis.extent))
        if holds(factor * p + start, 0) != holds(factor * (p - 1) + start, 0)
    }  # fmt: skip


def _cut(region: StoreRegion, axis: Axis, places: list[int]) -> list[StoreRegion]:
    """The pieces of a region; of many places first two halves: a piece need not look at all that others are."""
    many = len(places) + 1
    at = places if many <= MANY_PIECES else places[many // 2 - 1 : many // 2]
    ends = [0, *at, axis.extent]
    pieces: list[StoreRegion] = []
    for low, high in zip(ends, ends[1:]):
        part, own = Axis(axis.name, high - low), 1 + sum(low < p < high for p in places)
        left = max(max(region.segments, many) * own // many, 1)
        pieces.append(replace(_exchange(region, {axis: part + low}, {axis: (part,)}), segments=left))
    return pieces


def transposed_axes(region: StoreRegion, simplifier: Simplifier) -> Iterator[tuple[Axis, Axis]]:
    """The axes along which loads of a copy are contiguous where those of its stores, beside them, would gather."""
    value, strides = region.stores[0].value, simplifier.linear(region.stores[0].address).terms
    vector = next((a for a in region.axes if strides.get(a) == 1 and a.extent > INTERLEAVED), None)
    nodes = post_order(*region.roots)
    if vector is None or len(region.stores) > 1 or any(isinstance(n, (Reduce, Guard)) for n in nodes):
        return
    for load in (n for n in post_order(value) if isinstance(n, Load)):
        terms = simplifier.linear(load.indices[0]).terms
        along = next((a for a in region.axes if terms.get(a) == 1), None)
        if along is not None and along.size is None and terms.get(vector, 0) > 1:
            yield along, vector


def cut_squares(region: StoreRegion, simplifier: Simplifier) -> list[StoreRegion]:
    """A copy that transposes along an axis of no even squares, cut so that every piece has some; [] if it is none."""
    longest = SQUARES[-1]
    for along, _ in transposed_axes(region, simplifier):
        if any(along.extent % size == 0 for size in SQUARES):
            return []
        if along.extent > longest:
            whole = along.extent // longest * longest
            rest = along.extent - whole
            if rest in SQUARES:
                return _cut(region, along, [whole])
            two = whole - longest  # two pieces of 8 to 11 take what is too little for one
            return _cut(region, along, [*([two] if two else []), two + (longest + rest) // 2])
    return []


# ---- copies of small groups


@dataclass(frozen=True, slots=True)
class WideCopy:
    """A region of wider elements, and what stands for the buffers that it reads and writes."""

    region: StoreRegion
    buffers: dict[Tensor, Tensor]


def wide_copy(parts: Sequence[tuple[StoreRegion, Simplifier]]) -> WideCopy | None:
    """A copy whose innermost axis is a group of 2, 4 or 8 bytes on both sides, group by group; None for all else."""
    if len(parts) != 1 or len(parts[0][0].stores) != 1:
        return None
    [(region, simplifier)] = parts
    [store] = region.stores
    load = store.value
    if not isinstance(load, Load):
        return None
    to, of = simplifier.linear(store.address), simplifier.linear(load.indices[0])
    inner = next((a for a in region.axes if to.terms.get(a) == of.terms.get(a) == 1 and a.size is None), None)
    size = 0 if inner is None else inner.extent * np.dtype(load.dtype).itemsize
    if inner is None or inner.extent == 1 or size not in WORDS or len(region.axes) < 2:
        return None
    numbers = [n for side in (to, of) for n in (*side.terms.values(), side.const)]
    if not {*to.terms, *of.terms} <= {*region.axes} or sum(n % inner.extent != 0 for n in numbers) != 2:
        return None
    axes = tuple(a for a in region.axes if a is not inner)
    wide = {t: Tensor(t.name, (-(-t.shape[0] // inner.extent),), WORDS[size]) for t in (store.buffer, load.tensor)}

    def place(side: dict[ScalarExpr, int], start: int) -> ScalarExpr:
        return address(axes, tuple(side.get(a, 0) // inner.extent for a in axes), start // inner.extent)

    value = Load(wide[load.tensor], (simplifier(place(of.terms, of.const)),), load.part)
    assign = Assign(wide[store.buffer], simplifier(place(to.terms, to.const)), value)
    return WideCopy(replace(region, axes=axes, stores=(assign,)), wide)


# ---- addresses


def flatten(root: ScalarExpr, flat: dict[Tensor, tuple[Tensor, tuple[int, ...], int]]) -> ScalarExpr:
    """`root` with loads of the tensors in `flat` as loads of one address: (buffer, strides, offset).

    An index that is computed from data or floats is kept inside the tensor: a wrong one gives a wrong element, never a
    crash.
    """
    done: dict[ScalarExpr, ScalarExpr] = {}
    fed: set[ScalarExpr] = set()
    for node in post_order(root):
        if _is_data(node) or any(c in fed for c in children(node)):
            fed.add(node)
        new = rebuild(node, tuple(done[c] for c in children(node)))
        if isinstance(new, Load) and new.tensor in flat:
            new = _flat_load(new, *flat[new.tensor], tuple(i in fed for i in children(node)))
        done[node] = new
    return done[root]


def by_data(index: ScalarExpr) -> bool:
    """Whether an index is computed from loaded numbers, registers or floats."""
    return any(map(_is_data, post_order(index)))


def _is_data(node: ScalarExpr) -> bool:
    return isinstance(node, (Load, Local)) or is_float(node.dtype)


def _flat_load(node: Load, buffer: Tensor, strides: tuple[int, ...], offset: int, fed: tuple[bool, ...]) -> ScalarExpr:
    """A load as one of an address, with the indices that are `fed` by data limited; 0 where there is no element."""
    if 0 in node.tensor.shape:
        return const(0, node.dtype)
    extents = node.tensor.shape
    indices = tuple(limited(i, n) if by_data else i for i, n, by_data in zip(node.indices, extents, fed))
    load = Load(buffer, (address(indices, strides, offset),), node.part)
    whole: ScalarExpr = load
    for size in (n for n, by_data in zip(extents, fed) if by_data and isinstance(n, ScalarExpr)):
        whole = guard(apply("gt", size, 0), whole, const(0, node.dtype))
    return whole


def dense_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides of `shape`, in elements."""
    strides, step = list[int](), 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def address(indices: tuple[ScalarExpr, ...], strides: tuple[int, ...], offset: int = 0) -> ScalarExpr:
    """offset + sum of index * stride."""
    total: ScalarExpr = as_index(offset)
    for index, stride in zip(indices, strides):
        total = total + index * stride
    return total
