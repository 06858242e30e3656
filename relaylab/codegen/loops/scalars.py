"""The scalar functions of the loop level as LLVM instructions, on scalars and vectors alike.

Values of bool are i1 here, floats of 16 bits are float, other dtypes are what they are stored as. Every function
keeps the promises of `relaylab.loop.scalar`: NaN passes, integer division never traps, casts saturate.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from relaylab.codegen.isa.families import Family
from relaylab.codegen.llvm.text import IRFunction, Value, constant, element, is_float, lanes, llvm_type, suffix, vector
from relaylab.codegen.loops import vector_arcs, vector_math, vector_powers, whole_numbers
from relaylab.codegen.loops.whole_numbers import ROUNDING
from relaylab.loop.scalar import NARROW, compute_dtype
from relaylab.support.errors import RelayTypeError

# `contract` lets LLVM fuse a product and a sum, as the templates' multiply-adds do; nothing else is reordered.
_FLOAT = {"add": "fadd contract", "sub": "fsub contract", "mul": "fmul contract", "div": "fdiv"}
_LOGIC = {
    "land": "and",
    "lor": "or",
    "lxor": "xor",
    "add": "or",
    "mul": "and",
    "max": "or",
    "min": "and",
    "band": "and",
    "bor": "or",
    "bxor": "xor",
}
_COMPARED = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def register_type(dtype: str) -> str:
    """The LLVM type of a scalar of `dtype` in a register."""
    return "i1" if dtype == "bool" else llvm_type(compute_dtype(dtype))


def apply(f: IRFunction, op: str, dtype: str, args: list[Value], family: Family | None = None) -> Value:
    """The function `op` of arguments of `dtype`; without a family by what every CPU can."""
    if op == "select":
        return f.select(args[0], args[1], args[2])
    if op in _COMPARED:
        return _compare(f, op, dtype, *args)
    if op in ("isnan", "isinf", "isfinite"):
        return _classify(f, op, args[0])
    if dtype == "bool":
        return _logic(f, op, args)
    return _real(f, op, args, family) if is_float(args[0].type) else whole_numbers.apply(f, op, dtype, args)


def _compare(f: IRFunction, op: str, dtype: str, a: Value, c: Value) -> Value:
    if is_float(a.type):
        return f.compare("une" if op == "ne" else "o" + op, a, c)
    if op in ("eq", "ne"):
        return f.compare(op, a, c)
    return f.compare(("s" if dtype.startswith("int") else "u") + op, a, c)


def _classify(f: IRFunction, op: str, x: Value) -> Value:
    if not is_float(x.type):
        return constant(vector("i1", lanes(x.type)), op == "isfinite")
    if op == "isnan":
        return f.compare("uno", x, x)
    return f.compare("oeq" if op == "isinf" else "one", f.intrinsic("fabs", x), float("inf"))


def _logic(f: IRFunction, op: str, args: list[Value]) -> Value:
    if op in ("lnot", "bnot"):
        return f.binary("xor", args[0], constant(args[0].type, True))
    if op == "abs":
        return args[0]
    if op in ("shl", "shr"):
        raise RelayTypeError("bools cannot be shifted", code="codegen.bool-shift", help="cast to an integer first")
    return f.binary(_LOGIC[op], args[0], args[1])


# ---- floats


def _real(f: IRFunction, op: str, args: list[Value], family: Family | None) -> Value:
    x, fuses = args[0], family is not None and family.fuses
    if op in _FLOAT:
        return f.binary(_FLOAT[op], x, args[1])
    if op in ("max", "min"):
        return _extreme(f, op, x, args[1])
    if op in ROUNDING:
        return f.intrinsic(op, x)
    if op in _REAL:
        return _REAL[op](f, *args)
    if op in _REMAINDERS:
        return _REMAINDERS[op](f, _remainder(f, x, args[1], fuses), x, args[1])
    if op in _OWN and (fuses or element(x.type) == "float"):
        return _OWN[op](f, *args)
    if op in _SCALED and (fuses or element(x.type) == "float" and op != "pow"):
        return _SCALED[op](f, *args, scales=family is not None and family.scales)
    return library(f, op, *args)


_NAN = re.compile(r"0x[7F]FF(?!0{13})")  # floats of all widths are written as doubles


def _extreme(f: IRFunction, op: str, a: Value, c: Value) -> Value:
    """The larger or smaller float, NaN if either is; one instruction when one of them is a number."""
    order = "ogt" if op == "max" else "olt"
    if _is_number(a):
        a, c = c, a
    # The x86 minimum and maximum give their second operand for NaN: with the number first, NaN passes for nothing.
    if _is_number(c):
        return f.select(f.compare("olt" if op == "max" else "ogt", a, c), c, a)
    best = f.select(f.compare(order, a, c), a, c)
    return f.select(f.compare("uno", a, a), a, best)


def _is_number(x: Value) -> bool:
    """Is it a constant other than NaN, whose sign may be either?"""
    return x.order < 0 and x.ref[0] != "%" and not _NAN.search(x.ref)


def _remainder(f: IRFunction, a: Value, c: Value, fuses: bool) -> Value:
    """What a leaves when divided by c, with the sign of a; `fuses`: products and sums do."""
    if not fuses:
        return library(f, "fmod", a, c)
    return _unless(f, vector_powers.far(f, a, c), vector_powers.remainder(f, a, c), "fmod", a, c)


def _floor_mod(f: IRFunction, rest: Value, _: Value, c: Value) -> Value:
    """The remainder with the sign of the divisor, 0 too."""
    rest = f.select(f.compare("oeq", rest, 0.0), _zero_like(f, c), rest)
    return f.select(_rounds_up(f, rest, c), f.binary("fadd", rest, c), rest)


def _rounds_up(f: IRFunction, rest: Value, c: Value) -> Value:
    """Whether the truncated quotient that leaves `rest` is above the floored one."""
    differ = f.binary("xor", f.compare("olt", rest, 0.0), f.compare("olt", c, 0.0))
    return f.binary("and", f.compare("one", rest, 0.0), differ)


def _floor_div(f: IRFunction, rest: Value, a: Value, c: Value) -> Value:
    """The quotient that goes with `_floor_mod`, rounded to the nearest integer; a / c when c is 0."""
    exact = f.binary("fdiv", f.binary("fsub", a, rest), c)
    exact = f.select(_rounds_up(f, rest, c), f.binary("fsub", exact, 1.0), exact)
    whole = f.intrinsic("floor", exact)
    over = f.compare("ogt", f.binary("fsub", exact, whole), 0.5)  # as in numpy
    whole, ratio = f.select(over, f.binary("fadd", whole, 1.0), whole), f.binary("fdiv", a, c)
    whole = f.select(f.compare("oeq", exact, 0.0), _zero_like(f, ratio), whole)
    return f.select(f.compare("oeq", c, 0.0), ratio, whole)


def _zero_like(f: IRFunction, x: Value) -> Value:
    """0 with the sign of a number."""
    sign = f.binary("and", _bits(f, x), -(1 << (63 if element(x.type) == "double" else 31)))
    return f.cast("bitcast", sign, x.type)


def _bits(f: IRFunction, x: Value) -> Value:
    width = 64 if element(x.type) == "double" else 32
    return f.cast("bitcast", x, vector(f"i{width}", lanes(x.type)))


def _ordinal(f: IRFunction, x: Value) -> Value:
    """Unsigned integers in the order of floats: a set sign inverts all bits, else it is set."""
    width = 64 if element(x.type) == "double" else 32
    zero = constant(x.type, 0.0)
    bits = _bits(f, f.select(f.compare("oeq", x, zero), zero, x))
    flipped = f.binary("or", f.binary("ashr", bits, width - 1), -(1 << width - 1))
    return f.select(f.compare("uno", x, x), constant(bits.type, -1), f.binary("xor", bits, flipped))


_REAL: dict[str, Callable[..., Value]] = {
    "neg": lambda f, x: f.negate(x),
    "abs": lambda f, x: f.intrinsic("fabs", x),
    "sqrt": lambda f, x: f.intrinsic("sqrt", x),
    "rsqrt": lambda f, x: f.binary("fdiv", constant(x.type, 1.0), f.intrinsic("sqrt", x)),
    "truncdiv": lambda f, a, c: f.intrinsic("trunc", f.binary("fdiv", a, c)),
    "ordinal": _ordinal,
    "bits": _bits,
}
_REMAINDERS: dict[str, Callable[[IRFunction, Value, Value, Value], Value]] = {
    "floordiv": _floor_div,
    "floormod": _floor_mod,
    "truncmod": lambda f, rest, a, c: rest,
}
_SCALED: dict[str, Callable[..., Value]] = {  # with an exponential in them
    "exp": vector_math.exp,
    "sigmoid": vector_math.sigmoid,
    "erf": vector_math.erf,
    "pow": vector_powers.pow,
}
_OWN: dict[str, Callable[[IRFunction, Value], Value]] = {
    "tanh": vector_math.tanh,
    "log": vector_math.log,
    "log2": lambda f, x: vector_math.log(f, x, 2.0),
    "log10": lambda f, x: vector_math.log(f, x, 10.0),
    "sin": lambda f, x: _near(f, "sin", vector_math.sin, x),
    "cos": lambda f, x: _near(f, "cos", vector_math.cos, x),
    "tan": lambda f, x: _near(f, "tan", vector_math.tan, x),
    "asin": vector_arcs.asin,
    "acos": vector_arcs.acos,
    "atan": vector_arcs.atan,
    "sinh": vector_arcs.sinh,
    "cosh": vector_arcs.cosh,
    "asinh": vector_arcs.asinh,
    "acosh": vector_arcs.acosh,
    "atanh": vector_arcs.atanh,
}


def _near(f: IRFunction, name: str, own: Callable[[IRFunction, Value], Value], x: Value) -> Value:
    """A function of an angle; of the C library where one is far from zero."""
    return _unless(f, f.compare("oge", f.intrinsic("fabs", x), vector_math.FAR), own(f, x), name, x)


def _unless(f: IRFunction, far: Value, own: Value, name: str, *args: Value) -> Value:
    """`own`, or what the C library gives for all lanes where one of them is `far`."""
    turns = f.cast("zext", far if lanes(own.type) == 1 else f.any(far), "i64")
    (found,) = f.loop(0, turns, lambda *_: (library(f, name, *args),), (own,))
    return found


def library(f: IRFunction, name: str, *args: Value) -> Value:
    """A function of the C library, called lane by lane (`sinf` for float32, `sin` for float64)."""
    if name == "sigmoid":
        grown = f.binary("fadd", library(f, "exp", f.negate(args[0])), 1.0)
        return f.binary("fdiv", constant(grown.type, 1.0), grown)
    type, count = element(args[0].type), lanes(args[0].type)
    symbol = name + ("f" if type == "float" else "")
    if count == 1:
        return f.call(symbol, type, *args)
    result = constant(args[0].type, 0)
    for lane in range(count):
        result = f.insert(result, f.call(symbol, type, *(f.extract(a, lane) for a in args)), lane)
    return result


# ---- conversions


def cast(f: IRFunction, x: Value, source: str, target: str, halves: bool) -> Value:
    """`x` of dtype `source` as `target`, in registers (see `relaylab.loop.scalar.convert`).

    `halves`: the target has conversions of float16.
    """
    count = lanes(x.type)
    type = vector(register_type(target), count)
    if target == "bool":
        return x if source == "bool" else f.compare("une" if is_float(x.type) else "ne", x, 0)
    if source == "bool":
        return f.cast("uitofp" if is_float(type) else "zext", x, type)
    if is_float(x.type):
        return _from_float(f, x, target, type, halves)
    if is_float(type):
        x = f.cast("sitofp" if source.startswith("int") else "uitofp", x, type)
        return _rounded(f, x, target, halves) if target in NARROW else x
    return resize(f, x, element(type), source.startswith("int"))


def _from_float(f: IRFunction, x: Value, target: str, type: str, halves: bool) -> Value:
    if not is_float(type):
        if lanes(type) > 1 or element(type) in ("i8", "i16"):
            return _integers(f, x, target, type)
        op = "fptosi" if target.startswith("int") else "fptoui"
        return f.pure_call(f"llvm.{op}.sat.{suffix(type)}.{suffix(x.type)}", type, x)
    if target == "float16" and element(x.type) == "double":
        x = _sticky(f, x, type)
    if element(type) != element(x.type):
        x = f.cast("fptrunc" if element(type) == "float" else "fpext", x, type)
    return _rounded(f, x, target, halves) if target in NARROW else x


def _integers(f: IRFunction, x: Value, target: str, type: str) -> Value:
    """Floats as integers: limited, then converted. LLVM's conversion that saturates is done lane by lane."""
    bits, signed = int(element(type)[1:]), target.startswith("int")
    low, above = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1)) if signed else (0.0, 2.0**bits)
    if signed:
        x = f.select(f.compare("ord", x, x), x, constant(x.type, 0.0))
    least = constant(x.type, low)
    x = f.select(f.compare("ogt", x, least), x, least)  # NaN is the least, 0
    if bits <= 16:
        most = constant(x.type, above - 1)
        x = f.select(f.compare("olt", x, most), x, most)
        return f.cast("trunc", f.cast("fptosi", x, vector("i32", lanes(x.type))), type)
    most = constant(type, int(above) - 1)  # which may be no float
    return f.select(
        f.compare("olt", x, constant(x.type, above)), f.cast("fptosi" if signed else "fptoui", x, type), most
    )


