"""Activation functions, softmax and what is like it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.table import CONTRIB, converts
from relaylab.ir import AnyDim, Expr
from relaylab.op import nn

_OLD = ("consumed_inputs",)


@converts("Relu", unused=_OLD)
def relu(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return nn.relu(x)


@converts("LeakyRelu", unused=_OLD)
def leaky_relu(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return nn.leaky_relu(x, alpha=node.get("alpha", 0.01))


@converts("PRelu", unused=_OLD)
def prelu(g: Graph, node: OnnxNode, x: Expr, slope: Expr) -> Expr:
    if g.rank(slope) == 1 and g.rank(x) > 2 and node.version < 7:
        slope = op.expand_dims(slope, axis=1, num_newaxis=g.rank(x) - 2)
    return op.where(op.less(x, g.const(0, x)), op.multiply(x, slope), x)


@converts("Elu", unused=_OLD)
def elu(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return exponential(g, x, node.get("alpha", 1.0))


def exponential(g: Graph, x: Expr, alpha: float, gamma: float = 1.0, width: float = 1.0) -> Expr:
    """gamma * x where x >= 0, so that -0.0 stays -0.0, else gamma * alpha * (exp(x / width) - 1)."""
    inner = x if width == 1 else op.divide(x, g.const(width, x))
    below = op.multiply(g.const(gamma * alpha, x), op.subtract(op.exp(op.minimum(inner, g.const(0, x))), g.const(1, x)))
    above = x if gamma == 1 else op.multiply(g.const(gamma, x), x)
    return op.where(op.greater_equal(x, g.const(0, x)), above, below)


@converts("Selu", unused=_OLD)
def selu(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return exponential(g, x, node.get("alpha", 1.67326319217681884765625), node.get("gamma", 1.05070102214813232421875))


@converts("Celu")
def celu(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    alpha = node.get("alpha", 1.0)
    return exponential(g, x, alpha, width=alpha)


@converts("HardSigmoid", unused=_OLD)
def hard_sigmoid(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return straight(g, x, node.get("alpha", 0.2), node.get("beta", 0.5))


def straight(g: Graph, x: Expr, alpha: float, beta: float) -> Expr:
    """alpha * x + beta between 0 and 1."""
    return op.clip(op.add(op.multiply(x, g.const(alpha, x)), g.const(beta, x)), 0.0, 1.0)


@converts("HardSwish")
def hard_swish(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.multiply(x, straight(g, x, 1 / 6, 0.5))


@converts("Softplus")
def softplus(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """log(1 + exp(x)), without overflow; far below 0 it is exp(x), which 1 + exp(x) loses (Kahan)."""
    one, small = g.const(1, x), op.exp(op.negative(op.abs(x)))
    both = op.add(one, small)
    rest = op.subtract(both, one)
    nothing = op.equal(rest, g.const(0, x))
    share = op.divide(small, op.where(nothing, one, rest))
    return op.add(nn.relu(x), op.where(nothing, small, op.multiply(op.log(both), share)))


@converts("Softsign")
def softsign(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.divide(x, op.add(g.const(1, x), op.abs(x)))


@converts("Mish")
def mish(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.multiply(x, op.tanh(softplus(g, node, x)))


@converts("ThresholdedRelu")
def thresholded_relu(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.where(op.greater(x, g.const(node.get("alpha", 1.0), x)), x, g.const(0, x))


@converts("Swish", since=24)
def swish(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    alpha = node.get("alpha", 1.0)
    return op.multiply(x, op.sigmoid(x if alpha == 1 else op.multiply(x, g.const(alpha, x))))


@converts("Affine")
def affine(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.add(op.multiply(g.const(node.get("alpha", 1.0), x), x), g.const(node.get("beta", 0.0), x))


@converts("ScaledTanh")
def scaled_tanh(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.multiply(g.const(node.get("alpha", 1.0), x), op.tanh(op.multiply(g.const(node.get("beta", 1.0), x), x)))


@converts("ParametricSoftplus")
def parametric_softplus(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.multiply(
        g.const(node.get("alpha", 1.0), x), softplus(g, node, op.multiply(g.const(node.get("beta", 1.0), x), x))
    )


@converts("Shrink")
def shrink(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    limit, bias, zero = node.get("lambd", 0.5), g.const(node.get("bias", 0.0), x), g.const(0, x)
    low = op.where(op.less(x, g.const(-limit, x)), op.add(x, bias), zero)
    return op.where(op.greater(x, g.const(limit, x)), op.subtract(x, bias), low)


@converts("Gelu", since=20)
def gelu_named(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return fast_gelu(g, x) if node.choice("approximate", "none", ("none", "tanh")) == "tanh" else gelu(g, x)


@converts("Gelu", domain=CONTRIB)
def gelu_contrib(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return gelu(g, x)


def gelu(g: Graph, x: Expr) -> Expr:
    """x times the normal distribution's share below x."""
    share = op.add(g.const(0.5, x), op.multiply(op.erf(op.multiply(x, g.const(np.sqrt(0.5), x))), g.const(0.5, x)))
    return op.multiply(x, share)


