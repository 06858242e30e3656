"""Products with compressed sparse matrices: nn.sparse_dense, sparse_add, sparse_transpose, sparse_conv2d.

A matrix in CSR form is (data, indices, indptr): row r has the values data[indptr[r] : indptr[r + 1]] in the columns
`indices` of the same range. In BSR form data is (blocks, rows, columns), and rows and columns count blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylab.ir.expr import Expr, TupleWrapper
from relaylab.ir.types import Dim, IntImm, TensorType, TupleType, Type, type_text
from relaylab.loop.builder import most
from relaylab.loop.expr import Tensor
from relaylab.loop.scalar import compute_dtype
from relaylab.op import rules
from relaylab.op.base import Opaque, OutElementwiseFusable, Sample, attr, op, sample, wrap
from relaylab.op.helpers import Element, TypeSolver
from relaylab.op.shapes import derive
from relaylab.support.errors import RelayTypeError, shown

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure

INPUTS = ("dense_data", "sparse_data", "sparse_indices", "sparse_indptr")
EXTRA = {
    "dense_mat": "expression: the dense matrix; shape (m, k); dtype that of the sparse one's data",
    "sparse_mat": "three expressions (data, indices, indptr), or an object with these: the sparse matrix in CSR or BSR "
    "form; data (nnz,) or (blocks, rows, columns), indices (nnz,) and indptr (n + 1,) integers",
}


def parts(matrix: Any) -> tuple[Any, Any, Any]:
    """data, indices and indptr of a sparse matrix: an object with these, or a sequence of the three."""
    if hasattr(matrix, "indptr"):
        return matrix.data, matrix.indices, matrix.indptr
    if not isinstance(matrix, (list, tuple, TupleWrapper)) or len(matrix) != 3:
        raise RelayTypeError(
            f"a sparse matrix is not {shown(matrix)}",
            code="op.sparse-matrix",
            help="give (data, indices, indptr), or an object that has these, as those of scipy.sparse do",
        )
    return matrix[0], matrix[1], matrix[2]


def dense(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, columns: int) -> np.ndarray:
    """The whole matrix."""
    rows = (len(indptr) - 1) * (data.shape[1:] or (1, 1))[0]
    out = np.zeros((rows, columns), data.dtype)
    for at, block in stored(data, indices, indptr, columns):
        out[at] += block
    return out


def stored(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, columns: int
) -> Iterator[tuple[tuple[slice, slice], np.ndarray]]:
    """The blocks that are stored, each with its place in the whole matrix."""
    height, width = data.shape[1:] or (1, 1)
    blocks = data.reshape(len(data), height, width)
    for r in range(len(indptr) - 1):
        for k in range(int(indptr[r]), int(indptr[r + 1])):
            c = int(indices[k])
            if not 0 <= c < columns // width:
                raise IndexError(f"block {c} of row {r} is outside the {columns} columns")
            yield (slice(r * height, (r + 1) * height), slice(c * width, (c + 1) * width)), blocks[k]


@contextmanager
def stored_blocks(p: Procedure, matrix: Sequence[Tensor], row: Element) -> Iterator[tuple[Element, Element]]:
    """What is done with each block that is stored in a row of blocks: its number, and its first column."""
    (data, indices, indptr), b = matrix, p.b
    begin = p.let(b.max(b.load_index(indptr(row)), 0))
    with p.loop(data.shape[0], stop=b.min(b.load_index(indptr(row + 1)), data.shape[0]) - begin) as k:
        yield p.let(begin + k), p.let(b.load_index(indices(begin + k)) * block_of(data)[1])


def block_of(data: Tensor) -> tuple[int, int]:
    """The height and width of the blocks of a matrix."""
    height, width = data.shape[1:] or (1, 1)
    return height, width


def rows(matrix: list[TensorType]) -> Dim:
    """How many rows the whole matrix has."""
    block = matrix[0].shape[1] if len(matrix[0].shape) == 3 else IntImm(1)
    return derive(lambda n, k: (n - 1) * k, matrix[2].shape[0], block)


def check(s: TypeSolver, types: tuple[Type, ...]) -> list[TensorType] | None:
    """The types of data, indices and indptr, or None while one is unknown."""
    found = rules.all_known(rules.tensor(s, t, name) for t, name in zip(types, INPUTS[1:]))
    if found is None:
        return None
    data, indices, indptr = found
    if len(data.shape) not in (1, 3):
        s.fail(f"`sparse_data` must have 1 dimension (CSR) or 3 (BSR), not {type_text(data)}")
    if 0 in data.shape[1:]:
        s.fail(f"the blocks of {type_text(data)} have no elements")
    for t, name in ((indices, "sparse_indices"), (indptr, "sparse_indptr")):
        rules.integers(s, rules.rank(s, t, 1, name), name)
    if indptr.shape[0] == 0:
        s.fail("`sparse_indptr` must have one element more than there are rows")
    rules.equal_dims(s, data.shape[0], indices.shape[0], "the numbers of sparse_data and sparse_indices")
    if indptr.shape[0] == 1 and isinstance(data.shape[0], int) and data.shape[0]:
        s.fail(f"{type_text(indptr)} counts no rows that {type_text(data)} could lie in")
    return found


def columns(s: TypeSolver, x: TensorType, data: TensorType) -> None:
    """Fails unless the columns of a dense matrix split into blocks as wide as the sparse one's."""
    wide = data.shape[2] if len(data.shape) == 3 else IntImm(1)
    if isinstance(wide, int) and isinstance(x.shape[1], int) and (wide < 1 or x.shape[1] % wide):
        s.fail(f"{x.shape[1]} columns do not split into the blocks of {type_text(data)}")


