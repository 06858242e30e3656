"""Shapes and arrangements: what moves elements and computes nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab.frontend.onnx.export.rules.base import (
    attributes,
    dtype_of,
    fields_of,
    ints,
    operator,
    refused,
    rule,
    shape_of,
)
from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Call
from relaylab.op.layout import parse_layout, transform

_START = -(2**63)  # an end before the first element


@rule("nn.dropout")
def _dropout(w: Writer, call: Call, ins: list[str]) -> Value:
    data = call.args[0]
    return [ins[0], w.constant(np.ones(shape_of(data), dtype_of(data)))]


@rule("concatenate")
def _concatenate(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Concat", ins, axis=int(attributes(call)["axis"]))


@rule("stack")
def _stack(w: Writer, call: Call, ins: list[str]) -> Value:
    axis = int(attributes(call)["axis"]) % len(shape_of(call))
    return w.emit("Concat", [w.emit("Unsqueeze", [x, w.numbers([axis])]) for x in ins], axis=axis)


@rule("split")
def _split(w: Writer, call: Call, ins: list[str]) -> Value:
    axis = int(attributes(call)["axis"])
    sizes = [f.concrete_shape[axis] for f in fields_of(call)]
    return list(w.several("Split", [ins[0], w.numbers(sizes)], len(sizes), axis=axis))


@rule("reshape", "nn.batch_flatten", "reshape_like", "contrib_reverse_reshape", "squeeze", "expand_dims")
def _reshape(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.reshape(ins[0], shape_of(call))


@rule("transpose")
def _transpose(w: Writer, call: Call, ins: list[str]) -> Value:
    rank = len(shape_of(call))
    axes = attributes(call)["axes"] or range(rank)[::-1]
    return w.emit("Transpose", ins, perm=[int(a) % rank for a in axes]) if rank else w.emit("Identity", ins)


@rule("layout_transform")
def _layout_transform(w: Writer, call: Call, ins: list[str]) -> Value:
    """As numbers of elements: what the layouts do to them is what they do to any array."""
    a, shape = attributes(call), shape_of(call.args[0])
    names = [a[k] for k in ("src_layout", "dst_layout")]
    if sorted(names[0]) == sorted(names[1]) and len(set(names[0])) == len(shape):
        return w.transposed(w.emit("Identity", ins), [names[0].index(axis) for axis in names[1]])
    places = np.arange(int(np.prod(shape)), dtype="int64").reshape(shape)
    source, target = map(parse_layout, names)
    moved = np.asarray(transform(places + 1, source, target)) - 1
    if moved.min(initial=0) < 0:
        raise refused(call, f"dst_layout={names[1]!r}", "it would pad: pad the axes first")
    flat = w.emit("Gather", [w.reshape(ins[0], [-1]), w.constant(moved.reshape(-1))])
    return w.reshape(flat, shape_of(call))


# ---- constants


@rule("zeros", "ones", "zeros_like", "ones_like")
def _filled(w: Writer, call: Call, ins: list[str]) -> Value:
    make = np.zeros if operator(call).startswith("zeros") else np.ones
    return w.constant(make(shape_of(call), dtype_of(call)))


@rule("shape_of", "ndarray_size")
def _shape_of(w: Writer, call: Call, ins: list[str]) -> Value:
    shape = shape_of(call.args[0])
    return w.constant(np.array(shape if operator(call) == "shape_of" else int(np.prod(shape)), dtype_of(call)))


@rule("full", "broadcast_to", "broadcast_to_like")
def _expand(w: Writer, call: Call, ins: list[str]) -> Value:
    x = ins[0] if dtype_of(call.args[0]) == dtype_of(call) else w.cast(ins[0], dtype_of(call))
    return w.emit("Expand", [x, w.numbers(shape_of(call))])


@rule("full_like")
def _full_like(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Expand", [w.cast(ins[1], dtype_of(call)), w.numbers(shape_of(call))])


@rule("arange")
def _arange(w: Writer, call: Call, ins: list[str]) -> Value:
    ends = [w.cast(x, dtype_of(call)) for x in ins]
    return w.reshape(w.emit("Range", [w.reshape(x, []) for x in ends]), shape_of(call))


@rule("trilu")
def _trilu(w: Writer, call: Call, ins: list[str]) -> Value:
    return w.emit("Trilu", [ins[0], w.cast(ins[1], "int64")], upper=int(bool(attributes(call)["upper"])))


@rule("meshgrid")
def _meshgrid(w: Writer, call: Call, ins: list[str]) -> Value:
    order, shape = list(range(len(ins))), fields_of(call)[0].concrete_shape
    if attributes(call)["indexing"] == "xy" and len(ins) > 1:
        order[:2] = 1, 0
    return [
        w.emit("Expand", [w.reshape(x, [-1 if k == place else 1 for k in range(len(ins))]), w.numbers(shape)])
        for x, place in zip(ins, order)
    ]


# ---- copies


@rule("tile")
def _tile(w: Writer, call: Call, ins: list[str]) -> Value:
    shape, reps = shape_of(call.args[0]), ints(attributes(call)["reps"], 1)
    rank = max(len(shape), len(reps))
    x = ins[0] if len(shape) == rank else w.reshape(ins[0], [1] * (rank - len(shape)) + list(shape))
    return w.emit("Tile", [x, w.numbers([1] * (rank - len(reps)) + reps)])


@rule("repeat")
def _repeat(w: Writer, call: Call, ins: list[str]) -> Value:
    a, shape, out = attributes(call), shape_of(call.args[0]), shape_of(call)
    axis = int(a["axis"] or 0) % max(len(shape), 1)
    places = np.repeat(np.arange(out[axis] // max(int(a["repeats"]), 1)), int(a["repeats"]))
    x = ins[0] if a["axis"] is not None else w.reshape(ins[0], [-1])
    return w.emit("Gather", [x, w.numbers(places)], axis=axis)


@rule("reverse")
def _reverse(w: Writer, call: Call, ins: list[str]) -> Value:
    axis = int(attributes(call)["axis"])
    return w.emit("Slice", [ins[0], *(w.numbers([v]) for v in (-1, _START, axis, -1))])


@rule("reverse_sequence")
def _reverse_sequence(w: Writer, call: Call, ins: list[str]) -> Value:
    a, rank = attributes(call), len(shape_of(call))
    time, batch = (int(a[name]) % rank for name in ("seq_axis", "batch_axis"))
    order = [time, batch, *(k for k in range(rank) if k not in (time, batch))]
    if time == batch:
        raise refused(call, "one axis as batch and sequence", "they are two axes")
    x = w.transposed(ins[0], order)
    lengths = w.emit("Max", [w.cast(ins[1], "int64"), w.scalar(1, "int64")])  # one element stays, as none does
    found = w.emit("ReverseSequence", [x, lengths], time_axis=0, batch_axis=1)
    return w.transposed(found, [order.index(k) for k in range(rank)])


# ---- parts


def sliced(w: Writer, name: str, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]) -> str:
    """A part of a value: bounds for every axis, as Python's `range` has them."""
    axes = range(len(starts))
    stops = [_START if step < 0 and end < 0 else end for end, step in zip(ends, steps)]
    return w.emit("Slice", [name, *(w.numbers(v) for v in (starts, stops, axes, steps))])


