"""Elementary functions of float32 as straight-line vector code, for every instruction set.

Largest relative errors over dense sweeps (tests/codegen/test_generic_vmath.py); denormal numbers are kept:

    exp      2 ulp    Cody-Waite reduction by ln 2 in two parts, polynomial of degree 6
    log      2 ulp    (log2, log10: 3) mantissa in [sqrt 1/2, sqrt 2), polynomial of degree 9
    tanh     6 ulp    odd rational function of degree 13/6, constant from |x| = 9 on
    sigmoid  4 ulp    1 / (1 + exp(-x))
    erf      8 ulp    odd rational function of degree 13/8, constant from |x| = 4 on
    sin, cos 2 ulp    (tan: 4) Cody-Waite reduction by pi / 2 in float64, polynomials of degree 7 and 8

NaN gives NaN. Coefficients of log, sin and cos: Cephes; of tanh and erf: the rational approximations used by Eigen.
What is neither here nor in `vector_arcs` (pow, and all of float64) is a call of the C library per lane, see
`relaylab.codegen.loops.scalars`, and so are sine, cosine and tangent of angles beyond `FAR`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from relaylab.codegen.llvm.text import IRFunction, Value, constant, lanes, vector

_ROUND = 12582912.0  # 1.5 * 2^23: adding it rounds a float32 to an integer, which then is in the low bits


def horner(f: IRFunction, x: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial with these coefficients, highest power first, by fused multiply-adds."""
    total = constant(x.type, coefficients[0])
    for c in coefficients[1:]:
        total = f.fma(total, x, constant(x.type, c))
    return total


def clamp(f: IRFunction, x: Value, low: float, high: float) -> Value:
    """`x` limited to low .. high; NaN stays NaN."""
    x = f.select(f.compare("ogt", x, high), constant(x.type, high), x)
    return f.select(f.compare("olt", x, low), constant(x.type, low), x)


# Chebyshev fit of (e^r - 1 - r) / r^2 on |r| <= ln 2 / 2, then the two exact terms.
_EXP = [0.0013946137623861432, 0.00836910866200924, 0.041666269302368164, 0.16666516661643982, 0.5, 1.0, 1.0]


def exp(f: IRFunction, x: Value, avx512: bool) -> Value:
    """e^x; `avx512` says that the target has its scaling by powers of two."""
    # Beyond these e^x is 0 and infinity in float32, and 2^n stays within what the scaling can do.
    p, n, shifted = _reduced(f, clamp(f, x, -104.0, 89.0))
    if avx512 and x.type == "<16 x float>":
        return _scalef(f, p, n)
    return _scale(f, p, f.cast("bitcast", shifted, _integers(x.type)))


def _reduced(f: IRFunction, x: Value) -> tuple[Value, Value, Value]:
    """p and n of e^x = p * 2^n, and n in the low bits of a float32."""
    shifted = f.fma(x, constant(x.type, 1.0 / math.log(2.0)), constant(x.type, _ROUND))
    n = f.binary("fsub", shifted, _ROUND)
    # ln 2 as a part of few bits, whose product with n is exact, and the rest (Cody and Waite).
    r = f.fma(n, constant(x.type, -0.693359375), x)
    r = f.fma(n, constant(x.type, 2.12194440e-4), r)
    return horner(f, r, _EXP), n, shifted


def _scalef(f: IRFunction, p: Value, n: Value) -> Value:
    others, every, rounding = constant(p.type, 0), constant("i16", -1), constant("i32", 4)
    return f.pure_call("llvm.x86.avx512.mask.scalef.ps.512", p.type, p, n, others, every, rounding)


def _scale(f: IRFunction, p: Value, bits: Value) -> Value:
    """p * 2^n, n being in the low bits of `bits`, in two steps because 2^n alone may overflow."""
    n = f.binary("ashr", f.binary("shl", bits, 9), 9)
    half = f.binary("ashr", n, 1)
    return f.binary("fmul", f.binary("fmul", p, _power(f, half)), _power(f, f.binary("sub", n, half)))


def _power(f: IRFunction, n: Value) -> Value:
    """2^n as a float32, -126 <= n <= 127."""
    return f.cast("bitcast", f.binary("shl", f.binary("add", n, 127), 23), vector("float", lanes(n.type)))


def _integers(type: str) -> str:
    return vector("i32", lanes(type))


_LOG = [
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
]  # fmt: skip


def log(f: IRFunction, x: Value, base: float = math.e) -> Value:
    """The logarithm of x to `base` (e, 2 or 10); -inf at 0, NaN below."""
    denormal = f.compare("olt", x, 2.0**-126)
    whole = _integers(x.type)
    scaled = f.select(denormal, f.binary("fmul", x, 2.0**23), x)
    root = [constant(whole, 0x3F3504F3 + (shift << 23)) for shift in (23, 0)]  # the bits of sqrt(1/2), scaled too
    above = f.binary("sub", f.cast("bitcast", scaled, whole), f.select(denormal, *root))
    exponent = f.cast("sitofp", f.binary("ashr", above, 23), x.type)
    mantissa = f.binary("add", f.binary("and", above, 0x7FFFFF), 0x3F3504F3)
    m = f.binary("fsub", f.cast("bitcast", mantissa, x.type), 1.0)
    square = f.binary("fmul", m, m)
    tail = f.binary("fmul", f.binary("fmul", horner(f, m, _LOG), m), square)
    result = _join_log(f, base, m, f.fma(square, constant(x.type, -0.5), tail), exponent)
    result = f.select(f.compare("oeq", x, math.inf), x, result)
    result = f.select(f.compare("oeq", x, 0.0), constant(x.type, -math.inf), result)
    # All bits set are NaN: an `or` is cheaper than a selection.
    outside = f.cast("sext", f.compare("ult", x, 0.0), whole)
    return f.cast("bitcast", f.binary("or", f.cast("bitcast", result, whole), outside), x.type)


