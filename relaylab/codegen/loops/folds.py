"""Partial results of a reduction as one: the number that changes none, two of them, all lanes of all of them."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.codegen.llvm.text import IRFunction, Value, constant, is_float, lanes, vector
from relaylab.codegen.loops import scalars
from relaylab.loop.program import identity
from relaylab.loop.scalar import compute_dtype


def neutral(kind: str, dtype: str, width: int) -> Value:
    """What a reduction begins with, in each of `width` lanes."""
    type = vector(scalars.register_type(dtype), width)
    if kind == "sum" and is_float(type):  # -0.0 is the identity of addition: 0.0 would turn it into 0.0
        return constant(type, -0.0)
    return constant(type, identity(kind, compute_dtype(dtype)).value)


def combine(f: IRFunction, kind: str, dtype: str, a: Value, c: Value) -> Value:
    """Two partial results as one."""
    if kind == "last" or kind == "sum" and is_float(a.type) and a.ref == constant(a.type, -0.0).ref:
        return c
    op = {"sum": "add", "prod": "mul", "any": "lor", "all": "land"}.get(kind, kind)
    # Of an extreme the first is asked whether it is NaN: `c` is there before `a`, which waits for all before it.
    return scalars.apply(f, op, dtype, [c, a] if kind in ("max", "min") else [a, c])


def fold(f: IRFunction, kind: str, dtype: str, rows: Sequence[Value]) -> Value:
    """All lanes of some vectors as one number."""
    rows = [*rows]
    if kind in ("max", "min") and is_float(rows[0].type) and lanes(rows[0].type) > 1:
        return _extreme(f, kind, rows)
    # In pairs: a chain of additions would wait for each, and round more.
    while len(rows) > 1:
        half = len(rows) // 2
        pairs = zip(rows[:half], rows[half : 2 * half])
        rows = [combine(f, kind, dtype, a, c) for a, c in pairs] + rows[2 * half :]
    (x,) = rows
    if kind == "sum" and dtype in ("float32", "float64"):  # LLVM halves too, and says so in one line
        return f.sum(x)
    while lanes(x.type) > 1:
        half = lanes(x.type) // 2
        low, high = (f.shuffle(x, x, range(s, s + half)) for s in (0, half))
        if half == 1:
            low, high = f.extract(x, 0), f.extract(x, 1)
        x = combine(f, kind, dtype, low, high)
    return x


def _extreme(f: IRFunction, kind: str, rows: Sequence[Value]) -> Value:
    """The extreme of all lanes; NaN if one is, of which all are asked at once."""
    order, best = "ogt" if kind == "max" else "olt", [*rows]
    asked: Value | None = None
    for a, c in zip(rows[::2], [*rows[1::2], rows[-1]]):
        unordered = f.compare("uno", a, c)
        asked = unordered if asked is None else f.binary("or", asked, unordered)
    assert asked is not None
    larger = lambda a, c: f.select(f.compare(order, a, c), a, c)
    while len(best) > 1:
        half = len(best) // 2
        best = [larger(a, c) for a, c in zip(best[:half], best[half : 2 * half])] + best[2 * half :]
    (x,) = best
    while (half := lanes(x.type) // 2) > 1:
        x = larger(*(f.shuffle(x, x, range(s, s + half)) for s in (0, half)))
    x = larger(f.extract(x, 0), f.extract(x, 1))
    return f.select(f.any(asked), constant(x.type, float("nan")), x)
