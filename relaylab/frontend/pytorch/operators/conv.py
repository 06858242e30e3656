"""Convolutions and transposed convolutions of one to three spatial axes; pixel shuffling."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph, pair
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr
from relaylab.op import nn

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
    groups: int,
) -> Expr:
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
