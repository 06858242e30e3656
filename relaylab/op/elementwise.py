"""Elementwise operators of one argument that are not mathematical functions: copies, tests, casts, limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.loop.scalar import convert
from relaylab.op.base import Dtype, Elementwise, Operator, OpPattern, Sample, op, sample
from relaylab.op.rules import integers, tensor
from relaylab.op.unary import INTEGERS


class Test(Elementwise):
    """A property of each element, as a bool."""

    result_dtype = "bool"

    @classmethod
    def samples(cls) -> list[Sample]:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5], "float32")
        return [sample(special), sample(special.astype("float64")), *(sample(t) for t in INTEGERS)]


@op("sign", level=3)
class sign(Elementwise):
    """-1, 0 or 1 by the sign of each element; NaN gives 0."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return (data > 0).astype(data.dtype) - (data < 0).astype(data.dtype)

    def scalar(self, b: Any, x: Any) -> Any:
        negative = b.const(-1, x.dtype) if not x.dtype.startswith("uint") else b.const(0, x.dtype)
        return b.select(x > 0, b.const(1, x.dtype), b.select(x < 0, negative, b.const(0, x.dtype)))

    @classmethod
    def samples(cls) -> list[Sample]:
        return super().samples() + [sample(t) for t in INTEGERS]


@op("copy", level=3)
class copy(Elementwise):
    """Each element as it is."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return data.copy()

    def scalar(self, b: Any, x: Any) -> Any:
        return x


@op("zeros_like", level=4)
class zeros_like(Elementwise):
    """Zeros in the shape and data type of the argument."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.zeros_like(data)

    def scalar(self, b: Any, x: Any) -> Any:
        return b.const(0, x.dtype)


@op("ones_like", level=4)
class ones_like(Elementwise):
    """Ones in the shape and data type of the argument."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.ones_like(data)

    def scalar(self, b: Any, x: Any) -> Any:
        return b.const(1, x.dtype)


@op("logical_not", level=4)
class logical_not(Elementwise):
    """Whether each element is zero, in the data type of the argument."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.logical_not(data).astype(data.dtype)

    def scalar(self, b: Any, x: Any) -> Any:
        return b.lnot(x) if x.dtype == "bool" else b.cast(b.eq(x, 0), x.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(TensorType((4, 3), "bool")), sample(TensorType((5,), "int32"))]


@op("bitwise_not", level=4)
class bitwise_not(Elementwise):
    """The bits of each integer flipped; the negation of bools."""

    def relation(self, s: Any, data: Type) -> Type | None:
        found = tensor(s, s.unify(data, s.out))
        return found if found is None or found.dtype == "bool" else integers(s, found, "data")

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.invert(data)

    def scalar(self, b: Any, x: Any) -> Any:
        return b.lnot(x) if x.dtype == "bool" else b.bnot(x)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(t) for t in (*INTEGERS, TensorType((3,), "bool"))]


@op("isnan", level=3)
class isnan(Test):
    """Whether each element is not a number."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.isnan(data)

    def scalar(self, b: Any, x: Any) -> Any:
        return b.isnan(x)


@op("isinf", level=3)
class isinf(Test):
    """Whether each element is infinite."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.isinf(data)

    def scalar(self, b: Any, x: Any) -> Any:
        return b.isinf(x)


