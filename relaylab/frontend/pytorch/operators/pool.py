"""Pooling: windows, adaptive."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph, pair
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr
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


def _behind(
    g: TorchGraph, x: Expr, reach: Sequence[int], strides: Sequence[int], pads: Sequence[int], up: bool
) -> tuple[int, ...]:
    """Padding behind: with `ceil_mode` a last window counts if it begins before the padding there does."""
    after = list(pads)
    for k, n in enumerate(g.shape(x)[2:] if up else ()):
        padded = n + 2 * pads[k] - reach[k]
        count = -(-padded // strides[k]) + 1
        if (count - 1) * strides[k] >= n + pads[k]:
            count -= 1
        after[k] += max((count - 1) * strides[k] - padded, 0)
    return tuple(after)


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
    """The positions of the largest elements are not imported."""
    n = _spatial(node)
    x, added = _batched(g, x, n)
    size, pads, dil = pair(kernel, n), pair(padding, n), pair(dilation, n)
    steps = pair(stride or kernel, n)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dil)]
    after = _behind(g, x, reach, steps, pads, ceil_mode)
    out = MAX[n](x, pool_size=size, strides=steps, dilation=dil, padding=(*pads, *after))
    return [_first(out, added), None]


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
    size, pads = pair(kernel, n), pair(padding, n)
    steps = pair(stride or kernel, n)
    after = _behind(g, x, size, steps, pads, ceil_mode)
    before = pads
    if divisor_override is not None:
        count_include_pad = True
    elif count_include_pad and after != pads:
        x = nn.pad(x, ((0, 0), (0, 0), *zip(pads, pads)), 0.0)
        before, after, count_include_pad = (0,) * n, tuple(a - p for a, p in zip(after, pads)), False
    out = AVERAGE[n](x, pool_size=size, strides=steps, padding=(*before, *after), count_include_pad=count_include_pad)
    if divisor_override is not None:
        taps = 1
        for k in size:
            taps *= k
        out = op.multiply(out, g.const(taps / divisor_override, x))
    return _first(out, added)


@converts("adaptive_avg_pool1d", "_adaptive_avg_pool2d", "adaptive_avg_pool2d", "_adaptive_avg_pool3d")
def adaptive_average_pool(g: TorchGraph, node: AtenNode, x: Expr, size: Sequence[int]) -> Expr:
    n = _spatial(node)
    x, added = _batched(g, x, n)
    return _first(ADAPTIVE[n](x, output_size=pair(size, n)), added)


@converts("adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d")
def adaptive_max_pool(g: TorchGraph, node: AtenNode, x: Expr, size: Sequence[int]) -> list[Expr | None]:
    n = _spatial(node)
    x, added = _batched(g, x, n)
    return [_first(ADAPTIVE_MAX[n](x, output_size=pair(size, n)), added), None]
