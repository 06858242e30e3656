"""Arcs and hyperbolic functions as straight-line vector code, in lanes of float64.

Largest error of float32 1 ulp, of atan and cosh of float64 2, of its others 3, over dense sweeps
(tests/codegen/test_generic_vmath.py, test_generic_doubles.py). NaN gives NaN, and so does what is outside the domain.
"""

from __future__ import annotations

import math

from relaylab.codegen.llvm.text import IRFunction, Value, constant, lanes, vector
from relaylab.codegen.loops.vector_math import form, horner, log, mantissa, odd, quarter

# (atan(v) / v - 1) / v^2 in v^2, |v| <= tan(pi / 8), by Remez' exchange
_ARC = (
    0.015195403715800877, -0.03347472440667474, 0.04503561818841343, -0.052184076624326066, 0.05877022343257074,
    -0.06666226817131853, 0.07692282763028717, -0.0909090814473947, 0.11111111088184314, -0.1428571428538813,
    0.1999999999999767, -0.33333333333333326,
)  # fmt: skip
# (asin(v) / v - 1) / v^2 in v^2, |v| <= 1/2, for float32
_SHORT_ARC = (
    0.03469285041058136, 0.007469212273874121, 0.024618339938562835, 0.030110255292232147, 0.044660163452473506,
    0.07499948155886967, 0.16666667189848497,
)  # fmt: skip
# (log(1 + m) - m + m^2 / 2) / m^3, sqrt 1/2 <= 1 + m < sqrt 2, for float32
_SHORT_LOG = (
    -0.06151514718359961, 0.10743440759668155, -0.10794041559651629, 0.110120411996367, -0.12425091364595266,
    0.14286944541376065, -0.16669434664080027, 0.20000035805608155, -0.24999966035487656, 0.3333333286341618,
)  # fmt: skip
_HALVES = (math.pi / 4, 3.061616997868383e-17)  # and what it lacks


def _wide(f: IRFunction, x: Value) -> Value:
    return f.cast("fpext", x, vector("double", lanes(x.type))) if form(x).bits == 32 else x


def _size(f: IRFunction, x: Value) -> Value:
    return _wide(f, f.intrinsic("fabs", x))


def _narrow(f: IRFunction, found: Value, x: Value) -> Value:
    return f.cast("fptrunc", found, x.type) if form(x).bits == 32 else found


def _odd(f: IRFunction, x: Value, found: Value) -> Value:
    return odd(f, x, _narrow(f, found, x))


def _one(x: Value) -> Value:
    return constant(x.type, 1.0)


# ---- arcs


def _angle(f: IRFunction, a: Value, b: Value) -> Value:
    """The angle 0 .. pi / 2 whose tangent is a / b; neither is negative, and not both are 0."""
    middle = f.compare("ogt", a, f.binary("fmul", b, math.tan(math.pi / 8)))
    steep = f.compare("ogt", a, f.binary("fmul", b, math.tan(3 * math.pi / 8)))

    def chosen(flat: Value, between: Value, up: Value) -> Value:
        return f.select(steep, up, f.select(middle, between, flat))

    def start(part: float) -> Value:
        return chosen(*(constant(a.type, part * k) for k in range(3)))

    over = chosen(a, f.binary("fsub", a, b), f.negate(b))
    under = chosen(b, f.binary("fadd", a, b), a)
    first, rest = map(start, _HALVES)
    v = f.binary("fdiv", over, under)
    square = f.binary("fmul", v, v)
    tail = f.fma(f.binary("fmul", v, square), horner(f, square, _ARC), rest)
    return f.binary("fadd", first, f.binary("fadd", v, tail))


def atan(f: IRFunction, x: Value) -> Value:
    """The angle whose tangent is x."""
    a = _size(f, x)
    return _odd(f, x, _angle(f, a, _one(a)))


def _short_arc(f: IRFunction, a: Value) -> tuple[Value, Value]:
    """Whether a number 0 .. 1 is above 1/2, and the angle whose sine it is, or half of that whose cosine it is then; in
    float64 with digits of a float32.
    """
    steep = f.compare("ogt", a, 0.5)
    square = f.select(steep, f.fma(a, constant(a.type, -0.5), constant(a.type, 0.5)), f.binary("fmul", a, a))
    v = f.select(steep, f.intrinsic("sqrt", square), a)
    return steep, f.fma(f.binary("fmul", v, square), horner(f, square, _SHORT_ARC), v)


def asin(f: IRFunction, x: Value) -> Value:
    """The angle whose sine is x."""
    a = _size(f, x)
    if form(x).bits == 32:
        steep, arc = _short_arc(f, a)
        rest = f.fma(arc, constant(a.type, -2.0), constant(a.type, math.pi / 2))
        return _odd(f, x, f.select(steep, rest, arc))
    around_one = f.binary("fmul", f.binary("fsub", _one(a), a), f.binary("fadd", _one(a), a))  # without cancelling
    return _odd(f, x, _angle(f, a, f.intrinsic("sqrt", around_one)))


