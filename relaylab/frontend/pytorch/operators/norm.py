"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab import op
from relaylab.frontend.onnx.operators.norm import normalized
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr
from relaylab.op import nn

_EPSILONS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def _vector(g: TorchGraph, given: Expr | None, extent: int | Expr, value: float, dtype: str) -> Expr:
    """A weight, or the one that changes nothing."""
    return op.full(g.const(value, dtype), g.sizes([extent]), dtype) if given is None else given


@converts("_native_batch_norm_legit_no_training")
def batch_norm(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    mean: Expr,
    var: Expr,
    momentum: float,
    eps: float,
) -> list[Expr | None]:
    extent, kind = g.shape(mean)[0], g.dtype(mean)
    gamma, beta = _vector(g, weight, extent, 1, kind), _vector(g, bias, extent, 0, kind)
    return [nn.batch_norm(x, gamma, beta, mean, var, axis=1, epsilon=eps)[0], *_unsaved(node, kind)]


def _unsaved(node: AtenNode, dtype: str) -> list[Expr | None]:
    """What training would keep of the statistics: nothing."""
    shapes = {k: node.value[k].shape for k in (1, 2)}
    return [op.zeros(shape, dtype) if node.uses(k) and 0 in shape else None for k, shape in shapes.items()]


@converts("_native_batch_norm_legit.no_stats")
def own_batch_norm(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    training: bool,
    momentum: float,
    eps: float,
) -> list[Expr | None]:
    """With the data's own mean and variance: what instance norm becomes."""
    rank = g.rank(x)
    out, mean, inverse = normalized(g, x, [a for a in range(rank) if a != 1], eps)
    if weight is not None:
        out = op.multiply(out, _channelwise(weight, rank))
    if bias is not None:
        out = op.add(out, _channelwise(bias, rank))
    return [out, *(g.to(op.reshape(v, (-1,)), g.dtype(x)) for v in (mean, inverse))]


def _channelwise(v: Expr, rank: int) -> Expr:
    return op.expand_dims(v, axis=1, num_newaxis=rank - 2) if rank > 2 else v


@converts("native_layer_norm")
def layer_norm(
    g: TorchGraph, node: AtenNode, x: Expr, shape: Sequence[int], weight: Expr | None, bias: Expr | None, eps: float
) -> list[Expr | None]:
    rank, kind = g.rank(x), g.dtype(x)
    wanted = node.uses(1) or node.uses(2)
    if len(shape) == 1 and not wanted:
        gamma, beta = _vector(g, weight, shape[0], 1, kind), _vector(g, bias, shape[0], 0, kind)
        return [nn.layer_norm(x, gamma, beta, axis=rank - 1, epsilon=eps), None, None]
    out, *moments = normalized(g, x, range(rank - len(shape), rank), eps)
    out = out if weight is None else op.multiply(out, weight)
    return [out if bias is None else op.add(out, bias), *moments]


@converts("native_group_norm")
def group_norm(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    weight: Expr | None,
    bias: Expr | None,
    n: object,
    channels: int | Expr,
    pixels: object,
    groups: int,
    eps: float,
) -> list[Expr | None]:
    kind = g.dtype(x)
    gamma, beta = _vector(g, weight, channels, 1, kind), _vector(g, bias, channels, 0, kind)
    out, moments = nn.group_norm(x, gamma, beta, num_groups=groups, axis=1, epsilon=eps), (None, None)
    if node.uses(1) or node.uses(2):
        moments = [op.squeeze(v, [2]) for v in normalized(g, op.reshape(x, (0, groups, -1)), [2], eps)[1:]]
    return [out, *moments]


@converts("rms_norm")
def rms_norm(
    g: TorchGraph, node: AtenNode, x: Expr, shape: Sequence[int], weight: Expr | None = None, eps: float | None = None
) -> Expr:
    """Divided by the root of the mean of squares over the last axes; without `eps` with that of the type."""
    kind, axes = g.dtype(x), list(range(g.rank(x) - len(shape), g.rank(x)))
    wide = g.converted(x, "float64" if kind == "float64" else "float32")
    eps = _EPSILONS[kind] if eps is None else eps
    mean = op.mean(op.multiply(wide, wide), axis=axes, keepdims=True)
    out = op.multiply(wide, op.rsqrt(op.add(mean, g.const(eps, wide))))
    out = out if weight is None else op.multiply(out, g.converted(weight, g.dtype(out)))
    return g.converted(out, kind)
