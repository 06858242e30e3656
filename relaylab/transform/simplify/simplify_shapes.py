"""Rules on changes of shape: chains of reshapes, transposes and changes of layout become one or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from relaylab.ir import Call, Expr, facets, is_call_to
from relaylab.ir.dims import AnyDim, Dim, SymbolicDim
from relaylab.op.layout import parse_layout
from relaylab.op.shapes import product
from relaylab.transform.engine.build import call, reshaped
from relaylab.transform.pattern import is_op, wild
from relaylab.transform.rewriting.rules import RuleSet, Types, rule

x = wild("x")

_reshape1 = is_op("reshape")(x) | is_op("contrib_reverse_reshape")(x)


@rule(is_op("reshape")(_reshape1) | is_op("contrib_reverse_reshape")(_reshape1))
def two_reshapes(root, types, x):
    """Two reshapes are one."""
    shape = _extents(types, root)
    return None if shape is None else reshaped(x, shape)


_moved = (is_op("transpose")(x) | is_op("layout_transform")(x)).named("inner")


@rule(is_op("transpose")(_moved) | is_op("layout_transform")(_moved))
def two_transposes(root, types, x, inner):
    """Two transposes or changes of layout are one, or none if the second undoes the first."""
    t = types.tensor(root)
    merged = _merged_layouts(root, inner)
    if merged is not None:
        src, dst = merged
        return x if src == dst else call("layout_transform", x, src_layout=src, dst_layout=dst)
    if t is None or not (_moves(root) and _moves(inner)):
        return None
    first, second = axis_order(inner, len(t.shape)), axis_order(root, len(t.shape))
    axes = [first[a] for a in second]
    return x if axes == sorted(axes) else call("transpose", x, axes=axes)


@rule(is_op("transpose")(x))
def no_transpose(root, types, x):
    """A transpose that moves no axis is nothing, and one that moves axes of one element only is a reshape."""
    t = types.tensor(root)
    if t is None:
        return None
    axes = axis_order(root, len(t.shape))
    if axes == sorted(axes):
        return x
    shape = _extents(types, root)
    moved = [] if shape is None else [a for a, extent in zip(axes, shape) if extent != 1]
    return reshaped(x, shape) if shape is not None and moved == sorted(moved) else None


_between = is_op("reshape")(is_op("transpose")(x).named("first")).named("between")


@rule(is_op("transpose")(_between))
def undone_transpose(root, types, x, first, between):
    """A transpose, a reshape and a transpose are one reshape, if the second transpose undoes the first."""
    moved, split, shape = (_extents(types, e) for e in (first, between, root))
    if moved is None or split is None or shape is None or (parts := _common_parts(moved, split)) is None:
        return None
    before, after = axis_order(first, len(moved)), axis_order(root, len(shape))
    given = [part for axis in range(len(before)) for part in parts[0].get(before.index(axis), ())]
    return reshaped(x, shape) if given == [part for axis in after for part in parts[1].get(axis, ())] else None


def _extents(types: Types, expr: Expr) -> tuple[Dim, ...] | None:
    """The shape of a tensor whose extents are numbers, or sizes with names."""
    t = types.tensor(expr)
    return None if t is None or any(type(d) is AnyDim for d in t.shape) else t.shape


Parts = dict[int, list[int]]


def _common_parts(source: Sequence[Dim], target: Sequence[Dim]) -> tuple[Parts, Parts] | None:
    """Of which axes of a finer shape the axes of a shape and those of its reshape are made; None if some are made of
    none. Axes of one element are left out.
    """
    rest = [[k for k, d in enumerate(shape) if d != 1] for shape in (source, target)]
    found: tuple[Parts, Parts] = ({}, {})
    count = 0
    while rest[0] and rest[1]:
        taken = [[axes.pop(0)] for axes in rest]
        while (sizes := [product(s[k] for k in axes) for s, axes in zip((source, target), taken)])[0] != sizes[1]:
            short = 0 if _magnitude(sizes[0]) < _magnitude(sizes[1]) else 1
            if not rest[short]:
                return None
            taken[short].append(rest[short].pop(0))
        if min(map(len, taken)) > 1:
            return None
        made = list(range(count, count + max(map(len, taken))))
        for parts, axes in zip(found, taken):
            parts |= {axes[0]: made} if len(axes) == 1 else {k: [part] for k, part in zip(axes, made)}
        count += len(made)
    return None if rest[0] or rest[1] else found


def _magnitude(size: Dim) -> tuple[int, int]:
    """An order of sizes in which a factor comes before the product, if all sizes are large."""
    if not isinstance(size, SymbolicDim):
        return 0, cast(int, size)
    return max(map(len, size.terms)), sum(map(abs, size.terms.values()))


def axis_order(moved: Expr, rank: int) -> list[int]:
    """For each axis of the result of a transpose (or of a change between plain layouts), the axis it comes from."""
    attrs = facets(cast(Call, moved))
    if is_call_to(moved, "layout_transform"):
        source, target = parse_layout(attrs.src_layout), parse_layout(attrs.dst_layout)
        return [source.axes.index(a) for a in target.axes]
    axes = attrs.axes if attrs.axes else range(rank - 1, -1, -1)
    return [a % rank for a in axes]


def swaps_last(transpose: Expr, rank: int) -> bool:
    """Whether a transpose exchanges the last two axes and leaves the others."""
    return rank > 1 and axis_order(transpose, rank) == [*range(rank - 2), rank - 1, rank - 2]


def _merged_layouts(outer: Expr, inner: Expr) -> tuple[str, str] | None:
    """The layouts of one change that does what two do, if one of them splits or joins axes."""
    if is_call_to(outer, "layout_transform") and is_call_to(inner, "layout_transform"):
        first, second = facets(inner), facets(outer)
        plain = all(parse_layout(t).is_plain() for t in (first.src_layout, first.dst_layout, second.dst_layout))
        return (first.src_layout, second.dst_layout) if first.dst_layout == second.src_layout and not plain else None
    if is_call_to(outer, "layout_transform"):
        layouts = facets(outer)
        return (_moved_back(layouts.src_layout, inner), layouts.dst_layout) if not _moves(outer) else None
    if is_call_to(inner, "layout_transform"):
        layouts = facets(inner)
        return (layouts.src_layout, _moved_on(layouts.dst_layout, outer)) if not _moves(inner) else None
    return None


def _moves(moved: Expr) -> bool:
    """Whether axes only change their places: none is split, joined, or split otherwise."""
    if is_call_to(moved, "transpose"):
        return True
    layouts = facets(cast(Call, moved))
    return set(parse_layout(layouts.src_layout).axes) == set(parse_layout(layouts.dst_layout).axes)


def _moved_back(text: str, transpose: Expr) -> str:
    """The layout before a transpose, given the one after it."""
    layout = parse_layout(text)
    order = axis_order(transpose, layout.ndim)
    return layout_text([layout.axes[order.index(i)] for i in range(layout.ndim)])


def _moved_on(text: str, transpose: Expr) -> str:
    """The layout after a transpose, given the one before it."""
    layout = parse_layout(text)
    return layout_text([layout.axes[i] for i in axis_order(transpose, layout.ndim)])


def layout_text(axes) -> str:
    """How a layout of these axes is written."""
    return "".join(f"{a.factor}{a.letter.lower()}" if a.factor else a.letter for a in axes)


SHAPES = RuleSet([two_reshapes, two_transposes, no_transpose, undone_transpose])
