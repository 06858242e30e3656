"""Fused operators that onnxruntime's tools write (domain com.microsoft)."""

from __future__ import annotations

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.activation import fast_gelu, gelu
from relaylab.frontend.onnx.operators.contract import gemm, product
from relaylab.frontend.onnx.operators.conv import conv
from relaylab.frontend.onnx.operators.indexing import places_along
from relaylab.frontend.onnx.operators.norm import by_size
from relaylab.frontend.onnx.operators.recurrent import function_of
from relaylab.frontend.onnx.table import CONTRIB, converts
from relaylab.ir import Expr, const
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


@converts("SkipSimplifiedLayerNormalization", domain=CONTRIB)
def skip_simplified(
    g: Graph, node: OnnxNode, x: Expr, skip: Expr, gamma: Expr, bias: Expr | None = None
) -> list[Expr | None]:
    total = op.add(x, skip) if bias is None else op.add(op.add(x, skip), bias)
    return [by_size(g, total, gamma, [-1], node.get("epsilon", 1e-12)), None, None, total]


@converts("EmbedLayerNormalization", domain=CONTRIB)
def embed_layer_norm(
    g: Graph, node: OnnxNode, words: Expr, segments: Expr | None, word: Expr, position: Expr, segment: Expr | None,
    gamma: Expr, beta: Expr,
    mask: Expr | None = None, places: Expr | None = None,
) -> list[Expr | None]:  # fmt: skip
    """Sums of embeddings, normalized; the second output counts the words that the mask keeps."""
    batch, length = g.named(words)
    total = op.take(word, words, axis=0)
    if places is None and isinstance(length, int):
        at = op.strided_slice(position, [0], [length], [1], axes=[0])
    else:
        at = op.take(position, places_along(g, words, 1) if places is None else places, axis=0)
    total = op.add(total, at)
    if segments is not None and segment is not None:
        total = op.add(total, op.take(segment, segments, axis=0))
    out = nn.layer_norm(total, gamma, beta, axis=-1, epsilon=node.get("epsilon", 1e-12))
    counts = op.sum(mask, axis=[1]) if mask is not None else op.full(const(0, "int32"), (batch,), "int32")
    return [out, counts, total]


@converts("FusedMatMul", domain=CONTRIB)
def fused_matmul(g: Graph, node: OnnxNode, a: Expr, b: Expr) -> Expr:
    a, b = (_behind(g, v) if node.get(name, 0) else v for v, name in ((a, "transBatchA"), (b, "transBatchB")))
    a, b = (_swapped(g, v) if node.get(name, 0) else v for v, name in ((a, "transA"), (b, "transB")))
    out, alpha = product(g, a, b), node.get("alpha", 1.0)
    return out if alpha == 1 else op.multiply(out, g.const(alpha, out))


def _swapped(g: Graph, x: Expr) -> Expr:
    rank = g.rank(x)
    return op.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _behind(g: Graph, x: Expr) -> Expr:
    """The first axis behind the batch."""
    rank = g.rank(x)
    return op.transpose(x, [*range(1, rank - 1), 0, rank - 1])


@converts("FusedGemm", domain=CONTRIB, unused=("activation_gamma",))
def fused_gemm(g: Graph, node: OnnxNode, a: Expr, b: Expr, c: Expr | None = None) -> Expr:
    out, params = gemm(g, node, a, b, c), [node.get(f"activation_{n}", 0.0) for n in ("alpha", "beta")]
    return function_of(g, node, node.get("activation", ""), *params)(out) if node.get("activation", "") else out


@converts("FusedConv", domain=CONTRIB)
def fused_conv(g: Graph, node: OnnxNode, x: Expr, w: Expr, b: Expr | None = None, z: Expr | None = None) -> Expr:
    out = conv(g, node, x, w, b)
    out = out if z is None else op.add(out, z)
    name, params = node.get("activation", ""), node.get("activation_params") or []
    if name == "Clip":
        return op.clip(out, *params)
    return function_of(g, node, name, *(list(params) + [0.0, 0.0])[:2])(out) if name else out
