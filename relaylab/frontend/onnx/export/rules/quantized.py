"""Quantized programs: steps between integers and real numbers, and sums of products of integers."""

from __future__ import annotations

import numpy as np

from relaylab.frontend.onnx.export.rules.base import attributes, dtype_of, ints, known, pads, refused, rule, shape_of
from relaylab.frontend.onnx.export.rules.products import swapped
from relaylab.frontend.onnx.export.rules.windows import WindowForm, order_of
from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Call


def _is_number(call: Call, index: int) -> bool:
    return int(np.prod(shape_of(call.args[index]))) == 1


def _scale(w: Writer, call: Call, index: int, name: str) -> str:
    """A scale: one for all, or one for each place of an axis."""
    return w.reshape(name, []) if _is_number(call, index) and shape_of(call.args[index]) else name


def _zero(w: Writer, call: Call, index: int, dtype: str) -> str:
    """A zero point as one of the quantized type, which ONNX wants; empty if it may lie outside of it."""
    value = known(call.args[index])
    if value is None or not np.array_equal(value.astype(dtype).astype("int64"), value.astype("int64")):
        return ""
    return w.constant(value.astype(dtype).reshape([] if _is_number(call, index) else [-1]))


def _spread(w: Writer, call: Call, index: int, name: str) -> str:
    """A scale or zero point in the shape in which it meets the data."""
    axis, rank = int(attributes(call)["axis"]), len(shape_of(call))
    return w.reshape(name, []) if _is_number(call, index) else w.along(name, axis, rank)


@rule("qnn.quantize")
def _quantize(w: Writer, call: Call, ins: list[str]) -> Value:
    dtype = dtype_of(call)
    if zero := _zero(w, call, 2, dtype) if dtype in ("int8", "uint8") else "":
        scale = _scale(w, call, 1, ins[1])
        return w.emit("QuantizeLinear", [ins[0], scale, zero], axis=int(attributes(call)["axis"]))
    steps = w.emit("Round", [w.emit("Div", [ins[0], _spread(w, call, 1, ins[1])])])
    moved = w.emit("Add", [steps, w.cast(_spread(w, call, 2, ins[2]), "float32")])
    ends = np.iinfo(dtype)
    inside = w.emit("Clip", [moved, w.scalar(ends.min, "float32"), w.scalar(ends.max, "float32")])
    return w.cast(inside, dtype)


@rule("qnn.dequantize")
def _dequantize(w: Writer, call: Call, ins: list[str]) -> Value:
    dtype = dtype_of(call.args[0])
    if zero := _zero(w, call, 2, dtype) if dtype in ("int8", "uint8") else "":
        scale = _scale(w, call, 1, ins[1])
        return w.emit("DequantizeLinear", [ins[0], scale, zero], axis=int(attributes(call)["axis"]))
    moved = w.emit("Sub", [w.cast(ins[0], "float32"), w.cast(_spread(w, call, 2, ins[2]), "float32")])
    return w.emit("Mul", [moved, _spread(w, call, 1, ins[1])])


@rule("fixed_point_multiply")
def _fixed_point_multiply(w: Writer, call: Call, ins: list[str]) -> Value:
    """In int64; a shift to the right is a quotient rounded down."""
    a = attributes(call)
    multiplier, shift = int(a["multiplier"]), int(a["shift"])
    power = 1 << 31 + max(-shift, 0)
    factor = w.scalar(multiplier << max(shift, 0), "int64")
    total = w.emit("Add", [w.emit("Mul", [w.cast(ins[0], "int64"), factor]), w.scalar(power >> 1, "int64")])
    return w.cast(w.floored([total, w.scalar(power, "int64")]), "int32")


def _zeros(w: Writer, call: Call) -> list[str]:
    """The zero points of data and weights."""
    found = [_zero(w, call, k, dtype_of(call.args[k - 2])) for k in (2, 3)]
    if not all(found):
        raise refused(call, "zero points that are computed", "fold them first: relay.transform.FoldConstant()")
    return found


@rule("qnn.dense")
def _dense(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("MatMulInteger", [ins[0], swapped(w, ins[1], 2), *_zeros(w, call)])


@rule("qnn.conv2d")
def _conv2d(w: Writer, call: Call, ins: list[str]) -> Value:
    a = attributes(call)
    form = WindowForm(w, call, str(a["data_layout"]))
    order = order_of(call, str(a["kernel_layout"]), "OIHW")
    shape = [shape_of(call.args[1])[k] for k in order]
    if shape[0] != form.out[1]:
        raise refused(call, f"a kernel of {shape[0]} channels", "it is written for one kernel a channel of the result")
    found = w.emit(
        "ConvInteger", [form.data(ins[0]), w.transposed(ins[1], order), *_zeros(w, call)], strides=ints(a["strides"]),
        pads=pads(a["padding"]), dilations=ints(a["dilation"]), group=int(a["groups"]), kernel_shape=shape[2:],
    )  # fmt: skip
    return form.result(found)
