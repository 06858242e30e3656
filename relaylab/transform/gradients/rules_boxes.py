"""The derivatives of pools of regions and of boxes that are moved and scaled.

As in torchvision no gradient flows to the regions of a pool: their corners are taken as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab.ir import Call, Expr, Tuple, const, facets
from relaylab.op.image.crop import precision
from relaylab.op.layout import parse_layout
from relaylab.op.nn.pool import border
from relaylab.op.shapes import extent
from relaylab.transform.engine.build import call, reshaped, scalar
from relaylab.transform.engine.infer_type import dtype_of
from relaylab.transform.gradients.decomposed import decomposition_of
from relaylab.transform.gradients.rules import GRADIENTS, add, div, gradient_of, mul, sub
from relaylab.transform.gradients.rules_moves import extents, flat, zeros
from relaylab.transform.gradients.rules_nn import laid

NEAR = 6
"""How many samples may lie at most a pixel from another pixel: they are more than half a pixel apart."""


def _sizes(c: Call) -> list[int]:
    """Images, channels, height and width of the data of a pool of regions."""
    whole = parse_layout(facets(c).layout).whole(extents(c.args[0]))
    return [extent(whole[k]) for k in "NCHW"]


def _column(rois: Expr, k: int, dtype: str, rank: int) -> Expr:
    """A number of each region, with axes of 1 behind it."""
    column = call("cast", call("take", rois, scalar(k, "int64"), axis=1), dtype=dtype)
    return reshaped(column, [extents(rois)[0], *[1] * (rank - 1)])


def _image(rois: Expr, count: int) -> Expr:
    """The index of the image that each region lies in."""
    given = call("cast", call("take", rois, scalar(0, "int64"), axis=1), dtype="int64")
    return call("minimum", call("maximum", given, scalar(0, "int64")), scalar(count - 1, "int64"))


def _between(low: Expr, x: Expr, high: Expr, last: str) -> Expr:
    """Whether `x` is from `low` on, and `less` or `less_equal` than `high`."""
    return call("logical_and", call("less_equal", low, x), call(last, x, high))


# ---- roi_align: both axes multiplied by matrices that are made from the regions


def _weights(c: Call, rois: Expr, axis: int, size: int) -> Expr:
    """What each pixel counts along an axis: for means in each cell, (R, cells, size); for maxima in each sample of each
    cell, (R, cells * samples, size), the last sample repeated.
    """
    a, number = facets(c), lambda v: scalar(v, "float64")
    mean, cells, line = a.mode == "avg", int(a.pooled_size[axis]), [1, 1, size, 1]
    count = a.sample_ratio if a.sample_ratio > 0 else NEAR if mean else 2 * size + NEAR
    # (R, cells, size, samples) is summed along its last axis; samples stay where there is a maximum
    taps = [1, 1, 1, count] if mean else [1, 1, count, 1]
    pixel = const(np.arange(size).reshape(line if mean else [1, 1, 1, size]), "float64")
    j = const(np.arange(count).reshape(taps), "float64")
    first, last = (_column(rois, k, "float64", 4) for k in (2 - axis, 4 - axis))
    long = mul(sub(last, first), number(a.spatial_scale))
    cell = div(long if a.aligned else call("maximum", long, number(1)), number(cells))
    start = mul(const(np.arange(cells).reshape(1, cells, 1, 1), "float64"), cell)
    start = add(mul(first, number(a.spatial_scale)), start)
    start = sub(start, number(0.5)) if a.aligned else start
    there = number(a.sample_ratio) if a.sample_ratio > 0 else call("ceil", cell)
    if a.sample_ratio <= 0:  # those before the first that a pixel (or the image) sees are passed over
        low = sub(pixel, number(1)) if mean else number(-1)
        before = call("ceil", sub(div(mul(sub(low, start), there), cell), number(1.5)))
        j = add(call("maximum", before, number(0)), j)
    j = j if mean else call("minimum", j, sub(there, number(1)))
    place = add(start, div(mul(add(j, number(0.5)), cell), there))
    seen = _between(number(-1), place, number(size), "less_equal")
    if a.aligned and a.sample_ratio <= 0:  # a region of no extent has no samples
        seen, there = call("logical_and", seen, call("less", number(0), there)), call("maximum", there, number(1))
    near = call("abs", sub(call("clip", place, a_min=0.0, a_max=float(size - 1)), pixel))
    weight = call("where", seen, call("nn.relu", sub(number(1), near)), number(0))
    if mean:
        weight = call("where", call("less", j, there), weight, number(0))
        there = there if a.sample_ratio > 0 else reshaped(there, [extents(rois)[0], 1, 1])
        weight = div(call("sum", weight, axis=[3], keepdims=False, exclude=False), there)
    rows = cells if mean else cells * count
    return call("cast", reshaped(weight, [extents(rois)[0], rows, size]), dtype=dtype_of(c))


@decomposition_of("vision.roi_align")
def _roi_align(c: Call, x: Expr, rois: Expr) -> Expr:
    a, (n, channels, *image), regions = facets(c), _sizes(c), extents(c.args[1])[0]
    down, across = (_weights(c, rois, axis, size) for axis, size in enumerate(image))
    cells = [int(k) for k in a.pooled_size]
    samples = 1 if a.mode == "avg" else a.sample_ratio
    counts = [samples if samples > 0 else 2 * size + NEAR for size in image]
    rows, columns = (k * s for k, s in zip(cells, counts))
    lines = call("transpose", laid(x, a.layout, "NCHW"), axes=[1, 3, 0, 2])
    lines = reshaped(lines, [channels * image[1], n * image[0]])
    mine = call("one_hot", _image(rois, n), *(scalar(v, dtype_of(c)) for v in (1, 0)), depth=n, dtype=dtype_of(c))
    left = mul(reshaped(mine, [regions, 1, n, 1]), reshaped(down, [regions, rows, 1, image[0]]))
    made = call("nn.dense", lines, reshaped(left, [regions * rows, n * image[0]]), units=regions * rows)
    made = call("transpose", reshaped(made, [channels, image[1], regions, rows]), axes=[2, 0, 3, 1])
    made = reshaped(made, [regions, channels * rows, image[1]])
    made = call("nn.batch_matmul", made, across, out_dtype=None, transpose_a=False, transpose_b=True)
    made = reshaped(made, [regions, channels, rows, columns])
    if a.mode != "avg":
        made = call("nn.max_pool2d", made, pool_size=counts, strides=counts)
    return laid(made, "NCHW", a.layout)


_TO_BOTH = GRADIENTS["vision.roi_align"]


@gradient_of("vision.roi_align")
def _to_the_data(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    return [_TO_BOTH(c, y, g)[0], zeros(c.args[1])]


# ---- roi_pool: each maximum has one place, the first


def _cells(c: Call, rois: Expr, axis: int, size: int) -> Expr:
    """Which pixels each cell of each region has along an axis: (R, cells, size)."""
    a, dtype = facets(c), precision(dtype_of(rois))
    number, cells = lambda v: scalar(v, dtype), int(a.pooled_size[axis])

    def whole(x: Expr) -> Expr:
        up, half = call("less", x, number(0)), number(0.5)
        return call("where", up, call("ceil", sub(x, half)), call("floor", add(x, half)))

    begin, end = (whole(mul(_column(rois, k, dtype, 3), number(a.spatial_scale))) for k in (2 - axis, 4 - axis))
    cell = div(call("maximum", add(sub(end, begin), number(1)), number(1)), number(cells))
    k = np.arange(cells).reshape(1, cells, 1)
    low = add(call("floor", mul(const(k, dtype), cell)), begin)
    high = add(call("ceil", mul(const(k + 1, dtype), cell)), begin)
    return _between(low, const(np.arange(size).reshape(1, 1, size), dtype), high, "less")


@gradient_of("vision.roi_pool")
def _roi_pool(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    """The first largest of each row in a cell's columns, then of these in its rows."""
    (data, rois), a, (n, channels, *image) = c.args, facets(c), _sizes(c)
    (height, width), regions = image, extents(rois)[0]
    rows, columns = (int(k) for k in a.pooled_size)
    low, first = scalar(border(dtype_of(c)), dtype_of(c)), {"keepdims": False, "exclude": False}
    down, across = (_cells(c, rois, axis, size) for axis, size in enumerate(image))
    mine = _image(rois, n)
    x = call("take", laid(data, a.layout, "NCHW"), mine, axis=0)
    x = reshaped(x, [regions, channels, height, 1, width])
    x = call("where", reshaped(across, [regions, 1, 1, columns, width]), x, low)
    column = call("cast", call("argmax", x, axis=[4], **first), dtype="int64")
    x = reshaped(call("max", x, axis=[4], **first), [regions, channels, 1, height, columns])
    x = call("where", reshaped(down, [regions, 1, rows, height, 1]), x, low)
    row = call("cast", call("argmax", x, axis=[3], **first), dtype="int64")
    number = lambda v: scalar(v, "int64")
    start = add(reshaped(mul(mine, number(channels)), [regions, 1]), const(np.arange(channels)[None], "int64"))
    start = reshaped(mul(start, number(height)), [regions, channels, 1, 1])
    place = add(mul(add(start, row), number(width)), call("gather", column, row, axis=2))
    some = [call("any", v, axis=[2], **first) for v in (down, across)]
    some = [reshaped(v, [regions, 1, *shape]) for v, shape in zip(some, ((rows, 1), (1, columns)))]
    g = laid(g, a.layout, "NCHW")
    g = call("where", call("logical_and", *some), g, zeros(g))
    sums = const(np.zeros(n * channels * height * width), dtype_of(c))
    sums = call("scatter_nd", sums, call("expand_dims", flat(place), axis=0), flat(g), mode="add")
    return [laid(reshaped(sums, [n, channels, height, width]), "NCHW", a.layout), zeros(rois)]


