"""Matrices as products with orthogonal ones: QR, singular values, eigenvalues of symmetric ones, pseudo-inverses."""

from __future__ import annotations

import math

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Constant, Expr
from relaylab.op import nn
from relaylab.support.dtypes import finfo

LARGER = 1.5  # than the largest eigenvalue: what makes all of them positive, of the size of the matrix


def _turned(g: TorchGraph, x: Expr) -> Expr:
    """Matrices with rows and columns exchanged."""
    rank = g.rank(x)
    return op.transpose(x, axes=[*range(rank - 2), rank - 1, rank - 2])


@converts("linalg_qr")
def qr(g: TorchGraph, node: AtenNode, a: Expr, mode: str = "reduced") -> list[Expr]:
    """With `mode` r only R is needed, of the reduced form."""
    found = op.qr(a, complete=mode == "complete")
    if mode != "r":
        return list(found)
    return [op.zeros((0,), dtype=g.dtype(a)), found[1]]


def _tall(g: TorchGraph, a: Expr, full: bool) -> tuple[Expr, Expr, Expr]:
    """U, the singular values and V^T of matrices with at least as many rows as columns."""
    rows, columns = g.extents(a, g.rank(a) - 2)
    scaled, sizes, v = op.one_sided_svd(a)
    # Its columns are orthogonal: Q is they, each as it is or negative, and what is missing of lost ones.
    q, r = op.qr(scaled, complete=full)
    one = g.const(1, r)
    diagonal = op.sum(
        op.multiply(r, Constant(np.eye(g.extent(r, g.rank(r) - 2), columns, dtype=g.dtype(a)))), axis=[-1]
    )
    signs = op.where(op.less(diagonal, g.const(0, r)), op.negative(one), one)
    return op.multiply(q, op.expand_dims(signs, axis=-2)), sizes, v


def _svd(g: TorchGraph, a: Expr, full: bool) -> tuple[Expr, Expr, Expr]:
    rows, columns = g.extents(a, g.rank(a) - 2)
    if rows >= columns:
        return _tall(g, a, full)
    u, sizes, v = _tall(g, _turned(g, a), full)
    return _turned(g, v), sizes, _turned(g, u)


@converts("_linalg_svd")
def svd(
    g: TorchGraph,
    node: AtenNode,
    a: Expr,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
) -> list[Expr | None]:
    """The signs of columns of U and rows of V^T may be others than torch's."""
    if compute_uv:
        return list(_svd(g, a, full_matrices))
    rows, columns = g.extents(a, g.rank(a) - 2)
    return [None, op.one_sided_svd(a if rows >= columns else _turned(g, a))[1], None]


def _mirrored(g: TorchGraph, node: AtenNode, a: Expr, lower: bool) -> Expr:
    """The symmetric matrices of which a triangle is given."""
    n, columns = g.extents(a, g.rank(a) - 2)
    if n != columns:
        raise node.error(f"matrices of {n} x {columns} are not symmetric", "import.shape")
    half, unit = (np.tril if lower else np.triu)(np.ones((n, n)), -1 if lower else 1), np.eye(n)
    side, within = (op.multiply(a, Constant(part.astype(g.dtype(a)))) for part in (half, unit))
    return op.add(op.add(side, _turned(g, side)), within)


def _eigh(g: TorchGraph, node: AtenNode, a: Expr, lower: bool) -> tuple[Expr, Expr]:
    """The eigenvalues, the smallest first, and vectors as columns, of the triangle that is read."""
    whole, unit = _mirrored(g, node, op.cast(a, "float64"), lower), Constant(np.eye(g.extent(a, g.rank(a) - 1)))
    # Singular values of a positive matrix are its eigenvalues.
    size = op.sqrt(op.sum(op.multiply(whole, whole), axis=[-2, -1], keepdims=True))
    more = op.multiply(size, Constant(np.array(LARGER)))
    _, found, rows = op.one_sided_svd(op.add(whole, op.multiply(unit, more)))
    values = op.subtract(found, op.squeeze(more, axis=[-1]))
    ordered = op.reverse(values, axis=g.rank(values) - 1), _turned(g, op.reverse(rows, axis=g.rank(rows) - 2))
    first, second = (op.cast(x, g.dtype(a)) for x in ordered)
    return first, second


@converts("_linalg_eigh")
def eigh(g: TorchGraph, node: AtenNode, a: Expr, uplo: str = "L", compute_v: bool = True) -> list[Expr]:
    """The signs of vectors may be others than torch's."""
    return list(_eigh(g, node, a, uplo.upper() == "L"))


@converts("linalg_pinv.atol_rtol_tensor", "linalg_pinv.atol_rtol_float")
def pinv(
    g: TorchGraph,
    node: AtenNode,
    a: Expr,
    *,
    atol: Expr | float | None = None,
    rtol: Expr | float | None = None,
    hermitian: bool = False,
) -> Expr:
    """Singular values count that are larger than `atol` and `rtol` times the largest one; of symmetric matrices the
    lower triangle is read.
    """
    rows, columns = g.extents(a, g.rank(a) - 2)
    dtype = g.dtype(a)
    numbers = [v for v in (atol, rtol) if v is None or isinstance(v, (int, float))]
    if len(numbers) < 2:
        raise node.error("tolerances that are tensors are not taken: give numbers", "import.option")
    u, sizes, v = _svd(g, _mirrored(g, node, a, lower=True) if hermitian else a, False)
    absolute, relative = numbers[0] or 0.0, numbers[1]
    if relative is None:
        relative = 0.0 if absolute > 0 else max(rows, columns) * float(finfo(dtype).eps)
    most = op.max(sizes, axis=[-1], keepdims=True) if 0 not in g.dims(a) else sizes
    least = op.maximum(op.multiply(most, g.const(relative, sizes)), g.const(absolute, sizes))
    zero, one = g.const(0, sizes), g.const(1, sizes)
    counts = op.greater(sizes, least)
    inverse = op.where(counts, op.divide(one, op.where(counts, sizes, one)), zero)
    left, right = op.multiply(_turned(g, v), op.expand_dims(inverse, axis=-2)), _turned(g, u)
    *front, inner, _ = g.named(right)
    left = op.reshape(left, (math.prod(front), columns, inner))
    right = op.reshape(right, (math.prod(front), inner, rows))
    return op.reshape(nn.batch_matmul(left, right, transpose_b=False), (*front, columns, rows))