@op("nn.sparse_dense", inputs=INPUTS, level=1, attrs_key="SparseDense")
class sparse_dense(OutElementwiseFusable):
    """nn.dense with a sparse weight, or (`sparse_lhs`) sparse data: the product of the first with the other's
    transpose.
    """

    sparse_lhs: bool = attr(False, "whether the sparse matrix is the first factor: sparse times dense transposed")
    extra = EXTRA
    yields = "(m, n), or (n, m) if `sparse_lhs`, for a sparse matrix of n rows; dtype of dense_mat"
    source = "Saad, Iterative methods for sparse linear systems, 2003, 3.4; scipy.sparse.csr_matrix, bsr_matrix"

    def relation(self, s: TypeSolver, dense_data: Type, *sparse: Type) -> Type | None:
        x, matrix = rules.tensor(s, dense_data, "dense_data"), check(s, sparse)
        if x is None or matrix is None:
            return None
        rules.same_dtype(s, rules.rank(s, x, 2, "dense_data"), matrix[0])
        columns(s, x, matrix[0])
        n = rows(matrix)
        return TensorType((n, x.shape[0]) if self.sparse_lhs else (x.shape[0], n), x.dtype)

    def reference(self, dense_data: np.ndarray, *sparse: np.ndarray) -> np.ndarray:
        data, indices, indptr = sparse
        out = np.zeros((len(dense_data), (len(indptr) - 1) * (data.shape[1:] or (1,))[0]))
        for (rows, columns), block in stored(data, indices, indptr, dense_data.shape[1]):  # no others meet a NaN
            out[:, rows] += dense_data[:, columns] @ block.T
        return (out.T if self.sparse_lhs else out).astype(dense_data.dtype)

    def procedure(self, p: Procedure, out: Tensor, dense_data: Tensor, *matrix: Tensor) -> None:
        (data, *_, indptr), b, wide = matrix, p.b, compute_dtype(out.dtype)
        height, width = block_of(data)
        with p.parallel(dense_data.shape[0]) as other, p.loops((indptr.shape[0] - 1, height)) as (row, y):
            total = p.let(b.const(0, wide))
            with stored_blocks(p, matrix, row) as (k, column), p.when(b.inside(column, dense_data.shape[1])):
                with p.loop(width) as x:
                    value = data(*(k, y, x)[: len(data.shape)])
                    p.add(total, b.cast(value, wide) * b.cast(dense_data(other, column + x), wide))
            at = row * height + y
            p.store(out, (at, other) if self.sparse_lhs else (other, at), b.cast(total, out.dtype))

    @classmethod
    def build(cls, dense_mat: Expr, sparse_mat: object, sparse_lhs: bool = False) -> Expr:
        return cls.call(dense_mat, *parts(sparse_mat), sparse_lhs=sparse_lhs)

    @classmethod
    def samples(cls) -> list[Sample]:
        csr = (4,), np.array([0, 2, 1, 3], "int32"), np.array([0, 2, 2, 4], "int32")
        bsr = (3, 2, 1), np.array([1, 0, 3], "int32"), np.array([0, 1, 3], "int32")
        return [sample((2, 5), *csr), sample((2, 5), *csr, sparse_lhs=True), sample((3, 4), *bsr)]


