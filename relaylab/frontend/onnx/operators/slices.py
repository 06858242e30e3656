"""Cutting and padding: Slice, Pad, Crop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from relaylab import op
from relaylab.frontend.graph import FARTHEST, Graph, elements, is_open, of_count
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.table import converts
from relaylab.frontend.open_loops import turns_of
from relaylab.ir import AnyDim, Call, Constant, Expr, is_call_to
from relaylab.ir.dims import Dim, SymbolicDim, UndecidedSize, larger
from relaylab.ir.free import sizes_in
from relaylab.op import nn


@converts("Slice")
def slice_attributes(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    starts, ends, axes = node.ints("starts"), node.ints("ends"), node.ints("axes")
    if starts is None or ends is None:
        raise node.error("starts and ends are missing", code="import.attribute")
    return cut(g, node, x, starts, ends, axes or range(len(starts)), [1] * len(starts))


@converts("Slice", since=10)
def slice_inputs(
    g: Graph, node: OnnxNode, x: Expr, starts: Expr, ends: Expr, axes: Expr | None = None, steps: Expr | None = None
) -> Expr:
    first, last = g.value(starts), g.value(ends)
    one = _behind(g, starts, ends) if first is None and g.rank(x) == 1 and steps is None else None
    if one is not None:  # x[i : i + 1], which is refused when it runs if it has another number of elements
        begin, end = (op.reshape(op.cast(v, "int64"), (1,)) for v in (starts, ends))
        return op.reshape(op.strided_slice(x, begin, end, Constant(np.ones(1, "int64"))), (one,))
    open_ = is_open(g.dims(starts)[0]) and axes is None
    count = g.rank(x) if open_ and g.rank(x) == 1 else g.shape(starts)[0]
    along = g.ints(axes, "axes") if axes is not None else list(range(count))
    by = g.ints(steps, "steps") if steps is not None else [1] * count
    if first is not None and last is not None:
        return cut(g, node, x, first.tolist(), last.tolist(), along, by)
    along = g.axes(along, g.rank(x))
    dims = [g.dims(x)[a] for a in along]
    first, last = (_told(g.sizes(v), dims) for v in (starts, ends))
    if all(type(v) is int for v in (*first, *last)):
        return cut(g, node, x, first, last, along, by)
    known = [_extent(limits, isinstance(x, Constant)) for limits in zip(dims, first, last, by)]
    if not any(type(n) is AnyDim for n in (*known, *first)):
        if all(type(v) is int for v in first):
            return elements(x, dict(zip(along, first)), dict(zip(along, known)))
        if len(known) == 1:
            begin, end = (_place(g, x, along[0], v) for v in (starts, ends))
            places = op.arange(begin, end, g.const(1, "int64"), dtype="int64")
            return op.take(x, of_count(places, known[0]), axis=along[0])
    wide = [v if g.dtype(v) == "int64" else op.cast(v, "int64") for v in (starts, ends)]
    out = op.strided_slice(x, wide[0], wide[1], Constant(np.array(by, "int64")), axes=along)
    around = _around(dims[0], first[0], last[0]) if by == [1] and isinstance(x, Constant) else None
    if around is None:
        return out
    shape: list[Any] = [*g.shape(x)]
    shape[along[0]] = around
    return op.reshape(out, shape, allowzero=True)  # which is refused when it runs if the table is too short


def _around(extent: object, first: object, last: object) -> Dim | None:
    """How many elements of a table lie on both sides of one of them, from c - n to d + n; None for other slices."""
    if not isinstance(extent, int) or not isinstance(first, SymbolicDim) or not isinstance(last, SymbolicDim):
        return None
    middle: Any = first + last
    return last - first if isinstance(middle, int) and 0 < middle < 2 * extent else None


def _behind(g: Graph, starts: Expr, ends: Expr) -> int | None:
    """How far an end lies behind its start, if both are numbers behind one place; None if they are not."""
    (first, more), (second, most) = _from_place(g, starts), _from_place(g, ends)
    return most - more if first is second and most > more else None


def _from_place(g: Graph, x: Expr) -> tuple[Expr, int]:
    """An expression as another and a number that is added to it."""
    if is_call_to(x, "add"):
        a, b = cast(Call, x).args
        for other, number in ((a, g.value(b)), (b, g.value(a))):
            if number is not None and number.size == 1:
                return other, int(number.reshape(()))
    return x, 0


def _place(g: Graph, x: Expr, axis: int, limit: Expr) -> Expr:
    """A limit that a run brings, counted from the front and within the axis."""
    extent, zero = g.dims(x)[axis], g.const(0, "int64")
    many = turns_of(x, axis) if is_open(extent) else g.const(extent, "int64")
    given = op.reshape(op.cast(limit, "int64"), ())
    front = op.where(op.less(given, zero), op.add(given, many), given)
    return op.minimum(op.maximum(front, zero), many)


def _told(limits: Sequence[Any] | None, dims: Sequence[Any]) -> list[Any]:
    """Limits as numbers, also those that are counted from an open end, or sizes; `Any` where nothing is known."""
    return [AnyDim()] * len(dims) if limits is None else [_from_end(v, d) for v, d in zip(limits, dims)]


def _from_end(limit: object, extent: object) -> object:
    if not isinstance(limit, SymbolicDim) or not isinstance(extent, SymbolicDim):
        return limit
    try:
        short: Any = extent - limit
        if short <= 0:
            return FARTHEST
        return -int(short) if isinstance(short, int) and limit >= 0 else limit
    except UndecidedSize:
        return limit


def _extent(limits: Sequence[Any], table: bool = False) -> object:
    """How many elements a slice has; `Any` where the sizes do not tell. A table is as long as what is read of it.

    `limits` are the extent of the axis, begin, end and step.
    """
    extent, first, last, step = limits
    if any(type(v) is AnyDim for v in (extent, first, last)) or step != 1:
        return AnyDim()
    try:
        if table and isinstance(extent, int) and isinstance(last, SymbolicDim) and 0 <= first <= last:
            return last - first
        begin: Any = first if first >= 0 else extent + first
        end: Any = last if last >= 0 else extent + last
        end = end if end <= extent else extent
        if not 0 <= begin <= end:
            return AnyDim()
        return 1 if extent == 1 and end == 1 and _is_short(begin) else end - begin
    except UndecidedSize:
        return AnyDim()


def _is_short(begin: object) -> bool:
    """Whether something begins at max(1 - n, 0) of a size n: at 0 for all sizes but none."""
    sizes = sizes_in([begin]) if isinstance(begin, SymbolicDim) else []
    return any(begin == larger(1 - n, 0) for n in sizes)


def cut(
    g: Graph,
    node: OnnxNode,
    x: Expr,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int],
    steps: Sequence[int],
) -> Expr:
    """numpy's slices along some axes; limits beyond the extent are clamped."""
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise node.error(
            f"starts {list(starts)}, ends {list(ends)}, axes {list(axes)} and steps {list(steps)} do not fit",
            code="import.shape",
        )
    axes = g.axes(axes, g.rank(x))
    limits = [_limits(g.dims(x)[a], int(s), int(e), int(d)) for a, s, e, d in zip(axes, starts, ends, steps)]
    if not limits:
        return x
    one = [d == 1 and pair in ((0, 1), (-1, FARTHEST)) for d, pair in zip(steps, limits)]
    if any(n and is_open(g.dims(x)[a]) for a, n in zip(axes, one)):
        counts = [1 if n else _extent((g.dims(x)[a], *pair, d)) for n, a, pair, d in zip(one, axes, limits, steps)]
        if not any(type(n) is AnyDim for n in counts):  # one element is there, but in a tensor that has none
            for few in (True, False):
                chosen = [(a, b, n) for a, (b, _), n, short in zip(axes, limits, counts, one) if short is few]
                if chosen:
                    x = elements(x, {a: b for a, b, _ in chosen}, {a: n for a, _, n in chosen}, few)
            return x
    return op.strided_slice(x, [b for b, _ in limits], [e for _, e in limits], [int(d) for d in steps], axes=list(axes))


