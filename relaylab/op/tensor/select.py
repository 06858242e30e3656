"""Choosing elements: where, take, gather, one_hot and their kin."""

from __future__ import annotations

import math

import numpy as np

from relaylab.ir.types import Dim, IntImm, TensorType, Type, type_text
from relaylab.loop.builder import most
from relaylab.op import rules
from relaylab.op.base import (
    Dtype,
    Injective,
    Input,
    OpPattern,
    OutElementwiseFusable,
    Sample,
    arg,
    attr,
    element,
    op,
    sample,
)
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import insert, length, place, unravel
from relaylab.op.shapes import same_dim
from relaylab.op.tensor.casts import as_dtype


@op("where", level=4)
class where(Injective):
    """The element of x where the condition is true (not 0), else of y; all three broadcast."""

    yields = "the shapes of condition, x and y broadcast, the dtype of x"
    source = "numpy.where"

    condition: Input = arg("which element is chosen: that of x where it is not 0")
    x: Input = arg("what stands where the condition holds", "any; the three broadcast")
    y: Input = arg("what stands elsewhere", "any; the three broadcast", "that of x")

    pattern = OpPattern.BROADCAST

    def result_type(self, s: TypeSolver, condition: TensorType, x: TensorType, y: TensorType) -> Type | None:
        dtype = rules.same_dtype(s, x, y)
        both = TensorType(rules.broadcast(s, x, y), dtype)
        return TensorType(rules.broadcast(s, condition, both), dtype)

    def reference(self, condition: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.where(condition, x, y)

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, condition: Readable, x: Readable, y: Readable
    ) -> Element:
        return b.select(b.cast(element(condition, i), "bool"), element(x, i), element(y, i))

    @classmethod
    def samples(cls) -> list[Sample]:
        i32 = TensorType((2, 1), "int32")
        return [
            sample(TensorType((2, 3), "bool"), (2, 3), (2, 3)),
            sample(TensorType((3,), "bool"), (), (2, 1)),
            sample(i32, TensorType((4,), "int8"), TensorType((1,), "int8"), low=0, high=1),
        ]


@op("take", level=3, attrs_key="Take", parameters="data indices axis batch_dims mode")
class take(Injective):
    """Slices of `data` along `axis` at integer indices (of the flattened data if there is no axis). Indices outside are
    clamped ("clip" and "fast") or wrapped around ("wrap"); the first `batch_dims` axes go together.
    """

    yields = "(*data.shape[:axis], *indices.shape[batch_dims:], *data.shape[axis + 1:]), of the dtype of data"
    source = "numpy.take; tf.gather for batch_dims"

    data: Input = arg("the tensor whose slices are taken")
    indices: Input = arg("which slices", dtype="integers")
    batch_dims: int = attr(0, "how many first axes data and indices share")
    axis: int | None = attr(None, "the axis along which slices are taken; None: elements of the flattened tensor")
    mode: str = attr(
        "clip", "what an index outside stands for: clip and fast the nearest one inside, wrap the one modulo the extent"
    )

    def result_type(self, s: TypeSolver, data: TensorType, indices: TensorType) -> Type | None:
        rules.integers(s, indices, "indices")
        if self.mode not in ("clip", "wrap", "fast"):
            s.fail(f'mode of take must be "clip", "wrap" or "fast", not "{self.mode}"')
        if self.axis is None:
            rules.something(s, data.shape, indices, type_text(data))
            return TensorType(indices.shape, data.dtype)
        axis, batch = rules.axis(s, self.axis, len(data.shape), "axis of take"), self._batch(len(indices.shape))
        if not 0 <= batch <= min(len(indices.shape), axis):
            s.fail(
                f"batch_dims {self.batch_dims} of take must be at most the axis {axis} "
                f"and the rank of {type_text(indices)}"
            )
        if not all(map(same_dim, data.shape[:batch], indices.shape[:batch])):
            s.fail(f"the first {batch} dimensions of {type_text(data)} and {type_text(indices)} differ")
        rules.something(s, data.shape[axis : axis + 1], indices, f"axis {axis} of {type_text(data)}")
        return TensorType((*data.shape[:axis], *indices.shape[batch:], *data.shape[axis + 1 :]), data.dtype)

    def _batch(self, rank: int) -> int:
        return self.batch_dims + rank if self.batch_dims < 0 else self.batch_dims

    def reference(self, data: np.ndarray, indices: np.ndarray) -> np.ndarray:
        if self.mode != "wrap" and not self.batch_dims and indices.dtype != "uint64":
            return np.asarray(np.take(data, indices, self.axis, mode="clip"))
        if self.axis is None:
            return np.take(data, self._inside(indices, data.size))
        axis, batch = self.axis % data.ndim, self._batch(indices.ndim)
        inside = self._inside(indices, data.shape[axis])
        parts = [np.take(data[at], inside[at], axis=axis - batch) for at in np.ndindex(*inside.shape[:batch])]
        return np.array(parts, data.dtype).reshape(
            (*data.shape[:axis], *indices.shape[batch:], *data.shape[axis + 1 :])
        )

    def _inside(self, indices: np.ndarray, extent: int) -> np.ndarray:
        """Indices within 0 .. extent-1. (numpy's own "wrap" counts down from an index step by step.)"""
        wide = indices if indices.dtype == "uint64" else indices.astype("int64")
        bound = wide.dtype.type(max(extent, 1))
        return (wide % bound if self.mode == "wrap" else np.clip(wide, 0, bound - 1)).astype("int64")

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, indices: Readable) -> Element:
        if self.axis is None:
            flat = self._bounded(b, indices(*i), math.prod(data.shape))
            return data(*unravel(b, flat, data.shape))
        axis, batch = self.axis % len(data.shape), self._batch(len(indices.shape))
        width = len(indices.shape) - batch
        at = self._bounded(b, indices(*i[:batch], *i[axis : axis + width]), length(data.shape[axis]))
        return data(*i[:axis], at, *i[axis + width :])

    def _bounded(self, b: ElementBuilder, index: Element, extent: int) -> Element:
        if self.mode == "wrap":
            return b.load_index(b.floormod(index if index.dtype == "uint64" else b.load_index(index), most(extent, 1)))
        return b.clamp_index(b.load_index(index), extent)

    @classmethod
    def samples(cls) -> list[Sample]:
        picks = np.array([[0, 2], [1, 5]], "int32")
        return [
            sample((3, 4), picks),
            sample((3, 4), picks, axis=0),
            sample((3, 4, 2), np.array([3, -1, 0], "int64"), axis=1, mode="wrap"),
            sample((3, 4), np.array(2, "int32"), axis=-1, mode="fast"),
            sample((4,), np.array(1, "int32"), axis=0),
            sample((2, 3, 4), picks, axis=1, batch_dims=1),
        ]


