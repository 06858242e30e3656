"""Sums, means, extremes and the like over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

from relaylab import op
from relaylab.frontend.pytorch.graph import Dims, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr


def _over(g: TorchGraph, build: Callable[..., Any], x: Expr, dim: Dims, keepdim: bool = False) -> Expr:
    return build(x, axis=g.axes_of(x, dim), keepdims=keepdim) if g.rank(x) else x


@converts("sum", "sum.dim_IntList")
def sum_(g: TorchGraph, node: AtenNode, x: Expr, dim: Dims = None, keepdim: bool = False, dtype: object = None) -> Expr:
    return _over(g, op.sum, g.to(x, node.dtype), dim, keepdim)


@converts("mean", "mean.dim")
def mean(g: TorchGraph, node: AtenNode, x: Expr, dim: Dims = None, keepdim: bool = False, dtype: object = None) -> Expr:
    return _over(g, op.mean, g.to(x, node.dtype), dim, keepdim)


@converts("prod", "prod.dim_int")
def prod(g: TorchGraph, node: AtenNode, x: Expr, dim: Dims = None, keepdim: bool = False, dtype: object = None) -> Expr:
    return _over(g, op.prod, g.to(x, node.dtype), dim, keepdim)


@converts("amax")
def amax(g: TorchGraph, node: AtenNode, x: Expr, dim: Dims = None, keepdim: bool = False) -> Expr:
    return _over(g, op.max, x, dim, keepdim)


@converts("amin")
def amin(g: TorchGraph, node: AtenNode, x: Expr, dim: Dims = None, keepdim: bool = False) -> Expr:
    return _over(g, op.min, x, dim, keepdim)


@converts("max")
def max_(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return _over(g, op.max, x, None)


@converts("min")
def min_(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return _over(g, op.min, x, None)


@converts("max.dim")
def max_dim(g: TorchGraph, node: AtenNode, x: Expr, dim: int, keepdim: bool = False) -> list[Expr]:
    return [_over(g, op.max, x, dim, keepdim), _place(g, op.argmax, x, dim, keepdim)]


@converts("min.dim")
def min_dim(g: TorchGraph, node: AtenNode, x: Expr, dim: int, keepdim: bool = False) -> list[Expr]:
    return [_over(g, op.min, x, dim, keepdim), _place(g, op.argmin, x, dim, keepdim)]


def _place(g: TorchGraph, build: Callable[..., Any], x: Expr, dim: int | None, keepdim: bool) -> Expr:
    """Where the extreme is; among all elements without an axis."""
    if not g.rank(x):
        return g.const(0, "int64")
    rank = g.rank(x)
    if dim is None:
        out = build(op.reshape(x, (-1,)), axis=[0])
        out = op.reshape(out, (1,) * rank) if keepdim else out
    else:
        out = build(x, axis=[g.axis(dim, rank)], keepdims=keepdim)
    return op.cast(out, "int64")


@converts("argmax")
def argmax(g: TorchGraph, node: AtenNode, x: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
    return _place(g, op.argmax, x, dim, keepdim)


@converts("argmin")
def argmin(g: TorchGraph, node: AtenNode, x: Expr, dim: int | None = None, keepdim: bool = False) -> Expr:
    return _place(g, op.argmin, x, dim, keepdim)


@converts("any", "any.dim", "any.dims")
def any_(g: TorchGraph, node: AtenNode, x: Expr, dim: Dims = None, keepdim: bool = False) -> Expr:
    return g.to(_over(g, op.any, g.to(x, "bool"), dim, keepdim), node.dtype)


@converts("all", "all.dim", "all.dims")
def all_(g: TorchGraph, node: AtenNode, x: Expr, dim: Dims = None, keepdim: bool = False) -> Expr:
    return g.to(_over(g, op.all, g.to(x, "bool"), dim, keepdim), node.dtype)


def _variance(g: TorchGraph, x: Expr, dim: Dims, correction: float | None, keepdim: bool) -> tuple[Expr, Expr]:
    """Variance and mean; the sum of squares is divided by the count less the correction, but not by less than 0.

    Of 16 bits in float32: the mean would be rounded before it is taken off.
    """
    narrow = g.dtype(x)
    if narrow in ("float16", "bfloat16"):
        spread, middle = _variance(g, g.to(x, "float32"), dim, correction, keepdim)
        return g.to(spread, narrow), g.to(middle, narrow)
    axes = g.axes_of(x, dim)
    centre = op.mean(x, axis=axes, keepdims=True)
    apart = op.subtract(x, centre)
    total = op.sum(op.multiply(apart, apart), axis=axes, keepdims=keepdim)
    sizes = [g.size(x, a) for a in axes]
    less = 1 if correction is None else correction
    if all(isinstance(s, int) for s in sizes):
        count: Expr = g.const(max(math.prod(s for s in sizes if isinstance(s, int)) - less, 0), x)
    else:
        taps = g.to(sizes[0], g.dtype(x))
        for s in sizes[1:]:
            taps = op.multiply(taps, g.to(s, g.dtype(x)))
        count = op.maximum(op.subtract(taps, g.const(less, x)), g.const(0, x))
    return op.divide(total, count), centre if keepdim else op.squeeze(centre, axis=axes)


@converts("var.correction")
def var(
    g: TorchGraph, node: AtenNode, x: Expr, dim: Dims = None, correction: float | None = None, keepdim: bool = False
) -> Expr:
    return _variance(g, x, dim, correction, keepdim)[0]


@converts("var.dim", "var")
def var_unbiased(
    g: TorchGraph, node: AtenNode, x: Expr, dim: Dims | bool = None, unbiased: bool = True, keepdim: bool = False
) -> Expr:
    """With `var` the second argument says whether the sum is divided by one less."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return _variance(g, x, dim, int(unbiased), keepdim)[0]


