"""Arithmetic, comparison and logic, element by element with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx.model import dtype_of, load_onnx
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.table import converts, register
from relaylab.ir import Expr
from relaylab.op.tensor.composite import round_even

_OLD = ("consumed_inputs",)

UNARY: dict[str, Callable] = {
    "Abs": op.abs, "Acos": op.acos, "Acosh": op.acosh, "Asin": op.asin, "Asinh": op.asinh, "Atan": op.atan,
    "Atanh": op.atanh,
    "Ceil": op.ceil, "Cos": op.cos, "Cosh": op.cosh, "Erf": op.erf, "Exp": op.exp, "Floor": op.floor, "Log": op.log,
    "Neg": op.negative, "Sin": op.sin, "Sinh": op.sinh, "Sqrt": op.sqrt, "Tan": op.tan,
    "Tanh": op.tanh, "Sigmoid": op.sigmoid, "Not": op.logical_not, "IsNaN": op.isnan, "BitwiseNot": op.bitwise_not,
}  # fmt: skip

BINARY: dict[str, Callable] = {
    "Add": op.add, "Sub": op.subtract, "Mul": op.multiply, "Div": op.divide, "And": op.logical_and, "Or": op.logical_or,
    "Xor": op.logical_xor, "Equal": op.equal, "Greater": op.greater, "Less": op.less,
    "GreaterOrEqual": op.greater_equal,
    "LessOrEqual": op.less_equal, "BitwiseAnd": op.bitwise_and,
    "BitwiseOr": op.bitwise_or, "BitwiseXor": op.bitwise_xor,
}  # fmt: skip


def _unary(build: Callable) -> Callable:
    def convert(g: Graph, node: OnnxNode, x: Expr) -> Expr:
        return build(x)

    return convert


def _binary(build: Callable) -> Callable:
    def convert(g: Graph, node: OnnxNode, a: Expr, b: Expr) -> Expr:
        b = _aligned(g, node, a, b) if node.version < 7 else b
        _check_same(g, node, a, b)
        return build(a, b)

    return convert


def _aligned(g: Graph, node: OnnxNode, a: Expr, b: Expr) -> Expr:
    """Before opset 7 the axes of the right side are those of the left one from `axis` on, the last ones if not said."""
    if not node.get("broadcast", 0):
        return b
    axis, ranks = node.get("axis"), (g.rank(a), g.rank(b))
    behind = 0 if axis is None else ranks[0] - g.axis(axis, ranks[0] + 1) - ranks[1]
    if behind < 0:
        raise node.error(f"{g.tensor(b)} does not fit {g.tensor(a)} from axis {axis} on", code="import.shape")
    return op.expand_dims(b, axis=ranks[1], num_newaxis=behind) if behind else b


def _variadic(build: Callable) -> Callable:
    def convert(g: Graph, node: OnnxNode, first: Expr, *rest: Expr) -> Expr:
        _check_same(g, node, first, *rest)
        return reduce(build, rest, first)

    return convert


def _check_same(g: Graph, node: OnnxNode, *ins: Expr) -> None:
    dtypes = list(dict.fromkeys(map(g.dtype, ins)))
    if len(dtypes) > 1:
        raise node.error(f"the inputs have different data types: {', '.join(dtypes)}", code="import.dtype")


for _name, _build in UNARY.items():
    register(_name, _unary(_build), unused=_OLD)
for _name, _build in BINARY.items():
    register(_name, _binary(_build), unused=_OLD)
for _name, _build in {"Max": op.maximum, "Min": op.minimum, "Sum": op.add}.items():
    register(_name, _variadic(_build), unused=_OLD)


@converts("Identity")
def identity(g: Graph, node: OnnxNode, x: Expr | list[Expr]) -> list[Expr | list[Expr]]:
    return [x]


@converts("Sign")
def sign(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """Of NaN it is NaN, in Relay 0."""
    return op.where(op.isnan(x), x, op.sign(x)) if "float" in g.dtype(x) else op.sign(x)


@converts("Mean")
def mean(g: Graph, node: OnnxNode, first: Expr, *rest: Expr) -> Expr:
    total = reduce(op.add, rest, first)
    return op.divide(total, g.const(1 + len(rest), first))


@converts("Reciprocal", unused=_OLD)
def reciprocal(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.divide(g.const(1, x), x)


@converts("Round")
def round_(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return round_even(x, g.dtype(x))


@converts("Mod")
def mod(g: Graph, node: OnnxNode, a: Expr, b: Expr) -> Expr:
    if node.get("fmod", 0):
        return op.trunc_mod(a, b) if "float" not in g.dtype(a) else op.mod(a, b)
    return op.floor_mod(a, b)


@converts("Pow")
def power(g: Graph, node: OnnxNode, base: Expr, exponent: Expr) -> Expr:
    """The result has the base's type; integers go through float64 unless the exponent is a small constant."""
    exponent = _aligned(g, node, base, exponent) if node.version < 7 else exponent
    kind, known = g.dtype(base), g.value(exponent)
    if known is not None and known.size == 1 and known.ravel()[0] == 2 and np.ndim(known) <= g.rank(base):
        return op.multiply(base, base)
    if "float" in kind:
        return op.power(base, same(g, exponent, kind))
    wide = op.power(op.cast(base, "float64"), same(g, exponent, "float64"))
    return op.cast(wide, kind)