@op("gather", level=3, attrs_key="Gather", parameters="data axis indices")
class gather(Injective):
    """out[i, j, ...] = data[i, indices[i, j, ...], ...]: one element of `data` along `axis` for each index."""

    yields = "the shape of indices, the dtype of data"
    source = "numpy.take_along_axis; torch.gather"

    data: Input = arg("the tensor whose elements are taken")
    indices: Input = arg(
        "where along `axis`; negative ones count from the end", "that of data but for the extent of `axis`", "integers"
    )
    axis: int | None = attr(None, "the axis along which the indices count; None: the first")

    def result_type(self, s: TypeSolver, data: TensorType, indices: TensorType) -> Type | None:
        rules.integers(s, indices, "indices")
        rules.rank(s, indices, len(data.shape), "indices")
        axis = rules.axis(s, self.axis or 0, len(data.shape), "axis of gather")
        if not all(same_dim(n, m) for d, (n, m) in enumerate(zip(data.shape, indices.shape)) if d != axis):
            s.fail(f"{type_text(data)} and {type_text(indices)} may differ only along axis {axis}")
        rules.something(s, data.shape[axis : axis + 1], indices, f"axis {axis} of {type_text(data)}")
        return TensorType(indices.shape, data.dtype)

    def reference(self, data: np.ndarray, indices: np.ndarray) -> np.ndarray:
        return np.take_along_axis(data, indices.astype("int64"), self.axis or 0)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, indices: Readable) -> Element:
        axis = (self.axis or 0) % len(i)
        k, extent = b.load_index(indices(*i)), length(data.shape[axis])
        return data(*place(i, axis, b.select(k < 0, k + extent, k)))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((3, 4), np.array([[0, 2, 1, 0]], "int32"), axis=0),
            sample((2, 3), np.array([[0, -1], [2, 1]], "int64"), axis=-1),
        ]