@converts("std.correction")
def std(
    g: TorchGraph, node: AtenNode, x: Expr, dim: Dims = None, correction: float | None = None, keepdim: bool = False
) -> Expr:
    return op.sqrt(_variance(g, x, dim, correction, keepdim)[0])


@converts("var_mean.correction")
def var_mean(
    g: TorchGraph, node: AtenNode, x: Expr, dim: Dims = None, correction: float | None = None, keepdim: bool = False
) -> list[Expr]:
    return list(_variance(g, x, dim, correction, keepdim))


@converts("linalg_vector_norm")
def vector_norm(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    dtype: object = None,
) -> Expr:
    size = op.abs(g.to(x, node.dtype))
    if abs(ord) == math.inf:
        return _over(g, op.max if ord > 0 else op.min, size, dim, keepdim)
    if ord == 0:
        return _over(g, op.sum, g.to(op.not_equal(size, g.const(0, size)), node.dtype), dim, keepdim)
    if ord == 1:
        return _over(g, op.sum, size, dim, keepdim)
    if ord == 2:
        return op.sqrt(_over(g, op.sum, op.multiply(size, size), dim, keepdim))
    total = _over(g, op.sum, op.power(size, g.const(ord, size)), dim, keepdim)
    return op.power(total, g.const(1 / ord, size))


@converts("logsumexp")
def logsumexp(g: TorchGraph, node: AtenNode, x: Expr, dim: Dims, keepdim: bool = False) -> Expr:
    out = op.logsumexp(g.to(x, node.dtype), axis=g.axes_of(x, dim), keepdims=keepdim)
    return cast(Expr, out)


@converts("cumsum")
def cumsum(g: TorchGraph, node: AtenNode, x: Expr, dim: int, dtype: object = None) -> Expr:
    x = g.to(x, node.dtype)
    return op.cumsum(x, axis=g.axis(dim, g.rank(x)), dtype=node.dtype) if g.rank(x) else x


@converts("cumprod")
def cumprod(g: TorchGraph, node: AtenNode, x: Expr, dim: int, dtype: object = None) -> Expr:
    x = g.to(x, node.dtype)
    return op.cumprod(x, axis=g.axis(dim, g.rank(x)), dtype=node.dtype) if g.rank(x) else x
