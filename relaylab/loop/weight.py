"""Rough costs of scalar functions, in units of an addition: what is worth keeping, how far to unroll, and which axis
vectors lie along.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab.loop.dependence import Dependence
from relaylab.loop.expr import INDEX, Apply, Axis, Cast, Const, Load, Local, Reduce, ScalarExpr, post_order
from relaylab.loop.scalar import is_float
from relaylab.loop.simplify import Simplifier

_WEIGHTS = {
    "div": 4, "sqrt": 5, "rsqrt": 6, "exp": 14, "log": 18, "log2": 18, "log10": 18, "tanh": 20, "sigmoid": 18,
    "erf": 22,
    "sin": 24, "cos": 24, "tan": 40, "pow": 60, "asin": 30, "acos": 30, "atan": 30, "sinh": 30, "cosh": 30,
    "asinh": 40, "acosh": 40, "atanh": 40, "floordiv": 8, "floormod": 8, "truncdiv": 8, "truncmod": 8,
}  # fmt: skip
_INDEX_OF_FLOAT = 5  # limited at both ends, and NaN is 0


def weight(root: ScalarExpr, shallow: bool = False) -> int:
    """The cost of an expression, or of its last step only."""
    if not shallow:
        return sum(weight(n, shallow=True) for n in post_order(root))
    if isinstance(root, (Const, Axis, Local)):
        return 0
    if root.dtype == INDEX:
        return _INDEX_OF_FLOAT if isinstance(root, Cast) and is_float(root.value.dtype) else 0
    return _WEIGHTS.get(root.op, 1) if isinstance(root, Apply) else 1


LINE = 64  # bytes of a vector, by which axes are compared; the target decides the real width
UNEVEN, BACKWARDS = -1, -2
LOADED = {BACKWARDS: 3, 0: 1, 1: 2, 2: 3, 3: 5, 4: 7, 5: 11, 6: 12, 7: 16}
"""What a vector costs of elements that lie so far apart: beyond 1 as many loads, and shuffles between them."""
FAR = max(LOADED)
FOLDED = {"sum": 4, "prod": 4}
"""What it costs to combine the lanes of a vector; the largest of them asks for NaN at each step."""
ASKING = 8


def spread(simplifier: Simplifier, bodies: Sequence[ScalarExpr], axis: Axis) -> tuple[int, ...]:
    """How far apart the elements of each load are for neighbours along an axis; UNEVEN, or BACKWARDS side by side."""
    depends, found = Dependence(), list[int]()
    for load in (n for n in post_order(*bodies) if isinstance(n, Load)):
        step = simplifier.linear(load.indices[0]).terms.get(axis, 0)
        even = (step != 0) == (axis in depends(load.indices[0]))
        found.append(BACKWARDS if even and step == -1 else step if even and step >= 0 else UNEVEN)
    return tuple(found)


def lane_cost(
    simplifier: Simplifier, bodies: Sequence[ScalarExpr], axis: Axis, each: float = 0.0, once: float = 0.0
) -> float:
    """The cost of a step of what is computed while vectors lie along an axis, divided by their lanes.

    `each` is what a vector costs besides, `once` all of them together. Infinite where loads are not even, or too far
    apart to be sorted out in registers.
    """
    steps = spread(simplifier, bodies, axis)
    if not set(steps) <= set(LOADED):
        return math.inf
    size = max((np.dtype(n.dtype).itemsize for n in post_order(*bodies) if isinstance(n, Load)), default=4)
    sorting = 2 if size == 8 else 1  # few of them are in a vector
    cost = sum(LOADED[n] * (sorting if n > 2 else 1) for n in steps) + sum(map(weight, bodies)) + each * sorting
    return cost / min(axis.extent, LINE // size) + once / axis.extent


def folding_cost(reduces: Sequence[Reduce]) -> float:
    """What it costs to combine the lanes that each of some reductions ends with."""
    return sum(FOLDED.get(n.kind, ASKING) for n in reduces)
