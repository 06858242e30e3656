"""Elementwise operators of one argument that are not mathematical functions: copies, tests, limits."""

from __future__ import annotations

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.op.base import Elementwise, Input, Sample, arg, attr, op, sample
from relaylab.op.helpers import Element, ElementBuilder, TypeSolver
from relaylab.op.rules import integers, tensor
from relaylab.op.tensor.unary import INTEGERS


class Test(Elementwise):
    """A property of each element, as a bool."""

    yields = "the shape of data, bool"
    source = "IEEE 754-2019, 5.7.2"

    result_dtype = "bool"

    @classmethod
    def samples(cls) -> list[Sample]:
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5], "float32")
        return [sample(special), sample(special.astype("float64")), *(sample(t) for t in INTEGERS)]


@op("sign", level=3)
class sign(Elementwise):
    """-1, 0 or 1 by the sign of each element; NaN gives 0."""

    source = "numpy.sign"

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.where(data < 0, -1, data > 0).astype(data.dtype)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        negative = b.const(-1, x.dtype) if not x.dtype.startswith(("uint", "bool")) else b.const(0, x.dtype)
        return b.select(x > 0, b.const(1, x.dtype), b.select(x < 0, negative, b.const(0, x.dtype)))

    @classmethod
    def samples(cls) -> list[Sample]:
        return super().samples() + [sample(t) for t in INTEGERS]


@op("copy", level=3)
class copy(Elementwise):
    """Each element as it is."""

    source = "numpy.copy"

    def reference(self, data: np.ndarray) -> np.ndarray:
        return data.copy()

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return x


@op("zeros_like", level=4)
class zeros_like(Elementwise):
    """Zeros in the shape and data type of the argument."""

    source = "numpy.zeros_like"

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.zeros_like(data)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return b.const(0, x.dtype)


@op("ones_like", level=4)
class ones_like(Elementwise):
    """Ones in the shape and data type of the argument."""

    source = "numpy.ones_like"

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.ones_like(data)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return b.const(1, x.dtype)


@op("logical_not", level=4)
class logical_not(Elementwise):
    """Whether each element is zero, in the data type of the argument."""

    source = "numpy.logical_not"

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.logical_not(data).astype(data.dtype)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return b.lnot(x) if x.dtype == "bool" else b.cast(b.eq(x, 0), x.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(TensorType((4, 3), "bool")), sample(TensorType((5,), "int32"))]


@op("bitwise_not", level=4)
class bitwise_not(Elementwise):
    """The bits of each integer flipped; the negation of bools."""

    data: Input = arg("the tensor whose bits are flipped", dtype="integers or bool")
    source = "numpy.bitwise_not"

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = tensor(s, s.unify(data, s.out))
        return found if found is None or found.dtype == "bool" else integers(s, found, "data")

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.invert(data)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return b.lnot(x) if x.dtype == "bool" else b.bnot(x)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [sample(t) for t in (*INTEGERS, TensorType((3,), "bool"))]


@op("isnan", level=3)
class isnan(Test):
    """Whether each element is not a number."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.isnan(data)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return b.isnan(x)


@op("isinf", level=3)
class isinf(Test):
    """Whether each element is infinite."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.isinf(data)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return b.isinf(x)


@op("isfinite", level=3)
class isfinite(Test):
    """Whether each element is neither infinite nor NaN."""

    def reference(self, data: np.ndarray) -> np.ndarray:
        return np.isfinite(data)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        return b.isfinite(x)


@op("clip", level=3, attrs_key="Clip", parameters="a a_min a_max")
class clip(Elementwise):
    """Each element limited to a_min .. a_max (for integers: to those of the limits that the type can hold)."""

    source = "numpy.clip"

    a_min: float = attr(doc="the lowest number of the result")
    a_max: float = attr(doc="the highest number of the result")

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = super().relation(s, data)
        if isinstance(found, TensorType) and "float" not in found.dtype and np.isnan([self.a_min, self.a_max]).any():
            s.fail(f"{found.dtype} cannot be limited to {self.a_min} .. {self.a_max}")
        return found

    def limits(self, dtype: str) -> tuple[float, float]:
        """The limits as values of `dtype`."""
        if "float" in dtype:
            return self.a_min, self.a_max
        least, most = (0, 1) if dtype == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
        low, high = (int(np.clip(v, least - 1, most + 1)) for v in (self.a_min, self.a_max))
        return min(max(low, least), most), min(max(high, least), most)

    def reference(self, a: np.ndarray) -> np.ndarray:
        low, high = self.limits(a.dtype.name)
        return np.minimum(np.maximum(a, a.dtype.type(low)), a.dtype.type(high))

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        low, high = self.limits(x.dtype)
        return b.min(b.max(x, low), high)

    @classmethod
    def samples(cls) -> list[Sample]:
        types = [TensorType((3, 4)), TensorType((5,), "int8"), TensorType((), "float64"), TensorType((4,), "uint8")]
        return [sample(t, a_min=-0.5, a_max=1.25) for t in types] + [sample((7,), a_min=0.0, a_max=6.0)]
