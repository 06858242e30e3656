"""Functions of mathematical physics, each a few Chebyshev series; the coefficients are found here, from integrals.

Values are computed in float64, so that a float32 is right but for its last rounding. The integrals are sums of evenly
spaced values, which converge faster than any power for smooth functions that are periodic or fade (Trefethen and
Weideman, 2014). Formulas: NIST Digital Library of Mathematical Functions, chapter 10.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from relaylab import op
from relaylab.frontend.pytorch.graph import TorchGraph
from relaylab.frontend.pytorch.operators.functions.doubles import Doubles, in_doubles
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Expr

Array = np.ndarray
Curve = Callable[[Array], Array]
NODES = 44
"""Places at which a function is known when its series is found."""
NEAR = 8.0
"""Up to it J and I are series in the square of x, beyond it in the reciprocal; K from 2 on."""
EULER = 0.5772156649015329


# ---- far from 0: functions of t between 0 and 1 that times an elementary one are I, K and H


def _modified(n: int) -> Curve:
    """exp(-x) sqrt(x) I_n(x), x being 8 / t, 10.32.3."""
    half = np.pi * np.arange(2048) / 2048

    def values(t: Array) -> Array:
        x = NEAR / t[:, None]
        return (np.exp(-2 * x * np.sin(half) ** 2) * np.cos(2 * n * half)).mean(1) * np.sqrt(x[:, 0])

    return values


def _third(n: int) -> Curve:
    """exp(x) sqrt(x) K_n(x), x being 2 / t, 10.32.9."""

    def values(t: Array) -> Array:
        x = 2 / t[:, None]
        far = np.arccosh(1 + 40 / x)
        place = far * (np.arange(200) / 200)
        parts = np.exp(-2 * x * np.sinh(place / 2) ** 2) * np.cosh(n * place)
        return (parts.sum(1) - parts[:, 0] / 2) * (far * np.sqrt(x))[:, 0] / 200

    return values


def _hankel(n: int) -> Callable[[Array], Array]:
    """P + iQ at x = 8 / sqrt(t): J + iY = sqrt(2 / (pi x)) exp(i (x - n pi / 2 - pi / 4)) (P + iQ), 10.17."""

    def values(t: Array) -> Array:
        u = np.arange(300) * 0.025
        weights = np.where(u == 0, 0.5, 1.0) * np.exp(-u * u) * u ** (2 * n) * 0.05 / math.gamma(n + 0.5)
        return ((1 + 1j * u * u * np.sqrt(t[:, None]) / (2 * NEAR)) ** (n - 0.5) * weights).sum(1)

    return values


# ---- near 0: powers of z = x² / 4


@functools.cache
def _powers(n: int, sign: int, harmonic: bool, terms: int) -> tuple[Fraction, ...]:
    """sign^k / (k! (k + n)!), 10.2.2; `harmonic`: times the harmonic numbers of k and k + n, 10.8.1."""
    found: list[Fraction] = []
    for k in range(terms):
        sums = [sum((Fraction(1, i) for i in range(1, m + 1)), Fraction(0)) for m in (k, k + n)]
        whole = Fraction(sign**k, math.factorial(k) * math.factorial(k + n))
        found.append(whole * sum(sums) if harmonic else whole)
    return tuple(found)


def _exactly(n: int, harmonic: bool) -> Curve:
    """The alternating sum of powers at z = 16 t, without rounding errors."""

    def at(t: float) -> float:
        total = Fraction(0)
        for c in reversed(_powers(n, -1, harmonic, 34)):
            total = (total * Fraction(16 * t) + c).limit_denominator(10**40)
        return float(total)

    return lambda t: np.array([at(float(v)) for v in t])


CURVES: dict[str, Callable[[int], Curve]] = {
    "modified": _modified,
    "third": _third,
    "real": lambda n: lambda t: np.real(_hankel(n)(t)),
    "imaginary": lambda n: lambda t: np.imag(_hankel(n)(t)) / np.sqrt(t),
    "powers": lambda n: _exactly(n, False),
    "harmonic": lambda n: _exactly(n, True),
}
"""What the series are of: functions of t between 0 and 1."""


@functools.cache
def chebyshev(curve: str, n: int) -> tuple[float, ...]:
    """The Chebyshev coefficients of a curve, as many as float64 has digits for."""
    turns = np.outer(np.arange(NODES), 2 * np.arange(NODES) + 1) % (4 * NODES)  # small angles are exact ones
    waves = np.cos(np.pi / (2 * NODES) * turns)
    found = waves @ CURVES[curve](n)((waves[1] + 1) / 2) * 2 / NODES
    found[0] /= 2
    last = np.flatnonzero(np.abs(found) > 1e-16 * np.abs(found).max())[-1]
    return tuple(found[: int(last) + 1].tolist())


# ---- in the program, in float64


def scaled_first_kind(d: Doubles, x: Expr, n: int) -> tuple[Expr, Expr, Expr]:
    """Of |x|: whether it is near, I_n there, and exp(-|x|) I_n elsewhere; 22 powers are enough up to 8."""
    size = op.abs(x)
    near = op.less(size, d.number(NEAR))
    inside = op.minimum(size, d.number(NEAR))
    powers = [float(c) for c in _powers(n, 1, False, 30)[::-1]]
    low = d.horner(d.times(op.multiply(inside, inside), 0.25), powers)
    low = op.multiply(low, d.times(inside, 0.5)) if n else low
    outside = op.maximum(size, d.number(NEAR))
    high = op.divide(d.clenshaw(d.over(NEAR, outside), chebyshev("modified", n)), op.sqrt(outside))
    return near, low, high


def modified_first(g: TorchGraph, x: Expr, n: int, scaled: bool) -> Expr:
    """I_n(x), or exp(-|x|) I_n(x)."""
    d = Doubles(g)
    near, low, high = scaled_first_kind(d, x, n)
    size = op.abs(x)
    if scaled:
        out = op.where(near, op.multiply(low, op.exp(op.negative(size))), high)
    else:
        half = op.exp(d.times(size, 0.5))  # exp(x) overflows before I does
        out = op.where(near, low, op.multiply(op.multiply(high, half), half))
    return op.where(op.less(x, d.number(0)), op.negative(out), out) if n else out


def modified_second(g: TorchGraph, x: Expr, n: int, scaled: bool) -> Expr:
    """K_n(x), or exp(x) K_n(x): infinite at 0, no number below."""
    d = Doubles(g)
    inside = op.maximum(op.minimum(x, d.number(2)), d.number(1e-300))
    outside = op.maximum(x, d.number(2))
    z = d.times(op.multiply(inside, inside), 0.25)
    line = d.plus(op.log(d.times(inside, 0.5)), EULER)
    first, rest = (d.horner(z, [float(c) for c in _powers(n, 1, kind, 16)[::-1]]) for kind in (False, True))
    if n:
        edge = op.multiply(d.times(inside, 0.5), op.subtract(op.multiply(line, first), d.times(rest, 0.5)))
        low = op.add(d.over(1, inside), edge)
    else:
        low = op.subtract(d.times(rest, 0.5), op.multiply(line, first))
    high = op.divide(d.clenshaw(d.over(2, outside), chebyshev("third", n)), op.sqrt(outside))
    near = op.less(x, d.number(2))
    if scaled:
        low = op.multiply(low, op.exp(inside))
    else:
        high = op.multiply(high, op.exp(op.negative(outside)))
    out = op.where(near, low, op.where(op.isinf(x), d.number(0), high))
    return _beside_zero(d, x, out, math.inf)


def _beside_zero(d: Doubles, x: Expr, out: Expr, at: float) -> Expr:
    """`out` above 0, `at` there, and no number below it."""
    zero = d.number(0)
    out = op.where(op.equal(x, zero), d.number(at), out)
    return op.where(op.logical_or(op.less(x, zero), op.isnan(x)), d.number(math.nan), out)


def _wave(d: Doubles, x: Expr, n: int, second: bool) -> Expr:
    """J_n or Y_n from 8 on: sqrt(2 / (pi x)) times P cos - Q sin, or P sin + Q cos, of x - n pi / 2 - pi / 4."""
    x = op.maximum(x, d.number(NEAR))
    t = op.multiply(d.over(NEAR, x), d.over(NEAR, x))
    p = d.clenshaw(t, chebyshev("real", n))
    q = op.multiply(d.clenshaw(t, chebyshev("imaginary", n)), d.over(NEAR, x))
    sine, cosine = op.sin(x), op.cos(x)
    plus, minus = op.add(sine, cosine), op.subtract(sine, cosine)  # sqrt(2) times those of x - pi / 4
    c, s = (minus, op.negative(plus)) if n else (plus, minus)
    wave = op.add(op.multiply(p, s), op.multiply(q, c)) if second else op.subtract(op.multiply(p, c), op.multiply(q, s))
    return op.divide(wave, op.sqrt(d.times(x, math.pi)))


def bessel_first(g: TorchGraph, x: Expr, n: int) -> Expr:
    """J_n(x)."""
    d = Doubles(g)
    size = op.abs(x)
    inside = op.minimum(size, d.number(NEAR))
    share = d.times(inside, 1 / NEAR)
    low = d.clenshaw(op.multiply(share, share), chebyshev("powers", n))
    low = op.multiply(low, d.times(inside, 0.5)) if n else low
    out = op.where(op.less(size, d.number(NEAR)), low, _wave(d, size, n, False))
    out = op.where(op.less(x, d.number(0)), op.negative(out), out) if n else out
    return op.where(op.isnan(x), x, out)


def bessel_second(g: TorchGraph, x: Expr, n: int) -> Expr:
    """Y_n(x): minus infinity at 0, no number below."""
    d = Doubles(g)
    inside = op.maximum(op.minimum(x, d.number(NEAR)), d.number(1e-300))
    share = d.times(inside, 1 / NEAR)
    t = op.multiply(share, share)
    first, rest = (d.clenshaw(t, chebyshev(name, n)) for name in ("powers", "harmonic"))
    line = d.times(d.plus(op.log(d.times(inside, 0.5)), EULER), 2)
    low = op.subtract(op.multiply(line, first), rest)
    if n:
        low = op.subtract(op.multiply(low, d.times(inside, 0.5)), d.over(2, inside))
    out = op.where(op.less(x, d.number(NEAR)), d.times(low, 1 / math.pi), _wave(d, x, n, True))
    return _beside_zero(d, x, out, -math.inf)


for _n in (0, 1):
    converts(f"special_bessel_j{_n}")(in_doubles(lambda g, x, n=_n: bessel_first(g, x, n)))
    converts(f"special_bessel_y{_n}")(in_doubles(lambda g, x, n=_n: bessel_second(g, x, n)))
    plain = in_doubles(lambda g, x, n=_n: modified_first(g, x, n, False))
    converts(f"special_modified_bessel_i{_n}", *(("i0", "special_i0") if _n == 0 else ("special_i1",)))(plain)
    converts(f"special_i{_n}e")(in_doubles(lambda g, x, n=_n: modified_first(g, x, n, True)))
    converts(f"special_modified_bessel_k{_n}")(in_doubles(lambda g, x, n=_n: modified_second(g, x, n, False)))
    converts(f"special_scaled_modified_bessel_k{_n}")(in_doubles(lambda g, x, n=_n: modified_second(g, x, n, True)))


def spherical(g: TorchGraph, x: Expr) -> Expr:
    """sin(x) / x, 10.49.3."""
    d = Doubles(g)
    away = op.logical_not(op.logical_or(op.equal(x, d.number(0)), op.isinf(x)))
    some = op.where(away, x, d.number(1))
    edge = op.where(op.isinf(x), d.number(0), d.number(1))
    return op.where(away, op.divide(op.sin(some), some), edge)


converts("special_spherical_bessel_j0")(in_doubles(spherical))