def _rounded(f: IRFunction, x: Value, dtype: str, halves: bool) -> Value:
    return widened(f, narrowed(f, x, dtype, halves), dtype, halves)


def widened(f: IRFunction, bits: Value, dtype: str, halves: bool) -> Value:
    """The 16 bits of a float of `dtype` as a float; `halves`: the target has instructions for float16."""
    return from_half(f, bits, halves) if dtype == "float16" else from_bfloat(f, bits)


def narrowed(f: IRFunction, x: Value, dtype: str, halves: bool) -> Value:
    """A float as the 16 bits of one of `dtype`, rounded to nearest even; `halves` as above."""
    return to_half(f, x, halves) if dtype == "float16" else to_bfloat(f, x)


def _sticky(f: IRFunction, x: Value, type: str) -> Value:
    """A double as a float that rounds to the half that the double rounds to: towards zero, odd if anything is lost."""
    bits = f.cast("bitcast", x, vector("i64", lanes(x.type)))
    lost = f.compare("ne", f.binary("and", bits, (1 << 29) - 1), 0)
    kept = f.binary("and", bits, -1 << 29)
    odd = f.select(lost, f.binary("or", kept, 1 << 29), kept)
    return f.cast("fptrunc", f.cast("bitcast", odd, x.type), type)