@rule("strided_slice")
def _strided_slice(w: Writer, call: Call, ins: list[str]) -> Value:
    a, shape, out = attributes(call), shape_of(call.args[0]), shape_of(call)
    begin = list(a["begin"])
    axes = [int(k) % len(shape) for k in a["axes"]] if a["axes"] else list(range(len(begin)))
    steps, starts = [1] * len(shape), [0] * len(shape)
    given = list(a["strides"] or [1])
    for k, axis in enumerate(axes):
        step = int(given[k] if k < len(given) else 1) if a["slice_mode"] == "end" else 1
        steps[axis], starts[axis] = step, slice(begin[k], None, step).indices(shape[axis])[0]
    ends = [s + n * step for s, n, step in zip(starts, out, steps)]
    return sliced(w, ins[0], starts, ends, steps)


@rule("slice_like")
def _slice_like(w: Writer, call: Call, ins: list[str]) -> Value:
    out = shape_of(call)
    return sliced(w, ins[0], [0] * len(out), out, [1] * len(out))


@rule("nn.pad")
def _pad(w: Writer, call: Call, ins: list[str]) -> Value:
    a = attributes(call)
    widths = [ints(pair) for pair in a["pad_width"]]
    if any(n < 0 for pair in widths for n in pair):
        raise refused(call, "a negative width", "cut it: relay.strided_slice")
    around = w.numbers([p[0] for p in widths] + [p[1] for p in widths])
    if a["pad_mode"] != "constant":
        return w.emit("Pad", [ins[0], around], mode=str(a["pad_mode"]))
    value = ins[1] if dtype_of(call.args[1]) == dtype_of(call) else w.cast(ins[1], dtype_of(call))
    value = w.reshape(value, []) if shape_of(call.args[1]) else value
    return w.emit("Pad", [ins[0], around, value], mode="constant")


