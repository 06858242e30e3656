"""Scalar expressions as text, for people and for `relaylab.loop.parse`: infix operators, calls, flat loads.

Constants say their dtype (`0f`, `3i32`, `0.5f64`), but int64 and bool ones; sizes are written `$n`.
"""

from __future__ import annotations

import math

from relaylab.loop.expr import (
    INDEX,
    Apply,
    Axis,
    Cast,
    Const,
    Guard,
    Load,
    Local,
    Number,
    Reduce,
    ScalarExpr,
    Size,
    children,
    post_order,
)
from relaylab.loop.scalar import FLOATS

INFIX = {
    "mul": ("*", 7), "div": ("/", 7), "floordiv": ("//", 7), "floormod": ("%", 7), "add": ("+", 6), "sub": ("-", 6),
    "shl": ("<<", 5), "shr": (">>", 5), "lt": ("<", 3), "le": ("<=", 3), "gt": (">", 3), "ge": (">=", 3),
    "eq": ("==", 3), "ne": ("!=", 3), "land": ("and", 2), "lor": ("or", 1), "band": ("&", 4), "bor": ("|", 4),
    "bxor": ("^", 4),
}  # fmt: skip
"""How functions of two arguments are written, and how strongly they bind."""
SUFFIXES = {
    "float32": "f", "float16": "f16", "bfloat16": "bf16", "float64": "f64", "int8": "i8", "int16": "i16",
    "int32": "i32", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
}  # fmt: skip
"""What ends a constant of a dtype."""
LONGEST = 1000
ATOM = 9
"""How strongly what is one word binds."""
Shown = dict[ScalarExpr, tuple[str, int]]
"""The texts of expressions, and how strongly their outermost operators bind."""


def show(root: ScalarExpr, done: Shown | None = None, apart: list[str] | None = None) -> str:
    """The text of an expression; a shared part is written where it is used.

    A part of more than `LONGEST` characters is cut, or goes to `apart` and is `$0`, `$1` ... where it is used: what is
    written is never much more than the expression has nodes. `done` keeps the texts of nodes for the next call.
    """
    done = {} if done is None else done
    for node in post_order(root, known=done):
        text, strength = _text(node, [done[c] for c in children(node)])
        if len(text) > LONGEST:
            if apart is None:
                text = text[:LONGEST] + "..."
            else:
                apart.append(text)
                text, strength = f"${len(apart) - 1}", ATOM
        done[node] = text, strength
    return done[root][0]


def _text(node: ScalarExpr, parts: list[tuple[str, int]]) -> tuple[str, int]:
    match node:
        case Axis(name) | Local(name):
            return name, ATOM
        case Const(value, dtype):
            return str(int(value)) if dtype == INDEX else _number(value, dtype), ATOM
        case Load(tensor):
            return f"{tensor.name}[{', '.join(p[0] for p in parts)}]", ATOM
        case Apply(op) if op in INFIX:
            sign, strength = INFIX[op]
            (left, first), (right, second) = parts
            left = left if first >= strength else f"({left})"
            right = right if second > strength else f"({right})"
            return f"{left} {sign} {right}", strength
        case Apply(op):
            return f"{op}({', '.join(p[0] for p in parts)})", ATOM
        case Cast(_, dtype):
            return f"{dtype}({parts[0][0]})", ATOM
        case Guard():
            return f"guard({', '.join(p[0] for p in parts)})", ATOM
        case Size(name):
            return f"${name}" if name.isidentifier() else f"$`{name}`", ATOM
        case Reduce(kind, axes):
            box = ", ".join(f"{a.name} in {a.extent if a.size is None else show(a.size)}" for a in axes)
            return f"{kind}[{box}]({parts[0][0]})", ATOM
        case _:
            return repr(node), ATOM


def _number(value: Number, dtype: str) -> str:
    if dtype == "bool":
        return str(bool(value))
    if dtype not in FLOATS:
        return f"{int(value)}{SUFFIXES[dtype]}"
    if not math.isfinite(value):
        return f"{value}" if dtype == "float32" else f"{value}_{SUFFIXES[dtype]}"
    return f"{value:.9g}f" if dtype == "float32" else f"{float(value)}".removesuffix(".0") + SUFFIXES[dtype]
