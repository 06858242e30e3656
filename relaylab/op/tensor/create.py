"""Operators that make tensors: zeros, ones, full, arange; and those that ask for a shape."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from relaylab.ir.expr import Constant, Expr
from relaylab.ir.leaves import const
from relaylab.ir.types import AnyDim, TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import (
    Dims,
    Dtype,
    Injective,
    Input,
    Opaque,
    Operator,
    OpPattern,
    Sample,
    Value,
    arg,
    attr,
    op,
    sample,
)
from relaylab.op.helpers import Element, ElementBuilder, Index, OutSpec, Readable, TypeSolver
from relaylab.op.indexing import length
from relaylab.op.shapes import extent
from relaylab.op.tensor.casts import as_dtype


class Create(Operator):
    """A tensor of given shape and data type."""

    yields = "`shape`, of `dtype`"

    dynamic = ("shape",)

    shape: Dims | None = attr(doc="the shape of the result, or an expression that gives it at run time")
    dtype: Dtype = attr(None, "the data type of the result; None: float32")
    required = "dtype"
    inputs = ()
    pattern = OpPattern.ELEMWISE
    value: ClassVar[float]

    def relation(self, s: TypeSolver) -> Type | None:
        return TensorType(self.shape or (), self.dtype or "float32")

    def reference(self) -> np.ndarray:
        return np.full(tuple(map(extent, self.shape or ())), self.value, self.dtype or "float32")

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index) -> Element:
        return b.const(self.value, out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample(shape=s, dtype=d)
            for s, d in [((2, 3), "float32"), ((), "int8"), ((4,), "bool"), ((0, 2), "float64")]
        ]


@op("zeros", level=3, attrs_key="InitOp")
class zeros(Create):
    """Zeros in a shape and a data type."""

    source = "numpy.zeros"

    value = 0


@op("ones", level=3, attrs_key="InitOp")
class ones(Create):
    """Ones in a shape and a data type."""

    source = "numpy.ones"

    value = 1


@op("full", level=3, attrs_key="InitOp")
class full(Operator):
    """A scalar repeated in a shape, cast to a data type if one is given."""

    yields = "`shape`, of `dtype`"
    source = "numpy.full"

    defaults = {"shape": ()}
    dynamic = ("shape",)

    fill_value: Input = arg("the number that is repeated", "()")
    shape: Dims | None = attr(doc="the shape of the result, or an expression that gives it at run time")
    dtype: Dtype = attr(None, "the data type of the result; None: that of fill_value")
    pattern = OpPattern.ELEMWISE

    def result_type(self, s: TypeSolver, fill_value: TensorType) -> Type | None:
        if fill_value.shape:
            s.fail(f"`fill_value` of full must be a scalar, not {type_text(fill_value)}")
        return TensorType(self.shape or (), self.dtype or fill_value.dtype)

    def reference(self, fill_value: np.ndarray) -> np.ndarray:
        value = as_dtype(fill_value, self.dtype or fill_value.dtype.name)
        return np.full(tuple(map(extent, self.shape or ())), value)

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, fill_value: Readable) -> Element:
        return b.cast(fill_value(), out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((), shape=(2, 3)),
            sample((), shape=(2,), dtype="int32"),
            sample(TensorType((), "int8"), shape=()),
        ]


@op("full_like", level=3)
class full_like(Operator):
    """A scalar repeated in the shape and data type of `data`."""

    yields = "the shape of data, and its dtype"
    source = "numpy.full_like"

    data: Input = arg("the tensor whose shape and data type are taken")
    fill_value: Input = arg("the number that is repeated", "()")

    pattern = OpPattern.ELEMWISE

    def relation(self, s: TypeSolver, data: Type, fill_value: Type) -> Type | None:
        value = rules.tensor(s, fill_value, "fill_value")
        if value is not None and value.shape:
            s.fail(f"`fill_value` of full_like must be a scalar, not {type_text(value)}")
        return rules.tensor(s, data)

    def reference(self, data: np.ndarray, fill_value: np.ndarray) -> np.ndarray:
        return np.full(data.shape, as_dtype(fill_value, data.dtype.name))

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable, fill_value: Readable) -> Element:
        return b.cast(fill_value(), out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), ()), sample(TensorType((4,), "int32"), TensorType((), "int32"))]


@op("arange", inputs=("start", "end", "step"), level=3, attrs_key="Arange")
class arange(Opaque):
    """start, start + step, ... before stop: ceil((stop - start) / step) elements, known when all three are
    constants.
    """

    yields = "(max(ceil((stop - start) / step), 0),), of `dtype`; unknown length if one of the three is no constant"
    source = "numpy.arange"

    start: Value = attr(None, "the first number where it is a constant; 0 if only one is given, which is then the stop")
    stop: Value = attr(None, "the number before which the sequence ends, where it is a constant")
    step: Value = attr(None, "the distance of the numbers, not 0, where it is a constant; None: 1")
    dtype: Dtype = attr(doc="the data type of the result")
    count: Dims | None = attr(
        None, "how many elements there are, where the compiler knows it from sizes: one dimension"
    )

    def relation(self, s: TypeSolver, start: Type, stop: Type, step: Type) -> Type | None:
        for t, name in ((start, "start"), (stop, "stop"), (step, "step")):
            if (found := rules.tensor(s, t, name)) is not None:
                rules.scalar(s, found, name)
        if self.count is not None:
            return TensorType(self.count, self.dtype or "float32")
        limits = [self.start, self.stop, self.step]
        if not all(isinstance(v, Constant) for v in limits):
            return TensorType((AnyDim(),), self.dtype or "float32")
        low, high, by = (_number(v.data.numpy()) for v in limits)
        if by == 0 or not all(map(math.isfinite, (low, high, by))):
            s.fail(f"arange cannot go from {low} to {high} in steps of {by}")
        return TensorType((_steps(low, high, by),), self.dtype or "float32")

    def reference(self, start: np.ndarray, stop: np.ndarray, step: np.ndarray) -> np.ndarray:
        count = _steps(*map(_number, (start, stop, step)))
        if count >= 1 << 60:  # numpy makes none of as many as a size holds
            raise ValueError(f"{count} numbers")
        wide = "int64" if "int" in start.dtype.name and "int" in step.dtype.name else "float64"
        low, by = (x.reshape(()).astype(wide) for x in (start, step))
        return as_dtype(low + by * np.arange(count), self.dtype or "float32")

    def lower(
        self, b: ElementBuilder, out: OutSpec, i: Index, start: Readable, stop: Readable, step: Readable
    ) -> Element:
        first, by = (x(*[0] * len(x.shape)) for x in (start, step))
        wide = "int64" if "int" in first.dtype and "int" in by.dtype else "float64"
        return b.cast(b.cast(first, wide) + b.cast(by, wide) * b.cast(i[0], wide), out.dtype)

    @classmethod
    def build(cls, start: object, stop: object = None, step: object = None, dtype: object = "float32") -> Expr:
        if stop is None:
            start, stop = const(0, dtype), start
        step = const(1, dtype) if step is None else step
        known = {n: v for n, v in (("start", start), ("stop", stop), ("step", step)) if isinstance(v, Constant)}
        return cls.call(start, stop, step, **known, dtype=dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        cases = [
            (0, 5, 1, "float32"),
            (1, 10, 3, "int32"),
            (5, 0, -2, "int64"),
            (0.5, 2.0, 0.25, "float32"),
            (3, 1, 1, "int32"),
        ]
        return [_arange_sample(*c) for c in cases]


def _number(x: np.ndarray) -> int | float:
    return int(x.item()) if x.dtype.kind in "iub" else float(x.reshape(()))


def _steps(low: float, high: float, by: float) -> int:
    """How many steps there are; exact for integers of any size."""
    whole = all(isinstance(v, int) for v in (low, high, by))
    return max(int(-((low - high) // by)) if whole else math.ceil((high - low) / by), 0)


def _arange_sample(low: float, high: float, by: float, dtype: str) -> Sample:
    limits = [const(v, dtype) for v in (low, high, by)]
    return sample(*(c.data.numpy() for c in limits), start=limits[0], stop=limits[1], step=limits[2], dtype=dtype)


@op("shape_of", level=10, attrs_key="ShapeOf")
class shape_of(Opaque):
    """The shape of a tensor, as a tensor of rank 1."""

    yields = "(rank of data,), of `dtype`"
    source = "numpy.shape"

    defaults = {"dtype": "int32"}

    data: Input = arg("the tensor whose shape is asked for")
    dtype: Dtype = attr(None, "the data type of the result")

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        return found and TensorType((len(found.shape),), self.dtype or "int32")

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.array(data.shape, self.dtype or "int32")

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        value = b.const(0, out.dtype)
        for d, n in enumerate(data.shape):
            value = b.select(b.eq(i[0], d), b.number(length(n), out.dtype), value)
        return value

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4)), sample((5,), dtype="int64"), sample(())]


@op("ndarray_size", level=10, attrs_key="NdarraySize")
class ndarray_size(Injective):
    """The number of elements of a tensor, as a scalar."""

    yields = "(), of `dtype`"
    source = "numpy.size"

    defaults = {"dtype": "int32"}

    data: Input = arg("the tensor whose elements are counted")
    dtype: Dtype = attr(None, "the data type of the result")

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        return found and TensorType((), self.dtype or "int32")

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.array(data.size, self.dtype or "int32")

    def lower(self, b: ElementBuilder, out: OutSpec, i: Index, data: Readable) -> Element:
        return b.number(math.prod(map(length, data.shape)), out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4)), sample((), dtype="int64")]
