"""What is kept in scratch: expensive values that a loop would otherwise compute again at each of its turns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from relaylab.loop.dependence import Dependence
from relaylab.loop.evaluate import guarded_only
from relaylab.loop.expr import Axis, Load, Reduce, ScalarExpr, Tensor, post_order
from relaylab.loop.program import For, Statement, Store
from relaylab.loop.region import address, dense_strides, substitute
from relaylab.loop.simplify import Simplifier
from relaylab.loop.weight import weight

ROW = 1 << 16  # the most elements that are kept
EXPENSIVE = 10  # in units of an addition


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
    if axis.extent != other.extent or axis.extent > ROW:
        return None
    for part in reversed(list(post_order(value))):
        if weight(part) < EXPENSIVE or any(isinstance(n, Reduce) for n in post_order(part)):
            continue
        again = simplifier(substitute(part, {axis: other}))
        if again in used and again is not part:
            return part, again
    return None
