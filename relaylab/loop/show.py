"""Scalar expressions as text, for people: infix operators, calls, flat loads."""

from __future__ import annotations

import math

from relaylab.loop.expr import (
    Apply,
    Axis,
    Cast,
    Const,
    Guard,
    Load,
    Local,
    Reduce,
    ScalarExpr,
    Size,
    children,
    post_order,
)

_INFIX = {
    "mul": ("*", 7), "div": ("/", 7), "floordiv": ("//", 7), "floormod": ("%", 7), "add": ("+", 6), "sub": ("-", 6),
    "shl": ("<<", 5), "shr": (">>", 5), "lt": ("<", 3), "le": ("<=", 3), "gt": (">", 3), "ge": (">=", 3),
    "eq": ("==", 3), "ne": ("!=", 3), "land": ("and", 2), "lor": ("or", 1), "band": ("&", 4), "bor": ("|", 4),
    "bxor": ("^", 4),
}  # fmt: skip
_ATOM = 9
LONGEST = 4000


def show(root: ScalarExpr) -> str:
    """The text of an expression; a shared part is written where it is used, longer text than `LONGEST` is cut."""
    done: dict[ScalarExpr, tuple[str, int]] = {}
    for node in post_order(root):
        text, strength = _text(node, [done[c] for c in children(node)])
        done[node] = (text if len(text) <= LONGEST else text[:LONGEST] + "...", strength)
    return done[root][0]


def _text(node: ScalarExpr, parts: list[tuple[str, int]]) -> tuple[str, int]:
    words = [p[0] for p in parts]
    match node:
        case Const(value, dtype):
            return _number(value, dtype), _ATOM
        case Axis(name) | Local(name) | Size(name):
            return name, _ATOM
        case Load(tensor):
            return f"{tensor.name}[{', '.join(words)}]", _ATOM
        case Apply(op) if op in _INFIX:
            sign, strength = _INFIX[op]
            left = words[0] if parts[0][1] >= strength else f"({words[0]})"
            right = words[1] if parts[1][1] > strength else f"({words[1]})"
            return f"{left} {sign} {right}", strength
        case Apply(op):
            return f"{op}({', '.join(words)})", _ATOM
        case Cast(_, dtype):
            return f"{dtype}({words[0]})", _ATOM
        case Guard():
            return f"guard({words[0]}, {words[1]}, {words[2]})", _ATOM
        case Reduce(kind, axes):
            box = ", ".join(f"{a.name} in {a.extent if a.size is None else show(a.size)}" for a in axes)
            return f"{kind}[{box}]({words[0]})", _ATOM
        case _:
            return repr(node), _ATOM


def _number(value: int | float | bool, dtype: str) -> str:
    if dtype == "float32" and math.isfinite(value):
        return f"{value:.9g}f"
    return str(value)
