"""Reductions over axes: sum, product, extremes and their positions, all, any."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import Dim, IntImm, TensorType, type_text
from relaylab.loop.scalar import compute_dtype, highest, lowest
from relaylab.op import rules
from relaylab.op.base import CommReduce, Input, Ints, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import length
from relaylab.op.shapes import normalize_axes


class Over(CommReduce):
    """A reduction over `axis` (None: all axes; with `exclude` all others); `keepdims` leaves extents of 1."""

    yields = "data.shape without the axes (1 in their place with `keepdims`), of the dtype of data"

    axis: ClassVar[Any]
    keepdims: ClassVar[Any]
    exclude: ClassVar[Any]
    data: Input = arg("the tensor that is reduced")

    def axes(self, rank: int) -> tuple[int, ...]:
        """The reduced axes of a tensor of `rank`, counted from the front."""
        return normalize_axes(self.axis, rank, self.exclude) or ()

    def reduced(self, s: TypeSolver, data: TensorType) -> tuple[Dim, ...]:
        """The shape of the result."""
        gone = rules.axes(s, self.axis, data, self.exclude and self.axis is not None)
        if self.keepdims:
            return tuple(IntImm(1) if d in gone else n for d, n in enumerate(data.shape))
        return tuple(n for d, n in enumerate(data.shape) if d not in gone)

    def result_type(self, s: TypeSolver, data: TensorType) -> TensorType:
        return TensorType(self.reduced(s, data), data.dtype)

    def extents(self, data: Any) -> list[int]:
        """The extents of the reduced axes."""
        return [length(data.shape[d]) for d in self.axes(len(data.shape))]

    def index(self, rank: int, i: Index, k: Index) -> tuple[Any, ...]:
        """The index into a tensor of `rank` that result index `i` and the indices `k` of the reduced axes make."""
        inner = dict(zip(self.axes(rank), k))
        outer = iter(j for d, j in enumerate(i) if d not in inner) if self.keepdims else iter(i)
        return tuple(inner[d] if d in inner else next(outer) for d in range(rank))

    def reader(self, data: Any, i: Index) -> Any:
        """A function that reads the element of `data` at result index `i` and at given indices of the reduced axes."""
        return lambda *k: data(*self.index(len(data.shape), i, k))

    @classmethod
    def samples(cls) -> list[Sample]:
        d = TensorType((2, 3, 4), cls.sample_dtype)
        return [sample(d), sample(d, axis=1), sample(d, axis=(0, -1), keepdims=True), *cls.more(d)]

    @classmethod
    def more(cls, d: TensorType) -> list[Sample]:
        return [sample(d, axis=1, exclude=True), sample(d, keepdims=True), sample(TensorType((), cls.sample_dtype))]

    sample_dtype: ClassVar[str] = "float32"


class Reduction(Over):
    """The attributes that most reductions have."""

    axis: Ints | None = attr(None, "the axes that are reduced, negative ones from the last; None: all")
    keepdims: bool = attr(False, "whether reduced axes stay, with the extent 1")
    exclude: bool = attr(False, "whether the axes that are not named are reduced")


class Fold(Reduction):
    """A reduction by a function of numpy and one of the loop level."""

    numpy_name: ClassVar[str] = ""
    loop_name: ClassVar[str] = ""

    def reference(self, data: np.ndarray) -> np.ndarray:
        wide = data.astype(compute_dtype(data.dtype.name))
        return np.asarray(self.fold(wide, self.axes(data.ndim))).astype(data.dtype)

    def fold(self, data: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        """The numpy reduction of `data` in its computing data type."""
        return getattr(np, self.numpy_name)(data, axis=axes, keepdims=self.keepdims)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        return getattr(b, self.loop_name)(self.extents(data), self.reader(data, i))


@op("sum", level=4, attrs_key="Reduce")
class sum(Fold):
    """Sum over axes, in the data type of the argument."""

    source = "numpy.sum"

    numpy_name, loop_name = "sum", "sum"

    @classmethod
    def more(cls, d: TensorType) -> list[Sample]:
        return [
            *super().more(d),
            sample(TensorType((3, 50), "int8"), axis=-1, low=-128, high=127),
            sample(TensorType((2, 9), "float16"), axis=1),
            sample(TensorType((2, 9), "bfloat16"), axis=1),
        ]


@op("prod", level=4, attrs_key="Reduce")
class prod(Fold):
    """Product over axes, in the data type of the argument."""

    source = "numpy.prod"

    numpy_name, loop_name = "prod", "prod"


@op("max", level=4, attrs_key="Reduce")
class max(Fold):
    """Largest element over axes; NaN if one is NaN."""

    source = "numpy.max"

    numpy_name, loop_name = "max", "rmax"

    def fold(self, data: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return np.max(data, axis=axes, keepdims=self.keepdims, initial=lowest(data.dtype.name))


@op("min", level=4, attrs_key="Reduce")
class min(Fold):
    """Smallest element over axes; NaN if one is NaN."""

    source = "numpy.min"

    numpy_name, loop_name = "min", "rmin"

    def fold(self, data: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
        return np.min(data, axis=axes, keepdims=self.keepdims, initial=highest(data.dtype.name))


class Truth(Fold):
    """A reduction of bools."""

    data: Input = arg("the truths", "any", "bool")

    sample_dtype = "bool"

    def result_type(self, s: TypeSolver, data: TensorType) -> TensorType:
        if data.dtype != "bool":
            s.fail(f"{self.op_name} needs bools, not {data.dtype}", help='compare or cast: x.astype("bool")')
        return super().result_type(s, data)


@op("all", level=4, attrs_key="Reduce")
class all(Truth):
    """Whether all bools are true, over axes."""

    source = "numpy.all"

    numpy_name, loop_name = "all", "all"


@op("any", level=4, attrs_key="Reduce")
class any(Truth):
    """Whether a bool is true, over axes."""

    source = "numpy.any"

    numpy_name, loop_name = "any", "any"


class Arg(Over):
    """The position of an extreme along axes, counted flat over them; the type of a dimension, int32."""

    yields = "data.shape without the axes (1 in their place with `keepdims`), int32"

    axis: Ints | None = attr(None, "the axes that are searched, negative ones from the last; None: all")
    keepdims: bool = attr(False, "whether searched axes stay, with the extent 1")
    select_last_index: bool = attr(False, "whether the last of equal elements counts, not the first")
    exclude: bool = attr(False, "whether the axes that are not named are searched")
    loop_name: ClassVar[str] = ""

    def result_type(self, s: TypeSolver, data: TensorType) -> TensorType:
        if not data.shape:
            s.fail(f"{self.op_name} needs at least one dimension, not a scalar")
        shape = self.reduced(s, data)
        if 0 in [data.shape[d] for d in self.axes(len(data.shape))]:
            s.fail(
                f"{self.op_name} has nothing to choose from in {type_text(data)}",
                help="reduce over an axis with elements",
            )
        return TensorType(shape, "int32")

    def reference(self, data: np.ndarray) -> np.ndarray:
        axes = self.axes(data.ndim)
        rest = [d for d in range(data.ndim) if d not in axes]
        flat = data.transpose(*rest, *axes).reshape(
            [*(data.shape[d] for d in rest), math.prod(data.shape[d] for d in axes)]
        )
        best = self.last(flat) if self.select_last_index else getattr(np, self.op_name)(flat, axis=-1)
        shape = [1 if d in axes else n for d, n in enumerate(data.shape)] if self.keepdims else best.shape
        return best.reshape(shape).astype("int32")

    def last(self, flat: np.ndarray) -> np.ndarray:
        """The last position of the extreme along the last axis."""
        return flat.shape[-1] - 1 - getattr(np, self.op_name)(flat[..., ::-1], axis=-1)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        extents, read = self.extents(data), self.reader(data, i)
        if not self.select_last_index:
            return b.cast(getattr(b, self.op_name)(extents, read), out.dtype)
        backwards = getattr(b, self.op_name)(extents, lambda *k: read(*((n - 1) - x for n, x in zip(extents, k))))
        return b.cast((math.prod(extents) - 1) - backwards, out.dtype)

    @classmethod
    def more(cls, d: TensorType) -> list[Sample]:
        ties = np.array([[1, 3, 3], [2, 2, 1]], "int32")
        return [sample(d, axis=1, exclude=True), sample(ties, axis=1), sample(ties, axis=1, select_last_index=True)]


@op("argmax", level=4, attrs_key="ArgReduce")
class argmax(Arg):
    """Position of the largest element over axes (the first of equals, or the last)."""

    source = "numpy.argmax"

    parameters = "data axis keepdims exclude select_last_index"


@op("argmin", level=4, attrs_key="ArgReduce")
class argmin(Arg):
    """Position of the smallest element over axes (the first of equals, or the last)."""

    source = "numpy.argmin"

    parameters = "data axis keepdims exclude select_last_index"
