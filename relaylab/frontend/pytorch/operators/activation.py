"""Activations."""

from __future__ import annotations

import math

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph, chosen
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr
from relaylab.op import nn


@converts("relu")
def relu(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return nn.relu(x)


@converts("leaky_relu")
def leaky_relu(g: TorchGraph, node: AtenNode, x: Expr, slope: float = 0.01) -> Expr:
    return nn.leaky_relu(x, float(slope))


@converts("rrelu_with_noise_functional")
def rrelu(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    noise: Expr,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
) -> list[Expr]:
    """Its slope is drawn while a model is trained, and then is the mean of what it was drawn from."""
    chosen(node, training, (False,), "training")
    return [nn.leaky_relu(x, (lower + upper) / 2), noise]


@converts("_prelu_kernel", "prelu")
def prelu(g: TorchGraph, node: AtenNode, x: Expr, weight: Expr) -> Expr:
    """The kernel's weight has the data's rank; that of `prelu` is a vector over the second axis."""
    if node.name.startswith("prelu") and g.rank(x) > 2 and g.shape(weight) != (1,):
        weight = op.expand_dims(weight, axis=1, num_newaxis=g.rank(x) - 2)
    return op.where(op.greater(x, g.const(0, x)), x, op.multiply(x, weight))


@converts("elu")
def elu(g: TorchGraph, node: AtenNode, x: Expr, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Expr:
    """scale * (x if x >= 0 else alpha * (exp(input_scale * x) - 1)); the exponential never sees what is above 0, and
    -0.0 stays -0.0."""
    zero, one = g.const(0, x), g.const(1, x)
    below = op.minimum(x, zero)
    below = below if input_scale == 1 else op.multiply(below, g.const(input_scale, x))
    curve = op.multiply(op.subtract(op.exp(below), one), g.const(alpha * scale, x))
    return op.where(op.greater_equal(x, zero), x if scale == 1 else op.multiply(x, g.const(scale, x)), curve)


@converts("gelu")
def gelu(g: TorchGraph, node: AtenNode, x: Expr, approximate: str = "none") -> Expr:
    chosen(node, approximate, ("none", "tanh"), "approximate")
    if approximate == "tanh":  # (1 + tanh(u)) / 2 is sigmoid(2 u), which has digits far below 0 too
        cube = op.multiply(op.multiply(x, x), op.multiply(x, g.const(0.044715, x)))
        return op.multiply(x, op.sigmoid(op.multiply(op.add(x, cube), g.const(2 * math.sqrt(2 / math.pi), x))))
    part = op.erf(op.multiply(x, g.const(math.sqrt(0.5), x)))
    return op.multiply(op.multiply(x, g.const(0.5, x)), op.add(part, g.const(1, x)))


@converts("silu")
def silu(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.multiply(x, op.sigmoid(x))


@converts("hardsigmoid")
def hardsigmoid(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.divide(op.clip(op.add(x, g.const(3, x)), 0.0, 6.0), g.const(6, x))


@converts("hardswish")
def hardswish(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.multiply(x, hardsigmoid(g, node, x))


@converts("_softmax", "softmax.int", "_safe_softmax")
def softmax(g: TorchGraph, node: AtenNode, x: Expr, dim: int, more: object = None) -> Expr:
    """The safe form gives 0 for rows of nothing but -inf."""
    x = g.to(x, node.dtype)
    if not g.rank(x):
        return op.ones_like(x)
    out = nn.softmax(x, axis=g.axis(dim, g.rank(x)))
    if not node.name.startswith("_safe"):
        return out
    nothing = op.equal(op.max(x, axis=[dim], keepdims=True), g.const(-math.inf, x))
    return op.where(nothing, g.const(0, x), out)


@converts("_log_softmax", "log_softmax.int")
def log_softmax(g: TorchGraph, node: AtenNode, x: Expr, dim: int, more: object = None) -> Expr:
    """Over the last axis by Relay's operator."""
    x, rank = g.to(x, node.dtype), g.rank(x)
    if not rank:
        return op.zeros_like(x)
    return nn.log_softmax(x, axis=g.axis(dim, rank))


@converts("native_dropout", "dropout")
def dropout(g: TorchGraph, node: AtenNode, x: Expr, p: float, train: bool | None = True) -> list[Expr] | Expr:
    if train and p:
        raise node.error("dropout while training is random", "import.training", "model.eval()")
    return [x, op.ones_like(op.cast(x, "bool"))] if node.name.startswith("native") else x
