"""Operators that make tensors: zeros, ones, full, arange; and those that ask for a shape."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from relaylab.ir.expr import Constant, const
from relaylab.ir.types import Any as Unknown
from relaylab.ir.types import TensorType, Type, type_text
from relaylab.op import rules
from relaylab.op.base import Dims, Dtype, Injective, Opaque, Operator, OpPattern, Sample, op, sample
from relaylab.op.casts import as_dtype


class Create(Operator):
    """A tensor of given shape and data type."""

    dynamic = ("shape",)

    shape: Dims | None
    dtype: Dtype = None
    inputs = ()
    pattern = OpPattern.ELEMWISE
    value: ClassVar[float]

    def relation(self, s: Any) -> Type | None:
        return TensorType(self.shape or (), self.dtype or "float32")

    def reference(self) -> np.ndarray:
        return np.full(self.shape or (), self.value, self.dtype or "float32")

    def lower(self, b: Any, out: Any, i: tuple) -> Any:
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

    value = 0


@op("ones", level=3, attrs_key="InitOp")
class ones(Create):
    """Ones in a shape and a data type."""

    value = 1


@op("full", inputs=("fill_value",), level=3, attrs_key="InitOp")
class full(Operator):
    """A scalar repeated in a shape, cast to a data type if one is given."""

    defaults = {"shape": ()}
    dynamic = ("shape",)

    shape: Dims | None
    dtype: Dtype = None
    pattern = OpPattern.ELEMWISE

    def relation(self, s: Any, fill_value: Type) -> Type | None:
        value = rules.tensor(s, fill_value, "fill_value")
        if value is None:
            return None
        if value.shape:
            s.fail(f"`fill_value` of full must be a scalar, not {type_text(value)}")
        return TensorType(self.shape or (), self.dtype or value.dtype)

    def reference(self, fill_value: np.ndarray) -> np.ndarray:
        value = as_dtype(fill_value, self.dtype or fill_value.dtype.name)
        return np.full(self.shape or (), value)

    def lower(self, b: Any, out: Any, i: tuple, fill_value: Any) -> Any:
        return b.cast(fill_value(), out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            sample((), shape=(2, 3)),
            sample((), shape=(2,), dtype="int32"),
            sample(TensorType((), "int8"), shape=()),
        ]


@op("full_like", inputs=("data", "fill_value"), level=3)
class full_like(Operator):
    """A scalar repeated in the shape and data type of `data`."""

    pattern = OpPattern.ELEMWISE

    def relation(self, s: Any, data: Type, fill_value: Type) -> Type | None:
        value = rules.tensor(s, fill_value, "fill_value")
        if value is not None and value.shape:
            s.fail(f"`fill_value` of full_like must be a scalar, not {type_text(value)}")
        return rules.tensor(s, data)

    def reference(self, data: np.ndarray, fill_value: np.ndarray) -> np.ndarray:
        return np.full(data.shape, as_dtype(fill_value, data.dtype.name))

    def lower(self, b: Any, out: Any, i: tuple, data: Any, fill_value: Any) -> Any:
        return b.cast(fill_value(), out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), ()), sample(TensorType((4,), "int32"), TensorType((), "int32"))]


@op("arange", inputs=("start", "end", "step"), level=3, attrs_key="Arange")
class arange(Opaque):
    """start, start + step, ... before stop: ceil((stop - start) / step) elements, known when all three are
    constants.
    """

    start: Any
    stop: Any
    step: Any
    dtype: Dtype

    def relation(self, s: Any, start: Type, stop: Type, step: Type) -> Type | None:
        for t, name in ((start, "start"), (stop, "stop"), (step, "step")):
            if (found := rules.tensor(s, t, name)) is not None:
                rules.scalar(s, found, name)
        limits = [self.start, self.stop, self.step]
        if not all(isinstance(v, Constant) for v in limits):
            return TensorType((Unknown(),), self.dtype or "float32")
        low, high, by = (float(v.data.numpy()) for v in limits)
        if by == 0:
            s.fail("the step of arange cannot be 0")
        return TensorType((max(math.ceil((high - low) / by), 0),), self.dtype or "float32")

    def reference(self, start: np.ndarray, stop: np.ndarray, step: np.ndarray) -> np.ndarray:
        low, high, by = (x.reshape(()).astype("float64") for x in (start, stop, step))
        count = max(math.ceil((high - low) / by), 0)
        return as_dtype(low + by * np.arange(count), self.dtype or "float32")

    def lower(self, b: Any, out: Any, i: tuple, start: Any, stop: Any, step: Any) -> Any:
        first, by = (x(*[0] * len(x.shape)) for x in (start, step))
        wide = "int64" if "int" in first.dtype and "int" in by.dtype else "float64"
        return b.cast(b.cast(first, wide) + b.cast(by, wide) * b.cast(i[0], wide), out.dtype)

    @classmethod
    def build(cls, start: Any, stop: Any = None, step: Any = None, dtype: Any = "float32") -> Any:
        if stop is None:
            start, stop = const(0, dtype), start
        step = const(1, dtype) if step is None else step
        return cls.call(start, stop, step, start=start, stop=stop, step=step, dtype=dtype)

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


def _arange_sample(low: float, high: float, by: float, dtype: str) -> Sample:
    limits = [const(v, dtype) for v in (low, high, by)]
    return sample(*(c.data.numpy() for c in limits), start=limits[0], stop=limits[1], step=limits[2], dtype=dtype)


@op("shape_of", inputs=("data",), level=10, attrs_key="ShapeOf")
class shape_of(Opaque):
    """The shape of a tensor, as a tensor of rank 1."""

    defaults = {"dtype": "int32"}

    dtype: Dtype = None

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        return found and TensorType((len(found.shape),), self.dtype or "int32")

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.array(data.shape, self.dtype or "int32")

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        value = b.const(0, out.dtype)
        for d, n in enumerate(data.shape):
            value = b.select(b.eq(i[0], d), b.const(int(n), out.dtype), value)
        return value

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4)), sample((5,), dtype="int64"), sample(())]


@op("ndarray_size", inputs=("data",), level=10, attrs_key="NdarraySize")
class ndarray_size(Injective):
    """The number of elements of a tensor, as a scalar."""

    defaults = {"dtype": "int32"}

    dtype: Dtype = None

    def relation(self, s: Any, data: Type) -> Type | None:
        found = rules.tensor(s, data)
        return found and TensorType((), self.dtype or "int32")

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.array(data.size, self.dtype or "int32")

    def lower(self, b: Any, out: Any, i: tuple, data: Any) -> Any:
        return b.const(math.prod(int(n) for n in data.shape), out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3, 4)), sample((), dtype="int64")]
