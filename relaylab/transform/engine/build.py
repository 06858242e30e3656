"""What passes build programs with: calls of operators by name, scalar constants, shapes for broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import relaylab.op  # noqa: F401  (registers the operators that passes build)
from relaylab.ir import Constant, Expr, const
from relaylab.ir.types import Dim
from relaylab.op.base import call_operator as call

__all__ = ["call", "reshaped", "scalar", "expand_to_axis", "is_scalar_constant", "scalar_value", "positive_axis"]


def reshaped(x: Expr, shape: Sequence[Dim | int]) -> Expr:
    """`x` in a shape of which every extent is meant as it is, also 0."""
    return call("reshape", x, newshape=shape, allowzero=0 in shape)


def scalar(value: float | int, dtype: str) -> Constant:
    """A rank-0 constant of a data type."""
    return const(value, dtype)


def positive_axis(axis: int, rank: int) -> int:
    """The axis counted from the front."""
    return axis + rank if axis < 0 else axis


def expand_to_axis(bias: Expr, rank: int, axes: Sequence[int]) -> Expr:
    """`bias` (one dimension per axis) with dimensions of 1 added, to broadcast along `axes` of a tensor of `rank`."""
    for i in range(len(axes), 0, -1):
        after = rank if i == len(axes) else axes[i]
        pad = after - axes[i - 1] - 1
        if pad > 0:
            bias = call("expand_dims", bias, axis=i, num_newaxis=pad)
    return bias


def is_scalar_constant(expr: Expr) -> bool:
    """Whether an expression is a rank-0 constant."""
    return isinstance(expr, Constant) and not expr.type.shape


def scalar_value(expr: Expr) -> float | int | bool | None:
    """The value of a constant that is one number all over; None otherwise."""
    if not isinstance(expr, Constant) or expr.data.size == 0:
        return None
    data = np.asarray(expr.data)
    return data.flat[0].item() if data.shape == () or bool((data == data.flat[0]).all()) else None
