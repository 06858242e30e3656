"""Products with compressed sparse matrices: nn.sparse_dense, sparse_add, sparse_transpose, sparse_conv2d.

A matrix in CSR form is (data, indices, indptr): row r has the values data[indptr[r] : indptr[r + 1]] in the columns
`indices` of the same range. In BSR form data is (blocks, rows, columns), and rows and columns count blocks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylab.ir.expr import Expr, TupleWrapper
from relaylab.ir.types import Dim, IntImm, TensorType, TupleType, Type, type_text
from relaylab.loop.expr import Tensor
from relaylab.op import rules
from relaylab.op.base import Opaque, OutElementwiseFusable, Sample, attr, op, sample, wrap
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
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


def entry(b: ElementBuilder, data: Readable, indices: Readable, indptr: Readable, r: Element, c: Element) -> Element:
    """The element at row `r` and column `c` as a loop-level expression: a search among the stored blocks."""
    block = tuple(int(n) for n in data.shape[1:]) or (1, 1)
    row, column = r // block[0], c // block[1]
    first, end = b.load_index(indptr(row)), b.load_index(indptr(row + 1))
    inner = () if len(data.shape) == 1 else (r % block[0], c % block[1])

    def term(k: Element) -> Element:
        here = b.all_of(k >= first, k < end, b.eq(b.load_index(indices(k)), column))
        return b.guard(here, lambda: data(k, *inner), b.const(0, data.dtype))

    return b.sum(int(data.shape[0]), term)


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
        matrix = dense(data, indices, indptr, dense_data.shape[1])
        product = matrix @ dense_data.T if self.sparse_lhs else dense_data @ matrix.T
        return product.astype(dense_data.dtype)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, dense_data: Readable, *sparse: Readable) -> Element:
        row, other = i if self.sparse_lhs else i[::-1]
        data, indices, indptr = sparse
        term = lambda k: entry(b, data, indices, indptr, row, k) * dense_data(other, k)
        return b.sum(int(dense_data.shape[1]), term)

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

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, dense_data: Readable, *sparse: Readable) -> Element:
        data, indices, indptr = sparse
        return dense_data(*i) + entry(b, data, indices, indptr, i[0], i[1])

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
                begin = p.let(b.load_index(indptr(row)))
                with p.loop(count, stop=b.load_index(indptr(row + 1)) - begin) as k:
                    column = p.let(b.clamp_index(b.load_index(indices(begin + k)), columns))
                    to = p.let(free(column))
                    p.store(values, to, data(begin + k))
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

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, dense_data: Readable, *sparse: Readable) -> Element:
        data, indices, indptr = sparse
        block, k, nchw = tuple(int(n) for n in data.shape[1:]) or (1, 1), self.kernel_size, self.layout == "NCHW"
        n, row, y, x = i if nchw else (i[0], i[3], i[1], i[2])
        channels = int(dense_data.shape[1 if nchw else 3])
        first, end = b.load_index(indptr(row // block[0])), b.load_index(indptr(row // block[0] + 1))

        def pixel(column: Element) -> Element:
            tap, c = (column % (k * k), column // (k * k)) if nchw else (column // channels, column % channels)
            v, u = y + tap // k - k // 2, x + tap % k - k // 2
            height, width = (int(dense_data.shape[d]) for d in ((2, 3) if nchw else (1, 2)))
            inside = b.all_of(v >= 0, v < height, u >= 0, u < width)
            place = (n, c, v, u) if nchw else (n, v, u, c)
            return b.guard(inside, lambda: dense_data(*place), b.const(0, dense_data.dtype))

        def term(t: Element) -> Element:
            k, c = t // block[1], t % block[1]
            inner = () if len(data.shape) == 1 else (row % block[0], c)
            value = lambda: data(k, *inner) * pixel(b.load_index(indices(k)) * block[1] + c)
            return b.guard(b.all_of(k >= first, k < end), value, b.const(0, data.dtype))

        return b.sum(int(data.shape[0]) * block[1], term)

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
