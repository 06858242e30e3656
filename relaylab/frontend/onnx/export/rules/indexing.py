"""Reading and writing at places that are computed."""

from __future__ import annotations

import numpy as np

from relaylab.frontend.onnx.export.rules.base import (
    attributes,
    dtype_of,
    fields_of,
    known,
    operator,
    refused,
    rule,
    shape_of,
)
from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Call
from relaylab.op.base import Operator


@rule("take")
def _take(w: Writer, call: Call, ins: list[str]) -> Value:
    a, shape, value = attributes(call), shape_of(call.args[0]), known(call.args[1])
    if int(a["batch_dims"] or 0):
        raise refused(call, f"batch_dims={a['batch_dims']}", "it is written without")
    data = ins[0] if a["axis"] is not None else w.reshape(ins[0], [-1])
    axis = int(a["axis"] or 0) % max(len(shape), 1)
    extent = shape[axis] if a["axis"] is not None else int(np.prod(shape))
    if value is not None:
        wide = value.astype("int64")
        inside = wide % extent if a["mode"] == "wrap" else np.clip(wide, 0, extent - 1)
        return w.emit("Gather", [data, w.constant(inside)], axis=axis)
    places = w.cast(ins[1], "int64")
    if a["mode"] == "wrap":
        places = w.emit("Mod", [places, w.scalar(extent, "int64")])
    else:  # ONNX counts negative places from the end and refuses others
        places = w.emit("Clip", [places, w.scalar(0, "int64"), w.scalar(extent - 1, "int64")])
    return w.emit("Gather", [data, places], axis=axis)


