"""Powers and remainders of floats as straight-line vector code, by fused products.

A power is e^(y log |x|), the logarithm and its product with y being sums of two numbers. Largest error 1 ulp
(tests/codegen/test_generic_powers.py). A remainder is exact.

Choices: docs/choices.md, Numbers.
"""

from __future__ import annotations

import math

from relaylab.codegen.llvm.text import IRFunction, Value, constant
from relaylab.codegen.loops.vector_math import bits, clamp, exp, form, horner, mantissa

# ((log((1 + s) / (1 - s)) / (2 s) - 1) / s^2 - 1/3) / s^2 in s^2, |s| <= 0.172, by Remez' exchange;
# and what 1/3 lacks as a number of so many bits
_SERIES = {
    32: (0.11709878930388175, 0.14273543022123375, 0.20000076314737023),
    64: (
        0.06598876202622857, 0.06628334286454293, 0.07693381772158742, 0.09090892118359718,
        0.11111111260679352, 0.14285714285045928, 0.20000000000001136,
    ),
}  # fmt: skip
_THIRD_LACKS = {32: -9.934107481068821e-09, 64: 1.850371707708594e-17}


def pow(f: IRFunction, x: Value, y: Value, scales: bool) -> Value:
    """x^y, with the signs, zeros and infinities of C; `scales` as in `exp`."""
    size = f.intrinsic("fabs", x)
    factor = clamp(f, y, -(2.0**100), 2.0**100)  # an infinite one times the logarithm of 1 is 0
    high, low = _log(f, size)
    product = f.binary("fmul", factor, high)
    low = f.fma(factor, low, f.fma(factor, high, f.negate(product)))
    low = f.select(f.compare("olt", f.intrinsic("fabs", product), 1e3), low, constant(x.type, 0.0))
    found = exp(f, product, scales, low)
    whole = f.compare("oeq", f.intrinsic("trunc", y), y)
    half = f.binary("fmul", y, 0.5)
    odd = f.binary("and", whole, f.compare("one", f.intrinsic("trunc", half), half))
    sign = constant(bits(f, x).type, -(1 << form(x).bits - 1))
    sign = f.binary("and", bits(f, x), f.select(odd, sign, 0))
    found = f.cast("bitcast", f.binary("or", bits(f, found), sign), x.type)
    between = f.binary("and", f.compare("olt", x, 0.0), f.compare("one", f.intrinsic("trunc", y), y))
    between = f.binary("and", between, f.compare("olt", size, math.inf))
    found = f.select(between, constant(x.type, math.nan), found)
    always = f.binary("or", f.compare("oeq", y, 0.0), f.compare("oeq", x, 1.0))  # even of NaN
    return f.select(always, constant(x.type, 1.0), found)


def _log(f: IRFunction, x: Value) -> tuple[Value, Value]:
    """The logarithm of x >= 0 as a sum of two numbers, 12 bits more than one has; (-inf, 0) of 0."""
    m, exponent = mantissa(f, x)
    over, under = f.binary("fsub", m, 1.0), f.binary("fadd", m, 1.0)
    lost = f.binary("fsub", m, f.binary("fsub", under, 1.0))
    inverse = f.binary("fdiv", constant(x.type, 1.0), under)
    s = f.binary("fmul", over, inverse)
    s_low = f.binary("fmul", f.fma(f.negate(s), lost, f.fma(f.negate(s), under, over)), inverse)
    # z = s^2, p = z (1/3 + z q), and log(m) = 2 s (1 + p)
    z = f.binary("fmul", s, s)
    z_low = f.fma(f.binary("fadd", s, s), s_low, f.fma(s, s, f.negate(z)))
    tail = f.binary("fmul", z, horner(f, z, _SERIES[form(x).bits]))
    inner, inner_low = _sum(f, constant(x.type, 1 / 3), tail)
    p, p_low = _product(f, z, z_low, inner, f.binary("fadd", inner_low, _THIRD_LACKS[form(x).bits]))
    twice, twice_low = f.binary("fadd", s, s), f.binary("fadd", s_low, s_low)
    more, more_low = _product(f, twice, twice_low, p, p_low)
    first, rest = form(x).ln2
    total, low = _sum(f, f.binary("fmul", exponent, first), twice)
    total, lower = _sum(f, total, more)
    low = f.binary("fadd", f.binary("fadd", low, lower), f.binary("fadd", twice_low, more_low))
    total, low = _sum(f, total, f.fma(exponent, constant(x.type, rest), low))
    special = f.binary("or", f.compare("oeq", x, 0.0), f.compare("ueq", x, math.inf))
    end = f.select(f.compare("oeq", x, 0.0), constant(x.type, -math.inf), x)
    return f.select(special, end, total), f.select(special, constant(x.type, 0.0), low)


def _sum(f: IRFunction, a: Value, b: Value) -> tuple[Value, Value]:
    """a + b and what its rounding lost, |a| >= |b| or a = 0."""
    total = f.binary("fadd", a, b)
    return total, f.binary("fsub", b, f.binary("fsub", total, a))


def _product(f: IRFunction, a: Value, a_low: Value, b: Value, b_low: Value) -> tuple[Value, Value]:
    """(a + a_low) * (b + b_low) as such a sum."""
    product = f.binary("fmul", a, b)
    lost = f.fma(a, b, f.negate(product))
    return product, f.fma(a, b_low, f.fma(a_low, b, lost))


def remainder(f: IRFunction, x: Value, y: Value) -> Value:
    """What x leaves when divided by y, with the sign of x, where x / y is not `far`."""
    a, b = f.intrinsic("fabs", x), f.intrinsic("fabs", y)
    quotient = f.intrinsic("trunc", f.binary("fdiv", a, b))
    rest = f.fma(f.negate(quotient), b, a)  # exact: a multiple of the last place of b, and hardly larger
    rest = f.select(f.compare("olt", rest, 0.0), f.binary("fadd", rest, b), rest)  # the quotient was rounded up
    rest = f.select(f.compare("olt", a, b), a, rest)  # b may be infinite
    return f.intrinsic("copysign", rest, x)


def far(f: IRFunction, x: Value, y: Value) -> Value:
    """Where x / y is so large that its whole part is not known."""
    return f.compare("oge", f.intrinsic("fabs", f.binary("fdiv", x, y)), 2.0 ** (form(x).mantissa - 1))
