"""Shapes that a model computes, as expressions of open sizes: what `Shape`, `Gather`, `Concat` and arithmetic give.

A known vector of sizes is an array of objects: ints, and sizes with names (`ir/dims.py`). A rule gives up (None, or
`UndecidedSize`) where what results is no such expression; the program then computes the values when it runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.ratios import Number, SizeRatio, fraction, is_float, made
from relaylab.ir.dims import AnyDim, IntImm, SymbolicDim, UndecidedSize, differ, larger, smaller
from relaylab.op.shapes import times_in

if TYPE_CHECKING:
    from relaylab.frontend.graph import Graph

LARGEST = 64
"""How many numbers are followed at most; shapes have fewer."""

Values = np.ndarray
Size = int | SymbolicDim
Rule = Callable[..., "Values | None"]
INTEGERS, FLOATS = (6, 7), (1, 11)
"""int32 and int64, float32 and float64 among ONNX's data types."""


def followed(g: Graph, node: OnnxNode, ins: Sequence[Any], symbols: Sequence[Values | None]) -> Values | None:
    """The values of a node's first output, if they are expressions of sizes. `symbols` are those of its inputs."""
    if node.domain:
        return None
    if node.op_type == "Shape":
        return objects(g.dims(ins[0]))[node.get("start", 0) : node.get("end")]
    rule = RULES.get(node.op_type)
    if rule is None or not symbols or any(s is None and x is not None for s, x in zip(symbols, ins)):
        return None
    if all(s is None or not any(isinstance(v, (SymbolicDim, SizeRatio)) for v in s.flat) for s in symbols):
        return None  # numbers, which are folded
    try:
        found = rule(node, *symbols)
    except (UndecidedSize, LookupError, TypeError, ValueError):
        return None
    return found if found is not None and found.size <= LARGEST else None


def objects(values: Sequence[Any]) -> Values:
    """A vector of sizes; plain numbers are ints, and `Any` stays."""
    out = np.empty(len(values), object)
    out[:] = [v if isinstance(v, AnyDim) else int(v) for v in values]
    return out


def _ints(values: Values | None) -> list[int] | None:
    return None if values is None else [int(v) for v in values.reshape(-1)]


def _gather(node: OnnxNode, x: Values, at: Values) -> Values:
    return np.asarray(np.take(x, at.astype("int64"), axis=node.get("axis", 0)), object)


def _concat(node: OnnxNode, *parts: Values) -> Values:
    return np.concatenate(parts, node.need("axis"))


def _unsqueeze(node: OnnxNode, x: Values, axes: Values | None = None) -> Values:
    return np.expand_dims(x, tuple(_ints(axes) or node.ints("axes") or ()))


def _squeeze(node: OnnxNode, x: Values, axes: Values | None = None) -> Values:
    return np.squeeze(x, tuple(_ints(axes) or node.ints("axes") or ()) or None)


def _slice(
    node: OnnxNode, x: Values, starts: Values, ends: Values, axes: Values | None = None, steps: Values | None = None
) -> Values:
    first, last = _ints(starts) or [], _ints(ends) or []
    cuts: list[slice] = [slice(None)] * x.ndim
    for axis, b, e, s in zip(_ints(axes) or range(len(first)), first, last, _ints(steps) or [1] * len(first)):
        cuts[axis] = slice(b, None if s < 0 and e < -x.shape[axis] else e, s)
    return x[tuple(cuts)]


def _cast(node: OnnxNode, x: Values) -> Values | None:
    to = node.need("to")
    if to in FLOATS:
        return _of_each(lambda v: v if is_float(v) else made(v, 1), x)
    return _of_each(lambda v: _cut_off(v) if is_float(v) else v, x) if to in INTEGERS else None


def _of_each(fn: Callable[[Any], Any], x: Values) -> Values:
    return np.asarray(np.frompyfunc(fn, 1, 1)(x), object)


def _cut_off(value: Number) -> Size | AnyDim:
    """A float as an integer, rounded to zero."""
    if isinstance(value, SizeRatio) and value.under > 1 and not value.over >= 0:
        raise UndecidedSize("a negative size rounded to zero", code="type.symbolic")
    return _whole(value, 0) if isinstance(value, SizeRatio) else int(value)


