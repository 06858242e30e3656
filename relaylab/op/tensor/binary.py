"""Arithmetic of two arguments, with broadcasting as in numpy; both data types must be equal."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from relaylab.ir.types import TensorType, Type
from relaylab.loop.scalar import SCALAR_OPS
from relaylab.op.base import Broadcast, Input, Opaque, Sample, arg, op, sample
from relaylab.op.helpers import Element, ElementBuilder, TypeSolver
from relaylab.op.indexing import unravel
from relaylab.op.rules import integers, numbers, same_dtype, shaped, tensor

if TYPE_CHECKING:
    from relaylab.loop.expr import Tensor
    from relaylab.loop.procedure import Procedure

HALF = np.dtype("float16")


class BinaryScalar(Broadcast):
    """One function of the loop level's table applied to pairs of elements."""

    source = "IEEE 754-2019, 5.4.1; integers wrap"
    function: ClassVar[str] = ""

    def reference(self, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        wide = [x.astype("float32") if x.dtype == HALF else x for x in (lhs, rhs)]
        with np.errstate(all="ignore"):
            return np.asarray(SCALAR_OPS[self.function].meaning(*wide)).astype(lhs.dtype, copy=False)

    def scalar(self, b: ElementBuilder, x: Element, y: Element) -> Element:
        return getattr(b, self.function)(x, y)


class Arithmetic(BinaryScalar):
    """A function of numbers."""

    lhs: Input = arg("the left operand", dtype="any but bool")

    def relation(self, s: TypeSolver, lhs: Type, rhs: Type) -> Type | None:
        for t, name in ((lhs, "lhs"), (rhs, "rhs")):
            if (found := tensor(s, t, name)) is not None:
                numbers(s, found, name)
        return super().relation(s, lhs, rhs)


class Integer(BinaryScalar):
    """A function of integers, or of bools as integers of one bit."""

    lhs: Input = arg("the left operand", dtype="integers or bool")
    source = "numpy.bitwise_and and its kin"
    dtypes = ("int32", "uint8")
    of_bools: ClassVar[bool] = True

    def relation(self, s: TypeSolver, lhs: Type, rhs: Type) -> Type | None:
        for t, name in ((lhs, "lhs"), (rhs, "rhs")):
            found = tensor(s, t, name)
            if found is not None and not (self.of_bools and found.dtype == "bool"):
                integers(s, found, name)
        return super().relation(s, lhs, rhs)


class Shift(Integer):
    """A shift of bits."""

    lhs: Input = arg("whose bits are shifted", dtype="integers")
    rhs: Input = arg("by how many places", dtype="that of lhs")
    source = "numpy.left_shift and numpy.right_shift"
    dtypes, of_bools = ("int32", "int8"), False
    domain = (0, 7)


class Logical(Broadcast):
    """A function of truth values; numbers count as true when they are not 0."""

    source = "numpy.logical_and and its kin"
    function: ClassVar[str] = ""
    dtypes = ("bool", "int32")

    def reference(self, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        return SCALAR_OPS[self.function].meaning(lhs != 0, rhs != 0).astype(lhs.dtype)

    def scalar(self, b: ElementBuilder, x: Element, y: Element) -> Element:
        return b.cast(getattr(b, self.function)(b.cast(x, "bool"), b.cast(y, "bool")), x.dtype)


@op("add", level=1)
class add(BinaryScalar):
    """Sum of two tensors."""

    function, dtypes = "add", ("float32", "int32", "float16", "bfloat16", "int8")


@op("subtract", level=1)
class subtract(Arithmetic):
    """Difference of two tensors: lhs - rhs."""

    function = "sub"


@op("multiply", level=1)
class multiply(BinaryScalar):
    """Product of two tensors, element by element."""

    function, dtypes = "mul", ("float32", "int32", "float64", "uint8")


@op("divide", level=1)
class divide(Arithmetic):
    """Quotient of two tensors: lhs / rhs; integers are truncated towards 0."""

    function = "div"


@op("floor_divide", level=1)
class floor_divide(Arithmetic):
    """Quotient rounded down."""

    source = "numpy.floor_divide"
    function = "floordiv"


@op("trunc_divide", level=1)
class trunc_divide(Arithmetic):
    """Quotient rounded towards 0."""

    source = "ISO C, 6.5.5: the quotient of integers"
    function = "truncdiv"


@op("mod", level=1)
class mod(Arithmetic):
    """Remainder of the quotient rounded towards 0: it has the sign of lhs."""

    source = "ISO C, 6.5.5 and fmod"
    function = "truncmod"


@op("floor_mod", level=1)
class floor_mod(Arithmetic):
    """Remainder of the quotient rounded down: it has the sign of rhs."""

    source = "numpy.mod"
    function = "floormod"


@op("trunc_mod", level=1)
class trunc_mod(Arithmetic):
    """Remainder of the quotient rounded towards 0: it has the sign of lhs."""

    source = "ISO C, 6.5.5 and fmod"
    function = "truncmod"


@op("power", level=4)
class power(Arithmetic):
    """lhs to the power of rhs."""

    source = "IEEE 754-2019, 9.2: pow"
    function, domain = "pow", (0.5, 4.0)


@op("maximum", level=4)
class maximum(BinaryScalar):
    """The larger of two elements; NaN if one is NaN."""

    source = "IEEE 754-2019, 9.6: maximum"
    function = "max"


@op("minimum", level=4)
class minimum(BinaryScalar):
    """The smaller of two elements; NaN if one is NaN."""

    source = "IEEE 754-2019, 9.6: minimum"
    function = "min"


@op("bitwise_and", level=4)
class bitwise_and(Integer):
    """Bits that are set in both integers."""

    function = "band"


@op("bitwise_or", level=4)
class bitwise_or(Integer):
    """Bits that are set in one of the integers or both."""

    function = "bor"


@op("bitwise_xor", level=4)
class bitwise_xor(Integer):
    """Bits that are set in one of the integers but not both."""

    function = "bxor"


@op("left_shift", level=4)
class left_shift(Shift):
    """lhs with its bits shifted left by rhs places; 0 when rhs reaches the width."""

    function = "shl"


@op("right_shift", level=4)
class right_shift(Shift):
    """lhs with its bits shifted right by rhs places; the sign is kept."""

    function = "shr"


@op("logical_and", level=4)
class logical_and(Logical):
    """Whether both elements are true."""

    function = "land"


@op("logical_or", level=4)
class logical_or(Logical):
    """Whether one of the elements is true, or both."""

    function = "lor"


@op("logical_xor", level=4)
class logical_xor(Logical):
    """Whether one of the elements is true but not both."""

    function = "lxor"


STEPS = {1: 13, 2: 24, 4: 47, 8: 93}
"""Steps of numbers of so many bytes: neighbours in Fibonacci's sequence take most (Lamé, 1844)."""
BLOCK = 64


@op("gcd", level=10, attrs_key="GCD")
class gcd(Opaque):
    """The largest numbers that divide both of two, never negative; 0 for two zeros."""

    lhs: Input = arg("whole numbers", dtype="integers")
    rhs: Input = arg("whole numbers", "that of lhs", "that of lhs")
    yields = "the type of lhs"
    source = "numpy.gcd"

    def result_type(self, s: TypeSolver, lhs: TensorType, rhs: TensorType) -> Type | None:
        integers(s, lhs, "lhs")
        same_dtype(s, lhs, rhs)
        return shaped(s, rhs, lhs.shape, "rhs")

    def reference(self, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        return np.gcd(lhs, rhs)

    def procedure(self, p: Procedure, out: Tensor, lhs: Tensor, rhs: Tensor) -> None:
        b, count = p.b, math.prod(lhs.shape)
        with p.parallel((count + BLOCK - 1) // BLOCK) as block, p.loop(BLOCK, stop=count - block * BLOCK) as k:
            at = unravel(b, block * BLOCK + k, lhs.shape)
            x, y = p.let(lhs(*at), "x"), p.let(rhs(*at), "y")
            with p.loop(STEPS[np.dtype(lhs.dtype).itemsize]), p.when(b.ne(y, b.const(0, lhs.dtype))):
                rest = p.let(x % y)
                p.set(x, y)
                p.set(y, rest)
            p.store(out, at, b.abs(x) if lhs.dtype.startswith("int") else x)

    @classmethod
    def samples(cls) -> list[Sample]:
        pair = lambda dtype: (np.array([12, 0, 7, 34, 0, 89], dtype), np.array([18, 5, 0, 55, 0, 55], dtype))
        signed = np.array([[-12, 144], [-7, 63245986]], "int32")
        other = np.array([[8, 89], [-21, 39088169]], "int32")
        return [sample(*pair("int64")), sample(*pair("uint8")), sample(signed, other)]
