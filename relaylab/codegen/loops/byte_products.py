"""The function `dot4` as instructions: four unsigned bytes times four signed ones, added to an int32; exact everywhere.

With AVX-512 VNNI or AVX-VNNI one instruction (`vpdpbusd`, which does not saturate) does all four products of each lane.
Others widen to 16 bits and use `pmaddwd`, whose pairs of products cannot overflow either; `pmaddubsw` would saturate.
Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.
Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from relaylab.codegen.llvm.text import IRFunction, Value, lanes, vector

LEAST = 4  # lanes of the instructions


def dot4(f: IRFunction, total: Value, x: Value, w: Value, whole: bool) -> Value:
    """`total` and the four products of each lane; `whole`: the target has one instruction for them."""
    count = lanes(total.type)
    if count < LEAST:
        wide = [f.splat(v, LEAST) if count == 1 else _widened(f, v) for v in (total, x, w)]
        result = dot4(f, wide[0], wide[1], wide[2], whole)
        return f.extract(result, 0) if count == 1 else f.shuffle(result, result, range(count))
    if whole:
        return f.call(f"llvm.x86.avx512.vpdpbusd.{count * 32}", total.type, total, x, w)
    halves = vector("i16", 2 * count)
    xs, ws = (f.cast("bitcast", v, halves) for v in (x, w))
    # Even bytes and odd ones. What is computed of one operand is found again in other rows and columns.
    low = f.binary("and", xs, 0xFF), f.binary("ashr", f.binary("shl", ws, 8), 8)
    high = f.binary("lshr", xs, 8), f.binary("ashr", ws, 8)
    for a, c in (low, high):
        total = f.binary("add", total, _pair_products(f, a, c))
    return total


def _widened(f: IRFunction, x: Value) -> Value:
    """Few lanes as the first of the least that there may be."""
    return f.shuffle(x, x, [lane % lanes(x.type) for lane in range(LEAST)])


def _pair_products(f: IRFunction, a: Value, c: Value) -> Value:
    """The sums of neighbouring products of 16-bit numbers, as int32: LLVM makes one `pmaddwd` of it."""
    count = lanes(a.type)
    wide = vector("i32", count)
    products = f.binary("mul", f.cast("sext", a, wide), f.cast("sext", c, wide))
    even, odd = (f.shuffle(products, products, list(range(k, count, 2))) for k in (0, 1))
    return f.binary("add", even, odd)
