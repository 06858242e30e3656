"""Matrices that are solved with, inverted, or taken apart into triangular ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.matrices import diagonal, sign_and_pivots
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Constant, Expr

_TERMS, _HALVINGS = 16, 25
"""Of the series of a matrix exponential, and the most before it."""


def _turned(g: TorchGraph, x: Expr) -> Expr:
    """Matrices with rows and columns exchanged."""
    rank = g.rank(x)
    return op.transpose(x, axes=[*range(rank - 2), rank - 1, rank - 2])


def _square(g: TorchGraph, node: AtenNode, a: Expr) -> int:
    """How many rows there are, as many as columns."""
    rows, columns = g.extents(a, g.rank(a) - 2)
    if rows != columns:
        raise node.error(f"matrices of {rows} x {columns} are not taken apart, but square ones", "import.shape")
    return rows


def _where_rows_went(order: Expr, n: int, dtype: str) -> Expr:
    """The matrices whose row i has its one in column `order[i]`."""
    places = Constant(np.arange(n, dtype="int32"))
    return op.cast(op.equal(op.expand_dims(order, axis=-1), places), dtype)


def _alike(g: TorchGraph, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Matrices of the same leading axes."""
    shapes = [g.dims(v) for v in (a, b)]
    if shapes[0][:-2] == shapes[1][:-2]:
        return a, b
    shapes = [g.shape(v) for v in (a, b)]
    front = np.broadcast_shapes(*(s[:-2] for s in shapes))
    wide = [v if s[:-2] == front else op.broadcast_to(v, (*front, *s[-2:])) for v, s in zip((a, b), shapes)]
    return wide[0], wide[1]


