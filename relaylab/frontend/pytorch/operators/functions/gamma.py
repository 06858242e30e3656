"""The gamma function's logarithm and its derivatives, and the quantiles of the normal distribution.

Far from 0 asymptotic series, to which smaller arguments are moved by recurrences; below 1/2 reflections. Formulas: NIST
Digital Library of Mathematical Functions, chapter 5.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.functions.doubles import Doubles, in_doubles
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr

FAR = 10
"""From it on the asymptotic series have all digits."""
TERMS = 10


@functools.cache
def bernoulli(count: int) -> tuple[Fraction, ...]:
    """B_2, B_4 ..., 24.2."""
    found = [Fraction(1)]
    for m in range(1, 2 * count + 1):
        found.append(-sum((math.comb(m + 1, k) * found[k] for k in range(m)), Fraction(0)) / (m + 1))
    return tuple(found[2::2])


@functools.cache
def _ratio(root: int) -> tuple[float, ...]:
    """The Chebyshev coefficients of lgamma(x) / (x - root) within 1/2 of the root 1 or 2."""
    y = np.cos(np.pi * (np.arange(40) + 0.5) / 40)
    values = [math.lgamma(root + v / 2) / (v / 2) for v in y.tolist()]
    return tuple(np.polynomial.chebyshev.chebfit(y, values, 27).tolist())


def _fraction_of_turn(d: Doubles, x: Expr) -> Expr:
    """pi times how far x is from the nearest whole number."""
    return d.times(op.subtract(x, op.round(x)), math.pi)


@converts("lgamma", "special_gammaln")
@in_doubles
def lgamma(g: TorchGraph, x: Expr) -> Expr:
    """log(|gamma(x)|): 5.11.1; series around its roots 1 and 2; 5.5.3 below 1/2. Infinite at 0, -1, -2 ..."""
    d = Doubles(g)
    half, back = d.number(0.5), op.less(x, d.number(0.5))
    z = op.where(back, op.subtract(d.number(1), x), x)
    far = op.greater(z, d.number(FAR))
    product: Expr = d.number(1)
    for k in range(FAR):
        product = op.multiply(product, op.where(far, d.number(1), d.plus(z, k)))
    y = op.where(far, z, d.plus(z, FAR))
    inverse = d.over(1, y)
    series = [float(b / (2 * k * (2 * k - 1))) for k, b in enumerate(bernoulli(TERMS), 1)]
    tail = op.multiply(d.horner(op.multiply(inverse, inverse), series[::-1]), inverse)
    whole = op.subtract(op.multiply(op.subtract(y, half), op.subtract(op.log(y), d.number(1))), half)
    out = op.subtract(op.add(d.plus(whole, math.log(2 * math.pi) / 2), tail), op.log(product))
    for root in (1, 2):
        away = d.plus(z, -root)
        share = op.minimum(op.maximum(d.plus(away, 0.5), d.number(0)), d.number(1))
        close = op.less_equal(op.abs(away), half)
        near = op.multiply(away, d.clenshaw(share, _ratio(root)))
        near = op.where(op.equal(away, d.number(0)), d.number(0), near)  # of 1 the factor is below 0
        out = op.where(close, near, out)
    sine = op.abs(op.sin(_fraction_of_turn(d, x)))
    pole = op.logical_and(back, op.equal(sine, d.number(0)))
    mirrored = op.subtract(d.number(math.log(math.pi)), op.add(op.log(sine), out))
    out = op.where(pole, d.number(math.inf), op.where(back, mirrored, out))
    return op.where(op.isinf(x), d.number(math.inf), out)


def _derivative(d: Doubles, n: int, z: Expr) -> Expr:
    """Derivative n of digamma above 0, 5.11.2 and 5.15.8; without n! and its sign if n is not 0."""
    far = op.greater(z, d.number(FAR))
    y = op.where(far, z, d.plus(z, FAR))
    inverse = d.over(1, y)
    square = op.multiply(inverse, inverse)
    before = [op.where(far, d.number(0), _power(d, d.over(1, d.plus(z, k)), n + 1)) for k in range(FAR - 1, -1, -1)]
    near = functools.reduce(op.add, before)
    if n == 0:
        series = [float(b / (2 * k)) for k, b in enumerate(bernoulli(TERMS), 1)]
        tail = op.multiply(d.horner(square, series[::-1]), square)
        return op.subtract(op.subtract(op.subtract(op.log(y), d.times(inverse, 0.5)), tail), near)
    series = [
        float(b * Fraction(math.factorial(2 * k + n - 1), math.factorial(2 * k) * math.factorial(n)))
        for k, b in enumerate(bernoulli(TERMS), 1)
    ]
    tail = op.multiply(d.horner(square, series[::-1]), square)
    whole = op.add(op.add(d.number(1 / n), d.times(inverse, 0.5)), tail)
    return op.add(op.multiply(whole, _power(d, inverse, n)), near)


def _power(d: Doubles, x: Expr, n: int) -> Expr:
    return functools.reduce(op.multiply, [x] * n)


def _cotangents(n: int) -> list[int]:
    """Derivative n of the cotangent as a polynomial of it, its highest power first: each is -(1 + c²) times a slope."""
    powers = [0, 1]
    for _ in range(n):
        slope = [k * c for k, c in enumerate(powers)][1:]
        powers = [-(a + b) for a, b in zip([*slope, 0, 0], [0, 0, *slope])]
    return powers[::-1]


def polygamma_of(g: TorchGraph, n: int, x: Expr) -> Expr:
    """Derivative n of digamma, below 1/2 by reflection, 5.15.6."""
    d = Doubles(g)
    back = op.less(x, d.number(0.5))
    z = op.where(back, op.subtract(d.number(1), x), x)
    above = _derivative(d, n, z)
    above = above if n == 0 else d.times(above, (-1) ** (n + 1) * math.factorial(n))
    turn = _fraction_of_turn(d, x)
    angle = op.where(back, turn, d.number(1))
    cot = op.divide(op.cos(angle), op.sin(angle))
    other = d.times(d.horner(cot, [float(c) for c in _cotangents(n)]), math.pi ** (n + 1))
    below = op.subtract(above, other) if n % 2 == 0 else op.negative(op.add(above, other))
    out = op.where(back, below, above)
    whole = op.logical_and(back, op.equal(turn, d.number(0)))
    if n == 0:  # a pole changes its sign
        at = op.where(op.equal(x, d.number(0)), op.negative(d.over(1, x)), d.number(math.nan))
    else:
        at = d.number(math.inf if n % 2 else -math.inf)
    return op.where(whole, at, out)


converts("digamma", "special_psi")(in_doubles(lambda g, x: polygamma_of(g, 0, x)))


@converts("polygamma", "special_polygamma")
def polygamma(g: TorchGraph, node: AtenNode, n: int, x: Expr) -> Expr:
    """Derivative n of digamma."""
    if not 0 <= n <= 64:
        raise node.error(f"derivative {n} of digamma is not computed, but those up to 64", "import.option")
    return in_doubles(lambda g, x: polygamma_of(g, n, x))(g, node, x)


# ---- quantiles


@functools.cache
def _quantiles(kind: str) -> tuple[float, ...]:
    """The Chebyshev coefficients of quantiles z of p: near p = 1/2 of z / (p - 1/2), else of t + z, t² = -2 log p."""
    y = (np.cos(np.pi * (np.arange(64) + 0.5) / 64) + 1) / 2
    if kind == "middle":
        share = np.sqrt(y) * MIDDLE
        values = [_quantile(0.5 + s) / s for s in share.tolist()]
    else:
        low, high = SPANS[kind]
        t = low + (high - low) * y
        values = [v + _quantile_of_log(-v * v / 2) for v in t.tolist()]
    found = np.polynomial.chebyshev.chebfit(2 * y - 1, values, 45)
    last = np.flatnonzero(np.abs(found) > 1e-16 * np.abs(found).max())[-1]
    return tuple(found[: int(last) + 1].tolist())


MIDDLE = 0.4
SPANS = {"side": (2.1, 6.5), "end": (6.5, 38.7)}
"""Of t: p is 0.11 at the lowest and less than the least float64 at the highest."""


def _quantile(p: float) -> float:
    """The z below which the share p of the normal distribution lies, by Newton's steps."""
    z = 0.0
    for _ in range(60):
        over = 0.5 * math.erfc(-z / math.sqrt(2)) - p
        z -= over * math.sqrt(2 * math.pi) * math.exp(z * z / 2)
    return z


