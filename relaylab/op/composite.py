"""Python functions that stand for several operators."""

from __future__ import annotations

from typing import Any

from relaylab.ir.expr import Tuple, TupleWrapper, const
from relaylab.op.base import call_operator
from relaylab.op.binary import add, subtract
from relaylab.op.casts import cast, cast_like
from relaylab.op.create import shape_of
from relaylab.op.join import concatenate
from relaylab.op.reduce import max, sum
from relaylab.op.reduce_moment import mean, variance
from relaylab.op.reshaping import contrib_reverse_reshape, expand_dims, reshape, squeeze
from relaylab.op.scatter import scatter_nd
from relaylab.op.strided import strided_slice
from relaylab.op.unary import exp, log, sqrt


def std(data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False) -> Any:
    """Standard deviation over axes: the square root of the variance."""
    return sqrt(variance(data, axis, keepdims, exclude, unbiased))


def mean_variance(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> TupleWrapper:
    """Mean and variance over axes, which share the mean."""
    center = mean(data, axis, True, exclude)
    spread = variance(data, axis, keepdims, exclude, unbiased, center)
    return TupleWrapper(Tuple((center if keepdims else squeeze(center), spread)), 2)


def mean_std(
    data: Any, axis: Any = None, keepdims: bool = False, exclude: bool = False, unbiased: bool = False
) -> TupleWrapper:
    """Mean and standard deviation over axes, which share the mean."""
    center = mean(data, axis, True, exclude)
    spread = sqrt(variance(data, axis, keepdims, exclude, unbiased, center))
    return TupleWrapper(Tuple((center if keepdims else squeeze(center), spread)), 2)


def logsumexp(data: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(data))) over axes, with the largest element subtracted first."""
    axis = [axis] if isinstance(axis, int) else axis
    top = max(data, axis=axis, keepdims=True)
    total = log(sum(exp(subtract(data, top)), axis=axis, keepdims=True))
    out = add(total, top)
    return out if keepdims else squeeze(out, axis=axis)


def reverse_reshape(data: Any, newshape: Any) -> Any:
    """Reshape with the codes of `newshape` read from the right."""
    return contrib_reverse_reshape(data, (newshape,) if isinstance(newshape, int) else newshape)


def segment_sum(data: Any, segment_ids: Any, num_segments: Any = None) -> Any:
    """The sums of the rows of `data` that have the same segment id: one row per segment (by default up to the last id)."""
    ids = cast(segment_ids, "int64")
    if num_segments is None:
        count = add(reshape(max(ids, keepdims=False), (1,)), const([1], "int64"))
    else:
        count = const([num_segments], "int64") if isinstance(num_segments, int) else cast(num_segments, "int64")
    rest = strided_slice(shape_of(data, "int64"), [1], [-1], slice_mode="size")
    start = call_operator("dyn.broadcast_to", cast_like(const(0), data), concatenate([count, rest], 0))
    return scatter_nd(start, expand_dims(ids, 0), data, "add")