@op("isfinite", level=3)
class isfinite(Test):
    """Whether each element is neither infinite nor NaN."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.isfinite(data)

    def scalar(self, b: Any, x: Any) -> Any:
        return b.isfinite(x)


@op("clip", level=3, attrs_key="Clip", parameters="a a_min a_max")
class clip(Elementwise):
    """Each element limited to a_min .. a_max (for integers: to those of the limits that the type can hold)."""

    a_min: float
    a_max: float

    def limits(self, dtype: str) -> tuple[float, float]:
        """The limits as values of `dtype`."""
        if dtype.startswith("float"):
            return self.a_min, self.a_max
        least, most = (0, 1) if dtype == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        low, high = (int(np.clip(v, least - 1, most + 1)) for v in (self.a_min, self.a_max))
        return min(max(low, least), most), min(max(high, least), most)

    def reference(self, a: np.ndarray) -> np.ndarray:
        low, high = self.limits(a.dtype.name)
        return np.minimum(np.maximum(a, a.dtype.type(low)), a.dtype.type(high))

    def scalar(self, b: Any, x: Any) -> Any:
        low, high = self.limits(x.dtype)
        return b.min(b.max(x, low), high)

    @classmethod
    def samples(cls) -> list[Sample]:
        types = [TensorType((3, 4)), TensorType((5,), "int8"), TensorType((), "float64"), TensorType((4,), "uint8")]
        return [sample(t, a_min=-0.5, a_max=1.25) for t in types] + [sample((7,), a_min=0.0, a_max=6.0)]


def as_dtype(x: np.ndarray, dtype: str) -> np.ndarray:
    """`x` cast as the operator `cast` casts."""
    with np.errstate(all="ignore"):
        return convert(np.asarray(x), dtype).astype(dtype)


@op("cast", level=3, attrs_key="Cast")
class cast(Elementwise):
    """Each element in another data type: integers wrap, floats that become integers lose their fraction and
    saturate.
    """

    dtype: Dtype

    def relation(self, s: Any, data: Type) -> Type | None:
        found = tensor(s, data)
        return found and TensorType(found.shape, self.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return as_dtype(data, self.dtype)

    def scalar(self, b: Any, x: Any) -> Any:
        return b.cast(x, self.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        pairs = [
            ("float32", "int32"),
            ("float32", "float16"),
            ("int32", "int8"),
            ("int8", "float32"),
            ("float32", "bool"),
        ]
        return [sample(TensorType((3, 4), a), dtype=c, low=-300, high=300) for a, c in [*pairs, ("bool", "float32")]]


@op("cast_like", inputs=("data", "dtype_like"), level=3)
class cast_like(Elementwise):
    """Each element of `data` in the data type of `dtype_like`."""

    def relation(self, s: Any, data: Type, dtype_like: Type) -> Type | None:
        found, like = tensor(s, data), tensor(s, dtype_like, "dtype_like")
        return found and like and TensorType(found.shape, like.dtype)

    def reference(self, data: np.ndarray, dtype_like: np.ndarray) -> np.ndarray:
        return as_dtype(data, dtype_like.dtype.name)

    def lower(self, b: Any, out: Any, i: tuple, data: Any, dtype_like: Any) -> Any:
        return b.cast(data(*i), out.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((3, 4), TensorType((2,), "int32"), low=-9, high=9), sample(TensorType((3,), "int32"), (1, 1))]


@op("reinterpret", inputs=("data",), level=3, attrs_key="Cast")
class reinterpret(Operator):
    """The bits of each element read as another data type of the same width."""

    dtype: Dtype
    pattern = OpPattern.ELEMWISE
    waivers = {"lower": "the loop level computes with values and has no access to their bits"}

    def relation(self, s: Any, data: Type) -> Type | None:
        found = tensor(s, data)
        if found is None:
            return None
        if np.dtype(found.dtype).itemsize != np.dtype(self.dtype).itemsize:
            s.fail(f"{found.dtype} cannot be reinterpreted as {self.dtype}: their widths differ")
        return TensorType(found.shape, self.dtype)

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(data).view(self.dtype).reshape(data.shape)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample((2, 3), dtype="int32"), sample(TensorType((4,), "int8"), dtype="uint8")]


@op("fixed_point_multiply", level=10, attrs_key="FixedPointMultiply")
class fixed_point_multiply(Elementwise):
    """data * multiplier * 2^(shift - 31) for int32, rounded half up: a product with a Q31 fixed-point number."""

    multiplier: int
    shift: int

    def relation(self, s: Any, data: Type) -> Type | None:
        found = tensor(s, s.unify(data, s.out))
        if found is not None and found.dtype != "int32":
            s.fail(f"fixed_point_multiply needs int32, not {found.dtype}")
        return found

    def reference(self, data: np.ndarray) -> np.ndarray:
        right = 31 + max(-self.shift, 0)
        product = (data.astype("int64") << max(self.shift, 0)) * self.multiplier
        return ((product + (1 << (right - 1))) >> right).astype("int32")

    def scalar(self, b: Any, x: Any) -> Any:
        right = 31 + max(-self.shift, 0)
        product = b.shl(b.cast(x, "int64"), max(self.shift, 0)) * self.multiplier
        return b.cast(b.shr(product + (1 << (right - 1)), right), "int32")

    @classmethod
    def samples(cls) -> list[Sample]:
        data = TensorType((3, 5), "int32")
        return [sample(data, multiplier=1 << 30, shift=s, low=-1000, high=1000) for s in (0, 2, -3)]
