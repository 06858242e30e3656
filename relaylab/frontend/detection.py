"""Object detection in several formats: regions that are sampled, convolutions of samples that lie anywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.ir import Expr, const
from relaylab.op import nn


def sampled_regions(
    g: Graph, x: Expr, rois: Expr, batch: Expr, size: tuple[int, int], count: int, scale: float, half: bool
) -> Expr:  # fmt: skip
    """Each cell of regions (R, 4) from `count` x `count` samples of four neighbours: the largest neighbour times its
    weight, as ONNX has it. `half`: pixels have their centres at halves."""
    n, (c, h, w) = g.named(x)[0], g.extents(x, 1)
    regions = g.dims(rois)[0]
    ys, xs = (_places(g, rois, axis, size[1 - axis], count, scale, half, (w, h)[axis]) for axis in (1, 0))
    flat = op.reshape(op.transpose(x, [0, 2, 3, 1]), (n * h * w, c), allowzero=True)
    image = op.multiply(op.reshape(g.converted(batch, "int64"), (-1, 1, 1)), const(h * w, "int64"))
    parts = []
    for row, share in ys:
        for column, part in xs:
            at = op.add(
                op.add(image, op.expand_dims(op.multiply(row, const(w, "int64")), 2)), op.expand_dims(column, 1)
            )
            weight = op.multiply(op.expand_dims(share, 2), op.expand_dims(part, 1))
            parts.append(op.multiply(op.take(flat, at, axis=0), op.expand_dims(weight, 3)))
    largest = reduce(op.maximum, parts)
    rows = regions if isinstance(regions, int) else -1
    cells = op.reshape(largest, (rows, size[0], count, size[1], count, c))
    return op.transpose(op.max(cells, axis=[2, 4]), [0, 3, 1, 2])


def _places(
    g: Graph, rois: Expr, axis: int, cells: int, count: int, scale: float, half: bool, extent: int
) -> list[tuple[Expr, Expr]]:
    """Along an axis the lower and the upper neighbour of each sample: (its index, its weight), (regions, samples)."""
    begin, end = (op.strided_slice(rois, [axis + k], [axis + k + 1], [1], axes=[1]) for k in (0, 2))
    number = lambda v: g.const(v, rois)
    begin, end = (op.multiply(v, number(scale)) for v in (begin, end))
    length = op.subtract(end, begin) if half else op.maximum(op.subtract(end, begin), number(1))
    begin = op.subtract(begin, number(0.5)) if half else begin
    steps = (np.arange(cells * count) + 0.5) / (cells * count)
    at = op.add(begin, op.multiply(length, number(steps[None])))
    seen = op.logical_and(op.greater_equal(at, number(-1)), op.less_equal(at, number(extent)))
    at = op.minimum(op.maximum(at, number(0)), number(extent - 1))
    low = op.floor(at)
    share, inside = op.subtract(at, low), op.cast(seen, g.dtype(rois))
    lower = op.cast(low, "int64")
    upper = op.minimum(op.add(lower, const(1, "int64")), const(extent - 1, "int64"))
    return [(lower, op.multiply(inside, op.subtract(number(1), share))), (upper, op.multiply(inside, share))]


def deformed(
    g: Graph, x: Expr, w: Expr, offset: Expr, mask: Expr | None, strides: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], groups: int, parts: int,
) -> Expr:  # fmt: skip
    """A convolution of samples that lie where an offset says, times a mask if there is one; `parts` of the channels
    have offsets of their own."""
    shape = g.shape(w)
    moved = partial(
        nn.deformable_conv2d,
        x,
        offset,
        strides=list(strides),
        padding=list(padding),
        dilation=list(dilation),
        deformable_groups=parts,
        kernel_size=shape[2:],
    )
    if mask is None:
        return moved(w, groups=groups, channels=shape[0])
    return _masked(g, moved, x, w, mask, groups, parts)


def _masked(g: Graph, moved: Callable[..., Expr], x: Expr, w: Expr, mask: Expr, groups: int, parts: int) -> Expr:
    """The samples themselves, which one-hot kernels read, times the mask; then a convolution of 1 x 1. Zhu et al.,
    Deformable ConvNets v2, 2019."""
    (n, c), (out, each, *kernel) = g.named(x)[:2], g.shape(w)
    taps = kernel[0] * kernel[1]
    one_hot = g.const(np.tile(np.eye(taps).reshape(taps, 1, *kernel), (c, 1, 1, 1)), w)
    samples = moved(one_hot, groups=c, channels=c * taps)
    size = g.extents(samples, 2)
    by_part = op.reshape(samples, (n, parts, c // parts, taps, *size), allowzero=True)
    weighted = op.multiply(by_part, op.reshape(mask, (n, parts, 1, taps, *size), allowzero=True))
    return nn.conv2d(
        op.reshape(weighted, (n, c * taps, *size), allowzero=True),
        op.reshape(w, (out, each * taps, 1, 1)),
        groups=groups,
        channels=out,
        kernel_size=(1, 1),
    )
