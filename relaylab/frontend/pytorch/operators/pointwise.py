"""Arithmetic, comparison and logic, element by element; data types are promoted as torch has done it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import Operand, TorchGraph, chosen
from relaylab.frontend.pytorch.node import AtenNode, dtype_of
from relaylab.frontend.pytorch.program import load_torch
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr
from relaylab.op.tensor.composite import round_even

UNARY: dict[str, Callable[[Expr], Any]] = {
    "abs": op.abs, "acos": op.acos, "acosh": op.acosh, "asin": op.asin, "asinh": op.asinh, "atan": op.atan,
    "atanh": op.atanh, "cos": op.cos, "cosh": op.cosh, "erf": op.erf, "exp": op.exp, "log": op.log,
    "log10": op.log10, "log2": op.log2, "neg": op.negative, "rsqrt": op.rsqrt, "sigmoid": op.sigmoid,
    "sin": op.sin, "sinh": op.sinh, "sqrt": op.sqrt, "tan": op.tan, "tanh": op.tanh,
}  # fmt: skip

ROUNDED: dict[str, Callable[[Expr], Any]] = {"ceil": op.ceil, "floor": op.floor, "trunc": op.trunc}

COMPARED: dict[str, Callable[[Expr, Expr], Any]] = {
    "eq": op.equal,
    "ne": op.not_equal,
    "lt": op.less,
    "le": op.less_equal,
    "gt": op.greater,
    "ge": op.greater_equal,
}
LOGIC: dict[str, Callable[[Expr, Expr], Any]] = {"and": op.logical_and, "or": op.logical_or, "xor": op.logical_xor}
BITS: dict[str, Callable[[Expr, Expr], Any]] = {"and": op.bitwise_and, "or": op.bitwise_or, "xor": op.bitwise_xor}


def both(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> tuple[Expr, Expr]:
    """Two operands in the data type of the result."""
    return g.to(a, node.dtype), g.to(b, node.dtype)


def is_float(dtype: str) -> bool:
    """Whether a data type is one of floats."""
    return "float" in dtype


def _enter_unary(name: str, build: Callable[[Expr], Any]) -> None:
    @converts(name)
    def unary(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
        return build(g.to(x, node.dtype))


def _enter_rounded(name: str, build: Callable[[Expr], Any]) -> None:
    @converts(name)
    def rounded(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
        return build(x) if is_float(node.dtype) else x


def _enter_compared(name: str, build: Callable[[Expr, Expr], Any]) -> None:
    @converts(f"{name}.Tensor", f"{name}.Scalar")
    def compared(g: TorchGraph, node: AtenNode, a: Expr, b: Operand) -> Expr:
        """In the data type in which torch compares: a number takes part as the weaker one."""
        kind = dtype_of(load_torch().result_type(node.meta(0), node.meta(1)), "the comparison")
        return build(g.to(a, kind), g.to(b, kind))


def _enter_logic(name: str) -> None:
    @converts(f"logical_{name}")
    def logic(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
        return LOGIC[name](g.to(a, "bool"), g.to(b, "bool"))

    @converts(*(f"bitwise_{name}.{kind}" for kind in ("Tensor", "Scalar")), f"__{name}__.Tensor", f"__{name}__.Scalar")
    def bits(g: TorchGraph, node: AtenNode, a: Expr, b: Operand) -> Expr:
        return (LOGIC if node.dtype == "bool" else BITS)[name](*both(g, node, a, b))


for _name, _build in UNARY.items():
    _enter_unary(_name, _build)
for _name, _build in ROUNDED.items():
    _enter_rounded(_name, _build)
for _name, _build in COMPARED.items():
    _enter_compared(_name, _build)
for _name in LOGIC:
    _enter_logic(_name)


@converts("mul.Tensor", "mul.Scalar")
def mul(g: TorchGraph, node: AtenNode, a: Expr, b: Operand) -> Expr:
    if node.dtype == "bool":
        return op.logical_and(*both(g, node, a, b))
    return op.multiply(*both(g, node, a, b))


@converts("maximum")
def maximum(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    return (op.logical_or if node.dtype == "bool" else op.maximum)(*both(g, node, a, b))


@converts("minimum")
def minimum(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    return (op.logical_and if node.dtype == "bool" else op.minimum)(*both(g, node, a, b))


@converts("add.Tensor", "add.Scalar")
def add(g: TorchGraph, node: AtenNode, a: Operand, b: Operand, alpha: float = 1) -> Expr:
    if node.dtype == "bool":
        return op.logical_or(*both(g, node, a, b))
    x, y = both(g, node, a, b)
    return op.add(x, y if alpha == 1 else op.multiply(y, g.const(alpha, y)))


@converts("sub.Tensor", "sub.Scalar")
def sub(g: TorchGraph, node: AtenNode, a: Operand, b: Operand, alpha: float = 1) -> Expr:
    x, y = both(g, node, a, b)
    return op.subtract(x, y if alpha == 1 else op.multiply(y, g.const(alpha, y)))


@converts("rsub.Tensor", "rsub.Scalar")
def rsub(g: TorchGraph, node: AtenNode, a: Operand, b: Operand, alpha: float = 1) -> Expr:
    return sub(g, node, b, a, alpha)


@converts("div.Tensor", "div.Scalar")
def div(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    return op.divide(*both(g, node, a, b))


@converts("div.Tensor_mode", "div.Scalar_mode")
def div_mode(g: TorchGraph, node: AtenNode, a: Operand, b: Operand, rounding_mode: str | None = None) -> Expr:
    chosen(node, rounding_mode, (None, "trunc", "floor"), "rounding_mode")
    if rounding_mode == "floor":
        return floor_divide(g, node, a, b)
    x, y = both(g, node, a, b)
    if rounding_mode is None:
        return op.divide(x, y)
    return op.trunc(op.divide(x, y)) if is_float(node.dtype) else op.trunc_divide(x, y)


@converts("floor_divide")
def floor_divide(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    """Python's division: floats from the remainder, so that 1 // 0.1 is 9, as the quotient of the exact values is."""
    x, y = both(g, node, a, b)
    if not is_float(node.dtype):
        return op.floor_divide(x, y)
    zero, one, half = (g.const(v, x) for v in (0, 1, 0.5))
    rest = op.mod(x, y)
    ratio = op.divide(op.subtract(x, rest), y)
    apart = op.logical_and(op.not_equal(rest, zero), op.not_equal(op.less(rest, zero), op.less(y, zero)))
    ratio = op.where(apart, op.subtract(ratio, one), ratio)
    low = op.floor(ratio)
    whole = op.where(op.greater(op.subtract(ratio, low), half), op.add(low, one), low)
    return op.where(op.equal(y, zero), op.divide(x, y), whole)


