"""Reductions: sums, means, norms, positions of extrema, running sums."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, elements
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.arithmetic import same
from relaylab.frontend.onnx.table import converts, register
from relaylab.frontend.slices import numbered_slices
from relaylab.ir import Expr, const
from relaylab.ir.dims import SymbolicDim

Reduce = Callable[..., Expr]


def _log_sum_exp(x: Expr, axis: list[int], keepdims: bool) -> Expr:
    found = op.logsumexp(x, axis, keepdims)
    assert isinstance(found, Expr)
    return found


def _square(x: Expr) -> Expr:
    return op.multiply(x, x)


REDUCTIONS: dict[str, Reduce] = {
    "ReduceMax": op.max,
    "ReduceMin": op.min,
    "ReduceSum": op.sum,
    "ReduceMean": op.mean,
    "ReduceProd": op.prod,
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceLogSum": lambda x, axis, keepdims: op.log(op.sum(x, axis, keepdims)),
    "ReduceSumSquare": lambda x, axis, keepdims: op.sum(_square(x), axis, keepdims),
    "ReduceL1": lambda x, axis, keepdims: op.sum(op.abs(x), axis, keepdims),
    "ReduceL2": lambda x, axis, keepdims: op.sqrt(op.sum(_square(x), axis, keepdims)),
}
EXTREMA = ("ReduceMax", "ReduceMin")


def _reduced(g: Graph, node: OnnxNode, x: Expr, axes: list[int] | None, build: Reduce) -> Expr:
    keep, rank, none = bool(node.get("keepdims", 1)), g.rank(x), node.get("noop_with_empty_axes", 0)
    if not axes and none:
        return _of_each(g, node, x, build)
    along = g.axes(axes, rank) if axes else list(range(rank))
    if not along:
        return _of_each(g, node, x, build)
    if g.dtype(x) == "bool":
        return op.cast(build(op.cast(x, "uint8"), along, keep), "bool")
    if "float" not in g.dtype(x) and node.op_type in ("ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):
        return op.cast(build(op.cast(x, "float64"), along, keep), g.dtype(x))
    return build(x, along, keep)


def _of_each(g: Graph, node: OnnxNode, x: Expr, build: Reduce) -> Expr:
    """The reduction over an axis of one element, which may still be a square or a root."""
    return op.squeeze(build(op.expand_dims(x, 0), [0], True), axis=[0])


def _old(build: Reduce) -> Callable:
    def convert(g: Graph, node: OnnxNode, x: Expr) -> Expr:
        return _reduced(g, node, x, node.ints("axes"), build)

    return convert


def _new(build: Reduce) -> Callable:
    def convert(g: Graph, node: OnnxNode, x: Expr, axes: Expr | None = None) -> Expr:
        return _reduced(g, node, x, None if axes is None else g.ints(axes, "axes"), build)

    return convert


for _name, _build in REDUCTIONS.items():
    register(_name, _old(_build))
    register(_name, _new(_build), since=13 if _name == "ReduceSum" else 18)


@converts("ArgMax", "ArgMin")
def arg_extremum(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    build = op.argmax if node.op_type == "ArgMax" else op.argmin
    axis, last = g.axis(node.get("axis", 0), g.rank(x)), bool(node.get("select_last_index", 0))
    found = build(x, axis=[axis], keepdims=bool(node.get("keepdims", 1)), select_last_index=last)
    return op.cast(found, "int64")


@converts("CumSum", since=11)
@converts("CumProd", since=26)
def running(g: Graph, node: OnnxNode, x: Expr, axis: Expr) -> Expr:
    only = g.rank(x) == 1 and g.value(axis) is None  # which it has to be
    along = 0 if only else g.axis(g.ints(axis, "axis")[0], g.rank(x))
    backwards = node.get("reverse", 0)
    x = op.reverse(x, along) if backwards else x
    build = op.cumsum if node.op_type == "CumSum" else op.cumprod
    out = build(x, axis=along, exclusive=bool(node.get("exclusive", 0)))
    return op.reverse(out, along) if backwards else out


@converts("TopK")
def topk_attribute(g: Graph, node: OnnxNode, x: Expr) -> list[Expr]:
    return _largest(g, node, x, node.need("k"))


@converts("TopK", since=10, unused=("sorted",))
def topk(g: Graph, node: OnnxNode, x: Expr, k: Expr) -> list[Expr]:
    known = g.value(k)
    return _largest(g, node, x, k if known is None else int(known.reshape(-1)[0]))


def _largest(g: Graph, node: OnnxNode, x: Expr, k: Expr | int) -> list[Expr]:
    axis = g.axis(node.get("axis", -1), g.rank(x))
    if isinstance(k, int) and k < 0:
        raise node.error(f"the first {k} elements", code="import.shape")
    (size,) = (g.sizes(k) if isinstance(k, Expr) else None) or [None]
    told = isinstance(size, SymbolicDim)
    whole = told and size == g.dims(x)[axis]
    how_many = 0 if told else k
    found = op.topk(x, how_many, axis=axis, ret_type="both", is_ascend=not node.get("largest", 1), dtype="int64")
    if whole or (isinstance(k, int) and k):
        return list(found)
    if told:
        return [elements(v, {axis: 0}, {axis: size}) for v in found]
    ends = const(np.zeros(1), "int64") if isinstance(k, int) else same(g, op.reshape(k, (1,)), "int64")
    begin, step = const(np.zeros(1), "int64"), const(np.ones(1), "int64")
    return [op.strided_slice(v, begin, ends, step, axes=[axis]) for v in found]  # Relay's first 0 are all


@converts("NonZero")
def nonzero(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return op.cast(op.transpose(op.argwhere(x), [1, 0]), "int64")


@converts("Unique", since=11)
def unique(g: Graph, node: OnnxNode, x: Expr) -> list[Expr | None]:
    """Relay's operator fills its results up to the length of the data; what is left over is cut off here.

    Slices along an axis go by numbers that order them.
    """
    axis, in_order = node.get("axis"), bool(node.get("sorted", 1))
    sliced = axis is not None and g.rank(x) != 1
    axis = 0 if axis is None else g.axis(axis, g.rank(x))
    flat = numbered_slices(g, x, axis, in_order) if sliced else op.reshape(x, (-1,)) if g.rank(x) != 1 else x
    if flat is None:
        raise node.error(f"unique slices of {g.shape(x)} along axis {axis}", code="import.shape")
    found = op.unique(flat, is_sorted=in_order or sliced, return_counts=True)
    values, indices, inverse, count, counts = found
    cut = [
        op.strided_slice(v, const(np.array([0]), "int64"), op.cast(count, "int64"), const(np.array([1]), "int64"))
        for v in (values, indices, counts)
    ]
    slices = op.take(x, cut[1], axis=axis) if sliced else cut[0]
    return [slices, op.cast(cut[1], "int64"), op.cast(inverse, "int64"), op.cast(cut[2], "int64")]