def _limits(extent: int | AnyDim, start: int, end: int, step: int) -> tuple[int, int]:
    """Begin and end within what Relay's attribute holds; an end before the first element is beyond the start."""
    if isinstance(extent, AnyDim):
        return start, int(np.clip(end, -FARTHEST, FARTHEST))
    begin, stop, _ = slice(start, end, step).indices(extent)
    return begin, stop if stop >= 0 else -extent - 1


@converts("Pad", unused=("consumed_inputs",))
def pad_attributes(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    widths = node.ints("pads") or node.ints("paddings") or []
    return padded(g, node, x, list(widths), node.get("value", 0.0))


@converts("Pad", since=11)
def pad(g: Graph, node: OnnxNode, x: Expr, pads: Expr, value: Expr | None = None, axes: Expr | None = None) -> Expr:
    if g.value(pads) is None:
        return _padded_by_values(g, node, x, pads, value, axes)
    rank, given = g.rank(x), g.ints(pads, "pads")
    if axes is not None:
        along = g.axes(g.ints(axes, "axes"), rank)
        if len(given) != 2 * len(along):
            raise node.error(f"pads {given} do not fit the axes {along}", code="import.shape")
        full = [0] * (2 * rank)
        for k, a in enumerate(along):
            full[a], full[rank + a] = given[k], given[len(along) + k]
        given = full
    known = g.value(value)
    fill = value if known is None else known.reshape(()).item()
    return padded(g, node, x, given, 0 if fill is None else fill)


def _padded_by_values(g: Graph, node: OnnxNode, x: Expr, pads: Expr, value: Expr | None, axes: Expr | None) -> Expr:
    """Widths that are computed when the program runs; what is known of them as expressions of sizes is said."""
    rank, mode = g.rank(x), node.choice("mode", "constant", tuple(MODES))
    along = list(range(rank)) if axes is None else g.axes(g.ints(axes, "axes"), rank)
    if g.dims(pads) != (2 * len(along),) or g.dtype(x) == "bool" or mode == "wrap":
        g.known(pads, "pads")  # refuses what is not known
    places = {(side, a): [side * len(along) + k] for side in (0, 1) for k, a in enumerate(along)}
    ends = [
        op.strided_slice(pads, at, [at[0] + 1], [1]) if (at := places.get((side, a))) else g.const([0], pads)
        for side in (0, 1)
        for a in range(rank)
    ]
    widths = op.transpose(op.reshape(op.concatenate(ends, 0), (2, rank)), [1, 0])
    out = nn.pad(x, widths, g.const(0, x) if value is None else op.reshape(value, ()), mode)
    sizes, dims = g.sizes(pads), list(g.dims(x))
    if sizes is None or any(type(d) is AnyDim for d in dims):
        return out
    for k, a in enumerate(along):
        dims[a] = dims[a] + sizes[k] + sizes[len(along) + k]
    return op.reshape(out, dims, allowzero=True)


MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}