_sparse_dense = sparse_dense.definition


@op("nn.internal.sparse_dense_padded", level=1, attrs_key="SparseDense")
class sparse_dense_padded(_sparse_dense):
    """nn.sparse_dense of a matrix whose rows were filled up with zeros, all to a multiple of the same number of
    elements: a form for GPUs, which is read here as any other.
    """


@op("nn.sparse_add", inputs=INPUTS, level=1)
class sparse_add(Opaque):
    """A dense matrix plus a sparse one."""

    extra = EXTRA
    yields = "the shape of dense_mat, and its dtype"
    source = "scipy.sparse.csr_matrix, bsr_matrix"

    def relation(self, s: TypeSolver, dense_data: Type, *sparse: Type) -> Type | None:
        x, matrix = rules.tensor(s, dense_data, "dense_data"), check(s, sparse)
        if x is None or matrix is None:
            return None
        rules.same_dtype(s, x, matrix[0])
        own = rules.rank(s, x, 2, "dense_data").shape[0]
        rules.equal_dims(s, own, rows(matrix), f"the rows of {type_text(x)} and those that sparse_indptr counts")
        columns(s, x, matrix[0])
        return x

    def reference(self, dense_data: np.ndarray, *sparse: np.ndarray) -> np.ndarray:
        data, indices, indptr = sparse
        return dense_data + dense(data, indices, indptr, dense_data.shape[1])

    def procedure(self, p: Procedure, out: Tensor, dense_data: Tensor, *matrix: Tensor) -> None:
        (data, *_, indptr), b = matrix, p.b
        height, width = block_of(data)
        p.each(out, lambda *i: dense_data(*i))
        with p.parallel(indptr.shape[0] - 1) as row:
            with stored_blocks(p, matrix, row) as (k, column), p.when(b.inside(column, out.shape[1])):
                with p.loops((height, width)) as (y, x):
                    at = (row * height + y, column + x)
                    p.store(out, at, out(*at) + data(*(k, y, x)[: len(data.shape)]))

    @classmethod
    def build(cls, dense_mat: Expr, sparse_mat: object) -> Expr:
        return cls.call(dense_mat, *parts(sparse_mat))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 5), (4,), np.array([0, 2, 1, 3], "int32"), np.array([0, 2, 2, 4], "int32"))]


