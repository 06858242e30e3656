"""Sums, extrema and what is counted along axes."""

from __future__ import annotations

import numpy as np

from relaylab.frontend.onnx.export.rules.base import attributes, dtype_of, is_float, operator, refused, rule, shape_of
from relaylab.frontend.onnx.export.writer import Value, Writer
from relaylab.ir import Call

_NAMES = {"sum": "ReduceSum", "mean": "ReduceMean", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd",
          "all": "ReduceMin", "any": "ReduceMax"}  # fmt: skip


def reduced_axes(call: Call) -> list[int]:
    """The axes that a reduction goes over, `exclude` resolved."""
    a, rank = attributes(call), len(shape_of(call.args[0]))
    given = a["axis"]
    axes = range(rank) if given is None else [given] if isinstance(given, int) else given
    found = sorted({int(x) % rank for x in axes}) if rank else []
    return [k for k in range(rank) if k not in found] if a["exclude"] and given is not None else found


def reduced(w: Writer, name: str, x: str, axes: list[int], keepdims: bool) -> str:
    """A reduction over some axes; over none it is the value itself."""
    return w.emit(name, [x, w.numbers(axes)], keepdims=int(keepdims)) if axes else w.emit("Identity", [x])


@rule(*_NAMES)
def _reduce(w: Writer, call: Call, ins: list[str]) -> Value:
    name, keep = _NAMES[operator(call)], bool(attributes(call)["keepdims"])
    if operator(call) in ("all", "any"):  # extrema of truth values came later
        found = reduced(w, name, w.cast(ins[0], "int32"), reduced_axes(call), keep)
        return w.cast(found, "bool")
    return reduced(w, name, ins[0], reduced_axes(call), keep)


@rule("variance")
def _variance(w: Writer, call: Call, ins: list[str]) -> Value:
    a, axes = attributes(call), reduced_axes(call)
    apart = w.emit("Sub", ins)
    found = reduced(w, "ReduceMean", w.emit("Mul", [apart, apart]), axes, bool(a["keepdims"]))
    count = int(np.prod([shape_of(call.args[0])[k] for k in axes]))
    if not a["unbiased"]:
        return found
    return w.emit("Mul", [found, w.scalar(count / (count - 1) if count > 1 else np.nan, dtype_of(call))])


@rule("argmax", "argmin")
def _arg(w: Writer, call: Call, ins: list[str]) -> Value:
    a, axes, shape = attributes(call), reduced_axes(call), shape_of(call.args[0])
    x, axis = w.cast(ins[0], "uint8") if dtype_of(call.args[0]) == "bool" else ins[0], axes[0] if axes else 0
    if len(axes) != 1:
        if axes != list(range(len(shape))):
            raise refused(call, f"axis={a['axis']}", "it is written for one axis, or for all")
        x, axis = w.reshape(x, [-1]), 0
    name = "ArgMax" if operator(call) == "argmax" else "ArgMin"
    found = w.emit(name, [x], axis=axis, keepdims=0, select_last_index=int(a["select_last_index"]))
    return w.reshape(w.cast(found, dtype_of(call)), shape_of(call))


@rule("cumsum")
def _cumsum(w: Writer, call: Call, ins: list[str]) -> Value:
    a, dtype = attributes(call), dtype_of(call)
    wide = "int32" if dtype.endswith(("int8", "int16")) else dtype  # low bits do not see what is above
    x = w.cast(ins[0], wide)
    if a["axis"] is None:
        x = w.reshape(x, [-1])
    found = w.emit("CumSum", [x, w.scalar(int(a["axis"] or 0), "int64")], exclusive=int(bool(a["exclusive"])))
    return found if wide == dtype else w.cast(found, dtype)


@rule("collapse_sum_to", "collapse_sum_like")
def _collapse(w: Writer, call: Call, ins: list[str]) -> Value:
    wide, narrow = shape_of(call.args[0]), shape_of(call)
    extra = len(wide) - len(narrow)
    axes = [*range(extra), *(k + extra for k, n in enumerate(narrow) if n != wide[k + extra])]
    return w.reshape(reduced(w, "ReduceSum", ins[0], axes, True), narrow)


@rule("nn.cross_entropy", "nn.cross_entropy_with_logits")
def _cross_entropy(w: Writer, call: Call, ins: list[str]) -> Value:
    x = w.emit("Log", [ins[0]]) if operator(call) == "nn.cross_entropy" else ins[0]
    rows = w.scalar(-shape_of(call.args[0])[0], dtype_of(call))
    total = w.emit("ReduceSum", [w.emit("Mul", [x, ins[1]])], keepdims=0)
    return w.emit("Div", [total, rows])


@rule("sequence_mask")
def _sequence_mask(w: Writer, call: Call, ins: list[str]) -> Value:
    a, shape = attributes(call), shape_of(call)
    axis = int(a["axis"])
    places = np.arange(shape[axis], dtype="int64").reshape([-1 if k == axis else 1 for k in range(len(shape))])
    lengths = w.reshape(w.cast(ins[1], "int64"), [n if k == 1 - axis else 1 for k, n in enumerate(shape)])
    inside = w.emit("Less", [w.constant(places), lengths])
    mask = float(a["mask_value"]) if is_float(call) else int(a["mask_value"])
    return w.emit("Where", [inside, ins[0], w.scalar(mask, dtype_of(call))])
