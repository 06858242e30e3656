"""Matrices as products with orthogonal ones: qr, one_sided_svd. Each works on the last two axes, in float64.

Golub and Van Loan, Matrix Computations, 4th edition, 2013, 5.2 and 8.6. Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from relaylab.ir.expr import Call, Expr, TupleWrapper
from relaylab.ir.types import Dim, IntImm, TensorType, TupleType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, Sample, arg, attr, op, sample, wrap
from relaylab.op.helpers import Element, Position, TypeSolver
from relaylab.op.nn.matrices import Work, matrices
from relaylab.op.products import elements

if TYPE_CHECKING:
    from relaylab.loop.expr import Local, Tensor
    from relaylab.loop.procedure import Procedure

WIDE = "float64"
SWEEPS = 40  # rotations of all pairs of columns; some ten suffice
ALIKE = 1e-15  # the cosine of two columns that are orthogonal


def _extents(s: TypeSolver, data: TensorType) -> tuple[tuple[Dim, ...], int, int]:
    """The leading axes, rows and columns of matrices of floats."""
    rules.floats(s, data, "data")
    known = [int(n) for n in data.shape[-2:] if isinstance(n, IntImm)]
    if len(known) < 2:
        s.fail(f"matrices of known rows and columns are needed, not {type_text(data)}")
    return tuple(data.shape[:-2]), known[0], known[1]


@op("qr", level=10, attrs_key="QR")
class qr(Opaque):
    """Matrices as products q r of one with orthonormal columns and an upper triangular one, by Householder's
    reflections: a number on the diagonal of r has the sign that the column's first number had not.
    """

    data: Input = arg("the matrices", "(..., m, n)", "floats")
    complete: bool = attr(False, "whether q is square, not only as wide as the smaller of m and n")
    yields = "(q: (..., m, k), r: (..., k, n)), of the dtype of data"
    source = "numpy.linalg.qr; LAPACK geqrf, orgqr"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        front, rows, columns = _extents(s, data)
        k = rows if self.complete else min(rows, columns)
        return TupleType([TensorType((*front, *own), data.dtype) for own in ((rows, k), (k, columns))])

    def reference(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows, columns = data.shape[-2:]
        width = rows if self.complete else min(rows, columns)
        q, r = np.zeros((*data.shape[:-1], width)), data.astype(WIDE)
        for at in np.ndindex(data.shape[:-2]):
            a, reflections = r[at], list[tuple[int, np.ndarray, float]]()
            for k in range(min(rows, columns)):
                v, first, rest = a[k:, k].copy(), a[k, k], np.sum(a[k + 1 :, k] ** 2)
                if rest != 0:
                    last = np.sqrt(first * first + rest) * (1.0 if first < 0 else -1.0)
                    v[1:], v[0], factor = v[1:] / (first - last), 1.0, (last - first) / last
                    a[k:] -= factor * np.outer(v, v @ a[k:])
                    reflections.append((k, v, factor))
            q[at] = np.eye(rows, width)
            for k, v, factor in reversed(reflections):
                q[at][k:] -= factor * np.outer(v, v @ q[at][k:])
        return q.astype(data.dtype), np.triu(r[..., :width, :]).astype(data.dtype)

    def procedure(self, p: Procedure, q: Tensor, r: Tensor, data: Tensor) -> None:
        b, (rows, columns) = p.b, data.shape[-2:]
        count = min(rows, columns)
        with matrices(p, data.shape) as at:
            work, made = Work(p, rows, columns, WIDE), Work(p, rows, q.shape[-1], WIDE)
            factors = Work(p, 1, count, WIDE)
            work.each(lambda row, c: data(*at(row, c)))
            with p.loop(count) as k:
                first, rest = p.let(work(k, k), "first"), p.let(b.const(0.0, WIDE), "rest")
                with p.loop(rows, stop=(rows - 1) - k) as below:
                    p.add(rest, work(k + 1 + below, k) * work(k + 1 + below, k))
                size = b.sqrt(first * first + rest)
                last = p.let(b.select(first < 0.0, size, size * -1.0), "last")
                none = b.eq(rest, 0.0)
                factor = p.let(b.select(none, 0.0, (last - first) / last), "factor")
                scale = p.let(b.select(none, 0.0, b.const(1.0, WIDE) / (first - last)), "scale")
                with p.loop(rows, stop=(rows - 1) - k) as below:
                    work.put(k + 1 + below, k, work(k + 1 + below, k) * scale)
                factors.put(0, k, factor)
                _reflect(p, work, work, k, factor, k + 1)
                work.put(k, k, b.select(none, first, last))
            made.each(lambda row, c: b.select(b.eq(b.index(row), c), b.const(1.0, WIDE), b.const(0.0, WIDE)))
            with p.loop(count) as step:
                k = (count - 1) - step
                _reflect(p, made, work, k, p.let(factors(0, k)), 0)
            made.into(q, at, made)
            with p.loop(r.shape[-2]) as row, p.loop(columns, kind="vectorized") as c:
                p.store(r, at(row, c), b.cast(b.select(c >= row, work(row, c), b.const(0.0, WIDE)), r.dtype))

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return 2 * elements(types[0]) * _width(types[0])

    @classmethod
    def returns(cls, call: Call) -> Expr | TupleWrapper:
        return wrap(call, 2)

    @classmethod
    def samples(cls) -> list[Sample]:
        tall = np.array([[1, 2], [-2, 0.5], [3, 1]], "float32")
        two = np.stack([tall.T, tall.T[::-1]]).astype("float64")
        lone = np.array([[0, 1], [0, -2]], "float32")
        return [sample(tall), sample(tall, complete=True), sample(two), sample(lone, complete=True)]


def _reflect(p: Procedure, a: Work, vectors: Work, k: Element, factor: Element, first: Position) -> None:
    """The reflection whose vector is column `k` of `vectors` below row `k`, where it is 1, of the columns of `a` from
    column `first` on.
    """
    b, rest = p.b, vectors.rows
    products = Work(p, 1, a.columns, WIDE)
    with p.loop(a.columns, kind="vectorized") as c:
        products.put(0, c, a(k, c))
    with p.loop(rest, stop=(rest - 1) - k) as below:
        v = p.let(vectors(k + 1 + below, k))
        with p.loop(a.columns, kind="vectorized") as c:
            products.put(0, c, products(0, c) + v * a(k + 1 + below, c))
    with p.loop(a.columns, kind="vectorized") as c:
        a.put(k, c, b.select(c >= b.index(first), a(k, c) - factor * products(0, c), a(k, c)))
    with p.loop(rest, stop=(rest - 1) - k) as below:
        v = p.let(factor * vectors(k + 1 + below, k))
        with p.loop(a.columns, kind="vectorized") as c:
            x = a(k + 1 + below, c)
            a.put(k + 1 + below, c, b.select(c >= b.index(first), x - v * products(0, c), x))


def _width(type: Type) -> int:
    """How many columns matrices have; 0 if that is not known."""
    return type.concrete_shape[-1] if isinstance(type, TensorType) and not type.is_dynamic else 0


@op("one_sided_svd", level=10, attrs_key="OneSidedSVD")
class one_sided_svd(Opaque):
    """Matrices as products u v: the rows of v are orthonormal, the columns of u orthogonal and as long as s says, the
    longest first, which are the singular values. By Jacobi's rotations of columns; the largest number in a row of v
    is positive.
    """

    data: Input = arg("the matrices, of at least as many rows as columns", "(..., m, n)", "floats")
    yields = "(u: the type of data, s: (..., n), v: (..., n, n)), of the dtype of data"
    source = "numpy.linalg.svd; Hestenes, 1958"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        front, rows, columns = _extents(s, data)
        if rows < columns:
            s.fail(f"{type_text(data)} has fewer rows than columns", help="transpose the matrices")
        own = [(rows, columns), (columns,), (columns, columns)]
        return TupleType([TensorType((*front, *shape), data.dtype) for shape in own])

    def reference(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n = data.shape[-1]
        u = np.swapaxes(data, -1, -2).astype(WIDE)
        v = np.broadcast_to(np.eye(n), (*data.shape[:-2], n, n)).copy()
        sizes = np.zeros(u.shape[:-1])
        for at in np.ndindex(data.shape[:-2]):
            _rotated(u[at], v[at])
            sizes[at] = np.sqrt(np.sum(u[at] ** 2, axis=1))
            order = np.argsort(-np.where(np.isnan(sizes[at]), np.inf, sizes[at]), kind="stable")
            sizes[at], u[at], v[at] = sizes[at][order], u[at][order], v[at][order]
            for k in range(n):
                if v[at][k, np.argmax(np.abs(v[at][k]))] < 0:
                    u[at][k], v[at][k] = -u[at][k], -v[at][k]
        return np.swapaxes(u, -1, -2).astype(data.dtype), sizes.astype(data.dtype), v.astype(data.dtype)

    def procedure(self, p: Procedure, out: Tensor, sizes: Tensor, turned: Tensor, data: Tensor) -> None:
        b, (rows, n) = p.b, data.shape[-2:]
        with matrices(p, data.shape) as at:
            u, v, length = Work(p, n, rows, WIDE), Work(p, n, n, WIDE), Work(p, 1, n, WIDE)
            u.each(lambda column, row: data(*at(row, column)))
            v.each(lambda row, c: b.select(b.eq(b.index(row), c), b.const(1.0, WIDE), b.const(0.0, WIDE)))
            moved = p.let(b.const(1.0, WIDE), "moved")
            with p.loop(SWEEPS), p.when(moved > 0.0):
                p.set(moved, b.const(0.0, WIDE))
                with p.loop(n) as i, p.loop(n, stop=(n - 1) - i) as after:
                    _rotate(p, u, v, i, i + 1 + after, moved)
            with p.loop(n) as i:
                square = p.let(b.const(0.0, WIDE), "square")
                with p.loop(rows) as row:
                    p.add(square, u(i, row) * u(i, row))
                length.put(0, i, b.sqrt(square))
            known = lambda i: b.select(b.eq(length(0, i), length(0, i)), length(0, i), math.inf)
            with p.loop(n) as i:
                size, place = p.let(known(i), "size"), p.let(0, "place")
                best = p.let(b.const(0.0, WIDE), "best")
                with p.loop(n) as j:
                    before = b.select(b.index(j) < i, known(j) >= size, known(j) > size)
                    p.add(place, b.select(before, b.index(1), b.index(0)))
                    with p.when(b.abs(v(i, j)) > b.abs(best)):
                        p.set(best, v(i, j))
                sign = p.let(b.select(best < 0.0, b.const(-1.0, WIDE), b.const(1.0, WIDE)), "sign")
                with p.loop(rows) as row:
                    p.store(out, at(row, place), b.cast(sign * u(i, row), out.dtype))
                with p.loop(n, kind="vectorized") as c:
                    p.store(turned, at(place, c), b.cast(sign * v(i, c), out.dtype))
                p.store(sizes, at(0, place)[:-2] + (place,), b.cast(length(0, i), out.dtype))

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return 10 * elements(types[0]) * _width(types[0])

    @classmethod
    def returns(cls, call: Call) -> Expr | TupleWrapper:
        return wrap(call, 3)

    @classmethod
    def samples(cls) -> list[Sample]:
        tall = np.array([[1, 2, 0], [-2, 0.5, 1], [3, 1, 4], [0, 1, 1]], "float32")
        lone = np.array([[1, 2], [0.5, 1]], "float64")
        return [sample(tall), sample(np.stack([tall[:3], tall[1:]]).astype("float64")), sample(lone)]


def _rotated(u: np.ndarray, v: np.ndarray) -> None:
    """Turn the rows of `u` until they are orthogonal, and those of `v` with them."""
    for _ in range(SWEEPS):
        moved = False
        for i, j in combinations(range(len(u)), 2):
            x, y, both = u[i] @ u[i], u[j] @ u[j], u[i] @ u[j]
            if not abs(both) > ALIKE * np.sqrt(x * y):
                continue
            moved, half = True, (y - x) / (2 * both)
            t = np.copysign(1.0, half) / (abs(half) + np.sqrt(1 + half * half))
            cosine = 1 / np.sqrt(1 + t * t)
            for a in (u, v):
                a[i], a[j] = cosine * (a[i] - t * a[j]), cosine * (t * a[i] + a[j])
        if not moved:
            return


def _rotate(p: Procedure, u: Work, v: Work, i: Element, j: Element, moved: Local) -> None:
    """The rows `i` and `j` turned in their plane so that those of `u` are orthogonal, where they are not."""
    b, one = p.b, p.b.const(1.0, WIDE)
    x, y, both = (p.let(b.const(0.0, WIDE), name) for name in ("x", "y", "both"))
    with p.loop(u.columns, kind="vectorized") as k:
        for total, value in ((x, u(i, k) * u(i, k)), (y, u(j, k) * u(j, k)), (both, u(i, k) * u(j, k))):
            p.add(total, value)
    with p.when(b.abs(both) > b.sqrt(x * y) * ALIKE):
        p.set(moved, one)
        half = p.let((y - x) / (both * 2.0), "half")
        size = b.abs(half) + b.sqrt(half * half + 1.0)
        t = p.let(b.select(half < 0.0, b.const(-1.0, WIDE), one) / size, "t")
        cosine = p.let(one / b.sqrt(t * t + 1.0), "cosine")
        for a in (u, v):
            with p.loop(a.columns, kind="vectorized") as k:
                first, second = p.let(a(i, k)), p.let(a(j, k))
                a.put(i, k, cosine * (first - t * second))
                a.put(j, k, cosine * (t * first + second))