@op("nn.sparse_transpose", inputs=INPUTS[1:], level=1, attrs_key="SparseTranspose")
class sparse_transpose(OutElementwiseFusable):
    """The transpose of a square sparse matrix in CSR form: a tuple of its data, indices and indptr."""

    extra = {
        "x": "three expressions (data, indices, indptr), or an object with these: a square matrix of n rows in CSR "
        "form; data (nnz,), indices (nnz,) and indptr (n + 1,) integers"
    }
    yields = "a tuple: data (nnz,), indices (nnz,) and indptr (n + 1,), with the dtypes of those of x"
    source = "Gustavson, Two fast algorithms for sparse matrices, 1978; scipy.sparse.csr_matrix.transpose"

    def relation(self, s: TypeSolver, *sparse: Type) -> Type | None:
        found = check(s, sparse)
        if found is not None:
            rules.rank(s, found[0], 1, "sparse_data")
        return None if found is None else TupleType(found)

    def reference(self, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> tuple[np.ndarray, ...]:
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        order = np.argsort(indices, kind="stable")
        counts = np.bincount(indices, minlength=len(indptr) - 1)
        starts = np.concatenate([[0], np.cumsum(counts)])
        return data[order], rows[order].astype(indices.dtype), starts.astype(indptr.dtype)

    def procedure(self, p: Procedure, *tensors: Tensor) -> None:
        """The values of each column are counted, then put one after another where its values begin."""
        values, rows, starts, data, indices, indptr = tensors
        b, count, columns = p.b, data.shape[0], indptr.shape[0] - 1
        p.each(values, lambda *i: b.const(0, values.dtype))
        p.each(rows, lambda i: b.const(0, rows.dtype))
        with p.parallel(1):
            free = p.scratch(columns + 1, "int64")
            with p.loop(columns + 1) as c:
                p.store(free, c, 0)
            with p.loop(count) as k:
                behind = p.let(b.clamp_index(b.load_index(indices(k)), columns) + 1)
                p.store(free, behind, free(behind) + 1)
            with p.loop(columns) as c:
                p.store(free, c + 1, free(c + 1) + free(c))
            with p.loop(columns + 1) as c:
                p.store(starts, c, b.cast(free(c), starts.dtype))
            with p.loop(columns) as row:
                with stored_blocks(p, tensors[3:], row) as (k, stored_in):
                    column = p.let(b.clamp_index(stored_in, columns))
                    to = p.let(free(column))
                    p.store(values, to, data(k))
                    p.store(rows, to, b.cast(row, rows.dtype))
                    p.store(free, column, to + 1)

    @classmethod
    def build(cls, x: Expr) -> TupleWrapper:
        return wrap(cls.call(*parts(x)), 3)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((4,), np.array([0, 2, 1, 0], "int32"), np.array([0, 2, 3, 4], "int32"))]