def _quantile_of_log(log_p: float) -> float:
    """The same for a small p, by its logarithm."""
    z = -math.sqrt(-2 * log_p) * 0.9
    for _ in range(60):
        share = _log_share(z)
        slope = math.exp(-z * z / 2 - share) / math.sqrt(2 * math.pi)
        z -= (share - log_p) / slope
    return z


def _log_share(z: float) -> float:
    """log of the share below z < 0; the tail is a continued fraction, 7.9."""
    if z > -5:
        return math.log(0.5 * math.erfc(-z / math.sqrt(2)))
    rest = 0.0
    for k in range(200, 0, -1):
        rest = k / (-z + rest)
    return -z * z / 2 - math.log(math.sqrt(2 * math.pi) * (-z + rest))


@converts("special_ndtri")
@in_doubles
def quantile(g: TorchGraph, p: Expr) -> Expr:
    """The z below which the share p of the normal distribution lies."""
    d = Doubles(g)
    half = d.number(0.5)
    side = op.minimum(p, op.subtract(d.number(1), p))
    away = op.subtract(p, half)
    share = op.minimum(d.times(op.abs(away), 1 / MIDDLE), d.number(1))
    middle = op.multiply(away, d.clenshaw(op.multiply(share, share), _quantiles("middle")))
    t = op.sqrt(d.times(op.log(op.maximum(side, d.number(5e-324))), -2))
    tails = []
    for kind, (low, high) in SPANS.items():
        place = op.minimum(op.maximum(d.times(d.plus(t, -low), 1 / (high - low)), d.number(0)), d.number(1))
        tails.append(op.subtract(d.clenshaw(place, _quantiles(kind)), t))
    tail = op.where(op.less(t, d.number(SPANS["end"][0])), *tails)
    tail = op.where(op.greater(away, d.number(0)), op.negative(tail), tail)
    out = op.where(op.less(op.abs(away), d.number(MIDDLE - 0.01)), middle, tail)
    for at, value in ((0, -math.inf), (1, math.inf)):
        out = op.where(op.equal(p, d.number(at)), d.number(value), out)
    return op.where(op.greater_equal(side, d.number(0)), out, d.number(math.nan))
