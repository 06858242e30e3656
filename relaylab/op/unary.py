"""Mathematical functions of one argument."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.loop.scalar import SCALAR_OPS, convert, is_float
from relaylab.op.base import Elementwise, Sample, op, sample
from relaylab.op.rules import numbers

INTEGERS = (TensorType((2, 3), "int32"), TensorType((5,), "int8"), TensorType((3,), "uint8"))


class Scalar(Elementwise):
    """One function of the loop level's table applied to each element; a `real` one passes integers through float64."""

    function: ClassVar[str] = ""
    real: ClassVar[bool] = True
    of_bools: ClassVar[bool] = False
    """Bools are taken too, and stay as they are."""

    def relation(self, s: Any, data: Type) -> Type | None:
        found = super().relation(s, data)
        return found if self.of_bools or not isinstance(found, TensorType) else numbers(s, found)

    def reference(self, data: np.ndarray) -> np.ndarray:
        if data.dtype == "bool":
            return data.copy()
        wide = data.astype("float64") if self.real or data.dtype == "float16" else data
        with np.errstate(all="ignore"):
            return convert(np.asarray(SCALAR_OPS[self.function].meaning(wide)), data.dtype.name).astype(data.dtype)

    def scalar(self, b: Any, x: Any) -> Any:
        if x.dtype == "bool":
            return x
        function = getattr(b, self.function)
        return function(x) if not self.real or is_float(x.dtype) else b.cast(function(b.cast(x, "float64")), x.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return super().samples() + [sample(t) for t in INTEGERS if not cls.real]


@op("exp", level=1)
class exp(Scalar):
    """Exponential: e to the power of each element."""

    function = "exp"


@op("log", level=1)
class log(Scalar):
    """Natural logarithm of each element; NaN below 0."""

    function, domain = "log", (0.1, 4.0)


@op("log2", level=1)
class log2(Scalar):
    """Logarithm to base 2 of each element; NaN below 0."""

    function, domain = "log2", (0.1, 4.0)


@op("log10", level=1)
class log10(Scalar):
    """Logarithm to base 10 of each element; NaN below 0."""

    function, domain = "log10", (0.1, 4.0)


@op("sqrt", level=1)
class sqrt(Scalar):
    """Square root of each element; NaN below 0."""

    function, domain = "sqrt", (0.0, 4.0)


@op("rsqrt", level=1)
class rsqrt(Scalar):
    """Reciprocal square root of each element: 1 / sqrt(x)."""

    function, domain = "rsqrt", (0.1, 4.0)


@op("tanh", level=1)
class tanh(Scalar):
    """Hyperbolic tangent of each element."""

    function = "tanh"


@op("sigmoid", level=1)
class sigmoid(Scalar):
    """Logistic function of each element: 1 / (1 + exp(-x))."""

    function = "sigmoid"


@op("erf", level=1)
class erf(Scalar):
    """Error function of each element."""

    function = "erf"


@op("sin", level=1)
class sin(Scalar):
    """Sine of each element, in radians."""

    function = "sin"


@op("cos", level=1)
class cos(Scalar):
    """Cosine of each element, in radians."""

    function = "cos"


@op("tan", level=1)
class tan(Scalar):
    """Tangent of each element, in radians."""

    function, domain = "tan", (-1.2, 1.2)


@op("asin", level=1)
class asin(Scalar):
    """Inverse sine of each element, in radians; NaN outside -1 .. 1."""

    function, domain = "asin", (-1.0, 1.0)


@op("acos", level=1)
class acos(Scalar):
    """Inverse cosine of each element, in radians; NaN outside -1 .. 1."""

    function, domain = "acos", (-1.0, 1.0)


@op("atan", level=1)
class atan(Scalar):
    """Inverse tangent of each element, in radians."""

    function = "atan"


@op("sinh", level=1)
class sinh(Scalar):
    """Hyperbolic sine of each element."""

    function = "sinh"


@op("cosh", level=1)
class cosh(Scalar):
    """Hyperbolic cosine of each element."""

    function = "cosh"


@op("asinh", level=1)
class asinh(Scalar):
    """Inverse hyperbolic sine of each element."""

    function = "asinh"


@op("acosh", level=1)
class acosh(Scalar):
    """Inverse hyperbolic cosine of each element; NaN below 1."""

    function, domain = "acosh", (1.1, 4.0)


@op("atanh", level=1)
class atanh(Scalar):
    """Inverse hyperbolic tangent of each element; NaN outside -1 .. 1."""

    function, domain = "atanh", (-0.9, 0.9)


@op("floor", level=3)
class floor(Scalar):
    """The largest whole number not above each element."""

    function, real, of_bools = "floor", False, True


@op("ceil", level=3)
class ceil(Scalar):
    """The smallest whole number not below each element."""

    function, real, of_bools = "ceil", False, True


@op("round", level=3)
class round(Scalar):
    """The nearest whole number, halves to the even one."""

    function, real, of_bools = "round", False, True


@op("trunc", level=3)
class trunc(Scalar):
    """Each element without its fraction."""

    function, real, of_bools = "trunc", False, True


@op("abs", level=3)
class abs(Scalar):
    """Absolute value of each element; the least integer of a type stays as it is."""

    function, real, of_bools = "abs", False, True


@op("negative", level=3)
class negative(Scalar):
    """Each element with its sign changed; integers wrap."""

    function, real = "neg", False