def fast_gelu(g: Graph, x: Expr) -> Expr:
    """Its approximation with tanh; (1 + tanh(u)) / 2 is sigmoid(2 u), which has digits far below 0 too."""
    cube = op.multiply(op.multiply(x, x), x)
    inner = op.multiply(g.const(2 * np.sqrt(2 / np.pi), x), op.add(x, op.multiply(g.const(0.044715, x), cube)))
    return op.multiply(x, op.sigmoid(inner))


def _over_rest(g: Graph, node: OnnxNode, x: Expr, build: Callable[[Expr, int], Expr], logs: bool | None = None) -> Expr:
    """Before opset 13 all axes from `axis` on count as one; `logs` says which softmax `build` is, if it is one."""
    axis = g.axis(node.get("axis", 1), g.rank(x))
    if axis == g.rank(x) - 1:
        return build(x, axis)
    if logs is not None and any(type(d) is AnyDim for d in g.dims(x)):
        return _over_axes(g, x, list(range(axis, g.rank(x))), logs)
    dims = g.named(x)
    flat = op.reshape(x, (math.prod(dims[:axis]), math.prod(dims[axis:])), allowzero=True)
    return op.reshape(build(flat, 1), dims, allowzero=True)


def _over_axes(g: Graph, x: Expr, axes: list[int], logs: bool) -> Expr:
    """A softmax over several axes, or its logarithms, of a shape that nobody can write down."""
    apart = op.subtract(x, op.max(x, axis=axes, keepdims=True))
    total = op.sum(op.exp(apart), axis=axes, keepdims=True)
    return op.subtract(apart, op.log(total)) if logs else op.divide(op.exp(apart), total)


def _softmax(x: Expr, axis: int) -> Expr:
    return nn.softmax(x, axis=axis)


def _log_softmax(x: Expr, axis: int) -> Expr:
    return nn.log_softmax(x, axis=axis)


@converts("Softmax")
def softmax_flat(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return _over_rest(g, node, x, _softmax, logs=False)


@converts("Softmax", since=13)
def softmax(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return nn.softmax(x, axis=node.get("axis", -1))


@converts("LogSoftmax")
def log_softmax_flat(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return _over_rest(g, node, x, _log_softmax, logs=True)


@converts("LogSoftmax", since=13)
def log_softmax(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return nn.log_softmax(x, axis=node.get("axis", -1))


def _one_at_largest(g: Graph, x: Expr, axis: int) -> Expr:
    axis = g.axis(axis, g.rank(x))
    depth = g.extents(x, axis)[0]
    at, dtype = op.argmax(x, axis=[axis]), g.dtype(x)
    return op.one_hot(at, g.const(1, dtype), g.const(0, dtype), depth, axis, dtype)


@converts("Hardmax")
def hardmax_flat(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return _over_rest(g, node, x, lambda flat, axis: _one_at_largest(g, flat, axis))


@converts("Hardmax", since=13)
def hardmax(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return _one_at_largest(g, x, node.get("axis", -1))
