"""The derivatives of pools and resizes of any rank, of what is linear along each axis, and of dilations."""

from __future__ import annotations

import numpy as np

from relaylab.ir import Call, Expr, const, facets
from relaylab.op.layout import parse_layout
from relaylab.op.nn.pool import Pool, positions
from relaylab.transform.engine.build import call, reshaped, scalar
from relaylab.transform.engine.infer_type import dtype_of, rank_of
from relaylab.transform.gradients.decomposed import decomposition_of, mapped
from relaylab.transform.gradients.rules import mul
from relaylab.transform.gradients.rules_moves import extents
from relaylab.transform.gradients.rules_nn import laid


def floats(x: Expr, c: Call) -> Expr:
    """An argument in the data type of the call."""
    return call("cast", x, dtype=dtype_of(c))


# ---- what multiplies each axis by a matrix


@decomposition_of(
    "image.resize1d", "image.resize2d", "image.resize3d", "nn.upsampling", "nn.upsampling3d", "nn.avg_pool3d"
)
def _by_matrices(c: Call, x: Expr) -> Expr:
    """The part that depends on the data: what lies outside it is left out."""
    return mapped(floats(x, c), extents(c.args[0]), facets(c).matrices(extents(c.args[0])), dtype_of(c))


@decomposition_of("nn.adaptive_avg_pool1d", "nn.adaptive_avg_pool2d", "nn.adaptive_avg_pool3d")
def _adaptive_avg_pool(c: Call, x: Expr) -> Expr:
    before, after, a = extents(c.args[0]), extents(c), facets(c)
    means: dict[int, np.ndarray] = {}
    for axis in positions(a.layout, a.spatial):
        index = np.arange(before[axis])
        inside = [(index >= first) & (index < end) for first, end in a.cells(before[axis], after[axis])]
        means[axis] = np.stack(inside) / np.sum(inside, axis=1, keepdims=True)
    return mapped(x, before, means, dtype_of(c))


@decomposition_of("nn.lrn")
def _lrn(c: Call, x: Expr) -> Expr:
    a, axis, number = facets(c), facets(c).axis % rank_of(c), lambda v: scalar(v, dtype_of(c))
    index = np.arange(extents(c)[axis])
    near = abs(index[:, None] - index) <= a.size // 2
    sums = mapped(mul(x, x), extents(c), {axis: near.astype("float64")}, dtype_of(c))
    norm = call("add", number(a.bias), mul(sums, number(a.alpha / a.size)))
    return mul(x, call("power", norm, number(-a.beta)))


@decomposition_of("image.affine_grid")
def _affine_grid(c: Call, theta: Expr) -> Expr:
    batch, _, height, width = extents(c)
    y, x = np.meshgrid(np.linspace(-1, 1, height), np.linspace(-1, 1, width), indexing="ij")
    places = const(np.stack([x, y, np.ones_like(x)], axis=-1).reshape(-1, 3), dtype_of(c))
    grids = call("nn.dense", reshaped(theta, [2 * batch, 3]), places, units=height * width)
    return reshaped(grids, extents(c))


# ---- maxima: those of two axes are operators with a gradient


def _max_of_planes(x: Expr, shape: list[int], out: list[int], a: Pool) -> Expr:
    """The maximum over windows of NCDHW volumes: over height and width, then over depth."""
    batch, depth, (low, high) = shape[0] * shape[1], shape[2], zip(*a.pads)
    sizes, strides, dilation = zip(*a.windows)
    planes = reshaped(x, [batch, depth, *shape[3:]])
    how = {"strides": strides[1:], "dilation": dilation[1:], "padding": (*low[1:], *high[1:])}
    found = call("nn.max_pool2d", planes, pool_size=sizes[1:], ceil_mode=a.ceil_mode, **how)
    columns = reshaped(found, [batch, 1, depth, out[1] * out[2]])
    how = {"strides": (strides[0], 1), "dilation": (dilation[0], 1), "padding": (low[0], 0, high[0], 0)}
    found = call("nn.max_pool2d", columns, pool_size=(sizes[0], 1), ceil_mode=a.ceil_mode, **how)
    return reshaped(found, [*shape[:2], *out])


@decomposition_of("nn.max_pool3d")
def _max_pool3d(c: Call, x: Expr) -> Expr:
    layout, plain = parse_layout(facets(c).layout), "NCDHW"
    before, after = (layout.extents(extents(v)) for v in (c.args[0], c))
    shape, out = [before[k] for k in plain], [after[k] for k in "DHW"]
    return laid(_max_of_planes(laid(x, facets(c).layout, plain), shape, out, facets(c)), plain, facets(c).layout)


@decomposition_of("nn.adaptive_max_pool1d", "nn.adaptive_max_pool2d", "nn.adaptive_max_pool3d")
def _adaptive_max_pool(c: Call, x: Expr) -> Expr:
    """Windows are laid side by side, short ones with their last element repeated; each is then a window of a pool."""
    a, size = facets(c), list[int]()
    for axis in positions(a.layout, a.spatial):
        cells = a.cells(extents(c.args[0])[axis], extents(c)[axis])
        size.append(max(end - first for first, end in cells))
        places = np.concatenate([np.minimum(np.arange(first, first + size[-1]), end - 1) for first, end in cells])
        if list(places) != list(range(extents(c.args[0])[axis])):
            x = call("take", x, const(places, "int64"), axis=axis)
    return call(f"nn.max_pool{len(size)}d", x, pool_size=size, strides=size, layout=a.layout)


@decomposition_of("image.dilation2d")
def _dilation2d(c: Call, x: Expr, w: Expr) -> Expr:
    """Windows are laid side by side, with their weights added; each is then a window of a pool."""
    a, after = facets(c), parse_layout(facets(c).data_layout).extents(extents(c))
    kernel = parse_layout(a.kernel_layout).extents(extents(c.args[1]))
    border = [(0, 0), (0, 0), *(pad for _, _, _, pad in a.axes())]
    wide = laid(floats(x, c), a.data_layout, "NCHW")
    wide = call("nn.pad", wide, scalar(0, dtype_of(c)), pad_width=border, pad_mode="constant")
    for axis, (letter, step, dilation, _) in enumerate(a.axes(), 2):
        places = np.arange(after[letter])[:, None] * step + np.arange(kernel[letter]) * dilation
        wide = call("take", wide, const(places.reshape(-1), "int64"), axis=axis)
    size = [kernel[k] for k in "HW"]
    weight = call("tile", laid(floats(w, c), a.kernel_layout, "IHW"), reps=[1, *(after[k] for k in "HW")])
    found = call("nn.max_pool2d", call("add", wide, weight), pool_size=size, strides=size)
    return laid(found, "NCHW", a.data_layout)
