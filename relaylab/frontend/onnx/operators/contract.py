"""Products of matrices: MatMul, Gemm, Einsum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.matrices import sign_and_pivots
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.shapes import larger
from relaylab.frontend.onnx.table import converts
from relaylab.ir import AnyDim, Constant, Expr, const
from relaylab.ir.dims import dim
from relaylab.op import nn
from relaylab.op.shapes import broadcast_shapes


@converts("MatMul")
def matmul(g: Graph, node: OnnxNode, a: Expr, b: Expr) -> Expr:
    smaller = g.layers.get(b)
    found = smaller(a) if smaller is not None else None
    return product(g, a, b) if found is None else found


def product(g: Graph, a: Expr, b: Expr) -> Expr:
    """numpy's `matmul`: vectors count as one row or one column, what stands before the last two axes broadcasts."""
    ranks = g.rank(a), g.rank(b)
    if 0 in ranks:
        raise _misfit("a scalar has no rows")
    if ranks == (1, 1):
        return op.sum(op.multiply(a, b))
    if ranks[0] == 1:
        return op.squeeze(product(g, op.expand_dims(a, 0), b), axis=[-2])
    if ranks[1] == 1:
        return op.squeeze(product(g, a, op.expand_dims(b, 1)), axis=[-1])
    if not _agree(g.dims(a)[-1], g.dims(b)[-2]):
        raise _misfit(f"{g.tensor(a)} and {g.tensor(b)} share no inner dimension")
    if ranks[1] == 2:
        return _by_matrix(g, a, b)
    return _batched(g, a, b)


def _misfit(why: str) -> Exception:
    return ValueError(why)


def _agree(a: object, b: object) -> bool:
    return not (isinstance(a, int) and isinstance(b, int)) or a == b


def _by_matrix(g: Graph, a: Expr, b: Expr) -> Expr:
    """One matrix on the right: a dense layer, of which all leading axes are the batch."""
    shape, columns = g.dims(a), g.dims(b)[-1]
    if g.rank(a) == 2 or any(type(d) is AnyDim for d in (*shape, columns)):
        return nn.dense(a, op.transpose(b, [1, 0]))
    flat = op.reshape(a, (product_of(shape[:-1]), shape[-1]), allowzero=True)
    return op.reshape(nn.dense(flat, op.transpose(b, [1, 0])), (*shape[:-1], columns), allowzero=True)


def _batched(g: Graph, a: Expr, b: Expr) -> Expr:
    if g.rank(a) == g.rank(b) == 3:
        return _triple(g, a, b)
    left, right = g.dims(a), g.dims(b)
    if any(type(d) is AnyDim for d in (*left, *right)):
        return _at_run_time(g, a, b)
    batch = _broadcast(left[:-2], right[:-2])
    if any(type(d) is AnyDim for d in batch):  # two names, of which one may be 1
        return _at_run_time(g, a, b)
    out = _triple(g, _flat(a, left, batch), _flat(b, right, batch))
    return op.reshape(out, (*batch, left[-2], right[-1]), allowzero=True)


def _at_run_time(g: Graph, a: Expr, b: Expr) -> Expr:
    """The same where only run time knows the shapes: they are computed."""
    shapes = [op.shape_of(x, "int64") for x in (a, b)]
    part = lambda s, first, last: op.strided_slice(s, [first], [last], [1])
    ranks = [g.rank(x) for x in (a, b)]
    batches = [part(s, 0, r - 2) for s, r in zip(shapes, ranks)]
    wide = max(ranks) - 2
    ones = [Constant(np.ones(wide + 2 - r, "int64")) for r in ranks]
    full = [b if r == wide + 2 else op.concatenate([o, b], 0) for o, b, r in zip(ones, batches, ranks)]
    batch = larger(*full)
    inner = [part(s, r - 2, r) for s, r in zip(shapes, ranks)]
    flat = []
    for x, matrix in zip((a, b), inner):
        spread = op.broadcast_to(x, op.concatenate([batch, matrix], 0))
        count = op.prod(batch, axis=[0], keepdims=True)
        flat.append(op.reshape(spread, op.concatenate([count, matrix], 0), allowzero=True))
    out = _triple(g, *flat)
    return op.reshape(out, op.concatenate([batch, part(inner[0], 0, 1), part(inner[1], 1, 2)], 0), allowzero=True)


