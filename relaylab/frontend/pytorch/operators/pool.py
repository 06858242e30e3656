"""Pooling: windows, adaptive."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab import op
from relaylab.frontend.graph import rounded_up
from relaylab.frontend.pytorch.graph import TorchGraph, pair
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.pointwise import is_float
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Constant, Expr
from relaylab.op import nn

MAX = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
AVERAGE = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}
ADAPTIVE = {1: nn.adaptive_avg_pool1d, 2: nn.adaptive_avg_pool2d, 3: nn.adaptive_avg_pool3d}
ADAPTIVE_MAX = {1: nn.adaptive_max_pool1d, 2: nn.adaptive_max_pool2d, 3: nn.adaptive_max_pool3d}


def _spatial(node: AtenNode) -> int:
    return next(n for n in (1, 2, 3) if f"{n}d" in node.name)


def _batched(g: TorchGraph, x: Expr, n: int) -> tuple[Expr, bool]:
    """Data with an axis of samples, and whether it was added."""
    return (op.expand_dims(x, 0), True) if g.rank(x) == n + 1 else (x, False)


def _first(out: Expr, added: bool) -> Expr:
    return op.squeeze(out, axis=[0]) if added else out


@converts("max_pool2d_with_indices", "max_pool3d_with_indices")
def max_pool(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] | int = 0,
    dilation: Sequence[int] | int = 1,
    ceil_mode: bool = False,
) -> list[Expr | None]:
    """The largest elements and, where they are asked for, their places in the plane."""
    n = _spatial(node)
    x, added = _batched(g, x, n)
    size, pads, dil = pair(kernel, n), pair(padding, n), pair(dilation, n)
    steps = pair(stride or kernel, n)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dil)]
    after = rounded_up(g, x, reach, steps, pads, pads) if ceil_mode else pads
    out = MAX[n](x, pool_size=size, strides=steps, dilation=dil, padding=(*pads, *after))
    if not node.uses(1):
        return [_first(out, added), None]
    places = [
        np.arange(m)[:, None] * s - p + np.arange(k) * d
        for m, s, p, k, d in zip(g.dims(out)[2:], steps, pads, size, dil)
    ]
    return [_first(out, added), _first(_largest(g, x, places), added)]


def _largest(g: TorchGraph, x: Expr, places: Sequence[np.ndarray]) -> Expr:
    """Where in the flattened plane the (first) largest element of each window is; `places` are (window, element)."""
    n = len(places)
    extents = [g.extent(x, k + 2) for k in range(n)]
    flat, inside = np.zeros((), "int64"), np.ones((), bool)
    for k, (at, extent) in enumerate(zip(places, extents)):
        axes = [a for a in range(2 * n) if a not in (k, n + k)]
        flat = flat * extent + np.expand_dims(at, axes)
        inside = inside & np.expand_dims((at >= 0) & (at < extent), axes)
    shape = flat.shape[:n]
    flat, inside = flat.reshape(math.prod(shape), -1), inside.reshape(math.prod(shape), -1)
    first = np.take_along_axis(flat, inside.argmax(1)[:, None], 1)
    flat = np.where(inside, flat, first)  # what lies outside stands for the first that does not
    plane = op.reshape(x, (0, 0, math.prod(extents)))
    tap = op.argmax(op.take(plane, Constant(flat), axis=2), axis=[3])
    row = g.const(np.arange(len(flat)) * flat.shape[1], "int64")
    found = op.take(Constant(flat.reshape(-1)), op.add(op.cast(tap, "int64"), row), axis=0)
    return op.reshape(found, (0, 0, *shape))


@converts("avg_pool1d", "avg_pool2d", "avg_pool3d")
def average_pool(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] | int = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Expr:
    """Zeros of the padding count if asked for, what `ceil_mode` reads behind them never does."""
    n = _spatial(node)
    x, added = _batched(g, x, n)
    kind = g.dtype(x)
    if divisor_override is not None and not is_float(kind):
        x = g.to(x, "float64")
    size, pads = pair(kernel, n), pair(padding, n)
    steps = pair(stride or kernel, n)
    after = rounded_up(g, x, size, steps, pads, pads) if ceil_mode else pads
    before = pads
    if divisor_override is not None:
        count_include_pad = True
    elif count_include_pad and after != pads:
        x = nn.pad(x, ((0, 0), (0, 0), *zip(pads, pads)), 0.0)
        before, after, count_include_pad = (0,) * n, tuple(a - p for a, p in zip(after, pads)), False
    out = AVERAGE[n](x, pool_size=size, strides=steps, padding=(*before, *after), count_include_pad=count_include_pad)
    if divisor_override is not None:
        taps = math.prod(size)
        if is_float(kind):
            out = op.multiply(out, g.const(taps / divisor_override, out))
        else:  # torch divides the sum, and cuts what remains
            out = op.divide(op.round(op.multiply(out, g.const(taps, out))), g.const(divisor_override, out))
    return _first(g.to(out, kind), added)


@converts("adaptive_avg_pool1d", "_adaptive_avg_pool2d", "adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_average_pool(g: TorchGraph, node: AtenNode, x: Expr, size: Sequence[int]) -> Expr:
    n = _spatial(node)
    x, added = _batched(g, x, n)
    return _first(ADAPTIVE[n](x, output_size=pair(size, n)), added)


@converts("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(g: TorchGraph, node: AtenNode, x: Expr, size: Sequence[int]) -> list[Expr | None]:
    n = _spatial(node)
    x, added = _batched(g, x, n)
    size = pair(size, n)
    out = _first(ADAPTIVE_MAX[n](x, output_size=size), added)
    if not node.uses(1):
        return [out, None]
    return [out, _first(_largest(g, x, [_parts(m, s) for m, s in zip(g.dims(x)[2:], size)]), added)]


def _parts(extent: int, count: int) -> np.ndarray:
    """The places of each of `count` parts of an axis; the shorter ones begin with places outside."""
    starts, ends = np.arange(count) * extent // count, -(-(np.arange(count) + 1) * extent // count)
    places = ends[:, None] - (ends - starts).max() + np.arange((ends - starts).max())
    return np.where(places < starts[:, None], -1, places)