@converts("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    """Python's remainder: of the divisor's sign."""
    x, y = both(g, node, a, b)
    if not is_float(node.dtype):
        return op.floor_mod(x, y)
    zero, rest = g.const(0, x), op.mod(x, y)
    apart = op.logical_and(op.not_equal(rest, zero), op.not_equal(op.less(rest, zero), op.less(y, zero)))
    return op.where(apart, op.add(rest, y), rest)


@converts("fmod.Tensor", "fmod.Scalar")
def fmod(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    """C's remainder: of the dividend's sign."""
    return (op.mod if is_float(node.dtype) else op.trunc_mod)(*both(g, node, a, b))


@converts("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(g: TorchGraph, node: AtenNode, base: Operand, exponent: Operand) -> Expr:
    if isinstance(exponent, (int, float)) and exponent == 2:
        x = g.to(base, node.dtype)
        return op.multiply(x, x)
    if isinstance(exponent, (int, float)) and exponent == 0.5 and is_float(node.dtype):
        return op.sqrt(g.to(base, node.dtype))
    if isinstance(exponent, (int, float)) and exponent == -0.5 and is_float(node.dtype):
        return op.rsqrt(g.to(base, node.dtype))
    return op.power(*both(g, node, base, exponent))


@converts("reciprocal")
def reciprocal(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.divide(g.const(1, node.dtype), g.to(x, node.dtype))


@converts("square")
def square(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.multiply(x, x)


@converts("round", "round.decimals")
def round_(g: TorchGraph, node: AtenNode, x: Expr, decimals: int = 0) -> Expr:
    if not is_float(node.dtype):
        return x
    if not decimals:
        return round_even(x, node.dtype)
    by, scale, back = g.const(10.0 ** abs(decimals), x), op.multiply, op.divide
    scale, back = (scale, back) if decimals > 0 else (back, scale)
    return back(round_even(scale(x, by), node.dtype), by)


@converts("sign", "sgn")
def sign(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    """What is neither above nor below 0 has the sign 0, nan too."""
    zero, one = g.const(0, x), g.const(1, x)
    if node.dtype == "bool":
        return x
    below = zero if node.dtype.startswith("uint") else op.where(op.less(x, zero), op.negative(one), zero)
    return op.where(op.greater(x, zero), one, below)


@converts("log1p")
def log1p(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    """log(1 + x), exact near 0: log(u) times x / (u - 1), u being 1 + x as it is rounded (Kahan)."""
    x, one = g.to(x, node.dtype), g.const(1, node.dtype)
    u = op.add(x, one)
    rest = op.subtract(u, one)
    small, far = op.equal(rest, g.const(0, node.dtype)), op.isinf(u)
    near = op.multiply(op.log(u), op.divide(x, op.where(small, one, rest)))
    return op.where(small, x, op.where(far, op.log(u), near))


@converts("expm1")
def expm1(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    """exp(x) - 1, exact near 0: (u - 1) x / log(u), u being exp(x) as it is rounded (Kahan)."""
    x, one = g.to(x, node.dtype), g.const(1, node.dtype)
    u = op.exp(x)
    rest = op.subtract(u, one)
    far = op.greater(op.abs(x), one)
    same = op.logical_or(op.equal(u, one), far)
    near = op.divide(op.multiply(rest, x), op.where(same, one, op.log(u)))
    return op.where(far, rest, op.where(op.equal(u, one), x, near))


@converts("logical_not")
def logical_not(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.logical_not(g.to(x, "bool"))


@converts("bitwise_not")
def bitwise_not(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.logical_not(x) if node.dtype == "bool" else op.bitwise_not(x)


@converts("bitwise_left_shift.Tensor", "bitwise_left_shift.Tensor_Scalar", "__lshift__.Scalar", "__lshift__.Tensor")
def left_shift(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    return op.left_shift(*both(g, node, a, b))


@converts("bitwise_right_shift.Tensor", "bitwise_right_shift.Tensor_Scalar", "__rshift__.Scalar", "__rshift__.Tensor")
def right_shift(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    return op.right_shift(*both(g, node, a, b))


@converts("isnan")
def isnan(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.isnan(g.to(x, "float32") if not is_float(g.dtype(x)) else x)


@converts("isinf")
def isinf(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.isinf(g.to(x, "float32") if not is_float(g.dtype(x)) else x)


@converts("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(g: TorchGraph, node: AtenNode, condition: Expr, a: Operand, b: Operand) -> Expr:
    return op.where(g.to(condition, "bool"), *both(g, node, a, b))


@converts("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(g: TorchGraph, node: AtenNode, x: Expr, mask: Expr, value: Operand) -> Expr:
    return op.where(mask, g.to(value, node.dtype), x)


@converts("clamp", "clamp.Tensor", "hardtanh")
def clamp(g: TorchGraph, node: AtenNode, x: Expr, low: Operand | None = None, high: Operand | None = None) -> Expr:
    """The upper limit wins where the two cross."""
    if node.name.startswith("hardtanh"):
        low, high = -1 if low is None else low, 1 if high is None else high
    x = g.to(x, node.dtype)
    if is_float(node.dtype) and isinstance(low, (int, float)) and isinstance(high, (int, float)) and low <= high:
        return op.clip(x, float(low), float(high))
    x = x if low is None else op.maximum(x, g.to(low, node.dtype))
    return x if high is None else op.minimum(x, g.to(high, node.dtype))


@converts("clamp_min", "clamp_min.Tensor")
def clamp_min(g: TorchGraph, node: AtenNode, x: Expr, low: Operand) -> Expr:
    return clamp(g, node, x, low)


@converts("clamp_max", "clamp_max.Tensor")
def clamp_max(g: TorchGraph, node: AtenNode, x: Expr, high: Operand) -> Expr:
    return clamp(g, node, x, None, high)


@converts(
    "_to_copy", "clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "contiguous", "copy", "to.dtype",
    "prims.copy_strided.default",
)  # fmt: skip
def copied(g: TorchGraph, node: AtenNode, x: Expr, *other: Expr, dtype: object = None) -> Expr:
    """A tensor in the data type of the result; `copy` takes the values of its second argument."""
    if node.name.startswith("copy") and other:
        return op.broadcast_to(g.to(other[0], node.dtype), g.sizes(g.all_sizes(x)))
    return g.to(x, node.dtype)


def _alike(g: TorchGraph, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Both of the same shape and data type."""
    dtype = np.result_type(g.dtype(a), g.dtype(b)).name
    first, second = (op.cast(v, dtype) for v in (a, b))
    if g.is_static(a) and g.is_static(b):
        shape = np.broadcast_shapes(g.shape(a), g.shape(b))
        return op.broadcast_to(first, shape), op.broadcast_to(second, shape)
    return op.add(first, op.zeros_like(second)), op.add(second, op.zeros_like(first))


@converts("gcd")
def gcd(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    return op.gcd(*_alike(g, a, b))


@converts("lcm")
def lcm(g: TorchGraph, node: AtenNode, a: Expr, b: Expr) -> Expr:
    a, b = _alike(g, a, b)
    found = op.gcd(a, b)
    return op.abs(op.multiply(op.divide(a, op.maximum(found, g.const(1, found))), b))
