"""What is kept in scratch: expensive values that a loop would otherwise compute again at each of its turns, or alone.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from relaylab.loop.dependence import Dependence
from relaylab.loop.evaluate import guarded_only
from relaylab.loop.expr import Apply, Axis, Const, Load, Local, Reduce, ScalarExpr, Tensor, post_order
from relaylab.loop.program import Accumulate, Define, For, Statement, Store, statements, values
from relaylab.loop.region import address, dense_strides, substitute
from relaylab.loop.schedule.tree import with_values
from relaylab.loop.simplify import Simplifier
from relaylab.loop.weight import weight

ROW = 1 << 16  # the most elements that are kept
EXPENSIVE = 10  # in units of an addition
LOGARITHMS = ("log", "log2", "log10")  # as many instructions for a number as for a vector of them
LINES = range(16, 4, -1)  # how many numbers are brought together
MANY = 128  # items from which on blocks of them keep all threads at work


def repeated_value(
    roots: Sequence[ScalarExpr],
    depends: Dependence,
    available: frozenset[Axis],
    following: Axis,
    most: int | None = ROW,
) -> ScalarExpr | None:
    """The largest expensive value that changes further in, but not along the axis of the loop that follows.

    It has `most` elements, or however many.
    """
    guarded = set[int]().union(*(guarded_only(r) for r in roots))
    for value in reversed(list(post_order(*roots))):
        changing = depends(value) - available
        if not changing or following in changing or (most and math.prod(a.extent for a in changing) > most):
            continue
        whole = not any(isinstance(n, Reduce) for n in post_order(value))
        if whole and id(value) not in guarded and weight(value) >= EXPENSIVE:
            return value
    return None


class KeptRows:
    """Values that are kept, and the loops that store them in new scratch buffers: one for all over the same axes."""

    def __init__(self, simplifier: Simplifier, scratch: list[Tensor]):
        self.simplifier, self.scratch = simplifier, scratch
        self._stores: dict[tuple[Axis, ...], tuple[tuple[Axis, ...], list[Statement]]] = {}

    def keep(self, value: ScalarExpr, axes: Sequence[Axis]) -> ScalarExpr:
        """The element at `axes` of what is stored of `value`."""
        row = Tensor(f"row{len(self.scratch)}", (math.prod(a.extent for a in axes),), value.dtype)
        self.scratch.append(row)
        own, stores = self._stores.setdefault(tuple(axes), (tuple(Axis(a.name, a.extent) for a in axes), []))
        strides = dense_strides([a.extent for a in axes])
        place, element = (self.simplifier(address(tuple(at), strides)) for at in (own, axes))
        stores.append(Store(row, place, self.simplifier(substitute(value, dict(zip(axes, own))))))
        return self.simplifier.intern(Load(row, (element,)))

    def loops(self) -> list[Statement]:
        """The loops, the axis of each that was given last innermost and vectorised."""
        found: list[Statement] = []
        for own, stores in self._stores.values():
            body = tuple(stores)
            for axis in reversed(own):
                body = (For(axis, "vectorized" if axis is own[-1] else "serial", body),)
            found += body
        return found


def shared_row(
    value: ScalarExpr, axis: Axis, other: Axis, used: set[ScalarExpr], simplifier: Simplifier
) -> tuple[ScalarExpr, ScalarExpr] | None:
    """The largest expensive part of `value` over `axis` that is also in `used` over `other`: (this one, that one)."""
    if axis.extent != other.extent or axis.size is not None:
        return None
    for part in reversed(list(post_order(value))):
        if weight(part) < EXPENSIVE or any(isinstance(n, Reduce) for n in post_order(part)):
            continue
        again = simplifier(substitute(part, {axis: other}))
        if again in used and again is not part:
            return part, again
    return None


def by_lines(loop: For, scratch: list[Tensor]) -> For:
    """A loop over items that takes the logarithm of one number in each, as one over blocks of items that take theirs
    together; itself where there is none, or the items make no blocks.

    A block first computes its numbers, then their logarithms side by side, then what follows.
    """
    body, axis = loop.body, loop.axis
    block = next((n for n in LINES if axis.size is None and axis.extent >= MANY and axis.extent % n == 0), 0)
    place = next((k for k, s in enumerate(body) if isinstance(s, Define) and _is_line(s.value)), None)
    if not block or place is None:
        return loop
    found = body[place]
    assert isinstance(found, Define)
    before, after = body[:place], body[place + 1 :]
    used = {n for s in statements((found, *after)) for v in values(s) for n in post_order(v)}
    kept = [s.local for s in before if isinstance(s, Define) and s.local in used]
    if any(isinstance(s, Accumulate) and s.local in kept for s in statements(after)):
        return loop
    later = {n for s in statements(after) for v in values(s) for n in post_order(v)}
    outer, inner = Axis(f"{axis.name}o", axis.extent // block), [Axis(f"{axis.name}i{k}", block) for k in range(3)]
    rows = {
        local: Tensor(f"row{len(scratch) + k}", (block,), local.dtype) for k, local in enumerate((*kept, found.local))
    }
    scratch += rows.values()
    item = [outer * block + at for at in inner]
    first = with_values(before, {axis: item[0]})
    lines = substitute(found.value, {local: Load(rows[local], (inner[1],)) for local in kept})
    again = {local: Local(f"{local.name}_", local.dtype) for local in rows}
    last = with_values(with_values(after, {axis: item[2]}), again)
    loops = (
        For(inner[0], "serial", (*first, *(Store(rows[local], inner[0], local) for local in kept))),
        For(inner[1], "vectorized", (Store(rows[found.local], inner[1], lines),)),
        For(
            inner[2],
            "serial",
            (*(Define(again[v], Load(row, (inner[2],))) for v, row in rows.items() if v in later), *last),
        ),
    )
    return For(outer, loop.kind, loops)


def _is_line(value: ScalarExpr) -> bool:
    """Whether a value is computed of registers alone, with a logarithm."""
    nodes = list(post_order(value))
    plain = all(isinstance(n, (Apply, Const, Local)) for n in nodes)
    return plain and any(isinstance(n, Apply) and n.op in LOGARITHMS for n in nodes)