def resize(f: IRFunction, x: Value, to: str, signed: bool) -> Value:
    """An integer with another number of bits."""
    have, want = int(element(x.type)[1:]), int(to[1:])
    if have == want:
        return x
    if x.ref[0] not in "%<" and lanes(x.type) == 1 and have > want:
        return constant(to, (int(x.ref) + (1 << want - 1)) % (1 << want) - (1 << want - 1))
    return f.cast("trunc" if have > want else "sext" if signed else "zext", x, vector(to, lanes(x.type)))


def to_half(f: IRFunction, x: Value, halves: bool) -> Value:
    """float to half, to nearest even, as i16 bits; `halves`: the target has instructions for it.

    Others get integer arithmetic: LLVM would call a library, element by element.
    """
    t, n = vector("i32", lanes(x.type)), lanes(x.type)
    if halves:
        return f.cast("bitcast", f.cast("fptrunc", x, vector("half", n)), vector("i16", n))
    bits = f.cast("bitcast", x, t)
    sign = f.binary("and", f.binary("lshr", bits, 16), 0x8000)
    size = f.binary("and", bits, 0x7FFFFFFF)
    odd = f.binary("and", f.binary("lshr", size, 13), 1)
    normal = f.binary("lshr", f.binary("add", f.binary("add", size, -((127 - 15) << 23) + 0xFFF), odd), 13)
    magic = constant(t, 126 << 23)  # 0.5: adding it to a small number rounds it to a multiple of 2^-24
    tiny = f.binary("fadd", f.cast("bitcast", size, x.type), f.cast("bitcast", magic, x.type))
    small = f.binary("sub", f.cast("bitcast", tiny, t), magic)
    result = f.select(f.compare("ult", size, 113 << 23), small, normal)
    result = f.select(f.compare("uge", size, 0x477FF000), constant(t, 0x7C00), result)
    result = f.select(f.compare("ugt", size, 0x7F800000), constant(t, 0x7E00), result)
    return f.cast("trunc", f.binary("or", result, sign), vector("i16", n))


