"""Rules on changes of shape: chains of reshapes, transposes and changes of layout become one or none."""

from __future__ import annotations

from typing import cast

from relaylab.ir import Call, Expr, facets, is_call_to
from relaylab.op.layout import parse_layout
from relaylab.transform.engine.build import call, reshaped
from relaylab.transform.pattern import is_op, wild
from relaylab.transform.rewriting.rules import RuleSet, rule

x = wild("x")

_reshape1 = is_op("reshape")(x) | is_op("contrib_reverse_reshape")(x)


@rule(is_op("reshape")(_reshape1) | is_op("contrib_reverse_reshape")(_reshape1))
def two_reshapes(root, types, x):
    """Two reshapes are one."""
    t = types.tensor(root)
    return None if t is None or t.is_dynamic else reshaped(x, t.shape)


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
    """A transpose that leaves the axes where they are is nothing."""
    t = types.tensor(root)
    axes = axis_order(root, len(t.shape)) if t is not None else [1]
    return x if axes == sorted(axes) else None


def axis_order(moved: Expr, rank: int) -> list[int]:
    """For each axis of the result of a transpose (or of a change between plain layouts), the axis it comes from."""
    attrs = facets(cast(Call, moved))
    if is_call_to(moved, "layout_transform"):
        source, target = parse_layout(attrs.src_layout), parse_layout(attrs.dst_layout)
        return [source.axes.index(a) for a in target.axes]
    axes = attrs.axes if attrs.axes else range(rank - 1, -1, -1)
    return [a % rank for a in axes]


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


SHAPES = RuleSet([two_reshapes, two_transposes, no_transpose])
