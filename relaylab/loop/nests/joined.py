"""Regions that fill each other's gaps as one: vectors of each are interleaved and stored side by side.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relaylab.loop.expr import Axis, Reduce, ScalarExpr, apply, as_index, post_order
from relaylab.loop.region import INTERLEAVED, Assign, StoreRegion, substitute
from relaylab.loop.simplify import Simplifier

LEAST = 16  # elements of each: fewer are no vector

Part = tuple[StoreRegion, Simplifier]


def joined(parts: Sequence[Part]) -> list[Part]:
    """The parts, and each run of n parts that write every n-th element, beginning with neighbours, as one part."""
    found: list[Part] = []
    rest = list(parts)
    while rest:
        count = _apart(*rest[0])
        group = rest[:count]
        if count > 1 and len(group) == count and all(_follows(group[0], part, k) for k, part in enumerate(group)):
            found.append(_one(group))
            rest = rest[count:]
        else:
            found.append(rest.pop(0))
    return found


def _apart(region: StoreRegion, simplifier: Simplifier) -> int:
    """How far the elements of a region's innermost axis are apart; 1 where that is no distance to fill."""
    terms = simplifier.linear(region.stores[0].address).terms
    steps = [terms.get(a, 0) for a in region.axes if a.size is None and a.extent >= LEAST]
    step = min((n for n in steps if n > 0), default=1)
    plain = len(region.stores) == 1 and all(n % step == 0 for n in terms.values())
    reduces = any(isinstance(n, Reduce) for n in post_order(*region.roots))
    return step if plain and step <= INTERLEAVED and not reduces else 1


def _follows(first: Part, other: Part, distance: int) -> bool:
    """Whether a part writes the elements behind those of the first by a distance, in the same loops."""
    (a, left), (b, right) = first, other
    if [x.extent for x in a.axes] != [x.extent for x in b.axes] or any(x.size is not None for x in (*a.axes, *b.axes)):
        return False
    if len(b.stores) != 1 or a.stores[0].buffer is not b.stores[0].buffer:
        return False
    ours, theirs = left.linear(a.stores[0].address), right.linear(b.stores[0].address)
    steps = [(ours.terms.get(x, 0), theirs.terms.get(y, 0)) for x, y in zip(a.axes, b.axes)]
    whole = len(ours.terms) == len(theirs.terms) == sum(n != 0 for n, _ in steps)
    same = whole and all(n == m for n, m in steps) and theirs.const - ours.const == distance
    return same and not any(isinstance(n, Reduce) for n in post_order(*b.roots))


def _one(group: Sequence[Part]) -> Part:
    """One region of an axis more, along which the parts take turns."""
    first, turn = group[0][0], Axis("turn", len(group))
    value: ScalarExpr | None = None
    for k, (part, _) in reversed(list(enumerate(group))):
        own = substitute(part.stores[0].value, dict(zip(part.axes, first.axes)))
        value = own if value is None else apply("select", apply("lt", turn, as_index(k + 1)), own, value)
    assert value is not None
    simplifier = Simplifier()
    store = Assign(first.stores[0].buffer, first.stores[0].address + turn, value)
    return replace(first, axes=(*first.axes, turn), stores=(store,)).map(simplifier), simplifier