def acos(f: IRFunction, x: Value) -> Value:
    """The angle whose cosine is x, by that of half of it: all digits near 1."""
    wide = _wide(f, x)
    if form(x).bits == 32:
        steep, arc = _short_arc(f, f.intrinsic("fabs", wide))
        left = f.compare("olt", wide, 0.0)
        twice, right = f.binary("fmul", arc, 2.0), constant(wide.type, math.pi / 2)
        far = f.select(left, f.binary("fsub", constant(wide.type, math.pi), twice), twice)
        return _narrow(f, f.select(steep, far, f.binary("fsub", right, f.select(left, f.negate(arc), arc))), x)
    a, b = (f.intrinsic("sqrt", f.binary(op, _one(wide), wide)) for op in ("fsub", "fadd"))
    return _narrow(f, f.binary("fmul", _angle(f, a, b), 2.0), x)


# ---- hyperbolic functions


def sinh(f: IRFunction, x: Value) -> Value:
    """The hyperbolic sine."""
    q = quarter(f, _size(f, x), 710.7)
    last = f.binary("fdiv", f.binary("fmul", q, 0.5), f.binary("fadd", q, 0.25))
    return _odd(f, x, f.fma(q, constant(q.type, 2.0), last))


def cosh(f: IRFunction, x: Value) -> Value:
    """The hyperbolic cosine."""
    q = f.binary("fadd", quarter(f, _size(f, x), 710.7), 0.25)
    return _narrow(f, f.fma(q, constant(q.type, 2.0), f.binary("fdiv", constant(q.type, 0.125), q)), x)


def _short_log(f: IRFunction, x: Value) -> Value:
    """log x of float64 with digits of a float32; x is 1 or more, or no number."""
    m, exponent = mantissa(f, x, normal=True)
    m = f.binary("fsub", m, 1.0)
    square = f.binary("fmul", m, m)
    tail = f.fma(f.binary("fmul", m, square), horner(f, m, _SHORT_LOG), f.fma(square, constant(x.type, -0.5), m))
    found = f.fma(exponent, constant(x.type, math.log(2)), tail)
    return f.select(f.compare("olt", x, math.inf), found, x)


def _log_beyond(f: IRFunction, x: Value, near_zero: bool) -> Value:
    """log(1 + x); with all digits where it is near 0, which a float32 does not need."""
    near = f.binary("fadd", x, 1.0)
    if not near_zero:
        return _short_log(f, near)
    lost = f.binary("fdiv", f.binary("fsub", x, f.binary("fsub", near, 1.0)), near)
    lost = f.select(f.compare("olt", x, 2.0**53), lost, constant(x.type, 0.0))  # infinity less itself is no number
    return f.binary("fadd", log(f, near), lost)


def _of_sum(f: IRFunction, a: Value, rest: Value, near_zero: bool) -> Value:
    """log(1 + a + rest), `rest` coming close to a: it is not looked at where its square is infinite."""
    if not near_zero:
        return _log_beyond(f, f.binary("fadd", a, rest), near_zero)
    huge = f.compare("ogt", a, 1e100)
    found = _log_beyond(f, f.select(huge, a, f.binary("fadd", a, rest)), near_zero)
    return f.binary("fadd", found, f.select(huge, constant(a.type, math.log(2)), constant(a.type, 0.0)))


def asinh(f: IRFunction, x: Value) -> Value:
    """What has x for its hyperbolic sine."""
    a, near_zero = _size(f, x), form(x).bits == 64
    root = f.intrinsic("sqrt", f.fma(a, a, _one(a)))
    rest = (
        f.binary("fdiv", f.binary("fmul", a, a), f.binary("fadd", root, 1.0))
        if near_zero
        else f.binary("fsub", root, 1.0)
    )
    return _odd(f, x, _of_sum(f, a, rest, near_zero))


def acosh(f: IRFunction, x: Value) -> Value:
    """What is not negative and has x for its hyperbolic cosine."""
    a = f.binary("fsub", _wide(f, x), 1.0)
    a = f.select(f.compare("olt", a, 0.0), constant(a.type, math.nan), a)
    rest = f.intrinsic("sqrt", f.binary("fmul", a, f.binary("fadd", a, 2.0)))
    return _narrow(f, _of_sum(f, a, rest, form(x).bits == 64), x)


def atanh(f: IRFunction, x: Value) -> Value:
    """What has x for its hyperbolic tangent; infinite at 1 and -1."""
    a = _size(f, x)
    quotient = f.binary("fdiv", f.binary("fadd", a, a), f.binary("fsub", _one(a), a))
    quotient = f.select(f.compare("ogt", a, 1.0), constant(a.type, math.nan), quotient)
    return _odd(f, x, f.binary("fmul", _log_beyond(f, quotient, form(x).bits == 64), 0.5))
