"""Fused operators that onnxruntime's tools write (domain com.microsoft)."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.activation import fast_gelu, gelu
from relaylab.frontend.onnx.operators.contract import product
from relaylab.frontend.onnx.operators.conv import conv
from relaylab.frontend.onnx.operators.recurrent import function_of
from relaylab.frontend.onnx.table import CONTRIB, converts
from relaylab.ir import Expr
from relaylab.op import nn


@converts("BiasGelu", domain=CONTRIB)
def bias_gelu(g: Graph, node: OnnxNode, x: Expr, bias: Expr) -> Expr:
    return gelu(g, op.add(x, bias))


@converts("FastGelu", domain=CONTRIB)
def fast_gelu_with_bias(g: Graph, node: OnnxNode, x: Expr, bias: Expr | None = None) -> Expr:
    return fast_gelu(g, x if bias is None else op.add(x, bias))


@converts("QuickGelu", domain=CONTRIB)
def quick_gelu(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.multiply(x, op.sigmoid(op.multiply(x, g.const(node.get("alpha", 1.702), x))))


@converts("SkipLayerNormalization", domain=CONTRIB)
def skip_layer_norm(
    g: Graph, node: OnnxNode, x: Expr, skip: Expr, gamma: Expr, beta: Expr | None = None, bias: Expr | None = None
) -> list[Expr | None]:
    total = op.add(x, skip)
    total = total if bias is None else op.add(total, bias)
    shift = beta if beta is not None else op.zeros_like(gamma)
    out = nn.layer_norm(total, gamma, shift, axis=-1, epsilon=node.get("epsilon", 1e-12))
    return [out, None, None, total]


@converts("SimplifiedLayerNormalization", unused=("stash_type", "axis"))
def simplified_layer_norm(g: Graph, node: OnnxNode, x: Expr, scale: Expr) -> Expr:
    return _by_size(g, x, scale, node.get("epsilon", 1e-5))


@converts("SkipSimplifiedLayerNormalization", domain=CONTRIB)
def skip_simplified(
    g: Graph, node: OnnxNode, x: Expr, skip: Expr, gamma: Expr, bias: Expr | None = None
) -> list[Expr | None]:
    total = op.add(x, skip) if bias is None else op.add(op.add(x, skip), bias)
    return [_by_size(g, total, gamma, node.get("epsilon", 1e-12)), None, None, total]


def _by_size(g: Graph, x: Expr, scale: Expr, epsilon: float) -> Expr:
    """Vectors divided by the root of their mean square."""
    square = op.mean(op.multiply(x, x), axis=[-1], keepdims=True)
    return op.multiply(op.divide(x, op.sqrt(op.add(square, g.const(epsilon, x)))), scale)


@converts("EmbedLayerNormalization", domain=CONTRIB)
def embed_layer_norm(
    g: Graph, node: OnnxNode, words: Expr, segments: Expr | None, word: Expr, position: Expr, segment: Expr | None,
    gamma: Expr, beta: Expr,
    mask: Expr | None = None, places: Expr | None = None,
) -> list[Expr | None]:  # fmt: skip
    """Sums of embeddings, normalized; the second output counts the words that the mask keeps."""
    batch, length = g.shape(words)
    total = op.take(word, words, axis=0)
    at = (
        op.strided_slice(position, [0], [length], [1], axes=[0])
        if places is None
        else op.take(position, places, axis=0)
    )
    total = op.add(total, at)
    if segments is not None and segment is not None:
        total = op.add(total, op.take(segment, segments, axis=0))
    out = nn.layer_norm(total, gamma, beta, axis=-1, epsilon=node.get("epsilon", 1e-12))
    counts = op.sum(mask, axis=[1]) if mask is not None else op.zeros((batch,), "int32")
    return [out, counts, total]


@converts("Attention", domain=CONTRIB)
def attention(g: Graph, node: OnnxNode, x: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """Self-attention of all words to all, queries, keys and values from one product. Vaswani et al., 2017."""
    heads = node.need("num_heads")
    batch, length, _ = g.shape(x)
    width = g.shape(weight)[1] // 3
    size = width // heads
    joined = product(g, x, weight)
    joined = joined if bias is None else op.add(joined, bias)
    parts = op.transpose(op.reshape(joined, (batch, length, 3, heads, size)), [2, 0, 3, 1, 4])
    q, k, v = (op.reshape(p, (batch * heads, length, size)) for p in op.split(parts, 3, 0))
    scores = op.multiply(nn.batch_matmul(q, k), g.const(node.get("scale") or size**-0.5, x))
    if node.get("unidirectional", 0):
        ahead = np.triu(np.full((length, length), -1e9), 1)
        scores = op.add(scores, g.const(ahead, x))
    out = nn.batch_matmul(nn.softmax(scores, axis=-1), op.transpose(v, [0, 2, 1]))
    return op.reshape(op.transpose(op.reshape(out, (batch, heads, length, size)), [0, 2, 1, 3]), (batch, length, width))


@converts("FusedMatMul", domain=CONTRIB)
def fused_matmul(g: Graph, node: OnnxNode, a: Expr, b: Expr) -> Expr:
    if node.get("transBatchA", 0) or node.get("transBatchB", 0):
        raise node.error("transposed batches are not imported", code="import.attribute")
    a, b = (_swapped(g, v) if node.get(name, 0) else v for v, name in ((a, "transA"), (b, "transB")))
    out, alpha = product(g, a, b), node.get("alpha", 1.0)
    return out if alpha == 1 else op.multiply(out, g.const(alpha, out))


def _swapped(g: Graph, x: Expr) -> Expr:
    rank = g.rank(x)
    return op.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


@converts("FusedConv", domain=CONTRIB)
def fused_conv(g: Graph, node: OnnxNode, x: Expr, w: Expr, b: Expr | None = None, z: Expr | None = None) -> Expr:
    out = conv(g, node, x, w, b)
    out = out if z is None else op.add(out, z)
    name, params = node.get("activation", ""), node.get("activation_params") or []
    if name == "Clip":
        return op.clip(out, *params)
    return function_of(g, node, name, *(list(params) + [0.0, 0.0])[:2])(out) if name else out
