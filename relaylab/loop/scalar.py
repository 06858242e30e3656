"""The scalar functions of the loop level: their names, result types and meaning in numpy.

This table is what every other description of a scalar function is measured against: constant
folding and the evaluator call it, and the native code must agree with it.

Decisions where hardware or numpy leave a choice:

* integer arithmetic wraps; dividing an integer by zero gives 0 (quotient and remainder);
* `max` and `min` give NaN when either side is NaN;
* shifting by the width or more gives 0 (-1 for negative numbers shifted right);
* a float cast to an integer saturates, NaN becomes 0; a cast to bool is `x != 0`;
* float16 and bfloat16 are storage types: their arithmetic is done in float32. What becomes a bfloat16 is a float32
  before, as in torch and ml_dtypes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylab.support.dtypes import BFLOAT16
from relaylab.support.errors import RelayTypeError
from relaylab.support.table import Table

NARROW = ("float16", BFLOAT16.name)
"""Floats of 16 bits: they are stored so, and computed with in float32."""
FLOATS = (*NARROW, "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
DTYPES = frozenset((*FLOATS, *SIGNED, *UNSIGNED, "bool"))

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """A pure scalar function: `kind` says what it takes and gives.

    `same`: any dtype, gives it; `float`: floats only; `bool`: any dtype, gives bool;
    `int`: integers and bool; `logic`: bool only; `select`: (bool, T, T) gives T;
    `bytes`: int32, whose bytes count; `ordinal`: floats, gives the unsigned integers of their width (those of 16 bits
    are computed as float32); `word`: unsigned integers of 32 or 64 bits, gives the floats of their width.
    """

    name: str
    arity: int
    kind: str
    meaning: Callable[..., Array]

    def result(self, dtype: str) -> str:
        """The dtype of what it gives for arguments whose last has that dtype."""
        width = "64" if dtype.endswith("64") else "32"
        return {"bool": "bool", "ordinal": f"uint{width}", "word": f"float{width}"}.get(self.kind, dtype)


SCALAR_OPS: Table[ScalarOp] = Table("scalar function")


def is_float(dtype: str) -> bool:
    """Whether a dtype is a floating point type."""
    return "float" in dtype


def is_integer(dtype: str) -> bool:
    """Whether a dtype is a signed or unsigned integer type (bool is not)."""
    return "int" in dtype


def compute_dtype(dtype: str) -> str:
    """The dtype in which arithmetic is done: float32 for floats of 16 bits, else itself."""
    return "float32" if dtype in NARROW else dtype


def lowest(dtype: str) -> int | float | bool:
    """The least value of a dtype: the identity of `max`."""
    if dtype == "bool":
        return False
    return -math.inf if is_float(dtype) else int(np.iinfo(dtype).min)


def highest(dtype: str) -> int | float | bool:
    """The greatest value of a dtype: the identity of `min`."""
    if dtype == "bool":
        return True
    return math.inf if is_float(dtype) else int(np.iinfo(dtype).max)


def convert(x: Array, dtype: str) -> Array:
    """`x` cast to the dtype in which `dtype` is computed; rounds to 16 bits where that is asked."""
    if x.dtype == BFLOAT16:
        x = x.astype("float32")
    source = x.dtype
    if dtype == "bool":
        return x != 0
    if source.kind == "f" and is_integer(dtype):
        return _saturate(x, dtype)
    out = x.astype(dtype)
    return out.astype("float32") if dtype in NARROW else out


def _saturate(x: Array, dtype: str) -> Array:
    info = np.iinfo(dtype)
    whole = np.trunc(np.nan_to_num(x.astype("float64"), nan=0.0, posinf=math.inf, neginf=-math.inf))
    inside = (whole > float(info.min) - 1) & (whole < float(info.max) + 1) & (whole < 2.0**info.bits)
    limits: Array = np.array([info.min, info.max], dtype)
    edge = limits[(whole > 0).astype("int8")]
    if dtype in ("int64", "uint64"):
        inside &= (whole >= float(info.min)) & (whole < float(info.max))
    return np.where(inside, np.where(inside, whole, 0.0).astype(dtype), edge)


def _trunc_div(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    quotient, remainder = np.floor_divide(a, b), np.mod(a, b)
    rounded_down = (remainder != 0) & ((a < 0) != (b < 0))
    return np.where(b == 0, np.zeros((), a.dtype), quotient + rounded_down.astype(a.dtype))


def _divide(a: Array, b: Array) -> Array:
    return a / b if a.dtype.kind == "f" else _trunc_div(a, b)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.power(a, b)
    negative = b < 0
    positive = np.power(a, np.where(negative, b.dtype.type(0), b))
    odd_sign = np.where(b % 2 == 0, a * a, a)
    return np.where(negative, np.where(np.abs(a) == 1, odd_sign, a.dtype.type(0)), positive)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _sigmoid(x: Array) -> Array:
    wide = x.astype("float64")
    e = np.exp(-np.abs(wide))  # never infinite, so that a quotient below 2^-1022 keeps its digits
    return (np.where(wide < 0, e, 1) / (1 + e)).astype(x.dtype)


def _erf(x: Array) -> Array:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x)).astype(x.dtype)


def _whole(rounding: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: rounding(x) if x.dtype.kind == "f" else x


def _round(x: Array) -> Array:
    """The nearest whole number, halves away from zero (IEEE 754 roundToIntegralTiesToAway), with the sign of x."""
    size = np.abs(x)
    whole = np.trunc(size)
    return np.copysign(whole + (size - whole >= 0.5), x)


def _test(test: Callable[[Array], Array], integers: bool) -> Callable[[Array], Array]:
    return lambda x: test(x) if x.dtype.kind == "f" else np.full(x.shape, integers)


def _absolute(x: Array) -> Array:
    return x if x.dtype.kind == "b" else np.abs(x)


def _declare(kind: str, arity: int, **meanings: Callable[..., Array]) -> None:
    for name, meaning in meanings.items():
        SCALAR_OPS.insert(name, ScalarOp(name, arity, kind, meaning))


def _dot4(total: Array, x: Array, w: Array) -> Array:
    """`total` and the four products of the unsigned bytes of `x` and the signed bytes of `w`, all int32 (wraps)."""
    unsigned, signed = (np.array(v, order="C")[..., None].view(dtype) for v, dtype in ((x, "uint8"), (w, "int8")))
    shape = np.broadcast_shapes(unsigned.shape, signed.shape)[:-1]
    products = unsigned.astype("int32") * signed
    return total + products.sum(axis=-1, dtype="int32").reshape(shape)


def _ordinal(x: Array) -> Array:
    """The unsigned integers that are ordered as floats are: -0 as 0, every NaN as the largest."""
    unsigned = np.dtype(f"uint{8 * x.itemsize}").type
    bits = np.where(x == 0, x.dtype.type(0), x).view(unsigned)
    top = unsigned(1 << 8 * x.itemsize - 1)
    return np.where(np.isnan(x), unsigned(np.iinfo(unsigned).max), np.where(bits & top, ~bits, bits | top))


def _bits(x: Array) -> Array:
    """The bits of floats as unsigned integers."""
    return x.view(f"uint{8 * x.itemsize}")


def _of_bits(x: Array) -> Array:
    """The floats that have these bits."""
    return x.view(f"float{8 * x.itemsize}")


_declare("same", 2, add=np.add, sub=np.subtract, mul=np.multiply, div=_divide, max=np.maximum, min=np.minimum)
_declare("same", 2, floordiv=np.floor_divide, floormod=np.mod, truncdiv=_trunc_div, truncmod=np.fmod, pow=_power)
_declare("same", 1, neg=np.negative, abs=_absolute)
_declare("same", 1, floor=_whole(np.floor), ceil=_whole(np.ceil), trunc=_whole(np.trunc))
_declare("same", 1, round=_whole(_round), roundeven=_whole(np.rint))
_declare("float", 1, exp=np.exp, log=np.log, log2=np.log2, log10=np.log10, sqrt=np.sqrt, rsqrt=_rsqrt)
_declare("float", 1, tanh=np.tanh, sigmoid=_sigmoid, erf=_erf, sin=np.sin, cos=np.cos, tan=np.tan)
_declare("float", 1, asin=np.arcsin, acos=np.arccos, atan=np.arctan, sinh=np.sinh, cosh=np.cosh)
_declare("float", 1, asinh=np.arcsinh, acosh=np.arccosh, atanh=np.arctanh)
_declare("bool", 2, eq=np.equal, ne=np.not_equal, lt=np.less, le=np.less_equal, gt=np.greater, ge=np.greater_equal)
_declare("bool", 1, isnan=_test(np.isnan, False), isinf=_test(np.isinf, False), isfinite=_test(np.isfinite, True))
_declare("int", 2, band=np.bitwise_and, bor=np.bitwise_or, bxor=np.bitwise_xor, shl=np.left_shift, shr=np.right_shift)
_declare("int", 1, bnot=np.invert)
_declare("logic", 2, land=np.logical_and, lor=np.logical_or, lxor=np.logical_xor)
_declare("logic", 1, lnot=np.logical_not)
_declare("select", 3, select=np.where)
_declare("bytes", 3, dot4=_dot4)
_declare("ordinal", 1, ordinal=_ordinal, bits=_bits)
_declare("word", 1, of_bits=_of_bits)


OPERATORS = dict(
    **{"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv"},
    **{"remainder": "mod", "negative": "neg", "invert": "invert", "bitwise_and": "and_", "bitwise_or": "or_"},
    **{"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"},
)
"""The functions of numpy that Python's operators are, by their names in `operator`."""


