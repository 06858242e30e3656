"""Elementary functions as straight-line vector code, for every instruction set; of float64 where products fuse.

Largest errors in units of the last place, over dense sweeps (tests/codegen/test_generic_vmath.py,
test_generic_doubles.py); denormal numbers are kept:

            float32  float64
    exp           2        1    Cody-Waite reduction by ln 2 in two parts, polynomial of degree 6 or 11
    log           2        1    mantissa in [sqrt 1/2, sqrt 2); polynomial of degree 9, or of (m - 1) / (m + 1)
    log2, log10   3        1    the same, times 1 / ln(base) as a sum of two numbers
    tanh          6        3    odd rational function of degree 13/6, 1 from |x| = 9.7 on, or by e^2x - 1
    sigmoid       4        3    1 / (1 + exp(-x))
    erf           8        2    odd rational function of degree 13/8, constant from |x| = 4 on, or two polynomials
    sin, cos      2        1    Cody-Waite reduction by pi / 2 in float64, polynomials
    tan           4        3    their quotient

NaN gives NaN. Coefficients of float32's log, sin and cos: Cephes; of its tanh and erf: the rational approximations used
by Eigen; of float64: minimax polynomials, by Remez' exchange. What float64 does is as in fdlibm, without branches.
Without fused products float64 calls the C library per lane, see `relaylab.codegen.loops.scalars`, and so do sine,
cosine and tangent of angles beyond `FAR`.

Choices: docs/choices.md, Numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relaylab.codegen.llvm.text import IRFunction, Value, constant, element, lanes, vector


@dataclass(frozen=True, slots=True)
class _Form:
    """A format of IEEE 754, and what is told by as many digits."""

    bits: int
    mantissa: int  # its stored bits
    bias: int  # of the exponent
    root: int  # the bits of sqrt(1/2)
    ln2: tuple[float, float]  # a part of few bits, whose products with exponents are exact, and the rest (Cody, Waite)
    limits: tuple[float, float]  # beyond these e^x is 0 and infinity
    exp: Sequence[float]  # e^r on |r| <= ln 2 / 2
    sin: Sequence[float]  # (sin(r) - r) / r^3 in r^2, |r| <= pi / 4
    cos: Sequence[float]  # (cos(r) - 1 + r^2 / 2) / r^4 in r^2
    small: float  # below, an odd function whose series begins with x is x
    scale: str  # of AVX-512

    @property
    def rounding(self) -> float:
        """Adding it rounds to an integer, which then is in the low bits."""
        return 1.5 * 2.0**self.mantissa


# Exponentials: a fit of (e^r - 1 - r) / r^2, then the two exact terms.
# fmt: off
_FORMS = {
    "float": _Form(
        32, 23, 127, 0x3F3504F3, (0.693359375, -2.12194440e-4), (-104.0, 89.0),
        (0.0013946137623861432, 0.00836910866200924, 0.041666269302368164, 0.16666516661643982, 0.5, 1.0, 1.0),
        (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1),
        (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2),
        2.0**-12, "ps.512",
    ),
    "double": _Form(
        64, 52, 1023, 0x3FE6A09E667F3BCD, (0.6931471805598903, 5.497923018708371e-14), (-746.0, 710.0),
        (2.5117742317961773e-08, 2.763127558453077e-07, 2.755721665605041e-06, 2.48014899581579e-05,
         0.0001984126991703058, 0.0013888888946997954, 0.008333333333307335, 0.041666666666515494,
         0.166666666666667, 0.5000000000000012, 1.0, 1.0),
        (1.5896668130918154e-10, -2.5050755990513627e-08, 2.755731367885964e-06, -0.00019841269829771744,
         0.008333333333322372, -0.16666666666666632),
        (-1.1359561153970837e-11, 2.0875721659445403e-09, -2.755731434092838e-07, 2.480158728944445e-05,
         -0.0013888888888874066, 0.0416666666666666),
        2.0**-27, "pd.512",
    ),
}
# fmt: on


def form(x: Value) -> _Form:
    """The format of its lanes."""
    return _FORMS[element(x.type)]


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


def integers(x: Value) -> str:
    """The integers of as many bits as the lanes."""
    return vector(f"i{form(x).bits}", lanes(x.type))


def bits(f: IRFunction, x: Value) -> Value:
    """The bits of floats as integers."""
    return f.cast("bitcast", x, integers(x))


def exp(f: IRFunction, x: Value, scales: bool, low: Value | None = None) -> Value:
    """e^(x + low), |low| being much less than 1; `scales` says that the target scales by powers of two (AVX-512)."""
    x = clamp(f, x, *form(x).limits)
    p, n, shifted = _reduced(f, x) if form(x).bits == 32 and low is None else _near_reduced(f, x, low)
    if scales and lanes(x.type) * form(x).bits == 512:
        return _scalef(f, p, n)
    return _scale(f, p, bits(f, shifted))


def _whole(f: IRFunction, x: Value) -> tuple[Value, Value, Value]:
    """n of e^x = e^r * 2^n, n in the low bits of a float, and r but for the last part of ln 2, without rounding."""
    shifted = f.fma(x, constant(x.type, 1.0 / math.log(2.0)), constant(x.type, form(x).rounding))
    n = f.binary("fsub", shifted, form(x).rounding)
    return n, shifted, f.fma(n, constant(x.type, -form(x).ln2[0]), x)


def _reduced(f: IRFunction, x: Value) -> tuple[Value, Value, Value]:
    """p and n of e^x = p * 2^n, and n in the low bits of a float."""
    n, shifted, r = _whole(f, x)
    return horner(f, f.fma(n, constant(x.type, -form(x).ln2[1]), r), form(x).exp), n, shifted


def _near_reduced(f: IRFunction, x: Value, low: Value | None) -> tuple[Value, Value, Value]:
    """The same of x + low; the last addition is nearly all that rounds."""
    n, shifted, r = _whole(f, x)
    rest = constant(x.type, -form(x).ln2[1])
    low = f.binary("fmul", n, rest) if low is None else f.fma(n, rest, low)
    total = f.binary("fadd", r, 1.0)
    lost = f.binary("fadd", f.binary("fsub", constant(x.type, 1.0), total), r)
    less = f.fma(*_beyond_first(f, f.binary("fadd", r, low)), f.binary("fadd", lost, low))
    return f.binary("fadd", total, less), n, shifted


def _beyond_first(f: IRFunction, r: Value) -> tuple[Value, Value]:
    """Two numbers whose product is e^r - 1 - r, |r| <= ln 2 / 2."""
    return f.binary("fmul", r, r), horner(f, r, form(r).exp[:-2])


def _scalef(f: IRFunction, p: Value, n: Value) -> Value:
    others, every, rounding = constant(p.type, 0), constant(f"i{lanes(p.type)}", -1), constant("i32", 4)
    return f.pure_call(f"llvm.x86.avx512.mask.scalef.{form(p).scale}", p.type, p, n, others, every, rounding)


def _scale(f: IRFunction, p: Value, n: Value) -> Value:
    """p * 2^n, n being in the low bits, in two steps because 2^n alone may overflow."""
    above = form(p).bits - form(p).mantissa
    half = f.binary("ashr", f.binary("shl", n, above), above + 1)
    return f.binary("fmul", f.binary("fmul", p, power(f, half, p)), power(f, f.binary("sub", n, half), p))


def power(f: IRFunction, n: Value, like: Value) -> Value:
    """2^n for the low bits of n, no denormal number."""
    biased = f.binary("add", n, form(like).bias)
    return f.cast("bitcast", f.binary("shl", biased, form(like).mantissa), like.type)


def quarter(f: IRFunction, x: Value, most: float) -> Value:
    """(e^x - 1) / 4 of a float64 x >= 0, limited to `most`, which is less than 1025.5 ln 2; all digits near 0."""
    n, shifted, r = _whole(f, clamp(f, x, 0.0, most))
    r = f.fma(n, constant(x.type, -form(x).ln2[1]), r)
    two = power(f, f.binary("sub", bits(f, shifted), 2), x)
    return f.fma(two, f.fma(*_beyond_first(f, r), r), f.binary("fsub", two, 0.25))


_LOG = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
    -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
# (log((1 + s) / (1 - s)) / s - 2) / s^2 in s^2
_ATANH = (
    0.14797476143271449, 0.15313906272473668, 0.18183569627195645, 0.2222219847803139,
    0.2857142874324411, 0.3999999999941117, 0.6666666666666735,
)  # fmt: skip


def mantissa(f: IRFunction, x: Value, normal: bool = False) -> tuple[Value, Value]:
    """m in [sqrt 1/2, sqrt 2) and the exponent of x = m * 2^exponent, both floats; x is positive and finite, and not
    too small for all digits if `normal`.
    """
    of = form(x)
    if normal:
        return _parted(f, x, f.binary("sub", bits(f, x), of.root))
    denormal = f.compare("olt", x, 2.0 ** (1 - of.bias))
    scaled = f.select(denormal, f.binary("fmul", x, 2.0**of.mantissa), x)
    roots = [constant(integers(x), of.root + (shift << of.mantissa)) for shift in (of.mantissa, 0)]  # scaled too
    return _parted(f, x, f.binary("sub", bits(f, scaled), f.select(denormal, *roots)))


def _parted(f: IRFunction, x: Value, above: Value) -> tuple[Value, Value]:
    """Mantissa and exponent of bits less those of the least mantissa."""
    of = form(x)
    m = f.binary("add", f.binary("and", above, (1 << of.mantissa) - 1), of.root)
    if of.bits == 64:  # which are shifted slowly
        above = f.cast("trunc", f.binary("lshr", above, 32), vector("i32", lanes(x.type)))
    exponent = f.cast("sitofp", f.binary("ashr", above, (of.mantissa - of.bits) % 32), x.type)
    return f.cast("bitcast", m, x.type), exponent


def log(f: IRFunction, x: Value, base: float = math.e) -> Value:
    """The logarithm of x to `base` (e, 2 or 10); -inf at 0, NaN below."""
    m, exponent = mantissa(f, x)
    m = f.binary("fsub", m, 1.0)
    if form(x).bits == 32:
        square = f.binary("fmul", m, m)
        tail = f.binary("fmul", f.binary("fmul", horner(f, m, _LOG), m), square)
        result = _join_log(f, base, m, f.fma(square, constant(x.type, -0.5), tail), exponent)
    else:
        result = _wide_log(f, base, m, exponent)
    result = f.select(f.compare("oeq", x, math.inf), x, result)
    result = f.select(f.compare("oeq", x, 0.0), constant(x.type, -math.inf), result)
    # All bits set are NaN: an `or` is cheaper than a selection.
    outside = f.cast("sext", f.compare("ult", x, 0.0), integers(x))
    return f.cast("bitcast", f.binary("or", bits(f, result), outside), x.type)


def _join_log(f: IRFunction, base: float, m: Value, tail: Value, exponent: Value) -> Value:
    """(m + tail + exponent * ln 2) / ln(base) of float32, small terms first."""
    if base == math.e:
        high, low = form(m).ln2
        low = f.fma(exponent, constant(m.type, low), tail)
        return f.fma(exponent, constant(m.type, high), f.binary("fadd", m, low))
    factor = 1.0 / math.log(base)
    high = math.floor(factor * 256) / 256  # few bits, so that m * high loses little
    low = f.fma(tail, constant(m.type, factor), f.binary("fmul", m, factor - high))
    if base == 2:
        return f.binary("fadd", exponent, f.fma(m, constant(m.type, high), low))
    low = f.fma(exponent, constant(m.type, math.log10(2.0) - 0.30078125), low)
    return f.fma(exponent, constant(m.type, 0.30078125), f.fma(m, constant(m.type, high), low))


# 1 / ln(base), and the logarithm of 2 to it, as sums of two numbers
_BASES = {
    2.0: (1.4426950408889634, 2.0355273740931033e-17, 1.0, 0.0),
    10.0: (0.4342944819032518, 1.098319650216765e-17, 0.30102999566383914, 1.42050232272661e-13),
}


def _wide_log(f: IRFunction, base: float, m: Value, exponent: Value) -> Value:
    """(log(1 + m) + exponent * ln 2) / ln(base) of float64."""
    s = f.binary("fdiv", m, f.binary("fadd", m, 2.0))
    square, half = f.binary("fmul", s, s), f.binary("fmul", m, f.binary("fmul", m, 0.5))
    tail = f.fma(square, horner(f, square, _ATANH), half)
    if base == math.e:
        high, low = form(m).ln2
        tail = f.fma(s, tail, f.binary("fmul", exponent, low))
        near = f.binary("fsub", m, f.binary("fsub", half, tail))
        return f.fma(exponent, constant(m.type, high), near)
    factor, less, high, low = (constant(m.type, c) for c in _BASES[base])
    first = f.binary("fsub", m, half)
    rest = f.fma(s, tail, f.binary("fsub", f.binary("fsub", m, first), half))
    product = f.binary("fmul", first, factor)
    lost = f.fma(first, factor, f.negate(product))
    lost = f.binary("fadd", lost, f.fma(first, less, f.binary("fmul", rest, factor)))
    lost = f.fma(exponent, low, lost)
    whole = f.binary("fmul", exponent, high)
    total = f.binary("fadd", whole, product)
    lost = f.binary("fadd", lost, f.binary("fadd", f.binary("fsub", whole, total), product))
    return f.binary("fadd", total, lost)


_TANH_ODD = [
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
    1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
]  # fmt: skip
_TANH_LIMIT = 9.7**2  # there the quotient is more than 1, however products are rounded
_TANH_EVEN = [1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03]


def tanh(f: IRFunction, x: Value) -> Value:
    """The hyperbolic tangent."""
    if form(x).bits == 32:
        square = f.binary("fmul", x, x)
        square = f.select(f.compare("ogt", square, _TANH_LIMIT), constant(x.type, _TANH_LIMIT), square)
        return clamp(f, _odd_rational(f, x, square, _TANH_ODD, _TANH_EVEN), -1.0, 1.0)
    size = f.intrinsic("fabs", x)
    q = quarter(f, f.binary("fadd", size, size), 40.0)
    return odd(f, x, f.binary("fdiv", q, f.binary("fadd", q, 0.5)))


def odd(f: IRFunction, x: Value, found: Value) -> Value:
    """`found` for |x| with the sign of x; x itself where that is small."""
    small = f.compare("olt", f.intrinsic("fabs", x), form(x).small)
    return f.select(small, x, f.intrinsic("copysign", found, x))


_ERF_ODD = [
    -2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05,
    -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02,
]  # fmt: skip
_ERF_EVEN = [
    -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03, -1.42647390514189e-02,
]  # fmt: skip


# Of float64: erf(x) / x - 1 in x^2 up to 1, and erfc(x) e^(x^2) in (x - 3) / (x + 3) up to 6.
_ERF_NEAR = (
    -7.801194572888797e-10, 1.3722978065719944e-08, -1.6209175996683016e-07, 1.6447517639512486e-06,
    -1.492474465563391e-05, 0.000120552953198177, -0.0008548325989663323, 0.0052239776074224946,
    -0.026866170643276056, 0.11283791670945252, -0.3761263890318355, 0.12837916709551256,
)  # fmt: skip
_ERF_FAR = (
    -6.579480115208925e-06, -6.441209705972092e-06, 7.162365883950371e-05, 5.0218245765216235e-05,
    -0.0005950002530693235, 0.0007083054841688163, 0.004269232711345868, -0.02439248997133205, 0.07166583744029036,
    -0.15011593654566252, 0.2456038017078115, -0.3262335600431625, 0.17900115118139,
)  # fmt: skip


def erf(f: IRFunction, x: Value, scales: bool) -> Value:
    """The error function."""
    if form(x).bits == 32:
        x = clamp(f, x, -4.0, 4.0)
        return _odd_rational(f, x, f.binary("fmul", x, x), _ERF_ODD, _ERF_EVEN)
    size = clamp(f, f.intrinsic("fabs", x), 0.0, 6.0)
    square = f.binary("fmul", size, size)
    near = f.fma(size, horner(f, square, _ERF_NEAR), size)
    t = f.binary("fdiv", f.binary("fsub", size, 3.0), f.binary("fadd", size, 3.0))
    beyond = f.binary("fmul", exp(f, f.negate(square), scales), horner(f, t, _ERF_FAR))
    far = f.binary("fsub", constant(x.type, 1.0), beyond)
    return f.intrinsic("copysign", f.select(f.compare("olt", size, 1.0), near, far), x)


def _odd_rational(f: IRFunction, x: Value, square: Value, odd: Sequence[float], even: Sequence[float]) -> Value:
    # Both sides times 2^30: the numerator of a denormal number is none, so that only the quotient is rounded.
    odd, even = ([c * 2.0**30 for c in side] for side in (odd, even))
    return f.binary("fdiv", f.binary("fmul", horner(f, square, odd), x), horner(f, square, even))


def sigmoid(f: IRFunction, x: Value, scales: bool) -> Value:
    """1 / (1 + e^-x); of float32 0 far below -88.7, where it is less than 2^-127."""
    if form(x).bits == 64:
        e = exp(f, f.negate(f.intrinsic("fabs", x)), scales)
        over = f.select(f.compare("olt", x, 0.0), e, constant(x.type, 1.0))
        return f.binary("fdiv", over, f.binary("fadd", e, 1.0))
    if scales and lanes(x.type) == 16:
        return f.binary("fdiv", constant(x.type, 1.0), f.binary("fadd", exp(f, f.negate(x), scales), 1.0))
    # Half of all: 2^(n - 1) is one number, 0 where it is nothing beside 1/2 and infinity where the quotient is 0.
    p, _, shifted = _reduced(f, clamp(f, f.negate(x), -87.0, 89.5))
    power = f.binary("add", f.binary("shl", bits(f, shifted), 23), 126 << 23)
    half = f.binary("fmul", p, f.cast("bitcast", power, x.type))
    return f.binary("fdiv", constant(x.type, 0.5), f.binary("fadd", half, 0.5))


# pi / 2 in parts: products of the first two with the number of right angles of a float32 are exact, fused or not.
_RIGHT_ANGLE = (1.57079632673412561417, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_WIDE_RIGHT_ANGLE = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)

FAR = 1e6
"""From here on an angle has too many right angles for `angle`."""


def angle(f: IRFunction, x: Value) -> tuple[Value, Value, Value]:
    """Sine and cosine of what is left of |x| < `FAR` after whole right angles, and their number in the low bits."""
    narrow = form(x).bits == 32
    wide = f.cast("fpext", x, vector("double", lanes(x.type))) if narrow else x
    rounding = form(wide).rounding
    shifted = f.fma(wide, constant(wide.type, 2 / math.pi), constant(wide.type, rounding))
    turns, number = f.binary("fsub", shifted, rounding), bits(f, shifted)
    if narrow:
        for part in _RIGHT_ANGLE:
            wide = f.fma(turns, constant(wide.type, -part), wide)
        number = f.cast("trunc", number, integers(x))
        sine, cosine = _narrow_circle(f, f.cast("fptrunc", wide, x.type))
    else:
        first, second, third = (constant(x.type, -part) for part in _WIDE_RIGHT_ANGLE)
        left = f.fma(turns, first, x)  # exact
        product = f.binary("fmul", turns, second)
        r = f.binary("fadd", left, product)
        low = f.binary("fadd", f.binary("fsub", left, r), product)
        low = f.binary("fadd", low, f.fma(turns, second, f.negate(product)))
        sine, cosine = _circle(f, r, f.fma(turns, third, low))
    small = f.compare("olt", f.intrinsic("fabs", x), form(x).small)  # -0.0 stays what it is
    return f.select(small, x, sine), cosine, number


def _narrow_circle(f: IRFunction, r: Value) -> tuple[Value, Value]:
    """Sine and cosine of a float32 r, |r| <= pi / 4."""
    square = f.binary("fmul", r, r)
    sine = f.fma(f.binary("fmul", horner(f, square, form(r).sin), square), r, r)
    first = f.fma(square, constant(r.type, -0.5), constant(r.type, 1.0))
    return sine, f.fma(f.binary("fmul", horner(f, square, form(r).cos), square), square, first)


def _circle(f: IRFunction, r: Value, low: Value) -> tuple[Value, Value]:
    """Sine and cosine of r + low, |r| <= pi / 4, float64s."""
    square, half = f.binary("fmul", r, r), f.binary("fmul", low, 0.5)
    cube, *more, last = f.binary("fmul", square, r), *form(r).sin
    less = f.fma(square, f.fma(f.negate(cube), horner(f, square, more), half), f.negate(low))
    sine = f.binary("fsub", r, f.fma(cube, constant(r.type, -last), less))
    first = f.fma(square, constant(r.type, -0.5), constant(r.type, 1.0))
    lost = f.fma(square, constant(r.type, -0.5), f.binary("fsub", constant(r.type, 1.0), first))
    tail = f.fma(f.binary("fmul", square, square), horner(f, square, form(r).cos), f.fma(f.negate(r), low, lost))
    return sine, f.binary("fadd", first, tail)


def sin(f: IRFunction, x: Value, ahead: int = 0) -> Value:
    """The sine of |x| < `FAR`, `ahead` right angles on."""
    sine, cosine, number = angle(f, x)
    number = f.binary("add", number, ahead) if ahead else number
    found = f.select(f.compare("ne", f.binary("and", number, 1), 0), cosine, sine)
    sign = f.binary("shl", f.binary("and", number, 2), form(x).bits - 2)
    return f.cast("bitcast", f.binary("xor", bits(f, found), sign), x.type)


def cos(f: IRFunction, x: Value) -> Value:
    """The cosine of |x| < `FAR`."""
    return sin(f, x, 1)


def tan(f: IRFunction, x: Value) -> Value:
    """The tangent of |x| < `FAR`."""
    sine, cosine, number = angle(f, x)
    odd = f.compare("ne", f.binary("and", number, 1), 0)
    return f.binary("fdiv", f.select(odd, f.negate(cosine), sine), f.select(odd, sine, cosine))
