"""Normalizations, and what is a part of them."""

from __future__ import annotations

import numpy as np

from relaylab.frontend.onnx.export.rules.base import attributes, dtype_of, ints, only, operator, refused, rule, shape_of
from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Call


def _scale_and_shift(w: Writer, call: Call, ins: list[str]) -> tuple[str, str]:
    """gamma and beta, or what stands for them where they do not count."""
    like = np.ones(shape_of(call.args[1]), dtype_of(call.args[1]))
    a = attributes(call)
    return ins[1] if a["scale"] else w.constant(like), ins[2] if a["center"] else w.constant(0 * like)


def _first(w: Writer, name: str, axis: int, rank: int) -> tuple[str, list[int]]:
    """A value with an axis at place 1, and the order that brings it back."""
    rest = [k for k in range(1, rank) if k != axis]
    order = [0, axis, *rest]
    return w.transposed(name, order), [order.index(k) for k in range(rank)]


@rule("nn.batch_norm")
def _batch_norm(w: Writer, call: Call, ins: list[str]) -> Value:
    rank = len(shape_of(call.args[0]))
    axis = int(attributes(call)["axis"]) % rank
    if axis == 0:
        raise refused(call, "axis=0", "move the axis: relay.transpose")
    data, back = _first(w, ins[0], axis, rank)
    inputs = [data, *_scale_and_shift(w, call, ins), ins[3], ins[4]]
    found = w.emit("BatchNormalization", inputs, epsilon=float(attributes(call)["epsilon"]))
    return [w.transposed(found, back), ins[3], ins[4]]


@rule("nn.layer_norm")
def _layer_norm(w: Writer, call: Call, ins: list[str]) -> Value:
    a, rank = attributes(call), len(shape_of(call))
    axis = int(a["axis"]) % rank
    order = [*(k for k in range(rank) if k != axis), axis]  # ONNX normalizes over all axes from one on
    inputs = [w.transposed(ins[0], order), *_scale_and_shift(w, call, ins)]
    found = w.emit("LayerNormalization", inputs, axis=-1, epsilon=float(a["epsilon"]))
    return w.transposed(found, [order.index(k) for k in range(rank)])


@rule("nn.instance_norm")
def _instance_norm(w: Writer, call: Call, ins: list[str]) -> Value:
    rank = len(shape_of(call))
    data, back = _first(w, ins[0], int(attributes(call)["axis"]) % rank, rank)
    inputs = [data, *_scale_and_shift(w, call, ins)]
    return w.transposed(w.emit("InstanceNormalization", inputs, epsilon=float(attributes(call)["epsilon"])), back)


@rule("nn.group_norm")
def _group_norm(w: Writer, call: Call, ins: list[str]) -> Value:
    """Groups as channels of an instance norm, then scale and shift of each channel."""
    a, shape = attributes(call), shape_of(call)
    axis, groups = int(a["axis"]) % len(shape), int(a["num_groups"])
    one, none = (w.constant(make(groups, dtype_of(call))) for make in (np.ones, np.zeros))
    parts = [w.reshape(ins[0], [int(np.prod(shape[:axis])), groups, -1]), one, none]
    found = w.reshape(w.emit("InstanceNormalization", parts, epsilon=float(a["epsilon"])), shape)
    scale, shift = (w.along(x, axis, len(shape)) for x in _scale_and_shift(w, call, ins))
    return w.emit("Add", [w.emit("Mul", [found, scale]), shift])


@rule("nn.l2_normalize")
def _l2_normalize(w: Writer, call: Call, ins: list[str]) -> Value:
    a = attributes(call)
    axes = ints(a["axis"], 1) if a["axis"] is not None else list(range(len(shape_of(call))))
    total = w.emit("ReduceSum", [w.emit("Mul", [ins[0], ins[0]]), w.numbers(axes)], keepdims=1)
    least = w.emit("Max", [total, w.scalar(float(a["eps"]), dtype_of(call))])
    return w.emit("Div", [ins[0], w.emit("Sqrt", [least])])


@rule("nn.lrn")
def _lrn(w: Writer, call: Call, ins: list[str]) -> Value:
    a = attributes(call)
    only(call, axis=1)
    settings = {name: float(a[name]) for name in ("alpha", "beta", "bias")}
    return w.emit("LRN", ins, size=int(a["size"]), **settings)


@rule("nn.softmax", "nn.fast_softmax", "nn.log_softmax")
def _softmax(w: Writer, call: Call, ins: list[str]) -> Value:
    name = "LogSoftmax" if operator(call) == "nn.log_softmax" else "Softmax"
    return w.emit(name, ins, axis=int(attributes(call)["axis"]))


@rule("nn.attention")
def _attention(w: Writer, call: Call, ins: list[str]) -> Value:
    """The scores as a whole: ONNX has an operator for it from opset 23 on."""
    query, key, value, mask = ins
    dtype, a, rank = dtype_of(call), attributes(call), len(shape_of(call))
    turned = w.transposed(key, [*range(rank - 2), rank - 1, rank - 2])
    scores = w.emit("Mul", [w.emit("MatMul", [query, turned]), w.scalar(float(a["scale"]), dtype)])
    weights = w.emit("Softmax", [w.emit("Add", [scores, mask])], axis=-1)
    if a["zero_empty"]:
        weights = w.emit("Where", [w.emit("IsNaN", [weights]), w.scalar(0.0, dtype), weights])
    return w.emit("MatMul", [weights, value])


@rule("nn.bias_add")
def _bias_add(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Add", [ins[0], w.along(ins[1], int(attributes(call)["axis"]), len(shape_of(call.args[0])))])
