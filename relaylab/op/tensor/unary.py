"""Mathematical functions of one argument."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.loop.scalar import SCALAR_OPS, convert, is_float
from relaylab.op.base import Elementwise, Input, Sample, arg, op, sample
from relaylab.op.helpers import Element, ElementBuilder, TypeSolver
from relaylab.op.rules import numbers

INTEGERS = (TensorType((2, 3), "int32"), TensorType((5,), "int8"), TensorType((3,), "uint8"))


class UnaryScalar(Elementwise):
    """One function of the loop level's table applied to each element; a `real` one passes integers through float64."""

    data: Input = arg("the tensor whose elements are taken one by one", dtype="any but bool")
    source = "IEEE 754-2019, 9.2, in float64"
    function: ClassVar[str] = ""
    real: ClassVar[bool] = True
    of_bools: ClassVar[bool] = False
    """Bools are taken too, and stay as they are."""

    def relation(self, s: TypeSolver, data: Type) -> Type | None:
        found = super().relation(s, data)
        return found if self.of_bools or not isinstance(found, TensorType) else numbers(s, found)

    def reference(self, data: np.ndarray) -> np.ndarray:
        if data.dtype == "bool":
            return data.copy()
        wide = data.astype("float64") if self.real or data.dtype == "float16" else data
        with np.errstate(all="ignore"):
            found = np.asarray(SCALAR_OPS[self.function].meaning(wide))
            whole = found if data.dtype.kind == "f" else convert(found, data.dtype.name)
            return whole.astype(data.dtype)

    def scalar(self, b: ElementBuilder, x: Element) -> Element:
        if x.dtype == "bool":
            return x
        function = getattr(b, self.function)
        return function(x) if not self.real or is_float(x.dtype) else b.cast(function(b.cast(x, "float64")), x.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        return super().samples() + [sample(t) for t in INTEGERS if not cls.real]


class Whole(UnaryScalar):
    """A function under which integers stay integers, and bools as they are."""

    data: Input = arg("the tensor whose elements are taken one by one")
    real, of_bools = False, True


@op("exp", level=1)
class exp(UnaryScalar):
    """Exponential: e to the power of each element."""

    function = "exp"


@op("log", level=1)
class log(UnaryScalar):
    """Natural logarithm of each element; NaN below 0."""

    function, domain = "log", (0.1, 4.0)


@op("log2", level=1)
class log2(UnaryScalar):
    """Logarithm to base 2 of each element; NaN below 0."""

    function, domain = "log2", (0.1, 4.0)


@op("log10", level=1)
class log10(UnaryScalar):
    """Logarithm to base 10 of each element; NaN below 0."""

    function, domain = "log10", (0.1, 4.0)


@op("sqrt", level=1)
class sqrt(UnaryScalar):
    """Square root of each element; NaN below 0."""

    source = "IEEE 754-2019, 5.4.1: squareRoot"
    function, domain = "sqrt", (0.0, 4.0)


@op("rsqrt", level=1)
class rsqrt(UnaryScalar):
    """Reciprocal square root of each element: 1 / sqrt(x)."""

    function, domain = "rsqrt", (0.1, 4.0)


@op("tanh", level=1)
class tanh(UnaryScalar):
    """Hyperbolic tangent of each element."""

    function = "tanh"


@op("sigmoid", level=1)
class sigmoid(UnaryScalar):
    """Logistic function of each element: 1 / (1 + exp(-x))."""

    source = "ONNX Sigmoid"
    function = "sigmoid"


@op("erf", level=1)
class erf(UnaryScalar):
    """Error function of each element."""

    source = "ISO C, 7.12.8.1"
    function = "erf"


@op("sin", level=1)
class sin(UnaryScalar):
    """Sine of each element, in radians."""

    function = "sin"


@op("cos", level=1)
class cos(UnaryScalar):
    """Cosine of each element, in radians."""

    function = "cos"


@op("tan", level=1)
class tan(UnaryScalar):
    """Tangent of each element, in radians."""

    function, domain = "tan", (-1.2, 1.2)


@op("asin", level=1)
class asin(UnaryScalar):
    """Inverse sine of each element, in radians; NaN outside -1 .. 1."""

    function, domain = "asin", (-1.0, 1.0)


@op("acos", level=1)
class acos(UnaryScalar):
    """Inverse cosine of each element, in radians; NaN outside -1 .. 1."""

    function, domain = "acos", (-1.0, 1.0)


@op("atan", level=1)
class atan(UnaryScalar):
    """Inverse tangent of each element, in radians."""

    function = "atan"


@op("sinh", level=1)
class sinh(UnaryScalar):
    """Hyperbolic sine of each element."""

    function = "sinh"


@op("cosh", level=1)
class cosh(UnaryScalar):
    """Hyperbolic cosine of each element."""

    function = "cosh"


@op("asinh", level=1)
class asinh(UnaryScalar):
    """Inverse hyperbolic sine of each element."""

    function = "asinh"


@op("acosh", level=1)
class acosh(UnaryScalar):
    """Inverse hyperbolic cosine of each element; NaN below 1."""

    function, domain = "acosh", (1.1, 4.0)


@op("atanh", level=1)
class atanh(UnaryScalar):
    """Inverse hyperbolic tangent of each element; NaN outside -1 .. 1."""

    function, domain = "atanh", (-0.9, 0.9)


@op("floor", level=3)
class floor(Whole):
    """The largest whole number not above each element."""

    source = "IEEE 754-2019, 5.3.1: roundToIntegralTowardNegative"
    function = "floor"


@op("ceil", level=3)
class ceil(Whole):
    """The smallest whole number not below each element."""

    source = "IEEE 754-2019, 5.3.1: roundToIntegralTowardPositive"
    function = "ceil"


@op("round", level=3)
class round(Whole):
    """The nearest whole number, halves away from 0."""

    source = "IEEE 754-2019, 5.3.1: roundToIntegralTiesToAway"
    function = "round"


@op("trunc", level=3)
class trunc(Whole):
    """Each element without its fraction."""

    source = "IEEE 754-2019, 5.3.1: roundToIntegralTowardZero"
    function = "trunc"


@op("abs", level=3)
class abs(Whole):
    """Absolute value of each element; the least integer of a type stays as it is."""

    source = "IEEE 754-2019, 5.5.1: abs"
    function = "abs"


@op("negative", level=3)
class negative(UnaryScalar):
    """Each element with its sign changed; integers wrap."""

    source = "IEEE 754-2019, 5.5.1: negate"
    function, real = "neg", False
