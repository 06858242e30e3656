"""Index expressions in every turn of some loops at once: what is decided by looking at all turns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab.loop.affine import Rect
from relaylab.loop.expr import Apply, Axis, Cast, Const, ScalarExpr, children, post_order
from relaylab.loop.scalar import SCALAR_OPS, Array, convert

MOST_LISTED = 1 << 22  # turns, and places of a buffer


def only_axes(e: ScalarExpr) -> bool:
    """Whether an expression has the same value in each run of a turn: nothing is read in it."""
    return all(isinstance(n, (Axis, Const, Apply, Cast)) for n in post_order(e))


def axes_of(*roots: ScalarExpr) -> list[Axis]:
    """The axes in some expressions, in the order of their first use."""
    return [n for n in post_order(*roots) if isinstance(n, Axis)]


def listed(roots: Sequence[ScalarExpr], axes: Sequence[Axis]) -> list[Array] | None:
    """The values of expressions over all turns of `axes`, one array for each with one number a turn, the last axis
    fastest; None if there are more than `MOST_LISTED` turns, or if anything but these axes is read."""
    turns = [a.extent for a in axes]
    if math.prod(turns) > MOST_LISTED or not all(map(only_axes, roots)) or set(axes_of(*roots)) - set(axes):
        return None
    done: dict[ScalarExpr, Array] = {}
    for k, axis in enumerate(axes):
        done[axis] = np.arange(axis.extent).reshape([-1 if d == k else 1 for d in range(len(axes))])
    with np.errstate(all="ignore"):
        for node in post_order(*roots):
            own = [done[c] for c in children(node)]
            match node:
                case Const(value, dtype):
                    done[node] = np.asarray(value, dtype)
                case Apply(op):
                    done[node] = np.asarray(SCALAR_OPS[op].meaning(*own))
                case Cast(_, dtype):
                    done[node] = convert(own[0], dtype)
                case _:
                    pass
    return [np.broadcast_to(done[r], turns).ravel() for r in roots]


def bounds_seen(e: ScalarExpr, holding: Sequence[tuple[ScalarExpr, bool]]) -> Rect | None:
    """The least and the largest number of an index in all turns in which conditions hold, or do not; None if it is not
    looked at, which it is where quotients and remainders hide how loops were fused and split."""
    roots = [e, *(condition for condition, _ in holding)]
    if not any(isinstance(n, Apply) and n.op in ("floordiv", "floormod") for n in post_order(*roots)):
        return None
    found = listed(roots, axes_of(*roots))
    if found is None:
        return None
    here = np.ones(found[0].shape, bool)
    for truth, (_, holds) in zip(found[1:], holding):
        here &= truth == holds
    numbers = found[0][here]
    return (int(numbers.min()), int(numbers.max())) if numbers.size else (0, -1)