@op("nn.sparse_conv2d", inputs=INPUTS, level=1, attrs_key="SparseConv2D")
class sparse_conv2d(OutElementwiseFusable):
    """A convolution of stride 1 that keeps the size of the image, with a sparse weight.

    The weight is a matrix with a row for each channel of the result. Its columns are the taps, row by row, each with
    all channels of the image (NHWC), or the channels, each with all taps (NCHW).
    """

    layout: str = attr("NHWC", "the layout of the images: NHWC or NCHW")
    kernel_size: int = attr(1, "the extent of the kernel along both axes: odd")
    extra = {
        "dense_mat": "expression: the images, laid out as `layout`; dtype that of the sparse matrix' data",
        "sparse_mat": EXTRA["sparse_mat"],
    }
    yields = "the shape of dense_mat with the rows of the sparse matrix as channels; dtype of dense_mat"
    source = "TVM 0.10, relay.nn.sparse_conv2d"

    def relation(self, s: TypeSolver, dense_data: Type, *sparse: Type) -> Type | None:
        x, matrix = rules.tensor(s, dense_data, "dense_data"), check(s, sparse)
        if x is None or matrix is None:
            return None
        if self.layout not in ("NHWC", "NCHW"):
            s.fail(f"`layout` is NHWC or NCHW, not {self.layout}")
        if self.kernel_size < 1 or self.kernel_size % 2 == 0:
            s.fail(f"`kernel_size` must be odd and positive, not {self.kernel_size}")
        rules.same_dtype(s, rules.rank(s, x, 4, "dense_data"), matrix[0])
        at = self.layout.index("C")
        return TensorType((*x.shape[:at], rows(matrix), *x.shape[at + 1 :]), x.dtype)

    def reference(self, dense_data: np.ndarray, *sparse: np.ndarray) -> np.ndarray:
        k, nchw = self.kernel_size, self.layout == "NCHW"
        x = dense_data if nchw else dense_data.transpose(0, 3, 1, 2)
        data, indices, indptr = sparse
        pixels, rows = (x.shape[0], *x.shape[2:]), (len(indptr) - 1) * (data.shape[1:] or (1,))[0]
        columns, out = np.zeros((math.prod(pixels), x.shape[1] * k * k)), np.zeros((math.prod(pixels), rows))
        if x.size:
            padded = np.pad(x, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
            windows = np.lib.stride_tricks.sliding_window_view(padded, (k, k), axis=(2, 3))
            columns = np.einsum("nchwyx->nhwcyx" if nchw else "nchwyx->nhwyxc", windows).reshape(columns.shape)
        for (channels, taps), block in stored(data, indices, indptr, columns.shape[1]):  # no others meet a NaN
            out[:, channels] += columns[:, taps] @ block.T
        out = out.reshape(*pixels, rows)
        return (out.transpose(0, 3, 1, 2) if nchw else out).astype(dense_data.dtype)

    def procedure(self, p: Procedure, out: Tensor, dense_data: Tensor, *matrix: Tensor) -> None:
        """A row of pixels side by side: each stored number is one tap of all of them."""
        (data, *_, indptr), b, wide = matrix, p.b, compute_dtype(out.dtype)
        size, nchw, (height, width) = self.kernel_size, self.layout == "NCHW", block_of(data)
        index = lambda n, c, y, x: (n, c, y, x) if nchw else (n, y, x, c)
        batch, channels, lines, pixels = (dense_data.shape[self.layout.index(a)] for a in "NCHW")
        with p.parallel(batch * lines) as line:
            n, y, totals = line // most(lines, 1), line % most(lines, 1), p.scratch(pixels, wide)
            with p.loops((indptr.shape[0] - 1, height)) as (row, inner):
                with p.loop(pixels, kind="vectorized") as x:
                    p.store(totals, x, 0)
                with stored_blocks(p, matrix, row) as (k, column), p.loop(width) as t:
                    at, value = p.let(column + t), p.let(b.cast(data(*(k, inner, t)[: len(data.shape)]), wide))
                    tap, c = (
                        (at % size**2, at // size**2) if nchw else (at // most(channels, 1), at % most(channels, 1))
                    )
                    v, u = p.let(y + tap // size - size // 2), p.let(tap % size - size // 2)
                    with p.when(b.all_of(b.inside(v, lines), b.inside(at, channels * size**2))):
                        with p.loop(pixels, kind="vectorized") as x:
                            read = lambda x=x: b.cast(dense_data(*index(n, c, v, x + u)), wide)
                            seen = b.guard(b.inside(x + u, pixels), read, b.const(0, wide))
                            p.store(totals, x, totals(x) + value * seen)
                with p.loop(pixels, kind="vectorized") as x:
                    p.store(out, index(n, row * height + inner, y, x), b.cast(totals(x), out.dtype))

    @classmethod
    def build(cls, dense_mat: Expr, sparse_mat: object, layout: str = "NHWC", kernel_size: int = 1) -> Expr:
        return cls.call(dense_mat, *parts(sparse_mat), layout=layout, kernel_size=kernel_size)

    @classmethod
    def samples(cls) -> list[Sample]:
        bsr = (3, 2, 1), np.array([1, 0, 3], "int32"), np.array([0, 1, 3], "int32")
        wide = (3, 1, 2), np.array([1, 8, 3], "int32"), np.array([0, 1, 1, 3], "int32")
        return [
            sample((1, 3, 2, 4), *bsr),
            sample((2, 4, 3, 2), *bsr, layout="NCHW"),
            sample((1, 3, 4, 2), *wide, kernel_size=3),
            sample((1, 2, 3, 4), *wide, kernel_size=3, layout="NCHW"),
        ]