def solved(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """The x with a x = b, and the number of the first column without a pivot, 0 if all have one."""
    n = _square(g, node, a)
    a, b = _alike(g, a, b)
    triangles, order = op.lu(a)
    rows = op.broadcast_to_like(op.expand_dims(op.cast(order, "int64"), axis=-1), b)
    first = op.solve_triangular(triangles, op.gather(b, g.rank(b) - 2, rows) if n > 1 else b, unit=True)
    return op.solve_triangular(triangles, first, upper=True), _failed(g, diagonal(triangles, n))


def inverse(g: TorchGraph, node: AtenNode, a: Expr) -> tuple[Expr, Expr]:
    """The inverse, and the number of the first column without a pivot, 0 if all have one."""
    n = _square(g, node, a)
    triangles, order = op.lu(a)
    first = op.solve_triangular(triangles, _where_rows_went(order, n, g.dtype(a)), unit=True)
    return op.solve_triangular(triangles, first, upper=True), _failed(g, diagonal(triangles, n))


def _failed(g: TorchGraph, pivots: Expr) -> Expr:
    if not g.dims(pivots)[-1]:
        return op.zeros(g.shape(pivots)[:-1], dtype="int32")
    none = op.logical_not(op.greater(op.abs(pivots), g.const(0, pivots)))
    place = op.add(op.argmax(op.cast(none, "int32"), axis=[-1]), g.const(1, "int32"))
    return op.where(op.any(none, axis=[-1]), place, op.zeros_like(place))


@converts("linalg_inv_ex")
def inverse_and_info(g: TorchGraph, node: AtenNode, a: Expr, check_errors: bool = False) -> list[Expr]:
    return list(inverse(g, node, a))


@converts("linalg_inv", "inverse")
def inverse_only(g: TorchGraph, node: AtenNode, a: Expr) -> Expr:
    """Of a singular matrix infinities, or no numbers."""
    return inverse(g, node, a)[0]


def _is_vector(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(b) == 1 or (len(b) == len(a) - 1 and tuple(b) == tuple(a[:-1]))


@converts("linalg_solve")
def solve(g: TorchGraph, node: AtenNode, a: Expr, b: Expr, left: bool = True) -> Expr:
    return _solved(g, node, a, b, left)[0]


def _solved(g: TorchGraph, node: AtenNode, a: Expr, b: Expr, left: bool) -> tuple[Expr, Expr]:
    if not left:
        x, info = solved(g, node, _turned(g, a), _turned(g, b))
        return _turned(g, x), info
    if _is_vector(g.dims(a), g.dims(b)):
        x, info = solved(g, node, a, op.expand_dims(b, axis=-1))
        return op.squeeze(x, axis=[-1]), info
    return solved(g, node, a, b)


@converts("_linalg_solve_ex")
def solve_and_more(
    g: TorchGraph, node: AtenNode, a: Expr, b: Expr, left: bool = True, check_errors: bool = False
) -> list[Expr | None]:
    x, info = _solved(g, node, a, b, left)
    return [x, None, None, info]


@converts("_linalg_det")
def determinant(g: TorchGraph, node: AtenNode, a: Expr) -> list[Expr | None]:
    sign, pivots = sign_and_pivots(g, a, _square(g, node, a))
    return [op.multiply(op.prod(pivots, axis=[-1]), sign), None, None]


@converts("_linalg_slogdet")
def log_determinant(g: TorchGraph, node: AtenNode, a: Expr) -> list[Expr | None]:
    """The sign of the determinant, and the logarithm of its size."""
    sign, pivots = sign_and_pivots(g, a, _square(g, node, a))
    size = op.sum(op.log(op.abs(pivots)), axis=[-1])
    return [op.multiply(op.prod(op.sign(pivots), axis=[-1]), sign), size, None, None]


@converts("linalg_lu")
def lu(g: TorchGraph, node: AtenNode, a: Expr, pivot: bool = True) -> list[Expr]:
    """P, L and U, of which the product is the matrix."""
    if not pivot:
        raise node.error("without exchanged rows matrices are not taken apart", "import.option")
    n = _square(g, node, a)
    triangles, order = op.lu(a)
    unit = Constant(np.eye(n, dtype=g.dtype(a)))
    lower = op.add(op.trilu(triangles, g.const(-1, "int32"), upper=False), unit)
    return [_turned(g, _where_rows_went(order, n, g.dtype(a))), lower, op.trilu(triangles, g.const(0, "int32"))]


@converts("linalg_cholesky")
def cholesky(g: TorchGraph, node: AtenNode, a: Expr, upper: bool = False) -> Expr:
    """NaN where a matrix is not positive definite."""
    _square(g, node, a)
    return _turned(g, op.cholesky(_turned(g, a))) if upper else op.cholesky(a)


@converts("linalg_cholesky_ex")
def cholesky_and_info(
    g: TorchGraph, node: AtenNode, a: Expr, upper: bool = False, check_errors: bool = False
) -> list[Expr]:
    found = cholesky(g, node, a, upper)
    return [found, _failed(g, diagonal(found, g.shape(a)[-1]))]


@converts("linalg_solve_triangular")
def solve_triangular(
    g: TorchGraph, node: AtenNode, a: Expr, b: Expr, upper: bool, left: bool = True, unitriangular: bool = False
) -> Expr:
    _square(g, node, a)
    if left:
        return op.solve_triangular(*_alike(g, a, b), upper=upper, unit=unitriangular)
    turned = _alike(g, _turned(g, a), _turned(g, b))
    return _turned(g, op.solve_triangular(*turned, upper=not upper, unit=unitriangular))


@converts("triangular_solve")
def triangular_solve(
    g: TorchGraph, node: AtenNode, b: Expr, a: Expr, upper: bool = True, transpose: bool = False,
    unitriangular: bool = False,
) -> list[Expr]:  # fmt: skip
    matrix = _turned(g, a) if transpose else a
    return [solve_triangular(g, node, matrix, b, upper != transpose, True, unitriangular), a]


def _by_cholesky(g: TorchGraph, node: AtenNode, factor: Expr, b: Expr, upper: bool) -> Expr:
    """The x with L L^T x = b."""
    lower = _turned(g, factor) if upper else factor
    first = solve_triangular(g, node, lower, b, False)
    return solve_triangular(g, node, _turned(g, lower), first, True)


@converts("cholesky_solve")
def cholesky_solve(g: TorchGraph, node: AtenNode, b: Expr, factor: Expr, upper: bool = False) -> Expr:
    return _by_cholesky(g, node, factor, b, upper)


@converts("cholesky_inverse")
def cholesky_inverse(g: TorchGraph, node: AtenNode, factor: Expr, upper: bool = False) -> Expr:
    n = _square(g, node, factor)
    return _by_cholesky(g, node, factor, Constant(np.eye(n, dtype=g.dtype(factor))), upper)


@converts("linalg_matrix_exp")
def matrix_exp(g: TorchGraph, node: AtenNode, a: Expr) -> Expr:
    """The series of a matrix that is halved until it is small, squared as often (Moler, Van Loan, 2003).

    Of a matrix beyond 2^24 no digit would be left: there are no numbers.
    """
    n = _square(g, node, a)
    rank, c = g.rank(a), lambda v: g.const(v, a)
    flat = op.reshape(a, (-1, n, n))
    size = op.max(op.sum(op.abs(flat), axis=[1], keepdims=True), axis=[2], keepdims=True)
    halvings = op.clip(op.ceil(op.log2(op.maximum(size, c(1e-30)))), 0, _HALVINGS - 1)
    halvings = op.where(op.greater(size, c(0.5)), op.add(halvings, c(1)), op.zeros_like(halvings))
    small, one = op.divide(flat, op.power(c(2), halvings)), Constant(np.eye(n, dtype=g.dtype(a)))
    out = op.add(op.divide(small, c(_TERMS)), one)
    times = lambda x, y: op.nn.batch_matmul(x, y, transpose_b=False)
    for k in range(_TERMS - 1, 0, -1):
        out = op.add(op.divide(times(small, out), c(k)), one)
    for k in range(_HALVINGS):
        out = op.where(op.less(c(k), halvings), times(out, out), out)
    out = op.where(op.less_equal(size, c(2.0 ** (_HALVINGS - 1))), out, c(np.nan))
    return out if rank == 3 else op.reshape(out, g.sizes(g.all_sizes(a)))