def _join_log(f: IRFunction, base: float, m: Value, tail: Value, exponent: Value) -> Value:
    """(m + tail + exponent * ln 2) / ln(base), small terms first."""
    if base == math.e:
        low = f.fma(exponent, constant(m.type, -2.12194440e-4), tail)
        return f.fma(exponent, constant(m.type, 0.693359375), f.binary("fadd", m, low))
    factor = 1.0 / math.log(base)
    high = math.floor(factor * 256) / 256  # few bits, so that m * high loses little
    low = f.fma(tail, constant(m.type, factor), f.binary("fmul", m, factor - high))
    if base == 2:
        return f.binary("fadd", exponent, f.fma(m, constant(m.type, high), low))
    low = f.fma(exponent, constant(m.type, math.log10(2.0) - 0.30078125), low)
    return f.fma(exponent, constant(m.type, 0.30078125), f.fma(m, constant(m.type, high), low))


_TANH_ODD = [
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
    1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
]  # fmt: skip
_TANH_EVEN = [1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03]


def tanh(f: IRFunction, x: Value) -> Value:
    """The hyperbolic tangent."""
    return _odd_rational(f, x, 7.90531110763549805, _TANH_ODD, _TANH_EVEN)


_ERF_ODD = [
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
]  # fmt: skip
_ERF_EVEN = [
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02,
]  # fmt: skip


def erf(f: IRFunction, x: Value) -> Value:
    """The error function."""
    return _odd_rational(f, x, 4.0, _ERF_ODD, _ERF_EVEN)


def _odd_rational(f: IRFunction, x: Value, limit: float, odd: Sequence[float], even: Sequence[float]) -> Value:
    x = clamp(f, x, -limit, limit)
    square = f.binary("fmul", x, x)
    # Both sides times 2^30: the numerator of a denormal number is none, so that only the quotient is rounded.
    odd, even = ([c * 2.0**30 for c in side] for side in (odd, even))
    return f.binary("fdiv", f.binary("fmul", horner(f, square, odd), x), horner(f, square, even))


def sigmoid(f: IRFunction, x: Value, avx512: bool) -> Value:
    """1 / (1 + e^-x); 0 far below -88.7, where it is less than 2^-127."""
    if avx512 and x.type == "<16 x float>":
        return f.binary("fdiv", constant(x.type, 1.0), f.binary("fadd", exp(f, f.negate(x), avx512), 1.0))
    # Half of all: 2^(n - 1) is one number, 0 where it is nothing beside 1/2 and infinity where the quotient is 0.
    p, _, shifted = _reduced(f, clamp(f, f.negate(x), -87.0, 89.5))
    power = f.binary("add", f.binary("shl", f.cast("bitcast", shifted, _integers(x.type)), 23), 126 << 23)
    half = f.binary("fmul", p, f.cast("bitcast", power, x.type))
    return f.binary("fdiv", constant(x.type, 0.5), f.binary("fadd", half, 0.5))


_SIN = [-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1]
_COS = [2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2]
_RIGHT_ANGLE = [1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21]  # 33, 33 and 53 bits


def angle(f: IRFunction, x: Value) -> tuple[Value, Value, Value]:
    """Sine and cosine of what is left of |x| < `FAR` after whole right angles, and their number, modulo 2^32."""
    wide = f.cast("fpext", x, vector("double", lanes(x.type)))
    rounding = 1.5 * 2.0**52
    shifted = f.fma(wide, constant(wide.type, 2 / math.pi), constant(wide.type, rounding))
    turns = f.binary("fsub", shifted, rounding)
    for part in _RIGHT_ANGLE:  # the products with the first two are exact, fused or not
        wide = f.fma(turns, constant(wide.type, -part), wide)
    whole = f.cast("bitcast", shifted, vector("i64", lanes(x.type)))
    number = f.cast("trunc", whole, _integers(x.type))
    r = f.cast("fptrunc", wide, x.type)
    square = f.binary("fmul", r, r)
    sine = f.fma(f.binary("fmul", horner(f, square, _SIN), square), r, r)
    cosine = f.fma(
        f.binary("fmul", horner(f, square, _COS), square),
        square,
        f.fma(square, constant(x.type, -0.5), constant(x.type, 1.0)),
    )
    small = f.compare("olt", f.intrinsic("fabs", x), 2.0**-12)  # -0.0 stays what it is
    return f.select(small, x, sine), cosine, number


FAR = 1e6
"""From here on an angle has too many right angles for `angle`."""


def sin(f: IRFunction, x: Value, ahead: int = 0) -> Value:
    """The sine of |x| < `FAR`, `ahead` right angles on."""
    sine, cosine, number = angle(f, x)
    number = f.binary("add", number, ahead) if ahead else number
    found = f.select(f.compare("ne", f.binary("and", number, 1), 0), cosine, sine)
    sign = f.binary("shl", f.binary("and", number, 2), 30)
    return f.cast("bitcast", f.binary("xor", f.cast("bitcast", found, sign.type), sign), x.type)


def cos(f: IRFunction, x: Value) -> Value:
    """The cosine of |x| < `FAR`."""
    return sin(f, x, 1)


def tan(f: IRFunction, x: Value) -> Value:
    """The tangent of |x| < `FAR`."""
    sine, cosine, number = angle(f, x)
    odd = f.compare("ne", f.binary("and", number, 1), 0)
    return f.binary("fdiv", f.select(odd, f.negate(cosine), sine), f.select(odd, sine, cosine))