@rule("nn.mirror_pad")
def _mirror_pad(w: Writer, call: Call, ins: list[str]) -> Value:
    a, shape, found = attributes(call), shape_of(call.args[0]), ins[0]
    mode = "symmetric" if str(a["mode"]).upper() == "SYMMETRIC" else "reflect"
    for axis, (pair, n) in enumerate(zip(a["pad_width"], shape)):
        if any(ints(pair)):  # by places along each axis: ONNX has no symmetric mode
            places = np.pad(np.arange(n), tuple(ints(pair)), mode=mode)
            found = w.emit("Gather", [found, w.numbers(places)], axis=axis)
    return found if found is not ins[0] else w.emit("Identity", ins)


@rule("nn.dilate")
def _dilate(w: Writer, call: Call, ins: list[str]) -> Value:
    a, shape, out = attributes(call), shape_of(call.args[0]), shape_of(call)
    steps = ints(a["strides"], len(shape))
    value, found = w.scalar(float(a["dilation_value"]), dtype_of(call)), ins[0]
    wide = [n for size in shape for n in (size, 1)]
    around = [0] * len(wide) + [n for step in steps for n in (0, step - 1)]
    found = w.emit("Pad", [w.reshape(found, wide), w.numbers(around), value])
    found = w.reshape(found, [n * s for n, s in zip(shape, steps)])
    return sliced(w, found, [0] * len(out), out, [1] * len(out))


@rule("nn.space_to_batch_nd")
def _space_to_batch(w: Writer, call: Call, ins: list[str]) -> Value:
    a, shape = attributes(call), shape_of(call.args[0])
    blocks, widths = ints(a["block_shape"], 1), [ints(p) for p in a["paddings"]]
    rest = len(shape) - 1 - len(blocks)
    front, behind = ([0, *(p[k] for p in widths), *[0] * rest] for k in (0, 1))
    value = w.scalar(float(a["pad_value"]), dtype_of(call))
    x = w.emit("Pad", [ins[0], w.numbers([*front, *behind]), value])
    parts = [(n + sum(p)) // b for n, p, b in zip(shape[1:], widths, blocks)]
    x = w.reshape(x, [shape[0], *(n for pair in zip(parts, blocks) for n in pair), *shape[1 + len(blocks) :]])
    inner, outer = [2 * k + 2 for k in range(len(blocks))], [2 * k + 1 for k in range(len(blocks))]
    tail = range(2 * len(blocks) + 1, 2 * len(blocks) + 1 + rest)
    return w.reshape(w.transposed(x, [*inner, 0, *outer, *tail]), shape_of(call))


@rule("nn.batch_to_space_nd")
def _batch_to_space(w: Writer, call: Call, ins: list[str]) -> Value:
    a, shape, out = attributes(call), shape_of(call.args[0]), shape_of(call)
    blocks, crops = ints(a["block_shape"], 1), [ints(p) for p in a["crops"]]
    count, batch = len(blocks), out[0]
    x = w.reshape(ins[0], [*blocks, batch, *shape[1:]])
    pairs = [n for k in range(count) for n in (count + 1 + k, k)]
    x = w.transposed(x, [count, *pairs, *range(2 * count + 1, count + len(shape))])
    x = w.reshape(x, [batch, *(n * b for n, b in zip(shape[1:], blocks)), *shape[1 + count :]])
    starts = [0, *(p[0] for p in crops), *[0] * (len(out) - 1 - count)]
    return sliced(w, x, starts, [s + n for s, n in zip(starts, out)], [1] * len(out))


@rule("nn.depth_to_space", "nn.space_to_depth")
def _depth_to_space(w: Writer, call: Call, ins: list[str]) -> Value:
    a = attributes(call)
    wide = operator(call) == "nn.depth_to_space"
    order = {"NCHW": [0, 1, 2, 3], "NHWC": [0, 3, 1, 2]}.get(str(a["layout"]))
    if order is None or (not wide and a["mode"] != "DCR"):
        raise refused(call, f"layout={a['layout']!r}, mode={a['mode']!r}", "NCHW and NHWC are written")
    x = w.transposed(ins[0], order)
    settings = {"mode": "DCR" if a["mode"] == "DCR" else "CRD"} if wide else {}
    found = w.emit("DepthToSpace" if wide else "SpaceToDepth", [x], blocksize=int(a["block_size"]), **settings)
    return w.transposed(found, [order.index(k) for k in range(4)])
