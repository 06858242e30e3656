"""Shapes: reshaping, order of axes, cutting, joining, padding."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import FARTHEST, elements, is_open
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.table import converts
from relaylab.ir import AnyDim, Constant, Expr
from relaylab.ir.dims import SymbolicDim
from relaylab.op import nn


@converts("view", "reshape", "_unsafe_view", "view_copy", "_reshape_copy")
def reshape(g: TorchGraph, node: AtenNode, x: Expr, target: Sequence[Any]) -> Expr:
    if 0 in node.sizes and g.is_static(x):  # to Relay a 0 is an extent that stays
        return op.zeros(node.sizes, g.dtype(x))
    return g.reshaped(x, node.sizes_of(), node.sizes, target)


@converts("permute", "permute_copy")
def permute(g: TorchGraph, node: AtenNode, x: Expr, dims: Sequence[int]) -> Expr:
    axes = g.axes(dims, g.rank(x))
    return x if axes == sorted(axes) else op.transpose(x, axes)


@converts("transpose.int", "transpose_copy.int")
def transpose(g: TorchGraph, node: AtenNode, x: Expr, a: int, b: int) -> Expr:
    axes = list(range(g.rank(x)))
    if axes:
        axes[a], axes[b] = axes[b], axes[a]
    return permute(g, node, x, axes)


@converts("t")
def turned(g: TorchGraph, node: AtenNode, x: Expr) -> Expr:
    return op.transpose(x, [1, 0]) if g.rank(x) == 2 else x


@converts("squeeze.dims", "squeeze.dim", "squeeze", "squeeze_copy.dims")
def squeeze(g: TorchGraph, node: AtenNode, x: Expr, dims: Sequence[int] | int | None = None) -> Expr:
    """Axes that have another extent than 1 stay."""
    sizes = node.sizes_of()
    axes = [a for a in g.axes_of(x, dims) if sizes[a] == 1] if sizes and dims != [] else []
    return op.squeeze(x, axis=axes) if axes else x


@converts("unsqueeze", "unsqueeze_copy")
def unsqueeze(g: TorchGraph, node: AtenNode, x: Expr, dim: int) -> Expr:
    return op.expand_dims(x, g.axis(dim, g.rank(x) + 1))


@converts("expand", "expand_copy")
def expand(g: TorchGraph, node: AtenNode, x: Expr, target: Sequence[Any], implicit: bool = False) -> Expr:
    before, after = node.sizes_of(), node.sizes
    if list(before) == list(after):
        return x
    offset = len(after) - len(before)
    wanted = [g.size(x, k - offset) if isinstance(s, int) and s == -1 else s for k, s in enumerate(target)]
    shape = g.sizes(wanted)
    # what becomes 1 is 1: torch knows it of a size that it still writes as a formula
    ones = [isinstance(s, int) and s == 1 for s in wanted[offset:]]
    known = [1 if one and is_open(d) else 0 for one, d in zip(ones, g.dims(x))]
    return op.broadcast_to(op.reshape(x, known) if any(known) else x, shape)


@converts("repeat")
def repeat(g: TorchGraph, node: AtenNode, x: Expr, times: Sequence[Any]) -> Expr:
    return op.tile(x, g.sizes(list(times))) if times else x


@converts("slice.Tensor", "slice_copy.Tensor")
def cut(
    g: TorchGraph,
    node: AtenNode,
    x: Expr,
    dim: int = 0,
    start: Operand | None = None,
    end: Operand | None = None,
    step: int = 1,
) -> Expr:
    axis = g.axis(dim, g.rank(x))
    first, last = start or 0 if not isinstance(start, Expr) else start, FARTHEST if end is None else end
    extent = g.dims(x)[axis]
    own = node.name in ("slice.Tensor", "slice_copy.Tensor")  # others cut before they go on
    count = g.dim(node.sizes[axis]) if own else None
    if step == 1 and count is not None and count == extent:
        return x
    if step == 1 and count is not None and (isinstance(extent, SymbolicDim) or isinstance(last, Expr)):
        if isinstance(first, int):
            if isinstance(last, int):
                plain = op.strided_slice(x, [first], [min(last, FARTHEST)], [1], axes=[axis])
                if g.dims(plain)[axis] == count and type(g.dims(plain)[axis]) is not AnyDim:
                    return plain
            return elements(x, {axis: first}, {axis: count})
        if g.known_dim(first) is not None and (isinstance(last, Expr) or last >= 0):
            begin, stop = g.to(first, "int64"), g.to(g.size(x, axis) if last == FARTHEST else last, "int64")
            places = g.refined(op.arange(begin, stop, g.const(1, "int64"), dtype="int64"), [count])
            return op.take(x, places, axis=axis)
    if isinstance(first, Expr) or isinstance(last, Expr):
        begin, stop = (op.reshape(g.to(v, "int64"), (1,)) for v in (first, last))
        return op.strided_slice(x, begin, stop, Constant(np.array([step], "int64")), axes=[axis])
    low, high = int(first), int(last)
    if isinstance(extent, AnyDim):
        return op.strided_slice(x, [low], [min(high, FARTHEST)], [step], axes=[axis])
    low, high, _ = slice(low, high, step).indices(extent)
    if (low, high, step) == (0, extent, 1):
        return x
    return op.strided_slice(x, [low], [max(high, low)], [step], axes=[axis])


@converts("select.int", "select_copy.int")
def select(g: TorchGraph, node: AtenNode, x: Expr, dim: int, index: Operand) -> Expr:
    axis = g.axis(dim, g.rank(x))
    if isinstance(index, Expr):
        return op.take(x, index, axis=axis)
    extent = g.dims(x)[axis]
    at = int(index) if isinstance(extent, AnyDim) else int(index) % extent
    if isinstance(extent, SymbolicDim):
        return op.squeeze(elements(x, {axis: at}, {axis: 1}), axis=[axis])
    last = FARTHEST if at == -1 else at + 1
    return op.squeeze(op.strided_slice(x, [at], [last], [1], axes=[axis]), axis=[axis])


@converts("split_with_sizes", "split_with_sizes_copy")
def split_with_sizes(g: TorchGraph, node: AtenNode, x: Expr, sizes: Sequence[int], dim: int = 0) -> list[Expr]:
    if len(sizes) == 1:
        return [x]
    if not all(isinstance(n, int) for n in sizes):
        axis, known = g.axis(dim, g.rank(x)), [n for n in map(g.known_dim, sizes) if n is not None]
        begins = [n for n in accumulate([0, *known[:-1]]) if isinstance(n, int)]
        if len(begins) == len(known) == len(sizes):
            return [elements(x, {axis: b}, {axis: n}) for b, n in zip(begins, known)]
        ends = list[Expr]([g.const(0, "int64")])
        for n in sizes:
            ends.append(op.add(ends[-1], g.to(n, "int64")))
        return [cut(g, node, x, dim, *part) for part in pairwise(ends)]
    cuts = np.cumsum(sizes)[:-1]
    return list(op.split(x, [int(c) for c in cuts], axis=g.axis(dim, g.rank(x))))


@converts("split.Tensor", "split_copy.Tensor")
def split(g: TorchGraph, node: AtenNode, x: Expr, size: int, dim: int = 0) -> list[Expr]:
    axis = g.axis(dim, g.rank(x))
    n = g.dims(x)[axis]
    if isinstance(n, int) and isinstance(size, int):
        return split_with_sizes(g, node, x, [min(size, n - k) for k in range(0, n, size)] or [0], dim)
    if not isinstance(node.value, (list, tuple)):
        raise node.error("the number of parts must be known", "import.dynamic", g.remedy)
    ends = [op.multiply(g.to(size, "int64"), g.const(k, "int64")) for k in range(len(node.value) + 1)]
    return [cut(g, node, x, dim, *part) for part in pairwise(ends)]


@converts("unbind.int")
def unbind(g: TorchGraph, node: AtenNode, x: Expr, dim: int = 0) -> list[Expr]:
    axis = g.axis(dim, g.rank(x))
    parts = split(g, node, x, 1, dim)
    return [op.squeeze(p, axis=[axis]) for p in parts]


@converts("cat")
def cat(g: TorchGraph, node: AtenNode, tensors: Sequence[Expr], dim: int = 0) -> Expr:
    """Vectors of nothing may stand beside tensors of any rank."""
    kept = [t for t in tensors if g.dims(t) != (0,)] or list(tensors[:1])
    return op.concatenate([g.to(t, node.dtype) for t in kept], axis=g.axis(dim, g.rank(kept[0])))


@converts("stack")
def stack(g: TorchGraph, node: AtenNode, tensors: Sequence[Expr], dim: int = 0) -> Expr:
    axis = g.axis(dim, g.rank(tensors[0]) + 1)
    return op.concatenate([op.expand_dims(g.to(t, node.dtype), axis) for t in tensors], axis=axis)


@converts("flip")
def flip(g: TorchGraph, node: AtenNode, x: Expr, dims: Sequence[int]) -> Expr:
    for axis in g.axes(dims, g.rank(x)):
        x = op.reverse(x, axis)
    return x


@converts("roll")
def roll(g: TorchGraph, node: AtenNode, x: Expr, shifts: Sequence[int], dims: Sequence[int] = ()) -> Expr:
    if not dims:
        return op.reshape(roll(g, node, op.reshape(x, (-1,)), shifts, [0]), g.sizes(g.all_sizes(x)))
    for shift, axis in zip(shifts, g.axes(dims, g.rank(x))):
        n = g.size(x, axis)
        if isinstance(n, Expr):
            places = op.floor_mod(op.subtract(g.counted(n), g.const(shift, "int64")), n)
            x = op.take(x, places, axis=axis)
            continue
        at = -shift % n if n else 0
        if at:
            x = op.concatenate(
                [op.strided_slice(x, [at], [n], [1], axes=[axis]), op.strided_slice(x, [0], [at], [1], axes=[axis])],
                axis=axis,
            )
    return x


def _widths(g: TorchGraph, rank: int, pads: Sequence[Operand]) -> Sequence[tuple[int, int]] | Expr:
    """A pair for each axis, torch naming the last one first; a matrix if some are computed, those below 0 being 0."""
    pairs = [(0, 0)] * (rank - len(pads) // 2) + [(pads[k], pads[k + 1]) for k in range(len(pads) - 2, -1, -2)]
    known = [(max(int(b), 0), max(int(a), 0)) for b, a in pairs if not isinstance(b, Expr) and not isinstance(a, Expr)]
    if len(known) == rank:
        return known
    flat = op.concatenate([op.reshape(g.to(w, "int64"), (1,)) for pair in pairs for w in pair], axis=0)
    return op.reshape(op.maximum(flat, g.const(0, "int64")), (rank, 2))


def _cut_off(g: TorchGraph, width: Operand) -> int | Expr:
    """How much a width cuts: none below 0 does anything else."""
    if isinstance(width, Expr):
        return op.maximum(op.negative(g.to(width, "int64")), g.const(0, "int64"))
    return max(-int(width), 0)


@converts("constant_pad_nd")
def constant_pad(g: TorchGraph, node: AtenNode, x: Expr, pads: Sequence[Operand], value: float = 0) -> Expr:
    """Negative widths cut."""
    rank, kind = g.rank(x), g.dtype(x)
    for k in range(0, len(pads), 2):
        first, last = (_cut_off(g, w) for w in pads[k : k + 2])
        axis = rank - 1 - k // 2
        if isinstance(last, Expr):
            x = cut(g, node, x, axis, first, op.subtract(g.to(g.size(x, axis), "int64"), last))
        elif first != 0 or last:
            x = cut(g, node, x, axis, first, -last if last else None)
    if not any(isinstance(w, Expr) or w > 0 for w in pads):
        return x
    wide = op.cast(x, "uint8") if kind == "bool" else x
    return g.to(nn.pad(wide, _widths(g, rank, pads), g.const(value, wide)), kind)


@converts(*(f"reflection_pad{n}d" for n in (1, 2, 3)), *(f"replication_pad{n}d" for n in (1, 2, 3)))
def mirrored_pad(g: TorchGraph, node: AtenNode, x: Expr, pads: Sequence[Operand]) -> Expr:
    """Negative widths cut, after what is mirrored."""
    mode, rank = "reflect" if node.name.startswith("reflection") else "edge", g.rank(x)
    x = nn.pad(x, _widths(g, rank, pads), g.const(0, x), mode)
    for k in range(0, len(pads), 2):
        first, last = (_cut_off(g, w) for w in pads[k : k + 2])
        axis = rank - 1 - k // 2
        if isinstance(first, Expr) or isinstance(last, Expr):
            x = cut(g, node, x, axis, first, op.subtract(g.to(g.size(x, axis), "int64"), g.to(last, "int64")))
        elif first or last:
            x = cut(g, node, x, axis, first, -last if last else None)
    return x


@converts("tril")
def tril(g: TorchGraph, node: AtenNode, x: Expr, diagonal: int = 0) -> Expr:
    return _band(g, x, diagonal, False)


@converts("triu")
def triu(g: TorchGraph, node: AtenNode, x: Expr, diagonal: int = 0) -> Expr:
    return _band(g, x, diagonal, True)


def _band(g: TorchGraph, x: Expr, k: int, upper: bool) -> Expr:
    if g.dtype(x) == "bool":
        return op.cast(op.trilu(op.cast(x, "uint8"), Constant(np.array(k, "int64")), upper), "bool")
    return op.trilu(x, Constant(np.array(k, "int64")), upper)