@rule("gather")
def _gather(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("GatherElements", [ins[0], w.cast(ins[1], "int64")], axis=int(attributes(call)["axis"] or 0))


def _coordinates_last(w: Writer, name: str, rank: int) -> str:
    """Coordinates along the first axis, as Relay has them, along the last one."""
    return w.transposed(w.cast(name, "int64"), [*range(1, rank), 0])


@rule("gather_nd")
def _gather_nd(w: Writer, call: Call, ins: list[str]) -> Value:
    places = _coordinates_last(w, ins[1], len(shape_of(call.args[1])))
    return w.emit("GatherND", [ins[0], places], batch_dims=int(attributes(call)["batch_dims"] or 0))


@rule("adv_index")
def _adv_index(w: Writer, call: Call, ins: list[str]) -> Value:
    fields = fields_of(call.args[0])
    width = len(shape_of(call)) - (len(fields[0].shape) - len(fields) + 1)
    shape = w.numbers(shape_of(call)[:width])
    expanded = [w.emit("Expand", [w.cast(x, "int64"), shape]) for x in ins[1:]]
    places = w.emit("Concat", [w.emit("Unsqueeze", [x, w.numbers([-1])]) for x in expanded], axis=-1)
    return w.emit("GatherND", [ins[0], places])


@rule("scatter", "scatter_add")
def _scatter(w: Writer, call: Call, ins: list[str]) -> Value:
    reduction = {"reduction": "add"} if operator(call) == "scatter_add" else {}
    inputs = [ins[0], w.cast(ins[1], "int64"), ins[2]]
    return w.emit("ScatterElements", inputs, axis=int(attributes(call)["axis"] or 0), **reduction)


@rule("scatter_nd")
def _scatter_nd(w: Writer, call: Call, ins: list[str]) -> Value:
    mode = str(attributes(call)["mode"])
    places = _coordinates_last(w, ins[1], len(shape_of(call.args[1])))
    reduction = {"reduction": mode} if mode != "update" else {}
    return w.emit("ScatterND", [ins[0], places, ins[2]], **reduction)


@rule("sparse_to_dense")
def _sparse_to_dense(w: Writer, call: Call, ins: list[str]) -> Value:
    shape, (count, *_) = shape_of(call), (*shape_of(call.args[0]), 1)
    places = w.reshape(w.cast(ins[0], "int64"), [count, len(shape)])
    values = w.emit("Expand", [w.reshape(ins[1], [-1]), w.numbers([count])])
    empty = w.emit("Expand", [w.reshape(w.cast(ins[2], dtype_of(call)), []), w.numbers(shape)])
    return w.emit("ScatterND", [empty, places, values])


@rule("one_hot")
def _one_hot(w: Writer, call: Call, ins: list[str]) -> Value:
    """By comparison: ONNX's own counts negative indices from the end."""
    a, rank = attributes(call), len(shape_of(call))
    axis = int(a["axis"]) % rank
    counts = np.arange(int(a["depth"])).reshape([-1 if k == axis else 1 for k in range(rank)])
    wide = w.emit("Unsqueeze", [w.cast(ins[0], "int64"), w.numbers([axis])])
    on, off = (w.reshape(w.cast(x, dtype_of(call)), []) for x in ins[1:])
    return w.either(w.emit("Equal", [wide, w.constant(counts.astype("int64"))]), on, off)


@rule("unravel_index")
def _unravel_index(w: Writer, call: Call, ins: list[str]) -> Value:
    flat, sizes, found = w.cast(ins[0], "int64"), w.cast(ins[1], "int64"), list[str]()
    for k in reversed(range(shape_of(call)[0])):
        size = w.emit("Gather", [sizes, w.scalar(k, "int64")])
        found.append(w.emit("Mod", [flat, size]))
        flat = w.emit("Div", [w.emit("Sub", [flat, found[-1]]), size])
    rows = [w.emit("Unsqueeze", [x, w.numbers([0])]) for x in found[::-1]]
    return w.cast(w.emit("Concat", rows, axis=0), dtype_of(call))


@rule("searchsorted")
def _searchsorted(w: Writer, call: Call, ins: list[str]) -> Value:
    """Counted: how many of the sequence lie before each value."""
    x = ins[0] if len(shape_of(call.args[0])) == 1 else w.emit("Unsqueeze", [ins[0], w.numbers([-2])])
    values = w.emit("Unsqueeze", [ins[1], w.numbers([-1])])
    before = w.emit("LessOrEqual" if attributes(call)["right"] else "Less", [x, values])
    count = w.emit("ReduceSum", [w.cast(before, "int64"), w.numbers([-1])], keepdims=0)
    return w.cast(count, dtype_of(call))


@rule("invert_permutation")
def _invert_permutation(w: Writer, call: Call, ins: list[str]) -> Value:
    n = shape_of(call)[0]
    same = w.emit("Equal", [w.emit("Unsqueeze", [w.cast(ins[0], "int64"), w.numbers([1])]), w.numbers(range(n))])
    return w.cast(w.emit("ArgMax", [w.cast(same, "int32")], axis=0, keepdims=0), dtype_of(call))


@rule("vision.yolo_reorg", "sliding_window")
def _moved(w: Writer, call: Call, ins: list[str]) -> Value:
    """What only moves elements, by what it does to their numbers."""
    assert isinstance(call.attrs, Operator)
    shape = shape_of(call.args[0])
    places = call.attrs.reference(np.arange(int(np.prod(shape)), dtype="int64").reshape(shape))
    flat = w.emit("Gather", [w.reshape(ins[0], [-1]), w.constant(np.ascontiguousarray(places).reshape(-1))])
    return w.reshape(flat, shape_of(call))


@rule("matrix_set_diag")
def _matrix_set_diag(w: Writer, call: Call, ins: list[str]) -> Value:
    """Elements of the matrix and of the diagonals, chosen by their numbers."""
    assert isinstance(call.attrs, Operator)
    shape, diagonal = shape_of(call.args[0]), shape_of(call.args[1])
    count = int(np.prod(shape))
    own = np.arange(count, dtype="int64").reshape(shape)
    other = count + np.arange(int(np.prod(diagonal)), dtype="int64").reshape(diagonal)
    both = w.emit("Concat", [w.reshape(x, [-1]) for x in ins], axis=0)
    return w.reshape(w.emit("Gather", [both, w.constant(call.attrs.reference(own, other).reshape(-1))]), shape)
