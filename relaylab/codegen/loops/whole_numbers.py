"""Functions of integers as LLVM instructions: none traps, sums wrap, quotients of vectors are those of floats."""

from __future__ import annotations

from relaylab.codegen.llvm.text import IRFunction, Value, constant, element, lanes, vector
from relaylab.support.errors import RelayTypeError

_WHOLE = {"add": "add", "sub": "sub", "mul": "mul", "band": "and", "bor": "or", "bxor": "xor"}
ROUNDING = ("floor", "ceil", "round", "roundeven", "trunc")
"""Functions that leave integers as they are."""


def apply(f: IRFunction, op: str, dtype: str, args: list[Value]) -> Value:
    """The function `op` of integers of `dtype`."""
    signed, x = dtype.startswith("int"), args[0]
    if op in _WHOLE:
        return f.binary(_WHOLE[op], x, args[1])
    if op in ("max", "min"):
        return f.intrinsic(("s" if signed else "u") + op, x, args[1])
    if op in ("div", "truncdiv", "truncmod", "floordiv", "floormod"):
        return _divide(f, "truncdiv" if op == "div" else op, signed, x, args[1])
    if op in ("shl", "shr"):
        return _shift(f, op, signed, x, args[1])
    if op == "pow":
        return _power(f, signed, x, args[1])
    if op == "neg":
        return f.binary("sub", constant(x.type, 0), x)
    if op == "abs":
        return f.select(f.compare("slt", x, 0), f.binary("sub", constant(x.type, 0), x), x) if signed else x
    if op == "bnot":
        return f.binary("xor", x, -1)
    if op in ROUNDING:
        return x
    if op == "of_bits":
        return f.cast("bitcast", x, vector("double" if element(x.type) == "i64" else "float", lanes(x.type)))
    raise RelayTypeError(f"`{op}` is not defined for {dtype}", code="codegen.integer-function")


def _divide(f: IRFunction, op: str, signed: bool, a: Value, c: Value) -> Value:
    """Quotient or remainder that is 0 for a zero divisor and wraps at the least value divided by -1."""
    zero, one = constant(a.type, 0), constant(a.type, 1)
    by_zero = f.compare("eq", c, zero)
    # The divide instruction traps on zero and on overflow, in lanes that nobody looks at as well.
    safe = f.select(by_zero, one, c)
    if signed:
        minus = f.compare("eq", c, -1)
        safe = f.select(minus, one, safe)
    known = c.ref[0] != "%"  # by a number LLVM multiplies
    quotient = f.binary("sdiv" if signed else "udiv", a, safe) if known else _quotient(f, signed, a, safe)
    if signed:
        quotient = f.select(minus, f.binary("sub", zero, a), quotient)
    rest = f.binary("sub", a, f.binary("mul", quotient, c))
    if signed and op.startswith("floor"):
        off = f.binary("and", f.compare("ne", rest, zero), f.compare("slt", f.binary("xor", rest, c), zero))
        quotient = f.select(off, f.binary("sub", quotient, one), quotient)
        rest = f.select(off, f.binary("add", rest, c), rest)
    return f.select(by_zero, zero, quotient if op.endswith("div") else rest)


def _quotient(f: IRFunction, signed: bool, a: Value, c: Value) -> Value:
    """a / c, rounded to 0: vectors of up to 32 bits as float64, which is off by less than a quotient from a number."""
    if lanes(a.type) == 1 or int(element(a.type)[1:]) > 32:
        return f.binary("sdiv" if signed else "udiv", a, c)
    sign, wide = "s" if signed else "u", vector("double", lanes(a.type))
    over, under = (f.cast(f"{sign}itofp", x, wide) for x in (a, c))
    return f.cast(f"fpto{sign}i", f.binary("fdiv", over, under), a.type)


def _shift(f: IRFunction, op: str, signed: bool, a: Value, c: Value) -> Value:
    """A shift that gives 0 (or the sign) once the amount reaches the width."""
    width = int(element(a.type)[1:])
    too_far = f.compare("ugt", c, width - 1)
    amount = f.select(too_far, constant(a.type, width - 1), c)
    if op == "shr" and signed:
        return f.binary("ashr", a, amount)
    return f.select(too_far, constant(a.type, 0), f.binary("shl" if op == "shl" else "lshr", a, amount))


def _power(f: IRFunction, signed: bool, base: Value, exponent: Value) -> Value:
    """base^exponent by squaring, wrapping; a negative exponent gives 0 but for the bases 1 and -1."""
    one, zero = constant(base.type, 1), constant(base.type, 0)
    negative = f.compare("slt", exponent, 0) if signed else constant(vector("i1", lanes(base.type)), False)
    odd = f.binary("and", exponent, 1)

    def turn(_, result: Value, square: Value, left: Value) -> tuple[Value, ...]:
        taken = f.compare("ne", f.binary("and", left, 1), 0)
        result = f.select(taken, f.binary("mul", result, square), result)
        return result, f.binary("mul", square, square), f.binary("lshr", left, 1)

    bits = int(element(base.type)[1:])
    result = f.loop(0, bits, turn, (one, base, exponent))[0]
    unit = f.select(f.compare("eq", base, 1), one, zero)
    minus = f.select(f.compare("eq", odd, 0), one, constant(base.type, -1))
    unit = f.select(f.compare("eq", base, -1), minus, unit) if signed else unit
    return f.select(negative, unit, result)
