"""Rough costs of scalar functions, in units of an addition: what is worth keeping, how far to unroll."""

from __future__ import annotations

from relaylab.loop.expr import INDEX, Apply, Axis, Cast, Const, Local, ScalarExpr, post_order
from relaylab.loop.scalar import is_float

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
