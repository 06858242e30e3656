"""Normalisations, and dropout, which does nothing when a network only runs."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.model import dtype_of
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.arithmetic import same
from relaylab.frontend.onnx.table import converts
from relaylab.ir import Expr
from relaylab.op import nn


def _channelwise(g: Graph, x: Expr, v: Expr) -> Expr:
    """A vector over the second axis of `x`; what has more axes has all but the first of them."""
    extra = g.rank(x) - 2 if g.rank(v) == 1 else 0
    return op.expand_dims(v, axis=1, num_newaxis=extra) if extra > 0 else v


@converts("BatchNormalization", "SpatialBN", unused=("consumed_inputs", "is_test"))
def batch_norm(g: Graph, node: OnnxNode, x: Expr, scale: Expr, bias: Expr, mean: Expr, var: Expr) -> list[Expr]:
    epsilon, momentum = node.get("epsilon", 1e-5), node.get("momentum", 0.9)
    # before opset 14 a node is in training mode if it gives the statistics
    if not (node.get("training_mode", 0) if node.version >= 14 else any(node.outputs[1:])):
        if g.rank(x) < 2 or g.dtype(scale) != g.dtype(x) or not node.get("spatial", 1):
            return [_scaled(g, x, scale, bias, mean, var, epsilon)]
        return [nn.batch_norm(x, scale, bias, mean, var, axis=1, epsilon=epsilon)[0]]
    axes = [a for a in range(g.rank(x)) if a != 1]
    m, v = moments(g, x, axes, keepdims=False)
    keep, new = g.const(momentum, mean), g.const(1 - momentum, mean)
    running = [op.add(op.multiply(old, keep), op.multiply(now, new)) for old, now in ((mean, m), (var, v))]
    saved = op.rsqrt(op.add(v, g.const(epsilon, v)))  # what ONNX calls a variance there, onnxruntime gives so
    return [_scaled(g, x, scale, bias, m, v, epsilon), *running, m, saved]


def _scaled(g: Graph, x: Expr, scale: Expr, bias: Expr, mean: Expr, var: Expr, epsilon: float) -> Expr:
    factor = op.divide(scale, op.sqrt(op.add(var, g.const(epsilon, var))))
    centred = op.subtract(x, _channelwise(g, x, mean))
    return op.add(op.multiply(centred, _channelwise(g, x, factor)), _channelwise(g, x, bias))


def moments(g: Graph, x: Expr, axes: Sequence[int], keepdims: bool = True) -> tuple[Expr, Expr]:
    """Mean and variance over axes."""
    mean = op.mean(x, axis=list(axes), keepdims=True)
    centred = op.subtract(x, mean)
    var = op.mean(op.multiply(centred, centred), axis=list(axes), keepdims=keepdims)
    return (mean if keepdims else op.squeeze(mean, axis=list(axes))), var


def normalized(g: Graph, x: Expr, axes: Sequence[int], epsilon: float) -> tuple[Expr, Expr, Expr]:
    """`x` with mean 0 and variance 1 over axes; the mean and one over the deviation."""
    wide = _wide(g, x)
    mean, var = moments(g, wide, axes)
    inverse = op.divide(g.const(1, wide), op.sqrt(op.add(var, g.const(epsilon, wide))))
    return same(g, op.multiply(op.subtract(wide, mean), inverse), g.dtype(x)), mean, inverse


def by_size(g: Graph, x: Expr, scale: Expr, axes: Sequence[int], epsilon: float) -> Expr:
    """Parts divided by the root of their mean square."""
    wide = _wide(g, x)
    square = op.mean(op.multiply(wide, wide), axis=list(axes), keepdims=True)
    out = op.divide(wide, op.sqrt(op.add(square, g.const(epsilon, wide))))
    return op.multiply(same(g, out, g.dtype(x)), scale)


def _wide(g: Graph, x: Expr) -> Expr:
    """Floats of 16 bits as float32: the square of 256 is infinite in float16."""
    return same(g, x, "float32") if g.dtype(x) in ("float16", "bfloat16") else x


@converts("InstanceNormalization", unused=("consumed_inputs",))
def instance_norm(g: Graph, node: OnnxNode, x: Expr, scale: Expr, bias: Expr) -> Expr:
    return nn.instance_norm(x, scale, bias, axis=1, epsilon=node.get("epsilon", 1e-5))


@converts("LayerNormalization")
def layer_norm(g: Graph, node: OnnxNode, x: Expr, scale: Expr, bias: Expr | None = None) -> list[Expr]:
    axis, epsilon, rank = node.get("axis", -1), node.get("epsilon", 1e-5), g.rank(x)
    axis, stash = g.axis(axis, rank), dtype_of(node.get("stash_type", 1), "the attribute `stash_type`")
    if axis == rank - 1 and bias is not None and len(node.outputs) == 1 and g.rank(scale) == g.rank(bias) == 1:
        return [nn.layer_norm(x, scale, bias, axis=axis, epsilon=epsilon)]
    out, mean, inverse = normalized(g, x, range(axis, rank), epsilon)
    out = op.multiply(out, scale)
    return [out if bias is None else op.add(out, bias), same(g, mean, stash), same(g, inverse, stash)]


@converts("SimplifiedLayerNormalization", unused=("stash_type",))
@converts("RMSNormalization", since=23, unused=("stash_type",))
def rms_norm(g: Graph, node: OnnxNode, x: Expr, scale: Expr) -> Expr:
    axes = range(g.axis(node.get("axis", -1), g.rank(x)), g.rank(x))
    return by_size(g, x, scale, axes, node.get("epsilon", 1e-5))


@converts("GroupNormalization", since=18, unused=("stash_type",))
def group_norm(g: Graph, node: OnnxNode, x: Expr, scale: Expr, bias: Expr) -> Expr:
    """Until opset 20 there is one scale per group, then one per channel."""
    shape, groups = g.named(x), node.need("num_groups")
    if groups < 1:
        raise node.error(f"{groups} groups", code="import.attribute")
    grouped = op.reshape(x, (shape[0], groups, -1))
    out, _, _ = normalized(g, grouped, [2], node.get("epsilon", 1e-5))
    if node.version < 21:
        out = op.add(op.multiply(out, op.expand_dims(scale, 1)), op.expand_dims(bias, 1))
        return op.reshape(out, shape)
    return op.add(op.multiply(op.reshape(out, shape), _channelwise(g, x, scale)), _channelwise(g, x, bias))


@converts("LRN")
def lrn(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """The window of an even size reaches further forward; Relay's operator knows odd ones."""
    size, alpha, beta, bias = node.need("size"), node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0)
    if g.rank(x) == 4 and size % 2:
        return nn.lrn(x, size=size, axis=1, bias=bias, alpha=alpha, beta=beta)
    shape = g.shape(x)
    if size < 1:
        raise node.error(f"a window of {size} channels", code="import.attribute")
    before, after = (min(reach, max(shape[1] - 1, 0)) for reach in ((size - 1) // 2, size // 2))
    pads = [(0, 0)] * len(shape)
    pads[1] = (before, after)
    square = nn.pad(op.multiply(x, x), pads, 0.0)
    parts = [op.strided_slice(square, [k], [k + shape[1]], [1], axes=[1]) for k in range(before + 1 + after)]
    total = parts[0]
    for part in parts[1:]:
        total = op.add(total, part)
    base = op.add(g.const(bias, x), op.multiply(g.const(alpha / size, x), total))
    return op.divide(x, op.power(base, g.const(beta, x)))


@converts("LpNormalization")
def lp_norm(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """Vectors of norm 0 stay 0."""
    p, axis = node.get("p", 2), node.get("axis", -1)
    size = (
        op.sum(op.abs(x), axis=[axis], keepdims=True)
        if p == 1
        else op.sqrt(op.sum(op.multiply(x, x), axis=[axis], keepdims=True))
    )
    if p not in (1, 2):
        raise node.error(f"p={p}; 1 and 2 are defined", code="import.attribute")
    return op.divide(x, op.where(op.equal(size, g.const(0, x)), g.const(1, x), size))


@converts("MeanVarianceNormalization")
def mean_variance(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    axes = node.ints("axes", [0, 2, 3])
    assert axes is not None
    mean, var = moments(g, x, g.axes(axes, g.rank(x)))
    return op.divide(op.subtract(x, mean), op.add(op.sqrt(var), g.const(1e-9, x)))


@converts("Dropout", unused=("is_test", "ratio", "seed", "consumed_inputs"))
def dropout(g: Graph, node: OnnxNode, x: Expr, ratio: Expr | None = None, training: Expr | None = None) -> list[Expr]:
    if training is not None and g.known(training, "training_mode").any():
        if ratio is None or g.known(ratio, "ratio").any():
            raise node.error(
                "dropout of a network that is being trained is random",
                code="import.training",
                help="export the network in its inference mode, or with a ratio of 0",
            )
    return [x, op.ones_like(op.cast(x, "bool")) if node.version >= 10 else op.ones_like(x)]
