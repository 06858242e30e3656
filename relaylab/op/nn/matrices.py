"""Matrices taken apart and solved with: lu, cholesky, solve_triangular. Each works on the last two axes.

Golub and Van Loan, Matrix Computations, 4th edition, 2013, 3.1, 3.4 and 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from relaylab.ir.expr import Call, Expr, TupleWrapper
from relaylab.ir.types import TensorType, TupleType, Type, type_text
from relaylab.loop.scalar import compute_dtype
from relaylab.op import rules
from relaylab.op.base import Input, Opaque, Sample, arg, attr, op, sample, wrap
from relaylab.op.helpers import Element, Position, TypeSolver
from relaylab.op.indexing import unravel
from relaylab.op.products import elements

if TYPE_CHECKING:
    from relaylab.loop.expr import Tensor
    from relaylab.loop.procedure import Procedure

At = Callable[[Position, Position], tuple[Position, ...]]


def _square(s: TypeSolver, data: TensorType) -> TensorType:
    """Matrices of floats with as many rows as columns."""
    rules.floats(s, data, "data")
    if len(data.shape) < 2:
        s.fail(f"matrices are needed, not {type_text(data)}")
    rules.shaped(s, data, (*data.shape[:-1], data.shape[-2]), "data")
    return data


@contextmanager
def matrices(p: Procedure, shape: Sequence[int]) -> Iterator[At]:
    """The matrices of a tensor, in parallel: the index of an element from its row and column."""
    with p.parallel(math.prod(shape[:-2])) as item:
        front = unravel(p.b, item, shape[:-2])
        yield lambda row, column: (*front, row, column)


class Work:
    """A matrix in private memory, in the data type that is computed with."""

    def __init__(self, p: Procedure, rows: int, columns: int, dtype: str):
        self.p, self.rows, self.columns, self.dtype = p, rows, columns, compute_dtype(dtype)
        self.memory = p.scratch(rows * columns, self.dtype)

    def __call__(self, row: Position, column: Position) -> Element:
        """An element."""
        return self.memory(self.place(row, column))

    def place(self, row: Position, column: Position) -> Element:
        """Where an element lies."""
        return self.p.b.index(row) * self.columns + column

    def put(self, row: Position, column: Position, value: Element) -> None:
        """Write an element."""
        self.p.store(self.memory, self.place(row, column), value)

    def each(self, value: Callable[[Position, Position], Element]) -> None:
        """Write all elements."""
        with self.p.loop(self.rows) as row, self.p.loop(self.columns, kind="vectorized") as column:
            self.put(row, column, self.p.b.cast(value(row, column), self.dtype))

    def into(self, out: Tensor, at: At, value: Callable[[Position, Position], Element]) -> None:
        """Write a result of this shape."""
        with self.p.loop(self.rows) as row, self.p.loop(self.columns, kind="vectorized") as column:
            self.p.store(out, at(row, column), self.p.b.cast(value(row, column), out.dtype))

    def subtract(self, row: Position, factor: Element, other: Position, first: Position = 0) -> None:
        """A multiple of another row from a row, from column `first` on."""
        b = self.p.b
        with self.p.loop(self.columns, kind="vectorized") as c:
            x = self(row, c)
            self.put(row, c, b.select(c >= b.index(first), x - factor * self(other, c), x))


@op("lu", level=10, attrs_key="LU")
class lu(Opaque):
    """Matrices as products of triangular ones, with rows exchanged so that pivots are large: row i of L U is row
    `order[i]` of the matrix. Both triangles are in one matrix, but for the ones on the diagonal of L; a column without
    a pivot stays as it is.
    """

    data: Input = arg("the matrices", "(..., n, n)", "floats")
    yields = "(the triangles: the type of data; order: (..., n), int32)"
    source = "scipy.linalg.lu_factor; LAPACK getrf"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        return TupleType([_square(s, data), TensorType(data.shape[:-1], "int32")])

    def reference(self, data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wide = data.astype("float64")
        order = np.broadcast_to(np.arange(data.shape[-1], dtype="int32"), data.shape[:-1]).copy()
        for at in np.ndindex(data.shape[:-2]):
            a, rows = wide[at], order[at]
            for k in range(len(a)):
                best = k + int(np.argmax(np.abs(a[k:, k])))
                a[[k, best]], rows[[k, best]] = a[[best, k]], rows[[best, k]]
                if a[k, k] != 0:
                    a[k + 1 :, k] /= a[k, k]
                    a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        return wide.astype(data.dtype), order

    def procedure(self, p: Procedure, out: Tensor, order: Tensor, data: Tensor) -> None:
        b, n = p.b, data.shape[-1]
        with matrices(p, data.shape) as at:
            work = Work(p, n, n, data.dtype)
            rows = Work(p, 1, n, "int32")
            work.each(lambda r, c: data(*at(r, c)))
            rows.each(lambda _, c: b.index(c))
            with p.loop(n) as k:
                best, place = p.let(b.abs(work(k, k)), "best"), p.let(k, "place")
                with p.loop(n, stop=(n - 1) - k) as below:
                    size = p.let(b.abs(work(k + 1 + below, k)))
                    with p.when(size > best):
                        p.set(best, size)
                        p.set(place, k + 1 + below)
                with p.loop(n, kind="vectorized") as c:
                    x, y = p.let(work(k, c)), p.let(work(place, c))
                    work.put(k, c, y)
                    work.put(place, c, x)
                x, y = p.let(rows(0, k)), p.let(rows(0, place))
                rows.put(0, k, y)
                rows.put(0, place, x)
                pivot = p.let(work(k, k), "pivot")
                with p.loop(n, stop=(n - 1) - k) as below:
                    row = k + 1 + below
                    factor = p.let(b.select(b.eq(pivot, 0), work(row, k), work(row, k) / pivot))
                    work.put(row, k, factor)
                    work.subtract(row, b.select(b.eq(pivot, 0), 0.0, factor), k, k + 1)
            work.into(out, at, work)
            with p.loop(n, kind="vectorized") as c:
                p.store(order, at(0, 0)[:-2] + (c,), rows(0, c))

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return elements(types[0]) * _rows(types[0]) // 3

    @classmethod
    def returns(cls, call: Call) -> Expr | TupleWrapper:
        return wrap(call, 2)

    @classmethod
    def samples(cls) -> list[Sample]:
        turned = np.array([[0, 2, 1], [4, 1, 3], [1, -3, 5]], "float32")
        flat = np.array([[1, 2], [2, 4.0]], "float64")
        return [sample(turned), sample(flat), sample(np.stack([turned[:2, :2], turned[1:, 1:]]))]


def _rows(type: Type) -> int:
    """How many rows matrices have; 0 if that is not known."""
    return type.concrete_shape[-1] if isinstance(type, TensorType) and not type.is_dynamic else 0


@op("cholesky", level=10, attrs_key="Cholesky")
class cholesky(Opaque):
    """The lower triangles L with L L^T = data, of symmetric matrices of which the lower triangles are read; NaN where
    they are not positive definite.
    """

    data: Input = arg("the matrices", "(..., n, n)", "floats")
    yields = "the type of data"
    source = "numpy.linalg.cholesky"

    def result_type(self, s: TypeSolver, data: TensorType) -> Type | None:
        return _square(s, data)

    def reference(self, data: np.ndarray) -> np.ndarray:
        a = np.tril(data.astype("float64"))
        with np.errstate(all="ignore"):
            for k in range(a.shape[-1]):
                a[..., k, k] = np.sqrt(a[..., k, k])
                a[..., k + 1 :, k] /= a[..., k, k, None]
                column = a[..., k + 1 :, k]
                a[..., k + 1 :, k + 1 :] -= np.tril(column[..., :, None] * column[..., None, :])
        return a.astype(data.dtype)

    def procedure(self, p: Procedure, out: Tensor, data: Tensor) -> None:
        b, n = p.b, data.shape[-1]
        with matrices(p, data.shape) as at:
            work = Work(p, n, n, data.dtype)  # its upper triangle, whose rows are the columns of L
            work.each(lambda r, c: data(*at(b.max(b.index(r), b.index(c)), b.min(b.index(r), b.index(c)))))
            with p.loop(n) as k:
                pivot = p.let(b.sqrt(work(k, k)), "pivot")
                with p.loop(n, kind="vectorized") as c:
                    work.put(k, c, work(k, c) / pivot)
                with p.loop(n, stop=(n - 1) - k) as below:
                    row = k + 1 + below
                    work.subtract(row, p.let(work(k, row)), k, row)
            zero = b.const(0, work.dtype)
            work.into(out, at, lambda r, c: b.select(b.index(c) <= r, work(c, r), zero))

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return elements(types[0]) * _rows(types[0]) // 6

    @classmethod
    def samples(cls) -> list[Sample]:
        a = np.array([[4, 2, 1], [2, 5, 3], [1, 3, 6]], "float32")
        return [sample(a), sample(np.stack([a, a + 2 * np.eye(3, dtype="float32")]).astype("float64"))]


@op("solve_triangular", level=10, attrs_key="SolveTriangular")
class solve_triangular(Opaque):
    """The x with data x = right, for triangular matrices; what is beyond the triangle is not read."""

    data: Input = arg("the matrices", "(..., n, n)", "floats")
    right: Input = arg("the right sides, of the same leading axes", "(..., n, m)", "that of data")
    upper: bool = attr(False, "whether the upper triangle is meant, or the lower one")
    unit: bool = attr(False, "whether ones stand for the diagonal, which is not read then")
    yields = "the type of right"
    source = "scipy.linalg.solve_triangular"

    def result_type(self, s: TypeSolver, data: TensorType, right: TensorType) -> Type | None:
        _square(s, data)
        rules.same_dtype(s, data, right)
        if len(right.shape) != len(data.shape):
            s.fail(f"right sides of {type_text(data)} have as many axes, not {type_text(right)}")
        rules.shaped(s, right, (*data.shape[:-1], right.shape[-1]), "right")
        return right

    def reference(self, data: np.ndarray, right: np.ndarray) -> np.ndarray:
        a, x = data.astype("float64"), right.astype("float64")
        n = a.shape[-1]
        with np.errstate(all="ignore"):
            for k in reversed(range(n)) if self.upper else range(n):
                if not self.unit:
                    x[..., k, :] /= a[..., k, k, None]
                rest = slice(0, k) if self.upper else slice(k + 1, n)
                x[..., rest, :] -= a[..., rest, k, None] * x[..., k, None, :]
        return x.astype(right.dtype)

    def procedure(self, p: Procedure, out: Tensor, data: Tensor, right: Tensor) -> None:
        b, (n, columns) = p.b, right.shape[-2:]
        turned = lambda k: (n - 1) - k if self.upper else b.index(k)
        with matrices(p, right.shape) as at:
            work = Work(p, n, columns, right.dtype)
            work.each(lambda r, c: right(*at(r, c)))
            with p.loop(n) as step:
                k = turned(step)
                if not self.unit:
                    pivot = p.let(b.cast(data(*at(k, k)), work.dtype), "pivot")
                    with p.loop(columns, kind="vectorized") as c:
                        work.put(k, c, work(k, c) / pivot)
                with p.loop(n, stop=(n - 1) - step) as below:
                    row = turned(step + 1 + below)
                    work.subtract(row, p.let(b.cast(data(*at(row, k)), work.dtype)), k)
            work.into(out, at, work)

    def macs(self, types: Sequence[Type], out: Type) -> int:
        return elements(types[1]) * _rows(types[0]) // 2

    @classmethod
    def samples(cls) -> list[Sample]:
        a = np.array([[2, 1, -1], [0.5, 4, 1], [1, -2, 3]], "float32")
        b = np.array([[1, 2], [3, -1], [0, 5]], "float32")
        two = np.stack([a, a.T]).astype("float64")
        return [
            sample(a, b),
            sample(a, b, upper=True),
            sample(a, b[:, :1], unit=True),
            sample(two, np.stack([b, b]).astype("float64"), upper=True, unit=True),
        ]
