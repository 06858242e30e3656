"""Convolutions and transposed convolutions of one to three spatial axes; pixel shuffling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any, cast

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import Operand, TorchGraph, pair
from relaylab.frontend.pytorch.node import AtenNode, size_of
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr, const
from relaylab.op import nn

MOST = 2**31 - 1  # behind the last of any axis
CONV = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
TRANSPOSE = {1: nn.conv1d_transpose, 2: nn.conv2d_transpose, 3: nn.conv3d_transpose}


@converts("convolution")
def convolution(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    weight: Expr,
    bias: Expr | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: Operand,
) -> Expr:
    if not isinstance(groups, int):
        out = _open_groups(g, node, x, weight, stride, padding, dilation, output_padding if transposed else None)
        return out if bias is None else nn.bias_add(out, bias)
    shape = g.shape(weight)
    n = len(shape) - 2
    if n not in CONV:
        raise node.error(f"{n} spatial axes; 1 to 3 are imported", "import.rank")
    single = g.rank(x) == n + 1
    data = op.expand_dims(x, 0) if single else x
    pads = pair(padding, n)
    common = {
        "strides": pair(stride, n), "padding": (*pads, *pads), "dilation": pair(dilation, n), "groups": groups,
        "channels": shape[1] * groups if transposed else shape[0], "kernel_size": shape[2:],
    }  # fmt: skip
    if transposed:
        out = TRANSPOSE[n](data, weight, **common, output_padding=pair(output_padding, n))
    else:
        out = CONV[n](data, weight, **common)
    out = out if bias is None else nn.bias_add(out, bias)
    return op.squeeze(out, axis=[0]) if single else out


def _open_groups(
    g: TorchGraph, node: AtenNode, x: Expr, weight: Expr, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], more: Sequence[int] | None,
) -> Expr:  # fmt: skip
    """As many groups as an input says: what each tap of the kernel reads, times its weights, a product for each group.
    `more` is added after transposed convolutions, which are those of data with zeros between, the kernel turned."""
    n, groups, (rows, columns, *kernel) = g.rank(x) - 2, size_of(cast("Any", node.meta(8))), node.sizes_of(1)
    told = [g.dim(v) for v in (node.sizes[0], groups, rows / groups, columns, *node.sizes[1:])]
    images, many, each, other, channels, *size = cast("list[Any]", told)
    each = -1 if each is None else each  # the weights come from another input
    if None in (images, many, other, channels, *size) or not all(isinstance(k, int) for k in kernel):
        raise node.error("the kernel must be known", "import.dynamic", g.remedy)
    stride, pads, dilation, taps = pair(stride, n), pair(padding, n), pair(dilation, n), math.prod(kernel)
    weight, after = op.reshape(weight, (many, each, other, taps)), pads
    if more is not None:
        reach = [d * (k - 1) for d, k in zip(dilation, kernel)]
        x, after = nn.dilate(x, [1, 1, *stride]), [r - p + m for r, p, m in zip(reach, pads, pair(more, n))]
        pads, stride, each, other = [r - p for r, p in zip(reach, pads)], (1,) * n, other, each
        weight = op.transpose(op.reverse(weight, 3), [0, 2, 1, 3])
    if min(*pads, *after) < 0:
        raise node.error("padding beyond the kernel, with as many groups as an input says", "import.option")
    x = nn.pad(x, [[0, 0], [0, 0], *map(list, zip(pads, after))])
    seen = [
        op.strided_slice(x, begin, [e or MOST for e in end], stride, axes=[*range(2, n + 2)])
        for begin, end in (
            ([d * t for d, t in zip(dilation, at)], [d * (t + 1 - k) for d, t, k in zip(dilation, at, kernel)])
            for at in np.ndindex(*kernel)
        )
    ]
    if other == 1 and each == 1:
        at = lambda k: op.reshape(op.take(weight, const(k), axis=3), (many, *[1] * n))
        return reduce(op.add, (op.multiply(s, at(k)) for k, s in enumerate(seen)))
    read = op.stack([op.reshape(s, (images, many, other, -1)) for s in seen], 3)
    read = op.reshape(op.transpose(read, [1, 2, 3, 0, 4]), (many, other * taps, -1))
    out = nn.batch_matmul(op.reshape(weight, (many, each, other * taps)), read, transpose_b=False)
    out = op.transpose(op.reshape(out, (many, each, images, *size)), [2, 0, 1, *range(3, n + 3)])
    return op.reshape(out, (images, channels, *size))


@converts("pixel_shuffle")
def pixel_shuffle(g: TorchGraph, node: AtenNode, x: Expr, factor: int) -> Expr:
    if g.rank(x) == 4:
        return nn.depth_to_space(x, factor, "NCHW", "CRD")
    return op.reshape(nn.depth_to_space(op.reshape(x, (-1, *g.shape(x)[-3:])), factor, "NCHW", "CRD"), node.sizes)


@converts("pixel_unshuffle")
def pixel_unshuffle(g: TorchGraph, node: AtenNode, x: Expr, factor: int) -> Expr:
    c, h, w = g.shape(x)[-3:] if g.is_static(x) else [int(d) for d in g.dims(x)[-3:]]
    parts = op.reshape(x, (-1, c, h // factor, factor, w // factor, factor))
    out = op.reshape(op.transpose(parts, [0, 1, 3, 5, 2, 4]), (-1, c * factor**2, h // factor, w // factor))
    return out if g.rank(x) == 4 else op.reshape(out, node.sizes)
