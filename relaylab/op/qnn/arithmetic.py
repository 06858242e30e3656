"""The integer arithmetic of the quantized dialect, said once.

A quantized value q stands for the real number (q - zero_point) * scale. The functions here take the numbers that they
compute with as an argument: arrays (the reference), elements of a loop (`ElementBuilder`) or expressions (the program
that passes write), so that all three give the same integers. A ratio of scales is a fixed-point number, m * 2^-s with m
of 31 bits and 1 <= s <= 62, as in Jacob et al., 2018; integers are multiplied with it in int64.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Protocol

import numpy as np

from relaylab.ir.expr import Constant, ExprWithOp
from relaylab.ir.leaves import const
from relaylab.loop.scalar import SCALAR_OPS, convert
from relaylab.op.base import call_operator
from relaylab.op.tensor.composite import round_even

N = Any
"""A number of one of the kinds of `Numbers`: an array, an expression or an element."""


class Numbers(Protocol):
    """What the arithmetic needs of a kind of numbers, beside their Python operators; `ElementBuilder` has it."""

    def const(self, value: float, dtype: str, /) -> N: ...
    def cast(self, x: N, dtype: str, /) -> N: ...
    def select(self, condition: N, then: N, otherwise: N, /) -> N: ...
    def floor(self, x: N, /) -> N: ...
    def max(self, a: N, c: N, /) -> N: ...
    def min(self, a: N, c: N, /) -> N: ...
    def shl(self, a: N, c: N, /) -> N: ...
    def shr(self, a: N, c: N, /) -> N: ...


class Arrays:
    """Arrays of numpy, with the loop level's meaning of each function."""

    select, floor = (staticmethod(SCALAR_OPS[name].meaning) for name in ("select", "floor"))
    max, min = (staticmethod(SCALAR_OPS[name].meaning) for name in ("max", "min"))
    shl, shr = (staticmethod(SCALAR_OPS[name].meaning) for name in ("shl", "shr"))

    def const(self, value: float, dtype: str, /) -> N:
        return np.asarray(value, dtype)

    def cast(self, x: N, dtype: str, /) -> N:
        return convert(np.asarray(x), dtype)

    def of(self, name: str, x: N) -> N:
        """A function of one number, by its name."""
        return SCALAR_OPS[name].meaning(x)


class Exprs:
    """Expressions: calls of ordinary operators; constants are cast at once."""

    select, floor = (staticmethod(partial(call_operator, name)) for name in ("where", "floor"))
    max, min = (staticmethod(partial(call_operator, name)) for name in ("maximum", "minimum"))
    shl, shr = (staticmethod(partial(call_operator, name)) for name in ("left_shift", "right_shift"))

    def const(self, value: float, dtype: str, /) -> N:
        return const(value, dtype)

    def cast(self, x: N, dtype: str, /) -> N:
        return const(convert(x.data.numpy(), dtype), dtype) if isinstance(x, Constant) else x.astype(dtype)

    def of(self, name: str, x: N) -> N:
        """A function of one number, by its name."""
        return call_operator(name, x)


ARRAYS, EXPRS = Arrays(), Exprs()


def limits(dtype: str) -> tuple[int, int]:
    """The least and the greatest value of an integer type."""
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def function(b: Numbers, name: str, x: N) -> N:
    """A function of the loop level, by its name; for expressions it is that of an operator."""
    return b.of(name, x) if isinstance(b, (Arrays, Exprs)) else getattr(b, name)(x)


def as_type(b: Numbers, x: N, of: str, dtype: str) -> N:
    """Numbers of type `of` as another type."""
    return x if of == dtype else b.cast(x, dtype)


def saturated(b: Numbers, x: N, dtype: str, of: str = "int64") -> N:
    """Numbers of type `of` clamped to an integer type."""
    low, high = (b.const(v if "float" in of else min(v, limits(of)[1]), of) for v in limits(dtype))
    return b.cast(b.min(b.max(x, low), high), dtype)


def centred(b: Numbers, x: N, zero: N, dtype: str) -> N:
    """Integers less their zero point."""
    known = isinstance(zero, Constant) and not np.any(zero.data)
    return b.cast(x, dtype) if known else b.cast(x, dtype) - b.cast(zero, dtype)


def real(b: Numbers, x: N, scale: N, zero: N) -> N:
    """The real numbers that integers stand for, in float32."""
    return b.cast(centred(b, x, zero, "int32"), "float32") * scale


def steps(b: Numbers, x: N, scale: N, wide: str) -> N:
    """How many steps real numbers of type `wide` are, in that type; halves go to even, as ONNX asks."""
    quotient = x / as_type(b, scale, "float32", wide)
    return round_even(quotient, wide) if isinstance(b, Exprs) else function(b, "roundeven", quotient)