class NoNumber:
    """An object that stands beside numbers, numpy's too, under Python's operators only."""

    __slots__ = ()

    def __bool__(self) -> bool:
        raise RelayTypeError(
            "a scalar expression has no truth value while the program is built",
            code="loop.no-truth-value",
            help="use b.select(condition, then, otherwise) or b.guard",
        )

    def __index__(self) -> int:
        raise RelayTypeError("a scalar expression is no number while the program is built", code="loop.no-number")

    __int__ = __float__ = __index__

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> object:
        """What an operator gives, as of any object; RelayTypeError `loop.no-number` for other functions."""
        if ufunc.__name__ not in OPERATORS:
            raise RelayTypeError(
                f"numpy.{ufunc.__name__} takes numbers, and a scalar expression is none while the program is built",
                code="loop.no-number",
                help=f"use the builder: b.{ufunc.__name__}(…), if it has that; `dir(b)` lists what it has",
            )
        own: Callable[..., object] = getattr(operator, OPERATORS[ufunc.__name__])
        arrays = np.broadcast_arrays(
            *[np.asarray(x.item() if isinstance(x, np.generic) else x, object) for x in inputs]
        )
        made = np.empty(arrays[0].shape, object)
        for place in np.ndindex(made.shape):
            made[place] = own(*[a[place] for a in arrays])
        return made if made.ndim else made.item()
