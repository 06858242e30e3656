"""Functions of one or two numbers that Relay has no operator for, made of those that it has."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.pointwise import both, is_float
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr

_INNER = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
          -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
_OUTER = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
          0.00943887047, 1.00167406, 2.83297682)  # fmt: skip
FAR = 26.0
"""Beyond it erfc is 0 in float64."""


@functools.cache
def _tail(terms: int) -> tuple[float, ...]:
    """The first Chebyshev coefficients of log(erfc(z) / t) + z², t being 2 / (2 + z) between 2 / (2 + FAR) and 1.

    Press et al., Numerical Recipes, 2007, 6.2.2; the values are those of Python's `math.erfc`.
    """
    low = 2 / (2 + FAR)
    y = np.cos(np.pi * (np.arange(256) + 0.5) / 256)
    t = low + (y + 1) * (1 - low) / 2
    z = 2 / t - 2
    values = [math.log(math.erfc(a) / b) + a * a for a, b in zip(z.tolist(), t.tolist())]
    return tuple(np.polynomial.chebyshev.chebfit(y, values, terms - 1).tolist())


def scaled_tail(g: TorchGraph, z: Expr) -> Expr:
    """exp(z²) erfc(z) for z that is not below 0."""
    kind = g.dtype(z)
    low, two = 2 / (2 + FAR), g.const(2, kind)
    t = op.divide(two, op.add(two, z))
    twice = op.subtract(op.multiply(t, g.const(4 / (1 - low), kind)), g.const(2 + 4 * low / (1 - low), kind))
    series = _tail(28 if kind == "float64" else 14)
    last: Expr = g.const(0, kind)
    before: Expr = g.const(0, kind)
    for c in series[:0:-1]:  # Clenshaw's recurrence
        last, before = op.add(op.subtract(op.multiply(twice, last), before), g.const(c, kind)), last
    half = op.multiply(twice, g.const(0.5, kind))
    return op.multiply(t, op.exp(op.add(op.subtract(op.multiply(half, last), before), g.const(series[0], kind))))


@converts("erfc")
def erfc(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    """1 - erf(x) near 0; from 1/2 on the tail, which keeps its leading digits."""
    x = g.to(x, node.dtype)
    one, z = g.const(1, x), op.abs(x)
    inside = op.minimum(z, g.const(FAR, x))
    tail = op.multiply(op.exp(op.negative(op.multiply(inside, inside))), scaled_tail(g, inside))
    far = op.where(op.less(x, g.const(0, x)), op.subtract(g.const(2, x), tail), tail)
    return op.where(op.less(z, g.const(0.5, x)), op.subtract(one, op.erf(x)), far)


@converts("special_erfcx")
def scaled_erfc(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    """exp(x²) erfc(x): beyond the series it is 1 / (sqrt(pi) x) times 1 - 1 / (2 x²)."""
    x = g.to(x, node.dtype)
    one, two, z = g.const(1, x), g.const(2, x), op.abs(x)
    square = op.multiply(x, x)
    wide = op.greater(z, g.const(FAR, x))
    long = op.where(wide, z, one)
    rest = op.subtract(one, op.divide(g.const(0.5, x), op.multiply(long, long)))
    tail = op.where(
        wide,
        op.divide(op.multiply(rest, g.const(1 / math.sqrt(math.pi), x)), long),
        scaled_tail(g, op.minimum(z, g.const(FAR, x))),
    )
    return op.where(op.less(x, g.const(0, x)), op.subtract(op.multiply(two, op.exp(square)), tail), tail)


@converts("erfinv")
def erfinv(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    """A polynomial of log(1 - x²) (Giles, 2010), made exact by Halley's steps on erf, in the tails on erfc.

    Where the polynomial ends, which only float64 reaches, erfc(z) is nearly exp(-z²) / (sqrt(pi) z) (DLMF 7.12.1).
    """
    x = g.to(x, node.dtype)
    size, one = op.abs(x), g.const(1, x)
    away = op.negative(op.log(op.multiply(op.subtract(one, size), op.add(one, size))))
    near, far = op.subtract(away, g.const(2.5, x)), op.subtract(op.sqrt(away), g.const(3, x))
    guess = op.where(op.less(away, g.const(5, x)), _horner(g, near, _INNER), _horner(g, far, _OUTER))
    z = op.multiply(guess, size)
    rest = op.subtract(one, size)
    for _ in range(2 if node.dtype == "float64" else 0):
        square = op.add(op.log(rest), op.log(op.multiply(z, g.const(math.sqrt(math.pi), x))))
        z = op.where(op.less(away, g.const(16, x)), z, op.sqrt(op.negative(square)))
    for _ in range(2 if node.dtype == "float64" else 1):
        tail = op.multiply(op.exp(op.negative(op.multiply(z, z))), g.const(2 / math.sqrt(math.pi), x))
        middle = op.subtract(op.erf(z), size)
        over = op.subtract(rest, erfc(g, node, z))
        step = op.divide(op.where(op.less(size, g.const(0.5, x)), middle, over), tail)
        z = op.subtract(z, op.divide(step, op.add(one, op.multiply(z, step))))
    z = op.where(op.equal(size, one), g.const(math.inf, x), op.where(op.greater(size, one), g.const(math.nan, x), z))
    return op.where(op.less(x, g.const(0, x)), op.negative(z), op.where(op.equal(size, g.const(0, x)), x, z))


def _horner(g: TorchGraph, x: Expr, coefficients: Sequence[float]) -> Expr:
    out: Expr = g.const(coefficients[0], x)
    for c in coefficients[1:]:
        out = op.add(op.multiply(out, x), g.const(c, x))
    return out


@converts("exp2")
def exp2(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.power(g.const(2, node.dtype), g.to(x, node.dtype))


@converts("ldexp.Tensor")
def ldexp(g: TorchGraph, node: AtenNode, x: Operand, exponent: Operand) -> Expr:
    x, exponent = both(g, node, x, exponent)
    return op.multiply(x, op.power(g.const(2, x), exponent))


@converts("hypot")
def hypot(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    """The larger one times sqrt(1 + ratio²), so that no square overflows; infinite if one of the two is."""
    x, y = (op.abs(v) for v in both(g, node, a, b))
    zero, one = g.const(0, x), g.const(1, x)
    large, small = op.maximum(x, y), op.minimum(x, y)
    empty = op.equal(large, zero)
    ratio = op.divide(small, op.where(empty, one, large))
    out = op.multiply(large, op.sqrt(op.add(one, op.multiply(ratio, ratio))))
    return op.where(op.logical_or(op.isinf(x), op.isinf(y)), g.const(math.inf, x), out)


def below_zero(g: TorchGraph, x: Expr) -> Expr:
    """Whether the sign is minus, of -0.0 too."""
    zero = g.const(0, x)
    if not is_float(g.dtype(x)):
        return op.less(x, zero)
    nothing = op.equal(x, zero)
    return op.less(op.where(nothing, op.divide(g.const(1, x), x), x), zero)


@converts("signbit")
def signbit(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    """The sign of nan is taken as plus."""
    return op.zeros_like(x) if g.dtype(x) == "bool" else below_zero(g, x)


@converts("copysign.Tensor", "copysign.Scalar")
def copysign(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    x, y = both(g, node, a, b)
    size = op.abs(x)
    return op.where(below_zero(g, y), op.negative(size), size)


@converts("fmax")
def fmax(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    """The larger one; a number wins against nan."""
    return _of_numbers(g, op.maximum, *both(g, node, a, b))


@converts("fmin")
def fmin(g: TorchGraph, node: AtenNode, a: Operand, b: Operand) -> Expr:
    return _of_numbers(g, op.minimum, *both(g, node, a, b))


def _of_numbers(g: TorchGraph, build: Callable[[Expr, Expr], Expr], x: Expr, y: Expr) -> Expr:
    if g.dtype(x) == "bool":
        return g.to(build(g.to(x, "uint8"), g.to(y, "uint8")), "bool")
    if not is_float(g.dtype(x)):
        return build(x, y)
    return op.where(op.isnan(x), y, op.where(op.isnan(y), x, build(x, y)))


@converts("atan2")
def atan2(g: TorchGraph, node: AtenNode, y: Operand, x: Operand) -> Expr:
    """The angle of (x, y): that of the smaller size over the larger one, reflected at the diagonals and the axes."""
    y, x = both(g, node, y, x)
    height, width = op.abs(y), op.abs(x)
    large, small = op.maximum(height, width), op.minimum(height, width)
    same = op.equal(large, small)  # infinite ones too
    ratio = op.where(same, g.const(1, x), op.divide(small, op.where(same, g.const(1, x), large)))
    ratio = op.where(op.equal(large, g.const(0, x)), g.const(0, x), ratio)
    angle = op.atan(op.where(op.logical_or(op.isnan(x), op.isnan(y)), op.add(x, y), ratio))
    angle = op.where(op.greater(height, width), op.subtract(g.const(math.pi / 2, x), angle), angle)
    angle = op.where(below_zero(g, x), op.subtract(g.const(math.pi, x), angle), angle)
    return op.where(below_zero(g, y), op.negative(angle), angle)
