"""Python functions that stand for several operators.

Choices: docs/choices.md, Numbers.
"""

from __future__ import annotations

from typing import Any

from relaylab.ir.expr import Expr, Tuple, TupleWrapper
from relaylab.ir.leaves import const
from relaylab.op.base import call_operator
from relaylab.op.tensor.binary import add, multiply, subtract
from relaylab.op.tensor.casts import cast, cast_like
from relaylab.op.tensor.compare import equal
from relaylab.op.tensor.create import shape_of
from relaylab.op.tensor.elementwise import isfinite, zeros_like
from relaylab.op.tensor.join import concatenate
from relaylab.op.tensor.moments import mean, variance
from relaylab.op.tensor.reduce import max, sum
from relaylab.op.tensor.reshaping import contrib_reverse_reshape, expand_dims, reshape, squeeze
from relaylab.op.tensor.scatter import scatter_nd
from relaylab.op.tensor.select import where
from relaylab.op.tensor.strided import strided_slice
from relaylab.op.tensor.unary import abs, exp, log, round, sqrt, trunc


def std(data: Expr, axis: object = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> Expr:
    """Standard deviation over axes: the square root of the variance."""
    return sqrt(variance(data, axis, keepdims, exclude, unbiased))


def _moments(data: Expr, axis: object, keepdims: bool, exclude: bool, unbiased: bool) -> tuple[Expr, Expr]:
    center = mean(data, axis, True, exclude)
    spread = variance(data, axis, keepdims, exclude, unbiased, center)
    if keepdims:
        return center, spread
    if exclude:  # only a reduction names the axes so
        return sum(center, axis, exclude=True), spread
    return squeeze(center, [axis] if isinstance(axis, int) else axis), spread


def mean_variance(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> TupleWrapper:
    """Mean and variance over axes, which share the mean."""
    return TupleWrapper(Tuple(_moments(data, axis, keepdims, exclude, unbiased)), 2)


def mean_std(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> TupleWrapper:
    """Mean and standard deviation over axes, which share the mean."""
    center, spread = _moments(data, axis, keepdims, exclude, unbiased)
    return TupleWrapper(Tuple((center, sqrt(spread))), 2)


def logsumexp(data: Expr, axis: object = None, keepdims: bool = False) -> Expr:
    """log(sum(exp(data))) over axes, with the largest element subtracted first if it is finite."""
    axis = [axis] if isinstance(axis, int) else axis
    top = max(data, axis=axis, keepdims=True)
    top = where(isfinite(top), top, zeros_like(top))
    total = log(sum(exp(subtract(data, top)), axis=axis, keepdims=True))
    out = add(total, top)
    return out if keepdims else squeeze(out, axis=axis)


def reverse_reshape(data: Expr, newshape: object) -> Expr:
    """Reshape with the codes of `newshape` read from the right."""
    return contrib_reverse_reshape(data, (newshape,) if isinstance(newshape, int) else newshape)


def round_even(data: Expr, dtype: str) -> Expr:
    """The nearest whole number, halves to the even one (`round` takes them away from 0); `dtype` is that of `data`."""
    tie = equal(abs(subtract(data, trunc(data))), const(0.5, dtype))
    even = multiply(round(multiply(data, const(0.5, dtype))), const(2, dtype))
    return where(tie, even, round(data))


def segment_sum(data: Expr, segment_ids: object, num_segments: object = None) -> Expr:
    """The sums of the rows of `data` with the same segment id: one row per segment (by default up to the last id)."""
    ids = cast(segment_ids, "int64")
    if num_segments is None:
        count = add(reshape(max(ids, keepdims=False), (1,)), const([1], "int64"))
    else:
        count = const([num_segments], "int64") if isinstance(num_segments, int) else cast(num_segments, "int64")
    rest = strided_slice(shape_of(data, "int64"), [1], [-1], slice_mode="size")
    start = call_operator("dyn.broadcast_to", cast_like(const(0), data), concatenate([count, rest], 0))
    return scatter_nd(start, expand_dims(ids, 0), data, "add")
