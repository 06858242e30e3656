"""The derivatives of operators that put elements to places: of several for one place the last, or all combined."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from relaylab.ir import Call, Constant, Expr, TupleGetItem, const, facets
from relaylab.transform.engine.build import call, reshaped, scalar
from relaylab.transform.engine.infer_type import dtype_of, rank_of
from relaylab.transform.gradients.rules import div, gradient_of, like, mul
from relaylab.transform.gradients.rules_moves import extents, total, zeros


def numbered(shape: list[int]) -> Constant:
    """Numbers from 1 on in a shape."""
    return const(np.arange(1, math.prod(shape) + 1).reshape(shape), "int64")


def nowhere(shape: list[int]) -> Constant:
    """Zeros, for places that no number was put to."""
    return const(np.zeros(shape), "int64")


def masked(keep: Expr, g: Expr) -> Expr:
    return call("where", keep, g, call("zeros_like", g))


def is_zero(x: Expr, dtype: str) -> Expr:
    return call("equal", x, scalar(0, dtype))


@gradient_of("scatter_add")
def _scatter_add(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, at, new = c.args
    axis = facets(c).axis % rank_of(x)
    full = [e if d == axis else m for d, (e, m) in enumerate(zip(extents(x), extents(at)))]
    return [g, zeros(at), call("gather", _cut(g, extents(x), full), _counted(at, full[axis]), axis=axis)]


def _cut(x: Expr, given: list[int], shape: list[int]) -> Expr:
    """The first elements along each axis of what has a given shape."""
    if given == shape:
        return x
    return call("strided_slice", x, begin=[0] * len(shape), end=shape, strides=[1] * len(shape))


def _counted(at: Expr, count: int) -> Expr:
    """Indices of which negative ones count from the end, as those that do not."""
    return call("floor_mod", call("cast", at, dtype="int64"), scalar(count, "int64"))


@gradient_of("scatter")
def _scatter(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    """Numbers of the updates, scattered, say which update came last to each place."""
    x, at, new = c.args
    axis, numbers = facets(c).axis % rank_of(x), numbered(extents(at))
    full = [e if d == axis else m for d, (e, m) in enumerate(zip(extents(x), extents(at)))]
    last = Call(c.op, (nowhere(extents(x)), at, numbers), c.attrs)
    places = _counted(at, full[axis])
    there = lambda v: call("gather", _cut(v, extents(x), full), places, axis=axis)
    return [masked(is_zero(last, "int64"), g), zeros(at), masked(call("equal", there(last), numbers), there(g))]


@gradient_of("scatter_nd")
def _scatter_nd(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, at, new = c.args
    depth, shape, mode = extents(at)[0], extents(x), facets(c).mode
    ends = const(np.array(shape[:depth]).reshape([depth, *[1] * (rank_of(at) - 1)]), "int64")
    places = call("floor_mod", call("cast", at, dtype="int64"), ends)
    there = lambda v: call("gather_nd", v, places)
    put = lambda into, v, mode: call("scatter_nd", into, at, v, mode=mode)
    if mode == "add":
        return [g, zeros(at), there(g)]
    if mode == "mul":
        factors = put(call("ones_like", x), new, "mul")
        return [mul(g, factors), zeros(at), mul(there(mul(g, x)), _other_factors(x, new, there, put))]
    if mode == "update":
        numbers = numbered(extents(at)[1:])
        last = put(nowhere(shape[:depth]), numbers, "update")
        spare = [1] * (len(shape) - depth)
        kept = reshaped(is_zero(last, "int64"), [*shape[:depth], *spare])
        won = reshaped(call("equal", there(last), numbers), [*extents(at)[1:], *spare])
        return [masked(kept, g), zeros(at), masked(won, there(g))]
    # of several extremes each gets the same part
    ours, theirs = (call("cast", call("equal", a, b), dtype=dtype_of(x)) for a, b in ((x, y), (new, there(y))))
    share = div(g, put(ours, theirs, "add"))
    return [mul(ours, share), zeros(at), mul(theirs, there(share))]


def _other_factors(x: Expr, new: Expr, there: Callable[[Expr], Expr], put: Callable[[Expr, Expr, str], Expr]) -> Expr:
    """For each update the product of the other updates of its place, which may be zero."""
    none, dtype = is_zero(new, dtype_of(x)), dtype_of(x)
    factors = call("where", none, call("ones_like", new), new)
    product = there(put(call("ones_like", x), factors, "mul"))
    count = there(put(zeros(x), call("cast", none, dtype=dtype), "add"))
    alone = masked(call("equal", count, like(1, x)), product)
    return call("where", none, alone, masked(is_zero(count, dtype), div(product, factors)))


@gradient_of("sparse_to_dense")
def _sparse_to_dense(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    at, values, default = c.args
    rows = reshaped(at, [-1, rank_of(c)])
    count = extents(at)[0] if rank_of(at) else 1
    places, numbers = call("transpose", rows, axes=[1, 0]), numbered([count])
    last = Call(c.op, (at, numbers, scalar(0, "int64")), c.attrs)
    won = call("equal", call("gather_nd", last, places), numbers)
    each = masked(won, call("gather_nd", g, places))
    if extents(values) != [count]:
        each = call("reshape_like", total(each), values)
    border = call("cast_like", total(masked(is_zero(last, "int64"), g)), default)
    return [zeros(at), each, call("reshape_like", border, default)]


@gradient_of("sparse_fill_empty_rows")
def _sparse_fill_empty_rows(c: Call, y: Expr, g: Sequence[Expr]) -> Sequence[Expr]:
    """The numbers of the values say where they went; 0 is the default value."""
    at, values, shape, default = c.args
    count = extents(values)[0]
    moved = TupleGetItem(Call(c.op, (at, numbered([count]), shape, call("cast", zeros(default), dtype="int64"))), 1)
    sums = const(np.zeros(count + 1), dtype_of(values))
    sums = call("scatter_nd", sums, call("expand_dims", moved, axis=0), g[1], mode="add")
    first, others = (call("strided_slice", sums, begin=[a], end=[b], strides=[1]) for a, b in ((0, 1), (1, count + 1)))
    return [zeros(at), others, zeros(shape), call("reshape_like", first, default)]


@gradient_of("nn.sparse_transpose")
def _sparse_transpose(c: Call, y: Expr, g: Sequence[Expr]) -> Sequence[Expr]:
    data, *places = c.args
    numbers = const(np.arange(extents(data)[0]), "int64")
    order = TupleGetItem(Call(c.op, (numbers, *places)), 0)
    return [call("scatter_nd", zeros(data), call("expand_dims", order, axis=0), g[0], mode="add"), *map(zeros, places)]


@gradient_of("strided_set")
def _strided_set(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, new, *limits = c.args
    part = call("dyn.strided_slice", g, *limits)
    return [Call(c.op, (g, zeros(new), *limits)), call("reshape_like", part, new), *map(zeros, limits)]


@gradient_of("matrix_set_diag")
def _matrix_set_diag(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    """Where the elements of the diagonals come to lie is the same in all matrices of a batch; 0: nowhere."""
    data, diagonal = c.args
    shape, tail, count = extents(data)[-2:], rank_of(data) - 2, math.prod(extents(data)[-2:])
    numbers = numbered(extents(diagonal)[tail:]).data.numpy()
    found = facets(c).reference(np.zeros(shape, "int64"), numbers).reshape(-1)
    places = np.zeros(numbers.size + 1, "int64")
    places[found] = np.arange(count)
    places = places[1:].reshape(numbers.shape)
    there = call("take", reshaped(g, [*extents(data)[:-2], count]), const(places, "int64"), axis=tail)
    kept = call("broadcast_to", const(np.isin(numbers, found), "bool"), shape=extents(diagonal))
    return [Call(c.op, (g, zeros(diagonal)), c.attrs), masked(kept, there)]
