"""What depends on the order of elements: running extremes, medians, the k-th, the most frequent, places to insert."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from relaylab import op
from relaylab.frontend.graph import is_open, of_count
from relaylab.frontend.open_loops import turns_of
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.pointwise import is_float
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import Call, Constant, Expr, TensorType, TupleGetItem, Var
from relaylab.ir.scope_builder import while_loop
from relaylab.op.base import call_operator

Combine = Callable[[list[Expr], list[Expr]], list[Expr]]
"""Several tensors of earlier elements and of later ones: both together."""


def _running(g: TorchGraph, parts: Sequence[Expr], axis: int, combine: Combine) -> list[Expr]:
    """All prefixes along an axis combined, in as many steps as the extent has binary digits (Hillis, Steele, 1986)."""
    found: list[Expr] = list(parts)
    if is_open(g.dims(parts[0])[axis]):
        return _running_openly(g, found, axis, combine)
    extent, step = g.extent(parts[0], axis), 1

    def cut(x: Expr, first: int, last: int) -> Expr:
        return op.strided_slice(x, [first], [last], [1], axes=[axis])

    while step < extent:
        earlier = [cut(x, 0, extent - step) for x in found]
        later = [cut(x, step, extent) for x in found]
        parts = [op.concatenate([cut(x, 0, step), new], axis=axis) for x, new in zip(found, combine(earlier, later))]
        # Each step reads twice what the one before gives: as one kernel they would compute all anew each time.
        found = [call_operator("annotation.stop_fusion", x) for x in parts]
        step *= 2
    return found


def _running_openly(g: TorchGraph, parts: list[Expr], axis: int, combine: Combine) -> list[Expr]:
    """The same where only run time knows the extent: a loop over the steps."""
    many, one = turns_of(parts[0], axis), g.const(1, "int64")
    names = [Var("step", TensorType((), "int64")), Var("many", TensorType((), "int64"))]
    names += [Var(f"part{k}", g.tensor(x)) for k, x in enumerate(parts)]

    def once(step: Expr, many: Expr, *values: Expr) -> list[Expr]:
        places = of_count(op.arange(many, dtype="int64"), g.dims(parts[0])[axis])
        before = op.maximum(op.subtract(places, step), g.const(0, "int64"))
        new = combine([op.take(x, before, axis=axis) for x in values], list(values))
        there = op.expand_dims(op.greater_equal(places, step), 1, g.rank(parts[0]) - axis - 1)
        return [op.add(step, step), many, *(op.where(there, v, x) for v, x in zip(new, values))]

    loop = while_loop(lambda step, many, *_: op.less(step, many), names, once)
    out = Call(loop, [one, many, *parts])
    return [TupleGetItem(out, k + 2) for k in range(len(parts))]


def _counted(g: TorchGraph, x: Expr, axis: int) -> Expr:
    """The position of every element along an axis."""
    numbers = g.counted(g.size(x, axis))
    if g.is_static(x):
        line = np.arange(g.extent(x, axis)).reshape(-1, *[1] * (g.rank(x) - axis - 1))
        return Constant(np.broadcast_to(line, g.shape(x)).copy())
    return op.broadcast_to_like(op.expand_dims(numbers, 1, g.rank(x) - axis - 1), x)


def _nan(g: TorchGraph, x: Expr) -> Expr | None:
    return op.isnan(x) if is_float(g.dtype(x)) else None


def _extremes(g: TorchGraph, x: Expr, dim: int, reaches: Callable[[Expr, Expr], Expr]) -> list[Expr]:
    """Of equal elements the last counts; nan stays once it is there."""
    if not g.rank(x):
        return [x, g.const(0, "int64")]
    axis = g.axis(dim, g.rank(x))

    def combine(earlier: list[Expr], later: list[Expr]) -> list[Expr]:
        taken = reaches(later[0], earlier[0])
        odd = _nan(g, later[0])
        taken = taken if odd is None else op.logical_or(taken, odd)
        return [op.where(taken, new, old) for new, old in zip(later, earlier)]

    if g.dtype(x) == "bool":
        values, places = _running(g, [op.cast(x, "uint8"), _counted(g, x, axis)], axis, combine)
        return [op.cast(values, "bool"), places]
    return _running(g, [x, _counted(g, x, axis)], axis, combine)


@converts("cummax")
def cummax(g: TorchGraph, node: AtenNode, x: Expr, dim: int) -> list[Expr]:
    return _extremes(g, x, dim, op.greater_equal)


@converts("cummin")
def cummin(g: TorchGraph, node: AtenNode, x: Expr, dim: int) -> list[Expr]:
    return _extremes(g, x, dim, op.less_equal)


@converts("logcumsumexp")
def logcumsumexp(g: TorchGraph, node: AtenNode, x: Expr, dim: int) -> Expr:
    """Sums of exponentials by their logarithms: the larger one and log(1 + exp(-distance))."""
    if not g.rank(x):
        return x

    def combine(earlier: list[Expr], later: list[Expr]) -> list[Expr]:
        large, small = op.maximum(earlier[0], later[0]), op.minimum(earlier[0], later[0])
        same = op.logical_and(op.equal(large, small), op.isinf(large))
        apart = op.where(same, g.const(0, x), op.subtract(small, large))
        total = op.add(large, op.log(op.add(g.const(1, x), op.exp(apart))))
        return [op.where(same, large, total)]

    return _running(g, [x], g.axis(dim, g.rank(x)), combine)[0]


def _chosen(g: TorchGraph, x: Expr, place: Expr, axis: int, keepdim: bool) -> list[Expr]:
    """The elements at places along an axis (of extent 1), and the places."""
    found = [op.gather(x, axis, place), place]
    return found if keepdim else [op.squeeze(v, axis=[axis]) for v in found]


def _nth(g: TorchGraph, order: Expr, nth: int | Expr, axis: int) -> Expr:
    if isinstance(nth, Expr):
        return op.take(order, op.reshape(nth, (1,)), axis=axis)
    return op.strided_slice(order, [nth], [nth + 1], [1], axes=[axis])


def _middle(g: TorchGraph, x: Expr, axis: int) -> int | Expr:
    """The place of the lower one of two middles."""
    extent = g.size(x, axis)
    if isinstance(extent, int):
        return (extent - 1) // 2
    return op.right_shift(op.subtract(extent, g.const(1, "int64")), g.const(1, "int64"))


def _order(x: Expr, axis: int) -> Expr:
    return op.argsort(x, axis=axis, is_ascend=True, dtype="int64")


@converts("kthvalue")
def kthvalue(g: TorchGraph, node: AtenNode, x: Expr, k: int, dim: int = -1, keepdim: bool = False) -> list[Expr]:
    """The k-th in ascending order."""
    if not g.rank(x):
        return [x, g.const(0, "int64")]
    axis = g.axis(dim, g.rank(x))
    return _chosen(g, x, _nth(g, _order(x, axis), k - 1, axis), axis, keepdim)


@converts("median.dim", "nanmedian.dim")
def median_dim(g: TorchGraph, node: AtenNode, x: Expr, dim: int, keepdim: bool = False) -> list[Expr]:
    """The lower one of two middles; the first nan, or (`nanmedian`) the median of the numbers."""
    if not g.rank(x):
        return [x, g.const(0, "int64")]
    axis = g.axis(dim, g.rank(x))
    order, odd = _order(x, axis), _nan(g, x)
    if odd is None:
        return _chosen(g, x, _nth(g, order, _middle(g, x, axis), axis), axis, keepdim)
    count = op.sum(op.cast(odd, "int64"), axis=[axis], keepdims=True)
    if node.name.startswith("nan"):
        last = op.subtract(g.to(g.size(x, axis), "int64"), g.const(1, "int64"))
        numbers = op.maximum(op.subtract(last, count), g.const(0, "int64"))
        middle = op.gather(order, axis, op.right_shift(numbers, g.const(1, "int64")))
        return _chosen(g, x, middle, axis, keepdim)
    first = op.cast(op.argmax(op.cast(odd, "uint8"), axis=[axis], keepdims=True), "int64")
    middle = _nth(g, order, _middle(g, x, axis), axis)
    return _chosen(g, x, op.where(op.greater(count, g.const(0, "int64")), first, middle), axis, keepdim)


@converts("median", "nanmedian")
def median(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return median_dim(g, node, op.reshape(x, (-1,)), 0)[0]


@converts("mode")
def mode(g: TorchGraph, node: AtenNode, x: Expr, dim: int = -1, keepdim: bool = False) -> list[Expr]:
    """The most frequent element, of several the smallest, and where it is last."""
    if not g.rank(x):
        return [x, g.const(0, "int64")]
    axis = g.axis(dim, g.rank(x))
    extent = g.extent(x, axis)
    order = _order(x, axis)
    line = op.gather(x, axis, order)
    places = _counted(g, x, axis)
    before = op.strided_slice(line, [0], [extent - 1], [1], axes=[axis])
    after = op.strided_slice(line, [1], [extent], [1], axes=[axis])
    first = op.strided_slice(places, [0], [1], [1], axes=[axis])
    begins = op.concatenate([op.equal(first, first), op.not_equal(before, after)], axis=axis)
    starts = op.where(begins, places, op.zeros_like(places))
    start = _running(g, [starts], axis, lambda a, b: [op.maximum(a[0], b[0])])[0]
    longest = op.argmax(op.subtract(places, start), axis=[axis], keepdims=True)
    return _chosen(g, x, op.gather(order, axis, op.cast(longest, "int64")), axis, keepdim)


@converts("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    g: TorchGraph,
    node: AtenNode,
    line: Expr,
    values: Operand,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Expr | None = None,
) -> Expr:
    if sorter is not None:
        line = op.gather(line, g.rank(line) - 1, g.to(sorter, "int64"))
    return _inserted(g, node, line, values, right or side == "right")


@converts("bucketize.Tensor", "bucketize.Scalar")
def bucketize(
    g: TorchGraph, node: AtenNode, values: Operand, line: Expr, out_int32: bool = False, right: bool = False
) -> Expr:
    return _inserted(g, node, line, values, right)


def _inserted(g: TorchGraph, node: AtenNode, line: Expr, values: Operand, right: bool) -> Expr:
    kinds = {g.dtype(v) for v in (line, values) if isinstance(v, Expr)}
    kind = kinds.pop() if len(kinds) == 1 else "float64" if any(map(is_float, kinds)) else "int64"
    found, line = g.to(values, kind), g.to(line, kind)
    if g.rank(found):
        return op.searchsorted(line, found, right=right, dtype=node.dtype)
    return op.squeeze(op.searchsorted(line, op.expand_dims(found, 0), right=right, dtype=node.dtype), axis=[0])
