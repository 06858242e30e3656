"""The derivatives of operators over windows whose places move: pools' own gradients, correlation, deformable_conv2d."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relaylab.ir import Call, Expr, Tuple, const, facets
from relaylab.op.layout import parse_layout
from relaylab.op.nn.pool import border, positions
from relaylab.op.shapes import extent
from relaylab.op.window import pads, reach, spread
from relaylab.transform.engine.build import call, reshaped, scalar
from relaylab.transform.engine.infer_type import dtype_of
from relaylab.transform.gradients.reverse import expanded
from relaylab.transform.gradients.rules import add, gradient_of, mul, sub
from relaylab.transform.gradients.rules_moves import extents, zeros
from relaylab.transform.gradients.rules_nn import laid


def padded(x: Expr, widths: list[tuple[int, int]], value: float, dtype: str) -> Expr:
    return call("nn.pad", x, scalar(value, dtype), pad_width=widths, pad_mode="constant")


def _widths(c: Call) -> list[tuple[int, int]]:
    """What makes all windows of a pool whole: the padding, and what `ceil_mode` reads behind it."""
    a, shape, grad = facets(c), extents(c.args[1]), extents(c.args[0])
    widths = [(0, 0)] * len(shape)
    for d, (size, stride, dilation), (before, _) in zip(positions(a.layout, a.spatial), a.windows, a.pads):
        widths[d] = (before, max((grad[d] - 1) * stride + reach(size, dilation) - before - shape[d], 0))
    return widths


@gradient_of("nn.avg_pool2d_grad")
def _avg_pool2d_grad(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    """The pool of `g`. With `count_include_pad` all windows are divided by their whole size."""
    a = facets(c)
    how = {k: v for k, v in a.items() if k != "out_layout"}
    if a.count_include_pad:
        g, how = padded(g, _widths(c), 0, dtype_of(c)), {**how, "padding": [0] * 4, "ceil_mode": False}
    made = call("nn.avg_pool2d", g, **how)
    if extents(c.args[0]) != extents(c):  # what was padded may hold one window more than there were
        end = extents(c.args[0])
        made = call("strided_slice", made, begin=[0] * len(end), end=end, strides=[1] * len(end))
    return [made, zeros(c.args[1])]


@gradient_of("nn.max_pool2d_grad")
def _max_pool2d_grad(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    """What `g` has where the first largest element of each window was."""
    a, (grad, data), dtype = facets(c), c.args, dtype_of(c)
    widths = _widths(c)

    def taps(x: Expr, value: float) -> Expr:
        x, parts = padded(x, widths, value, dtype), []
        for tap in np.ndindex(*(size for size, _, _ in a.windows)):
            begin, end, strides = [0] * len(widths), extents(grad), [1] * len(widths)
            for d, t, (_, stride, dilation) in zip(positions(a.layout, a.spatial), tap, a.windows):
                begin[d], strides[d] = t * dilation, stride
                end[d] = t * dilation + (end[d] - 1) * stride + 1
            parts.append(call("strided_slice", x, begin=begin, end=end, strides=strides))
        return call("stack", Tuple(parts), axis=0)

    first = call("argmax", taps(data, border(dtype)), axis=[0], keepdims=True, exclude=False)
    chosen = call("gather", taps(g, 0), call("cast", first, dtype="int64"), axis=0)
    return [call("squeeze", chosen, axis=[0]), zeros(data)]


@gradient_of("nn.deformable_conv2d")
@expanded
def _deformable_conv2d(c: Call) -> Expr:
    """A sum of products with what the taps read: four neighbours each, gathered from the image as a line."""
    a, dtype = facets(c), dtype_of(c.args[0])
    layout, plain = parse_layout(a.data_layout), "NCHW"
    x, offset = (laid(v, a.data_layout, plain) for v in c.args[:2])
    w = call("cast", laid(c.args[2], a.kernel_layout, "OIHW"), dtype=dtype)
    sizes = {k: [extent(layout.whole(extents(v))[k]) for k in plain] for k, v in (("x", c.args[0]), ("y", c))}
    (n, channels, *image), (_, outs, *made) = sizes["x"], sizes["y"]
    kernel = parse_layout(a.kernel_layout).whole(extents(c.args[2]))
    window, shared = [extent(kernel[k]) for k in "HW"], a.deformable_groups
    taps, cells = math.prod(window), math.prod(made)
    moves = reshaped(offset, [n, shared, taps, 2, cells])
    grid = np.indices([*window, *made]).reshape(4, taps, cells)
    places = []
    for d, (stride, dilation, pad) in enumerate(zip(spread(a.strides, 2), spread(a.dilation, 2), pads(a.padding, 2))):
        start = const(grid[2 + d] * stride + grid[d] * dilation - pad[0], dtype)
        move = call("take", moves, scalar(d, "int64"), axis=3)
        places.append(add(move, start))
    shape = [n, shared, channels // shared, taps * cells]
    line = reshaped(x, [*shape[:3], math.prod(image)])
    seen = _bilinear(line, places, image, shape, dtype)
    split = [n, a.groups, channels // a.groups, taps, cells]
    weight = reshaped(w, [a.groups, outs // a.groups, channels // a.groups, taps])
    factors = Tuple([reshaped(seen, split), weight])
    whole = reshaped(call("einsum", factors, equation="ngcts,goct->ngos"), [n, outs, *made])
    return call("cast", laid(whole, plain, a.data_layout), dtype=dtype_of(c))


def _bilinear(x: Expr, places: list[Expr], image: list[int], shape: list[int], dtype: str) -> Expr:
    """What lies at places (n, groups, taps, cells) of images (n, groups, channels, height * width), as a `shape`."""
    one, lows, parts = scalar(1, dtype), [call("floor", p) for p in places], []
    for corner in np.ndindex(2, 2):
        factors, index = [], scalar(0, "int64")
        for p, low, k, size in zip(places, lows, corner, image):
            at = call("cast", low, dtype="int64")
            first, last = scalar(-k, "int64"), scalar(size - 1 - k, "int64")
            inside = call("logical_and", call("greater_equal", at, first), call("less_equal", at, last))
            share = sub(p, low) if k else sub(one, sub(p, low))
            factors.append(call("where", inside, share, call("zeros_like", share)))
            kept = add(call("minimum", call("maximum", at, first), last), scalar(k, "int64"))
            index = add(mul(index, scalar(size, "int64")), kept)
        spread_out = lambda v: reshaped(v, [*shape[:2], 1, shape[3]])
        found = call("gather", x, call("broadcast_to", spread_out(index), shape=shape), axis=3)
        parts.append(mul(found, spread_out(mul(*factors))))
    return add(add(parts[0], parts[1]), add(parts[2], parts[3]))


class _Displaced:
    """The patches of a correlation: both images padded to (u, v), displacements in `steps` up to `margin` each way."""

    def __init__(self, c: Call):
        a = facets(c)
        self.c, self.dtype, self.radius, self.step = c, dtype_of(c), a.radius, a.stride2
        self.count, self.margin = 2 * a.radius + 1, a.radius * a.stride2
        image, made = extents(c.args[0])[2:], extents(c)[2:]
        self.before = [p[0] for p in pads(a.padding, 2)]
        reads = [(m - 1) * a.stride1 + a.max_displacement + a.kernel_size for m in made]
        self.size = [max(n + sum(p), r) for n, p, r in zip(image, pads(a.padding, 2), reads)]

    def grown(self, x: Expr, margin: int = 0) -> Expr:
        image = extents(self.c.args[0])[2:]
        widths = [(p + margin, u - n - p + margin) for p, u, n in zip(self.before, self.size, image)]
        return padded(x, [(0, 0), (0, 0), *widths], 0, self.dtype)

    def places(self, axis: int, back: bool) -> np.ndarray:
        """(displacements, extent): where each displacement of each element lies in what has a margin."""
        moves = np.arange(self.count) * self.step
        return (moves[::-1] if back else moves)[:, None] + np.arange(self.size[axis])

    def moved(self, x: Expr, back: bool = False) -> Expr:
        """(n, c, displacement, u, displacement, v) of an image."""
        lines = call("take", self.grown(x, self.margin), const(self.places(0, back), "int64"), axis=2)
        return call("take", lines, const(self.places(1, back), "int64"), axis=4)

    def still(self, x: Expr) -> Expr:
        n, c = extents(self.c.args[0])[:2]
        return reshaped(self.grown(x), [n, c, 1, self.size[0], 1, self.size[1]])

    def spread(self, g: Expr) -> Expr:
        """The gradient of what each pixel of the first image adds to: (n, displacement, u, displacement, v)."""
        a, (n, channels), k = facets(self.c), extents(self.c.args[0])[:2], facets(self.c).kernel_size
        made = extents(self.c)[2:]
        ones = const(np.full([1, 1, k, k], 1 / (channels * k * k)), self.dtype)
        g = reshaped(g, [n * self.count**2, 1, *made])
        how = {"channels": 1, "kernel_size": [k, k], "strides": [a.stride1] * 2, "kernel_layout": "IOHW"}
        g = call("nn.conv2d_transpose", g, ones, **how)
        first = a.max_displacement
        ends = [(first, u - first - (m - 1) * a.stride1 - k) for u, m in zip(self.size, made)]
        g = padded(g, [(0, 0), (0, 0), *ends], 0, self.dtype)
        g = reshaped(g, [n, self.count, self.count, *self.size])
        return call("transpose", g, axes=[0, 1, 3, 2, 4])

    def back(self, g: Expr) -> Expr:
        """The same, read where the second image's pixels are."""
        m, n = (self.margin, self.margin), extents(self.c)[0]
        wide = [u + 2 * self.margin for u in self.size]
        g = padded(g, [(0, 0), (0, 0), m, (0, 0), m], 0, self.dtype)
        g = reshaped(g, [n, *(self.count * u for u in wide)])
        for axis, d in ((1, 0), (3, 1)):
            places = self.places(d, True) + np.arange(self.count)[:, None] * wide[d]
            g = call("take", g, const(places, "int64"), axis=axis)
        return g

    def image(self, products: Expr) -> Expr:
        shape = extents(self.c.args[0])
        sums, begin = call("sum", products, axis=[2, 4], keepdims=False, exclude=False), [0, 0, *self.before]
        return call("strided_slice", sums, begin=begin, end=[b + n for b, n in zip(begin, shape)], strides=[1] * 4)


@gradient_of("nn.correlation")
def _correlation(c: Call, y: Expr, g: Expr) -> Sequence[Expr]:
    (one, two), d = c.args, _Displaced(c)
    g = d.spread(g)
    here, there = (call("expand_dims", v, axis=1) for v in (g, d.back(g)))
    if facets(c).is_multiply:
        return [d.image(mul(here, d.moved(two))), d.image(mul(there, d.moved(one, True)))]
    first = call("sign", sub(d.still(one), d.moved(two)))
    second = call("sign", sub(d.still(two), d.moved(one, True)))
    return [d.image(mul(here, first)), d.image(mul(there, second))]