def whole(b: Numbers, x: N, scale: N, zero: N, dtype: str, wide: str = "float32") -> N:
    """Real numbers (of type `wide`, in which they are divided) as integers."""
    exact = "float64" if np.dtype(dtype).itemsize > 2 else wide
    return saturated(b, as_type(b, steps(b, x, scale, wide), wide, exact) + b.cast(zero, exact), dtype, exact)


def fixed_point(b: Numbers, scale: N, new_scale: N) -> tuple[N, N, N]:
    """(m, s, 2^(s-1)) of scale / new_scale: the fixed-point number and a half, all int64.

    The leading bit of ratio * 2^32 is found by halving, which is exact; ratios beyond 2^29 are taken as 2^29.
    """
    if isinstance(scale, Constant) and isinstance(new_scale, Constant):
        found = fixed_point(ARRAYS, scale.data.numpy(), new_scale.data.numpy())
        m, s, half = (const(np.asarray(v), "int64") for v in found)
        return m, s, half
    number = lambda v: b.const(v, "float64")
    rest = b.cast(scale, "float64") / b.cast(new_scale, "float64") * number(2.0**32)
    rest, shift = b.min(rest, number(2.0**61)), b.const(62, "int64")
    for step in (32, 16, 8, 4, 2, 1):
        large = rest >= number(2.0**step)
        rest = b.select(large, rest * number(2.0**-step), rest)
        shift = b.select(large, shift - b.const(step, "int64"), shift)
    m = b.cast(b.floor(rest * number(2.0**30) + number(0.5)), "int64")
    one = b.const(1, "int64")
    return m, shift, b.shl(one, shift - one)


def requantized(b: Numbers, x: N, scale: N, zero: N, new_scale: N, new_zero: N, rounding: str = "UPWARD") -> N:
    """Integers of one scale as integers of another, int64 and not yet clamped.

    Halves go up, or with "TONEAREST" away from 0.
    """
    if same(scale, new_scale) and same(zero, new_zero):
        return b.cast(x, "int64")
    m, shift, half = fixed_point(b, scale, new_scale)
    product = centred(b, x, zero, "int64") * m
    if rounding == "TONEAREST":
        half = half - b.cast(product < b.const(0, "int64"), "int64")
    moved = b.shr(product + half, shift)
    known = isinstance(new_zero, Constant) and not np.any(new_zero.data)
    return moved if known else moved + b.cast(new_zero, "int64")


def requantized_float(
    b: Numbers, x: N, scale: N, zero: N, new_scale: N, new_zero: N, rounding: str = "UPWARD", wide: str = "float32"
) -> N:
    """The same computed in floats of type `wide`, whole and not yet clamped; the ratio is that of float64."""
    value = centred(b, x, zero, wide)
    if not same(scale, new_scale):
        ratio = as_type(b, scale, "float32", "float64") / as_type(b, new_scale, "float32", "float64")
        value = value * as_type(b, ratio, "float64", wide)
    half = b.const(0.5, wide)
    value = function(b, "round", value) if rounding == "TONEAREST" else b.floor(value + half)
    return value + b.cast(new_zero, wide)


def product_scale(a: N, c: N) -> N:
    """The scale of products, computed where both are known."""
    known = isinstance(a, Constant) and isinstance(c, Constant)
    return const(np.multiply(a.data.numpy(), c.data.numpy()), "float32") if known else a * c


def times(b: Numbers, x: N, factor: float) -> N:
    """int64 times a known real number, as a fixed-point number; halves go up."""
    mantissa, exponent = math.frexp(factor)
    m, shift = math.floor(abs(mantissa) * 2**31 + 0.5), min(max(31 - exponent, 1), 62)
    product = x * b.const(int(math.copysign(m, factor)), "int64") + b.const(1 << (shift - 1), "int64")
    return b.shr(product, b.const(shift, "int64"))


def same(a: N, c: N) -> bool:
    """Whether two parameters are known to be equal."""
    return isinstance(a, Constant) and isinstance(c, Constant) and np.array_equal(a.data, c.data)


def along(x: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A parameter as an array that broadcasts along `axis`."""
    return x.reshape(() if x.size == 1 else [-1 if d == axis % rank else 1 for d in range(rank)])


def along_expr(x: ExprWithOp, axis: int, rank: int, shape: tuple[Any, ...]) -> ExprWithOp:
    """The same for an expression of a shape."""
    if isinstance(x, Constant):
        return const(along(x.data.numpy(), axis, rank), x.data.dtype.name)
    if not shape or (rank and axis % rank == rank - 1):
        return x
    if rank == 0:
        return call_operator("squeeze", x)
    return call_operator("expand_dims", x, axis=1, num_newaxis=rank - axis % rank - 1)
