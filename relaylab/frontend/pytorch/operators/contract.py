"""Products of matrices. A transposed right side, as `nn.Linear` has it, is what Relay's dense takes."""

from __future__ import annotations

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Call, Expr, op_name
from relaylab.ir.op import facets
from relaylab.op import nn


def _turned(g: TorchGraph, x: Expr) -> Expr:
    """The transpose of a matrix; of a transposed one, the matrix itself."""
    if isinstance(x, Call) and op_name(x) == "transpose" and g.rank(x) == 2:
        axes = facets(x).axes
        if axes is None or axes[0] % 2:  # another one moves nothing
            return x.args[0]
    return op.transpose(x, [1, 0])


def _plus(g: TorchGraph, out: Expr, bias: Expr | None, beta: float = 1, alpha: float = 1) -> Expr:
    out = out if alpha == 1 else op.multiply(out, g.const(alpha, out))
    if bias is None or beta == 0:
        return out
    scaled: Expr = bias if beta == 1 else op.multiply(bias, g.const(beta, bias))
    return nn.bias_add(out, scaled, axis=-1) if g.dims(scaled) == g.dims(out)[-1:] else op.add(out, scaled)


@converts("linear")
def linear(g: TorchGraph, node: AtenNode, x: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    if g.rank(weight) == 1:
        return _plus(g, op.sum(op.multiply(x, weight), axis=[-1]), bias)
    flat = x if g.rank(x) > 1 else op.expand_dims(x, 0)
    out = _plus(g, nn.dense(flat, weight, units=units if isinstance(units := g.dims(weight)[0], int) else None), bias)
    return out if g.rank(x) > 1 else op.squeeze(out, axis=[0])


@converts("mm")
def mm(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    return nn.dense(a, _turned(g, b))


@converts("mv")
def mv(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    return op.sum(op.multiply(a, b), axis=[1])


@converts("dot")
def dot(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    return op.sum(op.multiply(a, b))


@converts("addmm")
def addmm(g: TorchGraph, node: AtenNode, bias: Expr, a: Expr, b: Expr, beta: float = 1, alpha: float = 1) -> Expr:
    return _plus(g, mm(g, node, a, b), bias, beta, alpha)


@converts("bmm")
def bmm(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    return nn.batch_matmul(a, b, transpose_b=False)


@converts("baddbmm")
def baddbmm(g: TorchGraph, node: AtenNode, bias: Expr, a: Expr, b: Expr, beta: float = 1, alpha: float = 1) -> Expr:
    return _plus(g, bmm(g, node, a, b), bias, beta, alpha)


@converts("addbmm")
def addbmm(g: TorchGraph, node: AtenNode, bias: Expr, a: Expr, b: Expr, beta: float = 1, alpha: float = 1) -> Expr:
    """The products of a batch, summed: one product of the matrices side by side."""
    n, rows, inner = g.shape(a)
    left = op.reshape(op.transpose(a, [1, 0, 2]), (rows, n * inner))
    return _plus(g, mm(g, node, left, op.reshape(b, (n * inner, g.shape(b)[2]))), bias, beta, alpha)


@converts("addmv")
def addmv(g: TorchGraph, node: AtenNode, bias: Expr, a: Expr, b: Expr, beta: float = 1, alpha: float = 1) -> Expr:
    return _plus(g, mv(g, node, a, b), bias, beta, alpha)


@converts("_int_mm")
def int_mm(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    """Products of bytes, summed in int32."""
    return nn.dense(a, _turned(g, b), out_dtype="int32")


@converts("_grouped_mm", "transformers.grouped_mm_fallback.default")
def grouped_mm(
    g: TorchGraph,
    node: AtenNode,
    a: Expr,
    b: Expr,
    offs: Expr | None = None,
    bias: Expr | None = None,
    out_dtype: object = None,
) -> Expr:
    """Groups of rows, each times a matrix of its own: the experts of a mixture."""
    ranks = (g.rank(a), g.rank(b))
    if bias is not None or ranks != ((3, 3) if offs is None else (2, 3)):
        raise node.error("only groups of rows are imported, without bias", "import.option", "say it by slices")
    return bmm(g, node, a, b) if offs is None else nn.grouped_matmul(a, b, offs)
