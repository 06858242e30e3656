"""Arithmetic of elements: numbers, comparisons, bits, conversions."""

from __future__ import annotations

import math

from relaylab.frontend.onnx.export.rules.base import alike, attributes, dtype_of, is_float, operator, rule, shape_of
from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Call, TupleType

alike(
    {
        "nn.relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "erf": "Erf", "exp": "Exp", "sqrt": "Sqrt",
        "log": "Log", "abs": "Abs", "negative": "Neg", "ceil": "Ceil", "floor": "Floor", "round": "Round",
        "sign": "Sign", "sin": "Sin", "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan",
        "sinh": "Sinh", "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh",
        "isnan": "IsNaN", "isinf": "IsInf", "logical_not": "Not", "bitwise_not": "BitwiseNot",
        "fast_exp": "Exp", "fast_tanh": "Tanh", "fast_erf": "Erf",
        "add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "maximum": "Max", "minimum": "Min",
        "power": "Pow", "equal": "Equal", "less": "Less", "less_equal": "LessOrEqual", "greater": "Greater",
        "greater_equal": "GreaterOrEqual", "logical_and": "And", "logical_or": "Or", "logical_xor": "Xor",
        "bitwise_and": "BitwiseAnd", "bitwise_or": "BitwiseOr", "bitwise_xor": "BitwiseXor",
    }
)  # fmt: skip
_PLACES = "checkpoint stop_fusion cast_hint compiler_begin compiler_end".split()


@rule("copy", "device_copy", "on_device", *(f"annotation.{name}" for name in _PLACES))
def _same(w: Writer, call: Call, ins: list[str]) -> Value:
    return list(ins) if isinstance(call.checked_type, TupleType) else w.emit("Identity", ins)


@rule("rsqrt")
def _rsqrt(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Reciprocal", [w.emit("Sqrt", ins)])


@rule("log2", "log10")
def _log(w: Writer, call: Call, ins: list[str]) -> Value:
    base = math.log(2 if operator(call) == "log2" else 10)
    return w.emit("Div", [w.emit("Log", ins), w.scalar(base, dtype_of(call))])


@rule("trunc")
def _trunc(w: Writer, call: Call, ins: list[str]) -> Value:
    if not is_float(call):
        return w.emit("Identity", ins)
    zero = w.scalar(0, dtype_of(call))
    return w.either(w.emit("Less", [ins[0], zero]), w.emit("Ceil", ins), w.emit("Floor", ins))


@rule("isfinite")
def _isfinite(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Not", [w.emit("Or", [w.emit("IsNaN", ins), w.emit("IsInf", ins)])])


@rule("not_equal")
def _not_equal(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Not", [w.emit("Equal", ins)])


@rule("left_shift", "right_shift")
def _shift(w: Writer, call: Call, ins: list[str]) -> Value:
    left, dtype = operator(call) == "left_shift", dtype_of(call)
    if dtype.startswith("u"):
        return w.emit("BitShift", ins, direction="LEFT" if left else "RIGHT")
    # signed numbers have no shift: it is a product, or a quotient rounded down
    x, power = w.cast(ins[0], "int64"), w.emit("Pow", [w.scalar(2, "int64"), w.cast(ins[1], "int64")])
    found = w.emit("Mul", [x, power]) if left else w.floored([x, power])
    return w.cast(found, dtype)


@rule("mod", "trunc_mod")
def _mod(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Mod", ins, fmod=1)


@rule("floor_mod")
def _floor_mod(w: Writer, call: Call, ins: list[str]) -> Value:
    if not is_float(call):
        return w.emit("Mod", ins)
    return w.emit("Sub", [ins[0], w.emit("Mul", [w.emit("Floor", [w.emit("Div", ins)]), ins[1]])])


@rule("floor_divide")
def _floor_divide(w: Writer, call: Call, ins: list[str]) -> Value:
    if is_float(call):
        return w.emit("Floor", [w.emit("Div", ins)])
    return w.floored(ins)


@rule("trunc_divide")
def _trunc_divide(w: Writer, call: Call, ins: list[str]) -> Value:
    found = w.emit("Div", ins)
    return _trunc(w, call, [found]) if is_float(call) else found


@rule("cast", "cast_like")
def _cast(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.cast(ins[0], dtype_of(call))


@rule("clip")
def _clip(w: Writer, call: Call, ins: list[str]) -> Value:
    a, dtype = attributes(call), dtype_of(call)
    ends = [float(a[name]) if is_float(call) else int(a[name]) for name in ("a_min", "a_max")]
    return w.emit("Clip", [ins[0], *(w.scalar(end, dtype) for end in ends)])


@rule("where")
def _where(w: Writer, call: Call, ins: list[str]) -> Value:
    condition = ins[0] if dtype_of(call.args[0]) == "bool" else w.cast(ins[0], "bool")
    return w.either(condition, *ins[1:])


@rule("nn.leaky_relu")
def _leaky_relu(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("LeakyRelu", ins, alpha=float(attributes(call)["alpha"]))


@rule("nn.prelu")
def _prelu(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("PRelu", [ins[0], w.along(ins[1], int(attributes(call)["axis"]), len(shape_of(call)))])