def same(g: Graph, x: Expr, dtype: str) -> Expr:
    """`x` in a data type."""
    return x if g.dtype(x) == dtype else op.cast(x, dtype)


@converts("BitShift")
def bit_shift(g: Graph, node: OnnxNode, x: Expr, by: Expr) -> Expr:
    """Shifts by the width of the type or more leave nothing."""
    shift = op.left_shift if node.choice("direction", "", ("LEFT", "RIGHT")) == "LEFT" else op.right_shift
    width = 8 * np.dtype(g.dtype(x)).itemsize
    bits, zero = g.const(width, x), g.const(0, x)
    if shift is op.right_shift and g.dtype(x).startswith("int"):  # the sign remains
        return shift(x, op.minimum(by, g.const(width - 1, x)))
    inside = op.less(by, bits)
    return op.where(inside, shift(x, op.where(inside, by, zero)), zero)


@converts("IsInf")
def is_inf(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    positive, negative = node.get("detect_positive", 1), node.get("detect_negative", 1)
    if positive and negative:
        return op.isinf(x)
    if not positive and not negative:
        return op.logical_and(op.isinf(x), op.isnan(x))
    limit = g.const(np.inf if positive else -np.inf, x)
    return op.equal(x, limit)


@converts("Where")
def where(g: Graph, node: OnnxNode, condition: Expr, x: Expr, y: Expr) -> Expr:
    """A condition that is known, and the same everywhere, chooses now."""
    known = g.value(condition)
    if known is not None and known.size and known.all() == known.any() and g.tensor(x).dtype == g.tensor(y).dtype:
        chosen, other = (x, y) if known.all() else (y, x)
        if g.is_static(x) and g.is_static(y):
            wide = np.broadcast_shapes(known.shape, g.shape(chosen), g.shape(other))
            return chosen if wide == g.shape(chosen) else op.broadcast_to(chosen, wide)
    return op.where(condition, x, y)


@converts("Cast", unused=("saturate", "round_mode"))
def cast(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    to = node.need("to")
    if isinstance(to, str):  # before opset 6 types were names
        to = dict(load_onnx().TensorProto.DataType.items()).get(to, to)
    return g.converted(x, dtype_of(to, "the attribute `to`"))


@converts("CastLike", unused=("saturate", "round_mode"))
def cast_like(g: Graph, node: OnnxNode, x: Expr, like: Expr) -> Expr:
    return g.converted(x, g.dtype(like))


@converts("Clip", unused=_OLD)
def clip_attributes(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    low, high = node.get("min"), node.get("max")
    return limited(g, x, low, high)


@converts("Clip", since=11)
def clip(g: Graph, node: OnnxNode, x: Expr, low: Expr | None = None, high: Expr | None = None) -> Expr:
    known = [g.value(v) for v in (low, high)]
    if all((k is None) == (v is None) for k, v in zip(known, (low, high))):
        return limited(g, x, *(None if k is None else k.reshape(()).item() for k in known))
    out = x if low is None else op.maximum(x, low)
    return out if high is None else op.minimum(out, high)


def limited(g: Graph, x: Expr, low: float | None, high: float | None) -> Expr:
    """`x` between numbers that are known; one that is missing does not limit."""
    dtype = g.dtype(x)
    if dtype == "float32" and low is not None and high is not None and low <= high:
        return op.clip(x, float(low), float(high))
    out = x if low is None else op.maximum(x, g.const(low, x))
    return out if high is None else op.minimum(out, g.const(high, x))


@converts("BitCast", since=26)
def bit_cast(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.reinterpret(x, dtype_of(node.need("to"), "the attribute `to`"))
