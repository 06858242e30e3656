"""Python functions that stand for several operators."""

from __future__ import annotations

from typing import Any

from relaylab.ir.expr import Tuple, TupleWrapper
from relaylab.op.binary import add, subtract
from relaylab.op.reduce import max, sum
from relaylab.op.reduce_moment import mean, variance
from relaylab.op.reshaping import contrib_reverse_reshape, squeeze
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