def _whole(value: Number, up: int) -> Size | AnyDim:
    """A float as an integer: rounded down, or `up`."""
    if not isinstance(value, SizeRatio):
        return math.ceil(value) if up else math.floor(value)
    if value.under == 1:
        return value.over
    return _divided(value.over + (value.under - 1 if up else 0), value.under)


def _rounded(up: int) -> Rule:
    return lambda node, x: _of_each(lambda v: made(_whole(v, up), 1), x)


def _limited(limit: Callable[[Any, Any], Any]) -> Rule:
    """The larger or the smaller of two integers."""

    def of_two(a: Number, b: Number) -> Number:
        if is_float(a) or is_float(b):
            raise UndecidedSize("the larger of two floats", code="type.symbolic")
        return limit(a, b)

    return lambda node, x, *more: x if not more else np.asarray(np.frompyfunc(of_two, 2, 1)(x, more[0]), object)


def _constant_of_shape(node: OnnxNode, shape: Values) -> Values:
    value = node.get("value")
    return np.full(_ints(shape) or (), 0.0 if value is None else value.reshape(-1)[0].item(), object)


def grows(a: Size) -> bool:
    """Whether a number is not negative, but for small sizes. Raises `UndecidedSize` where they do not tell."""
    largest: Any = a - min(a.terms.get((), 0), 0) if isinstance(a, SymbolicDim) else a
    return largest >= 0


def _ratio(a: Number, b: Number) -> Number:
    if isinstance(b, SizeRatio):
        raise UndecidedSize("a quotient by a size", code="type.symbolic")
    return a / b if isinstance(a, SizeRatio) else float(a / fraction(b))


def _divided(a: Number, b: Number) -> Number:
    """Rounded down, as integers are where nothing is negative.

    What is negative for small sizes only, as `(n - 5) // 2`, how many windows fit, torch writes so and rounds down.
    """
    if is_float(a) or is_float(b):
        return _ratio(a, b)
    if isinstance(b, SymbolicDim):
        return times_in(a, b)
    if not (grows(a) and b > 0):
        raise UndecidedSize("a quotient of negative sizes", code="type.symbolic")
    return a // b


def _modulo(a: Size, b: Size) -> object:
    """Of the divisor's sign, so the quotient is rounded down."""
    if isinstance(b, SymbolicDim):
        full: Any = times_in(a, b)
        return a - full * b
    if not b > 0:
        raise UndecidedSize("a remainder of no positive size", code="type.symbolic")
    whole: Any = a // b
    return a - b * whole


def _remainder(node: OnnxNode, x: Values, y: Values) -> Values | None:
    return None if node.get("fmod", 0) else np.asarray(np.frompyfunc(_modulo, 2, 1)(x, y), object)


def _equal(a: Size, b: Size) -> bool:
    if a == b and type(a) is not AnyDim:
        return True
    if differ(*(v if isinstance(v, SymbolicDim) else IntImm(v) for v in (a, b))):
        return False
    raise UndecidedSize(f"whether {a} is {b}", code="type.symbolic")


def _each(fn: Callable[..., Any]) -> Rule:
    return lambda node, *xs: np.asarray(np.frompyfunc(fn, len(xs), 1)(*xs), object)


def _product(node: OnnxNode, x: Values, axes: Values | None = None) -> Values:
    kept = bool(node.get("keepdims", 1))
    along = _ints(axes) or node.ints("axes") or range(x.ndim)
    return np.asarray(np.prod(x, axis=tuple(along), keepdims=kept), object)


RULES: dict[str, Rule] = {
    "Gather": _gather,
    "Concat": _concat,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Slice": _slice,
    "Cast": _cast,
    "Identity": lambda node, x: x,
    "Reshape": lambda node, x, to: x.reshape(_ints(to)),
    "Add": _each(lambda a, b: a + b),
    "Sub": _each(lambda a, b: a - b),
    "Mul": _each(lambda a, b: a * b),
    "Div": _each(_divided),
    "Mod": _remainder,
    "Neg": _each(lambda a: -a),
    "Equal": _each(_equal),
    "Where": _each(lambda c, a, b: a if c else b),
    "Ceil": _rounded(1),
    "Floor": _rounded(0),
    "Max": _limited(larger),
    "Min": _limited(smaller),
    "Transpose": lambda node, x: x.transpose(node.ints("perm")),
    "ConstantOfShape": _constant_of_shape,
    "ReduceProd": _product,
}
"""What is followed besides `Shape`, whose input may be anything."""
