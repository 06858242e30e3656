"""Changes of data type: cast, cast_like, reinterpret; and fixed_point_multiply."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.loop.scalar import convert
from relaylab.op.base import Dtype, Elementwise, Operator, OpPattern, Sample, op, sample
from relaylab.op.rules import tensor


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