def _triple(g: Graph, a: Expr, b: Expr) -> Expr:
    if not g.options.get("use_nt_batch_matmul", True):
        return nn.batch_matmul(a, b, transpose_b=False)
    return nn.batch_matmul(a, op.transpose(b, [0, 2, 1]))


def _broadcast(a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, ...]:
    out = broadcast_shapes(tuple(map(dim, a)), tuple(map(dim, b)))
    if out is None:
        raise _misfit(f"{a} and {b} do not broadcast")
    return tuple(d if isinstance(d, AnyDim) else int(d) for d in out)


def _flat(x: Expr, shape: Sequence[Any], batch: Sequence[Any]) -> Expr:
    """One batch axis; a side that has only one matrix keeps it, batch_matmul repeats it."""
    own = product_of(shape[:-2])
    if own not in (1, product_of(batch)):
        x, own = op.broadcast_to(x, (*batch, *shape[-2:])), product_of(batch)
    return op.reshape(x, (own, *shape[-2:]), allowzero=True)


def product_of(dims: Sequence[Any]) -> int | AnyDim:
    """The product of numbers and sizes with names."""
    return math.prod(dims)


@converts("Gemm", unused=("broadcast",))
def gemm(g: Graph, node: OnnxNode, a: Expr, b: Expr, c: Expr | None = None) -> Expr:
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    left = op.transpose(a, [1, 0]) if node.get("transA", 0) else a
    right = b if node.get("transB", 0) else op.transpose(b, [1, 0])
    if g.rank(a) != 2 or g.rank(b) != 2 or not _agree(g.dims(left)[-1], g.dims(right)[-1]):
        raise node.error(f"{g.tensor(a)} and {g.tensor(b)} share no inner dimension", code="import.shape")
    out = nn.dense(left, right)
    if alpha != 1:
        out = op.multiply(out, g.const(alpha, out))
    if c is None:
        return out
    shift = c if beta == 1 else op.multiply(c, g.const(beta, c))
    return (
        nn.bias_add(out, shift, axis=-1)
        if g.rank(shift) == 1
        and _agree(g.dims(shift)[0], g.dims(out)[1])
        and g.is_static(shift)
        and g.shape(shift)[0] != 1
        else op.add(out, shift)
    )


@converts("Einsum", since=12)
def einsum(g: Graph, node: OnnxNode, *ins: Expr) -> Expr:
    equation = node.need("equation").replace(" ", "")
    terms, _, target = equation.partition("->")
    rows, _, columns = terms.partition(",")
    if terms.isalpha() and sorted({*terms}) == sorted(terms) == sorted(target) and len(terms) == g.rank(ins[0]):
        return op.transpose(ins[0], [terms.index(letter) for letter in target])
    plain = len(columns) == len(ins) == 2 and len({*rows, *columns}) == len(rows) + 1 and "." not in rows
    if plain and equation.endswith(f"{columns[0]},{columns}->{rows[:-1]}{columns[1]}"):
        return product(g, *ins)
    return op.einsum(list(ins), equation)


@converts("Det", since=11)
def det(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """Determinants by the rule of Laplace for matrices up to 3 x 3, of larger ones by their triangles."""
    rows, n = g.extents(x, g.rank(x) - 2)
    if rows != n:
        raise node.error(f"determinants of {rows} x {n} matrices", code="import.shape")
    if n > 3:
        sign, pivots = sign_and_pivots(g, x, n)
        return op.multiply(op.prod(pivots, axis=[-1]), sign)
    return _minor(x, tuple(range(n)), tuple(range(n)))


def _minor(x: Expr, rows: tuple[int, ...], columns: tuple[int, ...]) -> Expr:
    parts = []
    for k, column in enumerate(columns):
        entry = op.take(op.take(x, const(column, "int32"), axis=-1), const(rows[0], "int32"), axis=-1)
        rest = columns[:k] + columns[k + 1 :]
        parts.append(op.multiply(entry, _minor(x, rows[1:], rest)) if rest else entry)
    total = parts[0]
    for k, part in enumerate(parts[1:]):
        total = (op.add if k % 2 else op.subtract)(total, part)
    return total
