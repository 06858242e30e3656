"""Arcs and hyperbolic functions of float32 as straight-line vector code, in lanes of float64.

Largest error 1 ulp over dense sweeps (tests/codegen/test_generic_vmath.py). Series of Taylor suffice: 1e-10 is beyond
what a float32 tells, and what cancels in float64 leaves enough. NaN gives NaN, and so does what is outside the domain.
"""

from __future__ import annotations

import math

from relaylab.codegen.llvm.text import IRFunction, Value, constant, lanes, vector
from relaylab.codegen.loops.vector_math import clamp, horner

_SMALL = 1e-4  # below, an odd function whose series begins with x is x
_ARC = [(-1) ** k / (2 * k + 1) for k in range(12, -1, -1)]  # atan(v) / v in v^2, |v| <= tan(pi / 8)
_LOG = [2 / (2 * k + 1) for k in range(6, -1, -1)]  # log((1 + s) / (1 - s)) / s in s^2, |s| <= 0.172
_EXP = [1 / math.factorial(k) for k in range(9, -1, -1)]  # |r| <= ln 2 / 2


def _wide(f: IRFunction, x: Value) -> Value:
    return f.cast("fpext", x, vector("double", lanes(x.type)))


def _narrow(f: IRFunction, x: Value) -> Value:
    return f.cast("fptrunc", x, vector("float", lanes(x.type)))


def _odd(f: IRFunction, x: Value, found: Value) -> Value:
    """`found` for |x|, a float64, with the sign of x; x itself where that is small."""
    small = f.compare("olt", f.intrinsic("fabs", x), _SMALL)
    return f.select(small, x, f.intrinsic("copysign", _narrow(f, found), x))


def _one(x: Value) -> Value:
    return constant(x.type, 1.0)


# ---- arcs


def _angle(f: IRFunction, a: Value, b: Value) -> Value:
    """The angle 0 .. pi / 2 whose tangent is a / b; neither is negative, and not both are 0."""
    middle = f.compare("ogt", a, f.binary("fmul", b, math.tan(math.pi / 8)))
    steep = f.compare("ogt", a, f.binary("fmul", b, math.tan(3 * math.pi / 8)))
    over = f.select(steep, f.negate(b), f.select(middle, f.binary("fsub", a, b), a))
    under = f.select(steep, a, f.select(middle, f.binary("fadd", a, b), b))
    start = f.select(middle, constant(a.type, math.pi / 4), constant(a.type, 0.0))
    start = f.select(steep, constant(a.type, math.pi / 2), start)
    v = f.binary("fdiv", over, under)
    return f.fma(v, horner(f, f.binary("fmul", v, v), _ARC), start)


def atan(f: IRFunction, x: Value) -> Value:
    """The angle whose tangent is x."""
    a = _wide(f, f.intrinsic("fabs", x))
    return _odd(f, x, _angle(f, a, _one(a)))


def asin(f: IRFunction, x: Value) -> Value:
    """The angle whose sine is x."""
    a = _wide(f, f.intrinsic("fabs", x))
    return _odd(f, x, _angle(f, a, f.intrinsic("sqrt", _around_one(f, a))))


def acos(f: IRFunction, x: Value) -> Value:
    """The angle whose cosine is x, by that of half of it: all digits near 1."""
    wide = _wide(f, x)
    a, b = (f.intrinsic("sqrt", f.binary(op, _one(wide), wide)) for op in ("fsub", "fadd"))
    return _narrow(f, f.binary("fmul", _angle(f, a, b), 2.0))


def _around_one(f: IRFunction, a: Value) -> Value:
    """1 - a^2, without cancelling."""
    return f.binary("fmul", f.binary("fsub", _one(a), a), f.binary("fadd", _one(a), a))


# ---- hyperbolic functions


def _exp(f: IRFunction, x: Value) -> Value:
    """e^x of a float64 from -700 to 700."""
    rounding = 1.5 * 2.0**52  # adding it rounds to a whole number, which then is in the low bits
    shifted = f.fma(x, constant(x.type, 1 / math.log(2)), constant(x.type, rounding))
    r = f.fma(f.binary("fsub", shifted, rounding), constant(x.type, -math.log(2)), x)
    whole = vector("i64", lanes(x.type))
    power = f.binary("shl", f.binary("add", f.cast("bitcast", shifted, whole), 1023), 52)
    return f.binary("fmul", horner(f, r, _EXP), f.cast("bitcast", power, x.type))


def _sum_of_powers(f: IRFunction, x: Value, op: str) -> Value:
    """(e^|x| + or - e^-|x|) / 2 as a float64: infinity as a float32 from 89.4 on."""
    e = _exp(f, clamp(f, _wide(f, f.intrinsic("fabs", x)), 0.0, 100.0))
    return f.binary("fmul", f.binary(op, e, f.binary("fdiv", _one(e), e)), 0.5)


def sinh(f: IRFunction, x: Value) -> Value:
    """The hyperbolic sine."""
    return _odd(f, x, _sum_of_powers(f, x, "fsub"))


def cosh(f: IRFunction, x: Value) -> Value:
    """The hyperbolic cosine."""
    return _narrow(f, _sum_of_powers(f, x, "fadd"))


def _log(f: IRFunction, x: Value) -> Value:
    """The natural logarithm of a float64 that is no denormal number, and not 0; NaN of a negative one."""
    whole, root = vector("i64", lanes(x.type)), 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
    above = f.binary("sub", f.cast("bitcast", x, whole), root)
    mantissa = f.binary("add", f.binary("and", above, (1 << 52) - 1), root)
    exponent = f.cast("trunc", f.binary("lshr", above, 32), vector("i32", lanes(x.type)))  # 64 bits are shifted slowly
    exponent = f.cast("sitofp", f.binary("ashr", exponent, 20), x.type)
    m = f.cast("bitcast", mantissa, x.type)
    s = f.binary("fdiv", f.binary("fsub", m, 1.0), f.binary("fadd", m, 1.0))
    found = f.fma(exponent, constant(x.type, math.log(2)), f.binary("fmul", s, horner(f, f.binary("fmul", s, s), _LOG)))
    found = f.select(f.compare("oeq", x, math.inf), x, found)
    return f.select(f.compare("ult", x, 0.0), constant(x.type, math.nan), found)


def asinh(f: IRFunction, x: Value) -> Value:
    """What has x for its hyperbolic sine."""
    a = _wide(f, f.intrinsic("fabs", x))
    return _odd(f, x, _log(f, f.binary("fadd", a, f.intrinsic("sqrt", f.fma(a, a, _one(a))))))


def acosh(f: IRFunction, x: Value) -> Value:
    """What is not negative and has x for its hyperbolic cosine."""
    a = _wide(f, x)
    a = f.select(f.compare("olt", a, 1.0), constant(a.type, math.nan), a)
    root = f.intrinsic("sqrt", f.binary("fmul", f.binary("fsub", a, 1.0), f.binary("fadd", a, 1.0)))
    return _narrow(f, _log(f, f.binary("fadd", a, root)))


def atanh(f: IRFunction, x: Value) -> Value:
    """What has x for its hyperbolic tangent; infinite at 1 and -1."""
    a = _wide(f, f.intrinsic("fabs", x))
    quotient = f.binary("fdiv", f.binary("fadd", _one(a), a), f.binary("fsub", _one(a), a))
    return _odd(f, x, f.binary("fmul", _log(f, quotient), 0.5))
