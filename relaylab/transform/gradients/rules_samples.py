"""The derivatives of samples: random numbers by their parameters, and images read at computed places."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from relaylab.ir import Call, Expr, TensorType, Tuple, TupleGetItem, const, facets, op_name
from relaylab.op.image.crop import precision
from relaylab.op.layout import parse_layout
from relaylab.transform.engine.build import call, reshaped, scalar
from relaylab.transform.engine.infer_type import dtype_of, fields_of
from relaylab.transform.gradients.decomposed import decomposition_of
from relaylab.transform.gradients.rules import gradient_of, mul, sub
from relaylab.transform.gradients.rules_moves import extents, total, zeros
from relaylab.transform.gradients.rules_nn import laid


@gradient_of("random.normal", "random.uniform")
def _random(c: Call, y: Expr, g: Sequence[Expr]) -> Sequence[Expr]:
    """Numbers are a + b * u with u from the same generator, drawn again with other limits: mean + scale * u, or
    low + (high - low) * u. Kingma and Welling, Auto-encoding variational Bayes, 2013.
    """
    key, *limits = c.args
    dtype = cast(TensorType, fields_of(c)[1]).dtype
    one = scalar(1, dtype)
    u = TupleGetItem(Call(c.op, (key, scalar(0, dtype), one), c.attrs), 1)
    first = sub(one, u) if op_name(c) == "random.uniform" else one
    sums = [total(mul(g[1], part)) for part in (first, u)]
    return [zeros(key), *(call("reshape_like", call("cast_like", s, a), a) for s, a in zip(sums, limits))]


# ---- images read at computed places


def _lifted(name: str, swap: bool = False) -> Callable[..., Places]:
    def apply(*parts: Places | float) -> Places:
        dtype = next(p.dtype for p in parts if isinstance(p, Places))
        args = [p.x if isinstance(p, Places) else scalar(p, dtype) for p in (parts[::-1] if swap else parts)]
        return Places(call(name, *args), dtype)

    return apply


class Places:
    """A tensor whose arithmetic takes numbers, as that of the loop-level expressions does that an operator is built of;
    `dtype` is that of its numbers.
    """

    def __init__(self, x: Expr, dtype: str):
        self.x, self.dtype = x, dtype

    __add__ = __radd__ = _lifted("add")
    __mul__ = __rmul__ = _lifted("multiply")
    __sub__, __rsub__, __truediv__ = _lifted("subtract"), _lifted("subtract", swap=True), _lifted("divide")
    __gt__, __ge__, __le__ = _lifted("greater"), _lifted("greater_equal"), _lifted("less_equal")


class Functions:
    """The functions of a loop builder that places are computed with, on tensors."""

    floor, round, floormod = map(staticmethod, map(_lifted, ("floor", "round", "floor_mod")))
    min, max, select = map(staticmethod, map(_lifted, ("minimum", "maximum", "where")))

    @staticmethod
    def const(value: float, dtype: str) -> Places:
        return Places(scalar(value, dtype), dtype)


Taps = list[tuple[Places, Places]]
"""The positions that are read along an axis and their weights, for each place: (N, places) of float64."""


def _stacked(parts: Sequence[Places], shape: list[int]) -> Expr:
    """The taps of an axis: (N, places, taps)."""
    return call("stack", Tuple([call("broadcast_to", p.x, shape=shape) for p in parts]), axis=2)


def _crossed(how: str, parts: Sequence[Expr], taps: Sequence[int], shape: list[int]) -> Expr:
    """All combinations of the taps of several axes: (N, places, product of taps)."""
    found = parts[0]
    for k, part in enumerate(parts[1:], 2):
        both = call(how, call("expand_dims", found, axis=3), call("expand_dims", part, axis=2))
        found = reshaped(both, [*shape, math.prod(taps[:k])])
    return found


def _blended(x: Expr, whole: list[int], which: Expr, taps: list[Taps], shape: list[int], zero: bool) -> Expr:
    """The channels (N, C, places) at N x places: the sum of what the taps read from images (of shape `whole`), of which
    `which` (N,) tells each one; outside reads as zero, or as the border. Images and result are float64.
    """
    counts, size = [len(axis) for axis in taps], whole[2:]
    steps = [math.prod(size[d + 1 :]) for d in range(len(size))]
    at = [_stacked([k for k, _ in axis], shape) for axis in taps]
    ends = [scalar(n - 1, "float64") for n in size]
    clipped = [call("maximum", call("minimum", k, end), scalar(0, "float64")) for k, end in zip(at, ends)]
    index = [mul(call("cast", k, dtype="int64"), scalar(step, "int64")) for k, step in zip(clipped, steps)]
    image = call("broadcast_to", reshaped(which, [-1, 1, 1]), shape=[*shape, math.prod(counts)])
    where = call("stack", Tuple([image, _crossed("add", index, counts, shape)]), axis=0)
    rows = call("transpose", reshaped(x, [*whole[:2], math.prod(size)]), axes=[0, 2, 1])
    values = call("gather_nd", rows, where)
    if zero:
        within = [call("equal", k, c) for k, c in zip(at, clipped)]
        inside = call("expand_dims", _crossed("logical_and", within, counts, shape), axis=3)
        values = call("where", inside, values, scalar(0, "float64"))
    weight = _crossed("multiply", [_stacked([w for _, w in axis], shape) for axis in taps], counts, shape)
    sums = call("sum", mul(values, call("expand_dims", weight, axis=3)), axis=[2], keepdims=False, exclude=False)
    return call("transpose", sums, axes=[0, 2, 1])


@decomposition_of("image.grid_sample")
def _grid_sample(c: Call, x: Expr, grid: Expr) -> Expr:
    a, whole, out = facets(c), extents(c.args[0]), extents(c)
    size, shape = whole[2:], [out[0], math.prod(out[2:])]
    places = call("cast", reshaped(grid, [out[0], len(size), shape[1]]), dtype="float64")
    taps: list[Taps] = []
    for d, extent in enumerate(size):
        g = call("take", places, scalar(len(size) - 1 - d, "int64"), axis=1)
        taps.append(a.taps(Functions, Places(g, "float64"), extent))
    which = const(np.arange(out[0]), "int64")
    found = _blended(call("cast", x, dtype="float64"), whole, which, taps, shape, a.padding_mode == "zeros")
    return call("cast", reshaped(found, out), dtype=dtype_of(c))


@decomposition_of("image.crop_and_resize")
def _crop_and_resize(c: Call, x: Expr, boxes: Expr, which: Expr) -> Expr:
    a = facets(c)
    layout, exactness = parse_layout(a.layout), precision(dtype_of(c.args[1]))
    before, after = (layout.extents(extents(v)) for v in (c.args[0], c))
    whole, out = [before[k] for k in "NCHW"], [after[k] for k in "NCHW"]
    shape, corners = [out[0], out[2] * out[3]], call("cast", boxes, dtype=exactness)
    taps: list[Taps] = []
    inside: list[Expr] = []
    for d, (extent, target) in enumerate(zip(whole[2:], out[2:])):
        first, last = (Places(call("take", corners, const([k], "int64"), axis=1), exactness) for k in (d, d + 2))
        steps = np.arange(target)[:, None] if d == 0 else np.arange(target)
        steps = np.broadcast_to(steps, out[2:]).reshape(1, -1)
        place = a.place(first, last, Places(const(steps, exactness), exactness), extent - 1.0, target)
        place = Places(call("cast", call("broadcast_to", place.x, shape=shape), dtype="float64"), "float64")
        inside += [(place >= 0.0).x, (place <= extent - 1.0).x]
        if a.method == "nearest_neighbor":
            taps.append([(Functions.floor(place + 0.5), Functions.const(1.0, "float64"))])
        else:
            low = Functions.floor(place)
            taps.append([(low, 1.0 - (place - low)), (low + 1.0, place - low)])
    image = call("clip", call("cast", which, dtype="int64"), a_min=0, a_max=whole[0] - 1)
    images = laid(call("cast", x, dtype="float64"), a.layout, "NCHW")
    found = _blended(images, whole, image, taps, shape, False)
    every = call("all", call("stack", Tuple(inside), axis=1), axis=[1], keepdims=True, exclude=False)
    found = call("where", every, found, scalar(a.extrapolation_value, "float64"))
    return laid(call("cast", reshaped(found, out), dtype=dtype_of(c)), "NCHW", a.layout)