def from_half(f: IRFunction, bits: Value, halves: bool) -> Value:
    """half as i16 bits to float; `halves`: the target has instructions for it."""
    t, n = vector("i32", lanes(bits.type)), lanes(bits.type)
    if halves:
        return f.cast("fpext", f.cast("bitcast", bits, vector("half", n)), vector("float", n))
    wide = f.cast("zext", bits, t)
    sign = f.binary("shl", f.binary("and", wide, 0x8000), 16)
    size = f.binary("shl", f.binary("and", wide, 0x7FFF), 13)
    normal = f.binary("add", size, (127 - 15) << 23)
    special = f.binary("or", size, 0xFF << 23)
    count = f.cast("sitofp", f.binary("lshr", size, 13), vector("float", n))
    small = f.cast("bitcast", f.binary("fmul", count, 2.0**-24), t)
    result = f.select(f.compare("ult", size, 1 << 23), small, normal)
    result = f.select(f.compare("uge", size, 0x1F << 23), special, result)
    return f.cast("bitcast", f.binary("or", result, sign), vector("float", n))


def to_bfloat(f: IRFunction, x: Value) -> Value:
    """float to bfloat16 as i16 bits. By shifts everywhere: `vcvtneps2bf16` takes subnormal numbers for 0."""
    bits = f.cast("bitcast", x, vector("i32", lanes(x.type)))
    odd = f.binary("and", f.binary("lshr", bits, 16), 1)
    near = f.binary("add", f.binary("add", bits, 0x7FFF), odd)
    kept = f.select(f.compare("ord", x, x), near, f.binary("or", bits, 0x400000))  # NaN stays one
    return f.cast("trunc", f.binary("lshr", kept, 16), vector("i16", lanes(x.type)))


def from_bfloat(f: IRFunction, bits: Value) -> Value:
    """bfloat16 as i16 bits to float."""
    n = lanes(bits.type)
    wide = f.binary("shl", f.cast("zext", bits, vector("i32", n)), 16)
    return f.cast("bitcast", wide, vector("float", n))
