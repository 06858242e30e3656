"""The derivatives of neural-network operators."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab.ir import Call, Constant, Expr, TupleGetItem, facets, op_name
from relaylab.op.window import spread as spread_attr
from relaylab.op.window import spread_padding
from relaylab.transform.engine.build import call, reshaped, scalar
from relaylab.transform.engine.infer_type import dtype_of, rank_of, shape_of
from relaylab.transform.gradients.decomposed import decomposition_of
from relaylab.transform.gradients.rules import (
    GRADIENTS,
    div,
    divided,
    gradient_of,
    like,
    mul,
    neg,
    reduced,
    shared,
    spread,
    sub,
    unbroadcast,
)


@gradient_of("nn.bias_add")
def _bias_add(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    axis = facets(c).axis % rank_of(c)
    return [g, call("sum", g, axis=[axis], keepdims=False, exclude=True)]


@gradient_of("nn.softmax")
def _softmax(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    total = call("sum", mul(g, y), axis=[facets(c).axis], keepdims=True, exclude=False)
    return [mul(sub(g, total), y)]


@decomposition_of("nn.attention")
def _attention(c: Call, query: Expr, key: Expr, value: Expr, mask: Expr) -> Expr:
    a, (*lead, m, d), dtype = facets(c), map(int, shape_of(c.args[0])), dtype_of(c)
    n, e = map(int, shape_of(c.args[2])[-2:])
    flat = lambda x, *matrix: reshaped(x, (math.prod(lead), *matrix))
    products = call("nn.batch_matmul", flat(query, m, d), flat(key, n, d), transpose_b=True)
    scores = call("add", mul(reshaped(products, (*lead, m, n)), scalar(a.scale, dtype)), mask)
    weights = call("nn.softmax", scores, axis=-1)
    if a.zero_empty:
        seen = call("any", call("not_equal", scores, scalar(-math.inf, dtype)), axis=[-1], keepdims=True)
        weights = call("where", seen, weights, scalar(0, dtype))
    return reshaped(call("nn.batch_matmul", flat(weights, m, n), flat(value, n, e), transpose_b=False), (*lead, m, e))


@decomposition_of("nn.grouped_matmul")
def _grouped(c: Call, data: Expr, weight: Expr, ends: Expr) -> Expr:
    """Every matrix times the rows of its group, all others being 0."""
    (rows, _), groups = map(int, shape_of(c.args[0])), int(shape_of(c.args[2])[0])
    numbers = [Constant(np.arange(n, dtype=dtype_of(c.args[2]))) for n in (rows, groups)]
    group = call("searchsorted", ends, numbers[0], right=True, dtype=dtype_of(c.args[2]))
    mine = call("equal", call("expand_dims", numbers[1], axis=1, num_newaxis=1), group)
    mine = call("expand_dims", mine, axis=2, num_newaxis=1)
    parts = call("where", mine, call("expand_dims", data, axis=0, num_newaxis=1), scalar(0, dtype_of(c)))
    return call("sum", call("nn.batch_matmul", parts, weight, transpose_b=False), axis=[0], keepdims=False)


@gradient_of("nn.log_softmax")
def _log_softmax(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    total = call("sum", g, axis=[facets(c).axis], keepdims=True, exclude=False)
    return [sub(g, mul(call("exp", y), total))]


def as_rows(x: Expr, width: int) -> Expr:
    """A tensor with a last axis of `width` as a matrix."""
    return reshaped(x, [-1 if width else math.prod(map(int, shape_of(x)[:-1])), width])


@gradient_of("nn.dense")
def _dense(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    (x, w), (units, inner) = c.args, map(int, shape_of(c.args[1]))
    grads, rows = (call("transpose", as_rows(v, n), axes=[1, 0]) for v, n in ((g, units), (x, inner)))
    dx = call("nn.dense", as_rows(g, units), call("transpose", w, axes=[1, 0]), units=inner)
    dw = call("nn.dense", grads, rows, units=inner)
    return [call("reshape_like", dx, x), dw]


@gradient_of("nn.batch_matmul")
def _batch_matmul(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    a, b, attrs = *c.args, facets(c)
    ta, tb = attrs.transpose_a, attrs.transpose_b

    def product(p: Expr, q: Expr, tp: bool, tq: bool) -> Expr:
        return call("nn.batch_matmul", p, q, out_dtype=None, transpose_a=tp, transpose_b=tq)

    da = product(b, g, tb, True) if ta else product(g, b, False, not tb)
    db = product(g, a, True, ta) if tb else product(a, g, not ta, False)
    return [call("collapse_sum_like", da, a), call("collapse_sum_like", db, b)]


@gradient_of("nn.matmul")
def _matmul(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    (a, b), attrs = c.args, facets(c)
    inner, units = (int(shape_of(c.args[0])[-2 if attrs.transpose_a else -1]), int(shape_of(c)[-1]))
    axes = [*range(rank_of(a) - 2), rank_of(a) - 1, rank_of(a) - 2]
    flip = lambda x: call("transpose", x, axes=axes) if attrs.transpose_a else x

    def product(p: Expr, q: Expr, **how: bool) -> Expr:
        given = {"transpose_a": False, "transpose_b": False, **how}
        return call("nn.matmul", p, q, units=None, out_dtype=None, **given)

    rows, grads = as_rows(flip(a), inner), as_rows(g, units)
    pair = (grads, rows) if attrs.transpose_b else (rows, grads)
    return [flip(product(g, b, transpose_b=not attrs.transpose_b)), product(*pair, transpose_a=True)]


@gradient_of("nn.prelu")
def _prelu(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    (x, alpha), axis, rank = c.args, facets(c).axis % rank_of(c), rank_of(c)
    slope = reshaped(alpha, [-1 if d == axis else 1 for d in range(rank)])
    above, none = call("greater", x, like(0, x)), call("zeros_like", g)
    slopes = call("sum", call("where", above, none, mul(g, x)), axis=[axis], keepdims=False, exclude=True)
    return [call("where", above, g, mul(g, slope)), slopes]


@gradient_of("variance")
def _variance(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, mean = c.args
    count = math.prod(int(shape_of(x)[d]) for d in reduced(c)) - facets(c).unbiased
    slope = mul(spread(c, g), mul(sub(x, mean), like(2 / count, x)))
    return [slope, unbroadcast(neg(slope), mean)]


@gradient_of("nn.cross_entropy", "nn.cross_entropy_with_logits")
def _cross_entropy(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    (x, t), scale = c.args, neg(div(g, like(int(shape_of(c.args[0])[0]), c)))
    if op_name(c) == "nn.cross_entropy":
        return [mul(scale, div(t, x)), mul(scale, call("log", x))]
    return [mul(scale, t), mul(scale, x)]


@gradient_of("nn.nll_loss")
def _nll_loss(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    (x, targets, weights), a = c.args, facets(c)
    one, zero = like(1, x), like(0, x)
    hot = call("one_hot", targets, one, zero, depth=int(shape_of(x)[1]), axis=1, dtype=dtype_of(x))
    kept = call("not_equal", targets, scalar(a.ignore_index, dtype_of(targets)))
    hot = mul(hot, call("expand_dims", call("cast", kept, dtype=dtype_of(x)), axis=1))
    weighted = mul(hot, reshaped(weights, [-1 if d == 1 else 1 for d in range(rank_of(x))]))
    each = g
    if a.reduction == "mean":
        each = div(g, call("sum", weighted, axis=None, keepdims=False, exclude=False))
    if a.reduction == "none":
        each = call("expand_dims", g, axis=1)
    loss = sub(neg(x), y) if a.reduction == "mean" else neg(x)
    slopes = call("sum", mul(each, mul(hot, loss)), axis=[1], keepdims=False, exclude=True)
    return [neg(mul(each, weighted)), call("zeros_like", targets), slopes]


# ---- windows, and pools


def laid(x: Expr, source: str, to: str) -> Expr:
    return x if source == to else call("layout_transform", x, src_layout=source, dst_layout=to)


def as_images(x: Expr, layout: str) -> Expr:
    """Lines as images one row high; images as they are."""
    return x if "H" in layout else call("expand_dims", x, axis=layout.index("W"))


def as_lines(x: Expr, layout: str) -> Expr:
    return x if "H" in layout else call("squeeze", x, axis=[layout.index("W")])


def window_steps(values: Sequence[int], axes: int) -> list[int]:
    """An attribute of an operator over one or two axes, for two axes."""
    return [*[1] * (2 - axes), *spread_attr(tuple(values), axes)]


def window_pads(padding: Sequence[int], axes: int) -> list[int]:
    """The padding before and behind both axes."""
    p = spread_padding(tuple(padding), axes)
    return [0, p[0], 0, p[1]] if axes == 1 else list(p)


@gradient_of("nn.max_pool1d", "nn.avg_pool1d", "nn.max_pool2d", "nn.avg_pool2d")
def _pool(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    attrs = facets(c)
    axes = 1 if op_name(c).endswith("1d") else 2
    if op_name(c).startswith("nn.avg") and attrs.ceil_mode and attrs.count_include_pad:
        return GRADIENTS["nn.avg_pool3d"](c, y, g)  # nn.avg_pool2d_grad divides by the whole of a window that is cut
    given = {k: v for k, v in attrs.items() if k != "out_layout"}
    given |= {
        "pool_size": window_steps(attrs.pool_size, axes),
        "strides": window_steps(attrs.strides, axes),
        "dilation": window_steps(attrs.dilation, axes),
        "padding": window_pads(attrs.padding, axes),
        "layout": attrs.layout if axes == 2 else attrs.layout.replace("W", "HW"),
    }
    g = laid(g, attrs.out_layout or attrs.layout, attrs.layout)
    kind = op_name(c)[: len("nn.max_pool")]
    grads = call(f"{kind}2d_grad", as_images(g, attrs.layout), as_images(c.args[0], attrs.layout), **given)
    return [as_lines(grads, attrs.layout)]


@gradient_of("nn.global_avg_pool2d", "nn.global_max_pool2d")
def _global_pool2d(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    x, layout = c.args[0], facets(c).layout
    if op_name(c) == "nn.global_max_pool2d":
        at = call("equal", x, y)
        g = divided(c, g, at, axis=[layout.index("H"), layout.index("W")], keepdims=True)
        return [call("where", at, call("broadcast_to", g, shape=shape_of(x)), call("zeros_like", x))]
    count = int(shape_of(x)[layout.index("H")]) * int(shape_of(x)[layout.index("W")])
    return [call("broadcast_to", shared(c, g, count), shape=shape_of(x))]


# ---- images cut into blocks


@gradient_of("nn.depth_to_space", "nn.space_to_depth")
def _blocks(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    a = facets(c)
    other = "nn.space_to_depth" if op_name(c) == "nn.depth_to_space" else "nn.depth_to_space"
    return [call(other, g, block_size=a.block_size, layout=a.layout, mode=a.mode)]


@gradient_of("nn.space_to_batch_nd", "nn.batch_to_space_nd")
def _batches(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    a = facets(c)
    if op_name(c) == "nn.space_to_batch_nd":
        return [call("nn.batch_to_space_nd", g, block_shape=a.block_shape, crops=a.paddings)]
    return [call("nn.space_to_batch_nd", g, block_shape=a.block_shape, paddings=a.crops, pad_value=0.0)]


@gradient_of("nn.dilate")
def _dilate(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    shape = [int(d) for d in shape_of(c)]
    steps = [int(v) for v in facets(c).strides]
    return [call("strided_slice", g, begin=[0] * len(shape), end=shape, strides=steps)]


@gradient_of("nn.fifo_buffer")
def _fifo_buffer(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    """The result is the last part of buffer and data, joined along the axis."""
    x, buffer = c.args
    axis = facets(c).axis % rank_of(c)
    length, shape = int(shape_of(buffer)[axis]), [int(d) for d in shape_of(c)]
    count = int(shape_of(x)[axis])
    kept = max(length - count, 0)
    parts = call("split", g, indices_or_sections=[kept], axis=axis)
    border = lambda part, low, high: call(
        "nn.pad",
        TupleGetItem(parts, part),
        scalar(0, dtype_of(c)),
        pad_width=[(low, high) if d == axis else (0, 0) for d in range(len(shape))],
        pad_mode="constant",
    )
    return [border(1, max(count - length, 0), 0), border(0, min(count, length), 0)]