# ---- multibox_transform_loc


@decomposition_of("vision.multibox_transform_loc")
def _multibox_transform_loc(c: Call, prob: Expr, moves: Expr, anchor: Expr) -> Expr:
    """Which box stands where is fixed; scores and corners change with what they are made from."""
    a, (batch, classes, count) = facets(c), extents(c.args[0])
    dtype = dtype_of(c.args[0])
    if classes == 1:
        return Tuple([const(np.full([batch, count, 6], -1), dtype), const(np.zeros(batch), "int32")])
    ends = {"begin": [0, 1, 0], "end": [batch, classes, count], "strides": [1, 1, 1]}
    scores, how = call("strided_slice", prob, **ends), {"keepdims": True, "exclude": False}
    best = call("cast", call("argmax", scores, axis=[1], **how), dtype="int64")
    moves = mul(reshaped(call("cast", moves, dtype=dtype), [batch, count, 4]), const([[a.variances]], dtype))
    boxes = _corners(moves, call("cast", anchor, dtype=dtype), scalar(0.5, dtype))
    boxes = call("clip", boxes, a_min=0.0, a_max=1.0) if a.clip else boxes
    parts = [call("cast", best, dtype=dtype), call("gather", scores, best, axis=1)]
    valid = reshaped(call("greater_equal", parts[1], scalar(a.threshold, dtype)), [batch, count])
    table = call("concatenate", Tuple([*(reshaped(v, [batch, count, 1]) for v in parts), boxes]), axis=2)
    turn = const(np.arange(count)[None], "int64")
    order = call("argsort", call("where", valid, turn, add(turn, scalar(count, "int64"))), axis=1, dtype="int64")
    shape = [batch, count, 6]
    at = call("broadcast_to", reshaped(order, [batch, count, 1]), shape=shape)
    counts = call("sum", call("cast", valid, dtype="int32"), axis=[1], keepdims=False, exclude=False)
    filled = call("less", turn, call("cast", reshaped(counts, [batch, 1]), dtype="int64"))
    rows = call("gather", table, at, axis=1)
    return Tuple([call("where", reshaped(filled, [batch, count, 1]), rows, scalar(-1, dtype)), counts])


def _corners(moves: Expr, anchor: Expr, half: Expr) -> Expr:
    """The corners (B, A, 4) of anchors (1, A, 4) moved and scaled by (B, A, 4)."""
    pair = lambda x, k: call("take", x, const([k, k + 1], "int64"), axis=2)
    low, high = pair(anchor, 0), pair(anchor, 2)
    size = sub(high, low)
    center = add(mul(add(low, high), half), mul(pair(moves, 0), size))
    reach = mul(mul(size, call("exp", pair(moves, 2))), half)
    return call("concatenate", Tuple([sub(center, reach), add(center, reach)]), axis=2)
