"""The function `dot4` as instructions: four unsigned bytes times four signed ones, added to an int32; exact everywhere.

How a target does it is a fact of its family (`isa/families.py`):

    vpdpbusd   one instruction, which does not saturate (AVX-512 VNNI, AVX-VNNI)
    usdot      the same (NEON with I8MM)
    sdot       of signed bytes (NEON with dot products): of x - 128, and 128 times the sum of w, which rows share
    pmaddwd    pairs of 16-bit products, which cannot overflow either; `pmaddubsw` would saturate
    smull      16-bit products of even bytes and of odd ones, added before pairs are (NEON)

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2; Arm
Architecture Reference Manual for A-profile.
Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from relaylab.codegen.llvm.text import IRFunction, Value, constant, lanes, vector

LEAST = 4  # lanes of the instructions


def dot4(f: IRFunction, total: Value, x: Value, w: Value, how: str) -> Value:
    """`total` and the four products of each lane, by one of the ways above."""
    count = lanes(total.type)
    if count < LEAST:
        wide = [f.splat(v, LEAST) if count == 1 else _widened(f, v) for v in (total, x, w)]
        result = dot4(f, wide[0], wide[1], wide[2], how)
        return f.extract(result, 0) if count == 1 else f.shuffle(result, result, range(count))
    if how == "vpdpbusd":
        return f.call(f"llvm.x86.avx512.vpdpbusd.{count * 32}", total.type, total, x, w)
    if how in ("usdot", "sdot"):
        return _neon_dot(f, total, x, w, how)
    halves = vector("i16", 2 * count)
    xs, ws = (f.cast("bitcast", v, halves) for v in (x, w))
    # Even bytes and odd ones. What is computed of one operand is found again in other rows and columns.
    low = f.binary("and", xs, 0xFF), f.binary("ashr", f.binary("shl", ws, 8), 8)
    high = f.binary("lshr", xs, 8), f.binary("ashr", ws, 8)
    if how == "smull":
        return f.binary("add", total, _neighbours(f, f.binary("add", _products(f, *low), _products(f, *high))))
    for a, c in (low, high):
        total = f.binary("add", total, _neighbours(f, _products(f, a, c)))
    return total


def _neon_dot(f: IRFunction, total: Value, x: Value, w: Value, how: str) -> Value:
    """NEON's instruction, of vectors of 16 bytes: the registers there are no wider."""
    bytes_ = vector("i8", 4 * LEAST)
    name, xs, ws = f"llvm.aarch64.neon.{how}.v4i32.v16i8", f.cast("bitcast", x, bytes_), f.cast("bitcast", w, bytes_)
    dot = lambda t, a, c: f.pure_call(name, t.type, t, a, c)
    if how == "usdot":
        return dot(total, xs, ws)
    half = constant(bytes_, 64)  # twice: 128 is no signed byte
    lifted = dot(dot(constant(total.type, 0), ws, half), ws, half)
    return f.binary("add", dot(total, f.binary("xor", xs, -128), ws), lifted)


def _widened(f: IRFunction, x: Value) -> Value:
    """Few lanes as the first of the least that there may be."""
    return f.shuffle(x, x, [lane % lanes(x.type) for lane in range(LEAST)])


def _products(f: IRFunction, a: Value, c: Value) -> Value:
    """The products of 16-bit numbers, as int32."""
    wide = vector("i32", lanes(a.type))
    return f.binary("mul", f.cast("sext", a, wide), f.cast("sext", c, wide))


def _neighbours(f: IRFunction, x: Value) -> Value:
    """The sums of neighbouring numbers: of products LLVM makes one `pmaddwd`, on ARM an `addp`."""
    even, odd = (f.shuffle(x, x, list(range(k, lanes(x.type), 2))) for k in (0, 1))
    return f.binary("add", even, odd)
