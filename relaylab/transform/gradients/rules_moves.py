"""The derivatives of operators that move, choose, repeat or count on along elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from relaylab.ir import Call, Expr, TensorType, Tuple, TupleGetItem, const, facets, op_name
from relaylab.transform.engine.build import call, reshaped, scalar
from relaylab.transform.engine.infer_type import dtype_of, fields_of, rank_of, shape_of
from relaylab.transform.gradients.rules import gradient_of, like, mul, reduced, sub, unbroadcast


def extents(x: Expr) -> list[int]:
    """The shape of a value, as ints."""
    return [int(d) for d in shape_of(x)]


def zeros(x: Expr) -> Expr:
    return call("zeros_like", x)


def total(x: Expr) -> Expr:
    """The sum of all elements, a scalar."""
    return call("sum", x, axis=None, keepdims=False, exclude=False)


def flat(x: Expr) -> Expr:
    return reshaped(x, [-1])


def from_places(c: Call, g: Expr) -> Expr:
    """For an operator that only moves elements of its first argument: each element gets what became of it. Where they
    went is found by moving their numbers; 0 stands for an element of the border.
    """
    shape = extents(c.args[0])
    count = math.prod(shape)
    numbers = const(np.arange(1, count + 1).reshape(shape), "int64")
    places = Call(c.op, (numbers, *c.args[1:]), c.attrs)
    spread = const(np.zeros(count + 1), dtype_of(c))
    sums = call("scatter_nd", spread, call("expand_dims", flat(places), axis=0), flat(g), mode="add")
    return reshaped(call("strided_slice", sums, begin=[1], end=[count + 1], strides=[1]), shape)


@gradient_of("nn.mirror_pad", "sliding_window", "vision.yolo_reorg")
def _moved(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [from_places(c, g), *map(zeros, c.args[1:])]


@gradient_of("adv_index")
def _adv_index(c: Call, y: Expr, g: Expr) -> Sequence[Any]:
    data, *at = (TupleGetItem(c.args[0], k) for k in range(len(fields_of(c.args[0]))))
    whole = cast(TensorType, fields_of(c.args[0])[0])
    shape = extents(c)[: rank_of(c) - len(whole.shape) + len(at)]
    coordinates = [call("broadcast_to", call("cast", i, dtype="int64"), shape=shape) for i in at]
    where = call("stack", Tuple(coordinates), axis=0)
    return [[call("scatter_nd", zeros(data), where, g, mode="add"), *map(zeros, at)]]


@gradient_of("nn.pad")
def _pad(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    value, none = c.args[1], scalar(0, dtype_of(c))
    if facets(c).pad_mode != "constant":
        return [from_places(c, g), zeros(value)]
    back = [(-int(low), -int(high)) for low, high in facets(c).pad_width]
    dx = call("nn.pad", g, none, pad_width=back, pad_mode="constant")
    border = sub(total(g), total(dx))
    return [dx, call("reshape_like", call("cast_like", border, value), value)]


@gradient_of("strided_slice")
def _strided_slice(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    shape, made = extents(c.args[0]), extents(c)
    for d, (n, m) in enumerate(zip(shape, made)):
        step, first = _slice_of(c, d)
        if (m, step) == (n, 1):
            continue
        source = np.full(n, m)
        source[first + step * np.arange(m)] = np.arange(m)
        border = [(0, 1 if k == d else 0) for k in range(len(shape))]
        g = call("nn.pad", g, scalar(0, dtype_of(c)), pad_width=border, pad_mode="constant")
        g = call("take", g, const(source, "int64"), axis=d)
    return [g]


def _slice_of(c: Call, axis: int) -> tuple[int, int]:
    """The step and the first index of a slice along an axis, found by slicing the indices."""
    shape = [1] * rank_of(c)
    shape[axis] = extents(c.args[0])[axis]
    grid = np.broadcast_to(np.arange(shape[axis]).reshape(shape), extents(c.args[0]))
    found = np.moveaxis(facets(c).reference(grid), axis, 0)
    line = found.reshape(len(found), -1)[:, 0] if found.size else np.zeros(0, int)
    return (int(line[1] - line[0]) if len(line) > 1 else 1), (int(line[0]) if len(line) else 0)


@gradient_of("slice_like")
def _slice_like(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    border = [(0, n - m) for n, m in zip(extents(c.args[0]), extents(c))]
    return [call("nn.pad", g, scalar(0, dtype_of(c)), pad_width=border, pad_mode="constant"), zeros(c.args[1])]


@gradient_of("take")
def _take(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    (x, at), a = c.args, facets(c)
    if a.batch_dims:
        return [from_places(c, g), zeros(at)]
    axis = 0 if a.axis is None else a.axis % rank_of(x)
    rows = flat(x) if a.axis is None else x
    deep = rank_of(at)
    count = math.prod(extents(x)) if a.axis is None else extents(x)[axis]
    at = call("cast", at, dtype="int64")
    last, first = scalar(count - 1, "int64"), scalar(0, "int64")
    if a.mode == "wrap":
        inside = call("floor_mod", at, scalar(count, "int64"))
    else:
        inside = call("minimum", call("maximum", at, first), last)
    rank = 1 if a.axis is None else rank_of(x)
    forth = [axis, *(d for d in range(rank) if d != axis)]
    new = call("transpose", g, axes=[*range(axis, axis + deep), *range(axis), *range(axis + deep, rank - 1 + deep)])
    empty = call("transpose", zeros(rows), axes=forth)
    sums = call("scatter_nd", empty, call("expand_dims", inside, axis=0), new, mode="add")
    back = call("transpose", sums, axes=[forth.index(d) for d in range(rank)])
    return [call("reshape_like", back, x), zeros(c.args[1])]


@gradient_of("gather_nd")
def _gather_nd(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, at = c.args
    if facets(c).batch_dims:
        return [from_places(c, g), zeros(at)]
    return [call("scatter_nd", zeros(x), at, g, mode="add"), zeros(at)]


@gradient_of("gather")
def _gather(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, at = c.args
    return [call("scatter_add", zeros(x), at, g, axis=facets(c).axis), zeros(at)]


@gradient_of("sort")
def _sort(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, a = c.args[0], facets(c)
    places = call("argsort", x, axis=a.axis, is_ascend=a.is_ascend, dtype="int64")
    return [call("scatter_add", zeros(x), places, g, axis=a.axis)]


@gradient_of("topk")
def _topk(c: Call, y: Expr, g: Expr | list[Expr]) -> Sequence[Expr]:
    x, a = c.args[0], facets(c)
    if a.ret_type == "indices":
        return [zeros(x)]
    values = g[0] if isinstance(g, list) else g
    places = TupleGetItem(Call(c.op, c.args, a.replace(ret_type="both", dtype="int64")), 1)
    return [call("scatter_add", zeros(x), places, values, axis=a.axis)]


@gradient_of("reverse")
def _reverse(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [call("reverse", g, axis=facets(c).axis)]


@gradient_of("reverse_sequence", "sequence_mask", "trilu")
def _again(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    attrs = dict(facets(c).items()) | ({"mask_value": 0.0} if op_name(c) == "sequence_mask" else {})
    return [call(op_name(c), g, c.args[1], **attrs), zeros(c.args[1])]


@gradient_of("tile")
def _tile(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    shape, made = extents(c.args[0]), extents(c)
    shape = [1] * (len(made) - len(shape)) + shape
    split = [n for m, e in zip(made, shape) for n in (m // e if e else 1, e)]
    sums = call("sum", reshaped(g, split), axis=list(range(0, len(split), 2)))
    return [call("reshape_like", sums, c.args[0])]


@gradient_of("repeat")
def _repeat(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, axis = c.args[0], facets(c).axis
    shape, axis = (extents(x), axis % rank_of(x)) if axis is not None else ([math.prod(extents(x))], 0)
    split = [*shape[: axis + 1], facets(c).repeats, *shape[axis + 1 :]]
    return [call("reshape_like", call("sum", reshaped(g, split), axis=[axis + 1]), x)]


@gradient_of("meshgrid")
def _meshgrid(c: Call, y: Expr, g: Sequence[Expr]) -> Sequence[Any]:
    fields = range(len(fields_of(c.args[0])))
    axes = [k if facets(c).indexing == "ij" or k > 1 or len(fields) < 2 else 1 - k for k in fields]
    sums = (call("sum", part, axis=[d], exclude=True) for part, d in zip(g, axes))
    return [[call("reshape_like", s, TupleGetItem(c.args[0], k)) for k, s in enumerate(sums)]]


@gradient_of("layout_transform")
def _layout_transform(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    a = facets(c)
    return [call("layout_transform", g, src_layout=a.dst_layout, dst_layout=a.src_layout)]


@gradient_of("one_hot", "dyn.one_hot")
def _one_hot(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    one, zero = like(1, c), like(0, c)
    hot = Call(c.op, (c.args[0], one, zero, *c.args[3:]), c.attrs)
    on, off = (call("sum", mul(g, m), axis=None, keepdims=False, exclude=False) for m in (hot, sub(one, hot)))
    values = [call("reshape_like", call("cast_like", v, a), a) for v, a in zip((on, off), c.args[1:3])]
    return [zeros(c.args[0]), *values, *map(zeros, c.args[3:])]


@gradient_of("full", "dyn.full", "full_like")
def _full(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    at = 1 if op_name(c) == "full_like" else 0
    grads = [zeros(a) for a in c.args]
    grads[at] = call("reshape_like", call("cast_like", total(g), c.args[at]), c.args[at])
    return grads


@gradient_of("arange")
def _arange(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    start, _, step = c.args
    index = call("divide", sub(y, _scalar(start, y)), _scalar(step, y))
    grads = [total(g), total(zeros(g)), total(mul(g, index))]
    return [call("reshape_like", call("cast_like", d, a), a) for d, a in zip(grads, c.args)]


def _scalar(x: Expr, other: Expr) -> Expr:
    return call("cast_like", reshaped(x, []), other)


@gradient_of("shape_of", "vm.shape_of", "ndarray_size", "dyn.ones", "dyn.zeros")
def _of_no_element(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [zeros(a) for a in c.args]


@gradient_of("dyn.reshape", "dyn.squeeze", "dyn.expand_dims")
def _reshaped_at_run_time(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [call("reshape_like", g, c.args[0]), *map(zeros, c.args[1:])]


@gradient_of("collapse_sum_to")
def _to_shape(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [call("broadcast_to_like", g, c.args[0]), zeros(c.args[1])]


@gradient_of("annotation.checkpoint")
def _checkpoint(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [g]


@gradient_of("mod", "trunc_mod", "floor_mod")
def _mod(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    a, b = c.args
    whole = call("divide", sub(a, y), b)
    return [unbroadcast(g, a), unbroadcast(mul(call("negative", g), whole), b)]


@gradient_of("floor_divide", "trunc_divide")
def _whole_divide(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [zeros(a) for a in c.args]


# ---- running and whole products and sums


def _from_last(name: str, x: Expr, axis: int, exclusive: bool) -> Expr:
    """A running sum or product from the last element to the first."""
    back = call(name, call("reverse", x, axis=axis), axis=axis, exclusive=exclusive)
    return call("reverse", back, axis=axis)


@gradient_of("cumsum")
def _cumsum(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, a = c.args[0], facets(c)
    sums = _from_last("cumsum", g, 0 if a.axis is None else a.axis % rank_of(x), a.exclusive)
    return [call("reshape_like", call("cast_like", sums, x), x)]


@gradient_of("prod")
def _prod(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    """Each element gets the product of all others: of those before it and of those behind it, so that zeros may be."""
    x, rank, axes = c.args[0], rank_of(c.args[0]), reduced(c)
    order = [*(d for d in range(rank) if d not in axes), *axes]
    shape = [extents(x)[d] for d in order]
    lead = shape[: rank - len(axes)]
    rows = reshaped(call("transpose", x, axes=order) if rank else x, [*lead, math.prod(shape[len(lead) :])])
    before = call("cumprod", rows, axis=len(lead), exclusive=True)
    others = mul(before, _from_last("cumprod", rows, len(lead), True))
    grads = reshaped(mul(others, reshaped(g, [*lead, 1])), shape)
    return [call("transpose", grads, axes=[order.index(d) for d in range(rank)]) if rank else grads]


@gradient_of("cumprod")
def _cumprod(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    """Sum over results k of g[k] times the product of the elements up to k but the one in question, by a mask."""
    x, a = c.args[0], facets(c)
    shape, axis = (extents(x), a.axis) if a.axis is not None else ([math.prod(extents(x))], 0)
    axis, n, rank = axis % len(shape), shape[axis], len(shape)
    at = [1] * (rank + 1)
    at[axis], at[axis + 1] = n, n
    grid = np.arange(n)
    own = const((grid[:, None] == grid).reshape(at))
    reach = const((grid[:, None] <= grid - a.exclusive).reshape(at))
    wide = [*shape[: axis + 1], n, *shape[axis + 1 :]]
    # wide[.., i, j, ..] is element j, 1 for j = i; its running products are those without element i
    rows = call("cast", reshaped(x, shape), dtype=dtype_of(c))
    rows = call("broadcast_to", call("expand_dims", rows, axis=axis), shape=wide)
    without = call("cumprod", call("where", own, call("ones_like", rows), rows), axis=axis + 1, exclusive=a.exclusive)
    parts = call("where", reach, mul(without, call("expand_dims", g, axis=axis)), zeros(without))
    return [call("reshape_like", call("cast_like", call("sum", parts, axis=[axis + 1]), x), x)]