def padded(g: Graph, node: OnnxNode, x: Expr, pads: list[int], fill: Expr | float) -> Expr:
    """`x` with values around it; negative widths cut."""
    rank, mode = g.rank(x), node.choice("mode", "constant", tuple(MODES))
    if len(pads) != 2 * rank:
        raise node.error(f"{len(pads)} widths for {rank} axes", code="import.shape")
    widths = list(zip(pads[:rank], pads[rank:]))
    short = [a for a, pair in enumerate(widths) if min(pair) < 0]
    if short:
        begins, ends = zip(*((max(-b, 0), a if a < 0 else FARTHEST) for b, a in (widths[k] for k in short)))
        x = op.strided_slice(x, list(begins), list(ends), [1] * len(short), axes=short)
        widths = [(max(b, 0), max(a, 0)) for b, a in widths]
    if not any(w for pair in widths for w in pair):
        return x
    if mode == "wrap":
        node.bound(*(n + sum(w) for n, w in zip(g.dims(x), widths) if not is_open(n)))
        return _wrapped(g, x, widths)
    if g.dtype(x) == "bool":
        inner = op.cast(op.reshape(fill, ()), "uint8") if isinstance(fill, Expr) else int(fill)
        return op.cast(nn.pad(op.cast(x, "uint8"), widths, inner, mode), "bool")
    return nn.pad(x, widths, op.reshape(fill, ()) if isinstance(fill, Expr) else g.const(fill, x), mode)


def _wrapped(g: Graph, x: Expr, widths: Sequence[tuple[int, int]]) -> Expr:
    """The tensor repeated around itself."""
    for axis, (before, after) in enumerate(widths):
        if not (before or after):
            continue
        n = g.dims(x)[axis]
        if is_open(n):
            g.shape(x)  # refuses what is open
        if max(before, after) > n:
            places = np.arange(-before, n + after) % n
            x = op.take(x, Constant(places.astype("int64")), axis=axis)
        else:  # copies of what lies side by side
            ends = [op.strided_slice(x, [a], [c], [1], axes=[axis]) for a, c in ((n - before, n), (0, after)) if c > a]
            parts = [x, ends[-1]] if not before else [ends[0], x, *ends[1:]]
            x = op.concatenate(parts, axis)
    return x


@converts("CenterCropPad", since=18)
def center_crop_pad(g: Graph, node: OnnxNode, x: Expr, target: Expr) -> Expr:
    axes = g.axes(node.ints("axes") or range(g.rank(x)), g.rank(x))
    for axis, size in zip(axes, g.ints(target, "shape")):
        n = g.shape(x)[axis]
        if n > size:
            first = (n - size) // 2
            x = op.strided_slice(x, [first], [first + size], [1], axes=[axis])
        elif n < size:
            widths = [(0, 0)] * g.rank(x)
            widths[axis] = ((size - n) // 2, size - n - (size - n) // 2)
            x = nn.pad(x, widths, g.const(0, x))
    return x
