"""Sparse tensors as coordinates: sparse_to_dense, sparse_reshape, sparse_fill_empty_rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper, as_expr
from relaylab.ir.expr import Tuple as TupleExpr
from relaylab.ir.leaves import const
from relaylab.ir.types import AnyDim, IntImm, TensorType, TupleType, Type, type_text
from relaylab.loop.expr import Tensor
from relaylab.loop.region import dense_strides
from relaylab.op import rules
from relaylab.op.base import (
    Input,
    Ints,
    Opaque,
    OpPattern,
    Sample,
    arg,
    at_run_time,
    attr,
    call_operator,
    op,
    sample,
    wrap,
)
from relaylab.op.helpers import TypeSolver
from relaylab.op.indexing import as_shape_expr, found_inside, ints, is_dynamic
from relaylab.op.shapes import derive, same_dim
from relaylab.op.tensor.casts import as_dtype
from relaylab.support.errors import RelayValueError

MOST_ROWS = 1 << 16
"""How many rows a kernel fills: it has room for a default value in each."""

if TYPE_CHECKING:
    from relaylab.loop.procedure import Procedure


@op("sparse_to_dense", level=3, attrs_key="SparseToDense")
class sparse_to_dense(Opaque):
    """A tensor of `output_shape` with values at coordinates (a scalar, a vector, or (count, rank)) and a default
    elsewhere; of several values for one place the last counts.
    """

    yields = "`output_shape`, of the dtype of sparse_values"
    source = "tf.sparse.to_dense"

    sparse_indices: Input = arg("the coordinates of the values", "(count, rank), (count,) or ()", "integers")
    sparse_values: Input = arg("the values, or one for all coordinates", "(count,), (1,) or ()")
    default_value: Input = arg("what stands elsewhere", "() or ones")
    output_shape: Ints = attr(doc="the shape of the result, or an expression that gives it at run time")

    def relation(self, s: TypeSolver, indices: Type, values: Type, default: Type) -> Type | None:
        at, v = rules.tensor(s, indices, "sparse_indices"), rules.tensor(s, values, "sparse_values")
        if at is None or v is None:
            return None
        rules.integers(s, at, "sparse_indices")
        rank = at.shape[1] if len(at.shape) == 2 else IntImm(1)
        if len(at.shape) > 2 or len(v.shape) > 1 or not same_dim(rank, IntImm(len(self.output_shape))):
            s.fail(f"coordinates {type_text(at)} do not fit the output shape {list(self.output_shape)}")
        if (d := rules.tensor(s, default, "default_value")) is not None:
            rules.scalar(s, d, "default_value")
        if v.shape and v.shape[0] != 1:
            count = at.shape[0] if at.shape else IntImm(1)
            rules.equal_dims(s, count, v.shape[0], "the numbers of sparse_indices and sparse_values")
        return TensorType(self.output_shape, v.dtype)

    def reference(self, indices: np.ndarray, values: np.ndarray, default: np.ndarray) -> np.ndarray:
        rows = indices.reshape(-1, len(self.output_shape))
        if ((rows < 0) | (rows >= self.output_shape)).any():
            raise RelayValueError(f"a coordinate lies outside the shape {self.output_shape}", code="op.coordinates")
        out = np.full(self.output_shape, as_dtype(default, values.dtype.name).reshape(()))
        for at, v in zip(rows, np.broadcast_to(values, (len(rows),))):
            out[tuple(at)] = v
        return out

    def procedure(self, p: Procedure, out: Tensor, indices: Tensor, values: Tensor, default: Tensor) -> None:
        """The default, then the values in their order; a coordinate outside is left out."""
        b, rank, (many, *_) = p.b, len(indices.shape), (*indices.shape, 1)
        p.each(out, lambda *i: b.cast(default(*[0] * len(default.shape)), out.dtype))
        with p.parallel(1), p.loop(many) as k:
            row = [indices(*(k, d)[:rank]) for d in range(len(out.shape))]
            at = [p.let(b.load_index(x)) for x in row]
            with p.when(found_inside(b, at, out.shape)):
                p.store(out, at, values(*[b.min(k, n - 1) if n is not many else k for n in values.shape]))

    @classmethod
    def build(cls, sparse_indices: Expr, output_shape: object, sparse_values: Expr, default_value: object = 0) -> Expr:
        default = const(default_value) if isinstance(default_value, (int, float)) else as_expr(default_value)
        if is_dynamic(output_shape):
            return call_operator(
                "dyn.sparse_to_dense", sparse_indices, sparse_values, default, as_shape_expr(output_shape)
            )
        return cls.call(sparse_indices, sparse_values, default, output_shape=ints(output_shape))

    @classmethod
    def samples(cls) -> list[Sample]:
        rows = np.array([[0, 1], [2, 2], [0, 1]], "int32")
        return [
            sample(rows, (3,), (), output_shape=(3, 4)),
            sample(np.array([1, 3], "int64"), (), (), output_shape=(5,)),
            sample(np.array(2, "int32"), (), (), output_shape=(4,)),
        ]


@op("dyn.sparse_to_dense", level=3)
class dyn_sparse_to_dense(Opaque):
    """A tensor of a shape that a tensor holds, with values at coordinates (see sparse_to_dense)."""

    yields = "the extents that output_shape holds, of the dtype of sparse_values"
    source = "tf.sparse.to_dense"

    sparse_indices: Input = arg("the coordinates of the values", "(count, rank), (count,) or ()", "integers")
    sparse_values: Input = arg("the values, or one for all coordinates", "(count,), (1,) or ()")
    default_value: Input = arg("what stands elsewhere", "() or ones")
    output_shape: Input = arg("the shape of the result", "(rank,)", "integers")

    waivers = {"lower": "the shape of the result is not known before run time"}

    def relation(self, s: TypeSolver, indices: Type, values: Type, default: Type, shape: Type) -> Type | None:
        v, dims = rules.tensor(s, values, "sparse_values"), rules.tensor(s, shape, "output_shape")
        if (at := rules.tensor(s, indices, "sparse_indices")) is not None:
            rules.integers(s, at, "sparse_indices")
        if v is None or dims is None:
            return None
        rules.integers(s, dims, "output_shape")
        if len(dims.shape) != 1 or not isinstance(dims.shape[0], int):
            s.fail(f"`output_shape` must be a vector of known length, not {type_text(dims)}")
        return TensorType([AnyDim()] * int(dims.shape[0]), v.dtype)

    def reference(self, indices: np.ndarray, values: np.ndarray, default: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return at_run_time(sparse_to_dense.definition(output_shape=shape.tolist()), indices, values, default)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(np.array([[0, 1], [2, 2]], "int32"), (2,), (), np.array([3, 4], "int64"))]


@op("sparse_reshape", level=3)
class sparse_reshape(Opaque):
    """Coordinates (count, rank) of a sparse tensor after a reshape (one entry of the new shape may be -1): a tuple
    of the new coordinates and the new shape.
    """

    yields = "a tuple: (count, new rank) of the dtype of sparse_indices, and (new rank,) of that of new_shape"
    source = "tf.sparse.reshape"

    sparse_indices: Input = arg("the coordinates", "(count, rank)", "integers")
    prev_shape: Input = arg("the shape in which they lie", "(rank,)", "integers")
    new_shape: Input = arg("the shape after the reshape, with at most one -1", "(new rank,)", "integers")

    pattern = OpPattern.INJECTIVE

    def relation(self, s: TypeSolver, indices: Type, prev_shape: Type, new_shape: Type) -> Type | None:
        at, new = rules.tensor(s, indices, "sparse_indices"), rules.tensor(s, new_shape, "new_shape")
        if (old := rules.tensor(s, prev_shape, "prev_shape")) is not None:
            rules.rank(s, rules.integers(s, old, "prev_shape"), 1, "prev_shape")
        if at is None or new is None:
            return None
        rules.rank(s, rules.integers(s, at, "sparse_indices"), 2, "sparse_indices")
        rules.rank(s, rules.integers(s, new, "new_shape"), 1, "new_shape")
        if old is not None:
            rules.equal_dims(s, old.shape[0], at.shape[1], f"`prev_shape` and the columns of {type_text(at)}")
        return TupleType([TensorType((at.shape[0], new.shape[0]), at.dtype), new])

    def refusal(self, types: Sequence[Type], values: Sequence[np.ndarray | None]) -> str:
        old, new = values[1:]
        if old is None or new is None or _reshaped(old, new) is not None:
            return ""
        return f"{old} cannot be reshaped to {new}"

    def reference(self, indices: np.ndarray, prev_shape: np.ndarray, new_shape: np.ndarray) -> tuple[np.ndarray, ...]:
        shape = _reshaped(prev_shape, new_shape)
        if shape is None:
            raise RelayValueError(f"{prev_shape} cannot be reshaped to {new_shape}", code="op.new-shape")
        if ((indices < 0) | (indices >= prev_shape)).any():
            raise RelayValueError(f"a coordinate lies outside the shape {prev_shape}", code="op.coordinates")
        flat = np.ravel_multi_index(tuple(indices.T), tuple(prev_shape))
        return np.stack(np.unravel_index(flat, tuple(shape)), axis=1).astype(indices.dtype), shape

    def procedure(self, p: Procedure, places: Tensor, shape: Tensor, indices: Tensor, old: Tensor, new: Tensor) -> None:
        """The new shape, then rows by themselves. Of shapes that do not fit the places are remainders."""
        b, before, after = p.b, old.shape[0], new.shape[0]
        with p.parallel(1):
            elements, given = p.let(1), p.let(1)
            with p.loop(before) as d:
                p.add(elements, b.load_index(old(d)), "prod")
            with p.loop(after) as d:
                extent = b.load_index(new(d))
                p.add(given, b.select(b.eq(extent, -1), 1, extent), "prod")
            left = p.let(b.floordiv(elements, b.max(given, 1)))
            with p.loop(after) as d:
                extent = b.load_index(new(d))
                p.store(shape, d, b.cast(b.select(b.eq(extent, -1), left, extent), shape.dtype))
        with p.parallel(indices.shape[0]) as row:
            flat = p.let(0)
            with p.loop(before) as d:
                p.set(flat, flat * b.load_index(old(d)) + b.load_index(indices(row, d)))
            with p.loop(after) as k:
                d = p.let(after - 1 - k)
                extent = p.let(b.max(b.load_index(shape(d)), 1))
                p.store(places, (row, d), b.cast(b.floormod(flat, extent), places.dtype))
                p.set(flat, b.floordiv(flat, extent))

    def legal(self, inputs: Sequence[Expr], types: Sequence[Type]) -> Expr | None:
        """With shapes that are constants the places of coordinates in the old one, divided by the steps of the new."""
        at, *shapes = inputs
        known = [x.data.numpy() for x in shapes if isinstance(x, Constant)]
        indices = types[0]
        if len(known) < 2 or not isinstance(indices, TensorType):
            return None
        shape = _reshaped(*known)
        if shape is None:
            return None  # it is refused
        steps, below = (np.array(dense_strides(n.tolist()), "int64")[None] for n in (known[0], shape))
        flat = call_operator("multiply", call_operator("cast", at, dtype="int64"), Constant(steps))
        flat = call_operator("sum", flat, axis=(1,), keepdims=True)
        new = call_operator("floor_divide", flat, Constant(np.maximum(below, 1)))
        new = call_operator("floor_mod", new, Constant(np.maximum(shape, 1).astype("int64")[None]))
        return TupleExpr([call_operator("cast", new, dtype=indices.dtype), Constant(shape)])

    @classmethod
    def returns(cls, call: Call) -> TupleWrapper:
        return wrap(call, 2)

    @classmethod
    def samples(cls) -> list[Sample]:
        rows = np.array([[0, 0, 0], [0, 1, 2], [1, 2, 3]], "int64")
        small = np.array([[0, 5], [7, 1]], "int32")
        return [
            sample(rows, np.array([2, 3, 4], "int64"), np.array([6, -1], "int64")),
            sample(small, np.array([8, 6], "int32"), np.array([-1, 3, 2, 4], "int32")),
            sample(small, np.array([8, 6], "int64"), np.array([4, 12], "int64")),
        ]


def _reshaped(old: np.ndarray, new: np.ndarray) -> np.ndarray | None:
    """The new shape with a number for -1; None where the two do not fit."""
    shape = new.copy()
    if (shape == -1).any():
        shape[shape == -1] = np.prod(old) // (np.prod(shape[shape != -1]) or 1)
    return shape if np.prod(shape) == np.prod(old) else None


@op("sparse_fill_empty_rows", level=3)
class sparse_fill_empty_rows(Opaque):
    """A sparse tensor with a default value in column 0 of every row that has none: a tuple of coordinates, values,
    and for each row 1 if it was empty, else 0.
    """

    yields = "a tuple: (m, rank) of the dtype of sparse_indices, (m,) of that of sparse_values, (dense_shape[0],) int64"
    source = "tf.sparse.fill_empty_rows"

    sparse_indices: Input = arg("the coordinates of the values, sorted by rows", "(count, rank)", "integers")
    sparse_values: Input = arg("the values", "(count,)")
    dense_shape: Input = arg("the shape of the whole tensor", "(rank,)", "integers")
    default_value: Input = arg("what stands in rows that have no value", "() or ones", "that of sparse_values")

    waivers = {"lower": "the number of rows that are filled depends on the data; see with_room"}

    def relation(self, s: TypeSolver, indices: Type, values: Type, dense_shape: Type, default: Type) -> Type | None:
        at, v = rules.tensor(s, indices, "sparse_indices"), rules.tensor(s, values, "sparse_values")
        if at is None or v is None:
            return None
        rules.rank(s, rules.integers(s, at, "sparse_indices"), 2, "sparse_indices")
        rules.equal_dims(s, at.shape[0], rules.rank(s, v, 1, "sparse_values").shape[0], "the rows and the values")
        if (dims := rules.tensor(s, dense_shape, "dense_shape")) is not None:
            rules.rank(s, rules.integers(s, dims, "dense_shape"), 1, "dense_shape")
            rules.equal_dims(s, dims.shape[0], at.shape[1], f"`dense_shape` and the columns of {type_text(at)}")
        if (fill := rules.tensor(s, default, "default_value")) is not None:
            rules.same_dtype(s, v, rules.scalar(s, fill, "default_value"))
        columns = at.shape[1] if isinstance(at.shape[1], int) else IntImm(1)
        return TupleType(
            [
                TensorType((AnyDim(), columns), at.dtype),
                TensorType((AnyDim(),), v.dtype),
                TensorType((AnyDim(),), "int64"),
            ]
        )

    def reference(
        self, indices: np.ndarray, values: np.ndarray, dense_shape: np.ndarray, default: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        if ((indices[:, :1] < 0) | (indices[:, :1] >= dense_shape[0])).any():
            text = f"a coordinate lies in no row of the shape {dense_shape.tolist()}"
            raise RelayValueError(text, code="op.coordinates")
        empty = ~np.isin(np.arange(int(dense_shape[0])), indices[:, 0])
        new = np.zeros((int(empty.sum()), indices.shape[1]), indices.dtype)
        new[:, 0] = np.flatnonzero(empty)
        rows = np.concatenate([indices, new])
        filled = np.concatenate([values, np.full(len(new), default.reshape(()), values.dtype)])
        order = np.argsort(rows[:, 0], kind="stable")
        return rows[order], filled[order], empty.astype("int64")

    def with_room(self, args: Sequence[Expr]) -> Expr | None:
        at, values, dense_shape, default = args
        rows = dense_shape.data.numpy().tolist() if isinstance(dense_shape, Constant) else []
        if not rows or not 0 <= rows[0] <= MOST_ROWS:
            return None
        return call_operator("padded_sparse_fill_empty_rows", at, values, default, rows=rows[0])

    @classmethod
    def returns(cls, call: Call) -> TupleWrapper:
        return wrap(call, 3)

    @classmethod
    def samples(cls) -> list[Sample]:
        rows = np.array([[0, 1], [0, 3], [2, 0]], "int64")
        return [sample(rows, (3,), np.array([5, 6], "int64"), ())]


@op("padded_sparse_fill_empty_rows", level=10)
class padded_sparse_fill_empty_rows(Opaque):
    """What sparse_fill_empty_rows gives for a tensor of so many rows, with room for a default value in each, and how
    many rows of each field are meant; -1 if a coordinate lies in no row. Those behind are 0.
    """

    yields = (
        "a tuple: (count + rows, rank) of the dtype of sparse_indices, (count + rows,) of that of sparse_values, "
        "(rows,) int64, (3,) int32"
    )
    source = "tf.sparse.fill_empty_rows"

    sparse_indices: Input = arg("the coordinates of the values", "(count, rank)", "integers")
    sparse_values: Input = arg("the values", "(count,)")
    default_value: Input = arg("what stands in rows that have no value", "() or ones", "that of sparse_values")
    rows: int = attr(doc="how many rows the tensor has")

    def result_type(self, s: TypeSolver, at: TensorType, values: TensorType, default: TensorType) -> Type | None:
        rules.rank(s, rules.integers(s, at, "sparse_indices"), 2, "sparse_indices")
        rules.equal_dims(s, at.shape[0], rules.rank(s, values, 1, "sparse_values").shape[0], "the rows and the values")
        rules.same_dtype(s, values, rules.scalar(s, default, "default_value"))
        room = derive(lambda n: n + self.rows, at.shape[0])
        return TupleType(
            [
                TensorType((room, at.shape[1]), at.dtype),
                TensorType((room,), values.dtype),
                TensorType((self.rows,), "int64"),
                TensorType((3,), "int32"),
            ]
        )

    def reference(self, indices: np.ndarray, values: np.ndarray, default: np.ndarray) -> tuple[np.ndarray, ...]:
        room, inside = len(indices) + self.rows, ((indices[:, :1] >= 0) & (indices[:, :1] < self.rows)).all()
        out = [np.zeros((room, *x.shape[1:]), x.dtype) for x in (indices, values)]
        if not inside:
            return *out, np.zeros(self.rows, "int64"), np.full(3, -1, "int32")
        found = sparse_fill_empty_rows.definition().reference(indices, values, np.array([self.rows]), default)
        for field, rows in zip(out, found):
            field[: len(rows)] = rows
        return *out, found[2], np.array([len(x) for x in found], "int32")

    def procedure(self, p: Procedure, *tensors: Tensor) -> None:
        """How many values each row has says where it begins; then the values in their order."""
        (places, filled, empty, numbers), (indices, values, default) = tensors[:4], tensors[4:]
        b, (count, rank) = p.b, indices.shape
        for out in (places, filled, empty):
            p.each(out, lambda *_, out=out: b.const(0, out.dtype))
        with p.parallel(1):
            begin, found, inside = p.scratch(self.rows, "int64"), p.let(0), p.let(b.const(True, "bool"))
            row_of = lambda k: b.load_index(indices(k, 0))
            with p.loop(self.rows, kind="vectorized") as row:
                p.store(begin, row, 0)
            with p.loop(count) as k:
                row = p.let(row_of(k))
                p.add(inside, found_inside(b, (row,), (self.rows,)), "all")
                p.store(begin, row, begin(row) + 1)
            with p.when(inside):
                with p.loop(self.rows) as row:
                    many = p.let(begin(row))
                    p.store(begin, row, found)
                    with p.when(b.eq(many, 0)):
                        p.store(empty, row, 1)
                        p.store(places, (found, 0), b.cast(row, places.dtype))
                        p.store(filled, found, default(*[0] * len(default.shape)))
                    p.add(found, b.max(many, 1))
                with p.loop(count) as k:
                    row = p.let(row_of(k))
                    to = p.let(begin(row))
                    p.store(begin, row, to + 1)
                    p.store(filled, to, values(k))
                    with p.loop(rank) as d:
                        p.store(places, (to, d), indices(k, d))
            for field, many in enumerate((found, found, b.index(self.rows))):
                p.store(numbers, field, b.cast(b.select(inside, many, -1), "int32"))

    @classmethod
    def samples(cls) -> list[Sample]:
        at = np.array([[0, 1], [0, 3], [2, 0], [4, 4], [4, 5]], "int64")
        beyond = np.array([[3], [0]], "int32")
        return [
            sample(at, (5,), (), rows=6),
            sample(beyond, TensorType((2,), "int32"), TensorType((1,), "int32"), rows=4),
            sample(beyond, (2,), (), rows=3),
        ]