@op("gather_nd", level=3, attrs_key="GatherND")
class gather_nd(Injective):
    """out[y] = data[indices[0, y], ..., indices[M-1, y]]: the first axis of `indices` (M, Y...) holds coordinates; the
    first `batch_dims` axes of both go together.
    """

    yields = "(*Y, *data.shape[batch_dims + M:]), of the dtype of data"
    source = "MXNet gather_nd; tf.gather_nd for batch_dims"

    data: Input = arg("the tensor whose elements or slices are taken")
    indices: Input = arg("coordinates, along the first axis; negative ones count from the end", "(M, *Y)", "integers")
    batch_dims: int = attr(0, "how many first axes of data are also the first axes of Y")
    index_rank: int | None = attr(None, "the number M of coordinates where the type does not say it")

    def result_type(self, s: TypeSolver, data: TensorType, indices: TensorType) -> Type | None:
        rules.integers(s, indices, "indices")
        if not indices.shape or not (isinstance(indices.shape[0], int) or self.index_rank is not None):
            s.fail(f"the first dimension of `indices` must be known: {type_text(indices)}", help="or give index_rank")
        depth = int(indices.shape[0]) if isinstance(indices.shape[0], int) else self.index_rank or 0
        if depth == 0:
            s.fail(f"`indices` must hold at least one coordinate: {type_text(indices)}")
        if depth + self.batch_dims > len(data.shape):
            s.fail(f"{depth} coordinates are too many for {type_text(data)} with batch_dims={self.batch_dims}")
        batch = self.batch_dims
        if not 0 <= batch < len(indices.shape) or not all(
            map(same_dim, data.shape[:batch], indices.shape[1 : batch + 1])
        ):
            s.fail(f"{type_text(data)} and {type_text(indices)} do not have the same {batch} batch dimensions")
        rules.something(
            s, data.shape[batch : batch + depth], TensorType(indices.shape[1:], indices.dtype), type_text(data)
        )
        return TensorType((*indices.shape[1:], *data.shape[depth + self.batch_dims :]), data.dtype)

    def reference(self, data: np.ndarray, indices: np.ndarray) -> np.ndarray:
        grid = np.indices(indices.shape[1:])[: self.batch_dims] if self.batch_dims else ()
        return data[(*grid, *indices.astype("int64"))]

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, indices: Readable) -> Element:
        width = len(indices.shape) - 1
        place_, rest = i[:width], i[width:]
        at = []
        for m in range(int(indices.shape[0])):
            k, extent = b.load_index(indices(m, *place_)), length(data.shape[m + self.batch_dims])
            at.append(b.select(k < 0, k + extent, k))
        return data(*place_[: self.batch_dims], *at, *rest)

    @classmethod
    def samples(cls) -> list[Sample]:
        two = np.array([[0, 1, 2], [3, 0, -1]], "int32")
        return [
            sample((3, 4), two),
            sample((3, 4, 2), two),
            sample((4, 2), np.array([[3, 1]], "int64")),
            sample((2, 3, 4), np.array([[1, 2]], "int32"), batch_dims=1),
        ]


@op("one_hot", level=10, attrs_key="OneHot", required="depth axis dtype")
class one_hot(OutElementwiseFusable):
    """A new axis of `depth` with on_value at the index and off_value elsewhere; an index outside gives no on_value."""

    yields = "indices.shape with `depth` inserted at `axis`, of `dtype`"
    source = "ONNX OneHot; tf.one_hot"

    dynamic = ("depth",)

    indices: Input = arg("which position is on", dtype="integers")
    on_value: Input = arg("what stands at the index", "() or ones")
    off_value: Input = arg("what stands elsewhere", "() or ones")
    depth: int = attr(1, "the extent of the new axis, or an expression that gives it at run time")
    axis: int = attr(-1, "where the new axis stands in the result; negative: from behind the last")
    dtype: Dtype = attr(None, "the data type of the result; None: float32")

    def relation(self, s: TypeSolver, indices: Type, on_value: Type, off_value: Type) -> Type | None:
        at = rules.tensor(s, indices, "indices")
        if at is None:
            return None
        rules.integers(s, at, "indices")
        rules.positive(s, self.depth, "depth")
        for t, name in ((on_value, "on_value"), (off_value, "off_value")):
            if (value := rules.tensor(s, t, name)) is not None:
                rules.scalar(s, value, name)
        return TensorType(self._shape(s, at.shape, IntImm(self.depth)), self.dtype or "float32")

    def _shape(self, s: TypeSolver, shape: tuple[Dim, ...], depth: Dim) -> tuple[Dim, ...]:
        axis = rules.axis(s, self.axis, len(shape) + 1, "axis of one_hot")
        return insert(shape, axis, depth)

    def reference(self, indices: np.ndarray, on_value: np.ndarray, off_value: np.ndarray) -> np.ndarray:
        axis = self.axis % (indices.ndim + 1)
        counts = np.arange(self.depth).reshape([-1 if d == axis else 1 for d in range(indices.ndim + 1)])
        hits = np.expand_dims(indices, axis) == counts
        return as_dtype(np.where(hits, on_value.reshape(()), off_value.reshape(())), self.dtype or "float32")

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, indices: Readable, on_value: Readable, off_value: Readable
    ) -> Element:
        axis = self.axis % len(i)
        on, off = (b.cast(v(*[0] * len(v.shape)), out.dtype) for v in (on_value, off_value))
        return b.select(b.eq(b.load_index(indices(*i[:axis], *i[axis + 1 :])), i[axis]), on, off)

    @classmethod
    def samples(cls) -> list[Sample]:
        picks = np.array([[0, 2, 1], [3, 9, 0]], "int32")
        return [
            sample(picks, (), (), depth=4, dtype="float32"),
            sample(picks, TensorType((), "int32"), TensorType((), "int32"), depth=3, axis=0, dtype="int32"),
            sample(picks, (), (), depth=5, axis=1, dtype="int8", low=0, high=9),
        ]
