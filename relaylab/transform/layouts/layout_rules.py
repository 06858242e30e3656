"""How each operator's layouts go with each other: what it makes of an argument that comes in another layout.

A layout names the axes of a tensor (`NCHW`). A rule answers, for a call whose arguments may come in
new layouts, which layout each argument must have, which one the result has, and which attributes
say so; None if the operator only works in the layout that it was written for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from relaylab.ir import Attrs, Call, DictAttrs, Op, TensorType, TupleType, Type, facets, op_name
from relaylab.op.base import Broadcast, Elementwise
from relaylab.op.layout import Layout, LayoutAxis, parse_layout

T = TypeVar("T")
Pair = tuple[str, str]
"""The layout that the program was written in, and the new one."""


@dataclass(frozen=True, slots=True)
class LayoutPlan:
    """The layouts of a call's arguments (tuples flattened) and results, old and new; None: not concerned."""

    inputs: tuple[Pair | None, ...]
    outputs: tuple[Pair | None, ...]
    attrs: Attrs | DictAttrs | None


@dataclass(frozen=True, slots=True)
class Site:
    """A call as a rule sees it: attributes, the layouts in which arguments come, their types and that of the result."""

    call: Call
    given: tuple[Pair | None, ...]
    types: tuple[Type | None, ...]
    result: Type | None

    @property
    def attrs(self) -> Any:
        return facets(self.call)

    @property
    def first(self) -> Pair | None:
        """The layouts of the first argument that comes in a new one."""
        return next((pair for pair in self.given if pair is not None), None)

    def rank(self, index: int) -> int:
        """The rank of an argument; -1 if it is not a tensor."""
        found = self.types[index]
        return len(found.shape) if isinstance(found, TensorType) else -1


LayoutRule = Callable[[Site], LayoutPlan | None]


def moved_axis(axis: int, pair: Pair) -> int:
    """Where a (whole) axis of the old layout is in the new one."""
    old, new = parse_layout(pair[0]), parse_layout(pair[1])
    return new.axes.index(old.axes[axis % old.ndim])


def moved(values: Sequence[T], inner: T, pair: Pair, blocks: Callable[[T, int], T | None]) -> list[T] | None:
    """One value per axis of the old layout, in the order of the new one: `inner` along the axes within blocks, what
    `blocks(value, size)` gives along those that count blocks. None if `blocks` does.
    """
    old, new = parse_layout(pair[0]), parse_layout(pair[1])
    found: list[T] = []
    for axis in new.axes:
        size = new.factor(axis.letter)
        value = inner if axis.factor else values[old.position(axis.letter)]
        value = blocks(value, size) if size > 1 and not axis.factor else value
        if value is None:
            return None
        found.append(value)
    return found


def fitting(pair: Pair, found: Type | None) -> Pair | None:
    """The layouts for a value that broadcasts: axes of extent 1 have blocks of 1; None if blocks do not divide others.

    Axes that the value lacks are the first ones.
    """
    old, new = parse_layout(pair[0]), parse_layout(pair[1])
    if new.is_plain():
        return pair
    if not isinstance(found, TensorType) or not old.is_plain() or len(found.shape) > old.ndim:
        return None
    shape = (1,) * (old.ndim - len(found.shape)) + tuple(found.shape)
    text = ""
    for axis in new.axes:
        extent, size = shape[old.position(axis.letter)], new.factor(axis.letter)
        if not isinstance(extent, int) or (extent != 1 and extent % size):
            return None
        text += LayoutAxis(axis.letter, axis.factor and (1 if extent == 1 else axis.factor)).text
    return pair[0], text


def _same(site: Site, count: int = 1, attrs: Attrs | DictAttrs | None = None) -> LayoutPlan:
    """Arguments and results all in the layout of the first argument."""
    pair = site.first
    return LayoutPlan((pair,) * len(site.given), (pair,) * count, attrs if attrs is not None else site.call.attrs)


def elementwise(site: Site) -> LayoutPlan | None:
    """Works in any layout."""
    return _same(site)


def broadcast(site: Site) -> LayoutPlan | None:
    """All operands in one layout; those of lower rank get leading axes, scalars stay."""
    pair = site.first
    rank = parse_layout(pair[0]).ndim if pair else -1
    ranks = [site.rank(i) for i in range(len(site.given))]
    packed = pair is not None and not parse_layout(pair[1]).is_plain()
    if pair is None or max(ranks) != rank or min(ranks) < 0:
        return None
    others = [p for p in site.given if p is not None and p[0] != pair[0]]
    if others or not isinstance(site.result, TensorType) or len(site.result.shape) != rank:
        return None
    if not packed:
        return LayoutPlan(tuple(None if r == 0 else pair for r in ranks), (pair,), site.call.attrs)
    # blocks of the operand that has the most: another may have an axis of extent 1 there
    pair = max((p for p in site.given if p is not None), key=lambda p: _blocks(p[1]))
    inputs = [None if r == 0 else fitting(pair, t) for r, t in zip(ranks, site.types)]
    result = fitting(pair, site.result)
    if result is None or any(p is None and r for p, r in zip(inputs, ranks)):
        return None
    return LayoutPlan(tuple(inputs), (result,), site.call.attrs)


def _blocks(text: str) -> int:
    """The elements of one block of a layout."""
    layout = parse_layout(text)
    return math.prod(layout.factor(x) for x in layout.letters)


def reduce(site: Site) -> LayoutPlan | None:
    """Reduced axes move with the layout; without `keepdims` they leave it.

    Positions count along axes in their order.
    """
    pair, attrs = site.first, site.attrs
    if pair is None or site.given[0] is None or len(site.given) > 1:
        return None
    old, new = parse_layout(pair[0]), parse_layout(pair[1])
    if not old.is_plain():
        return None
    axes = list(range(old.ndim)) if attrs.axis is None else [a % old.ndim for a in attrs.axis]
    if getattr(attrs, "exclude", False):
        axes = [a for a in range(old.ndim) if a not in axes]
    gone = {old.axes[a].letter for a in axes}
    new_axes = [k for k, a in enumerate(new.axes) if a.letter in gone]
    if op_name(site.call) in ("argmax", "argmin") and new_axes != [moved_axis(a, pair) for a in sorted(axes)]:
        return None
    changed = attrs.replace(axis=new_axes, exclude=False) if attrs.axis is not None else attrs
    if attrs.keepdims:
        kept = fitting(pair, site.result)
        return kept and LayoutPlan((pair,), (kept,), changed)
    return LayoutPlan((pair,), (_without(pair, gone),), changed)


def along_axis(site: Site) -> LayoutPlan | None:
    """One attribute `axis` that moves with the layout."""
    pair = site.first
    count = len(site.result.fields) if isinstance(site.result, TupleType) else 1
    if (
        pair is None
        or site.attrs.axis is None
        or _splits(pair, site.attrs.axis, whole=op_name(site.call) != "concatenate")
    ):
        return None
    return _same(site, count, site.attrs.replace(axis=moved_axis(site.attrs.axis, pair)))


def taken(site: Site) -> LayoutPlan | None:
    """Places in one row along an axis that moves with the layout."""
    pair, axis = site.given[0], site.attrs.axis
    if pair is None or axis is None or site.rank(1) != 1 or _splits(pair, axis):
        return None
    return LayoutPlan((pair, None), (pair,), site.attrs.replace(axis=moved_axis(axis, pair)))


def _splits(pair: Pair, axis: int, whole: bool = True) -> bool:
    """Whether the old layout is no plain one, or (if the axis must stay whole) the new one splits this axis."""
    old, new = parse_layout(pair[0]), parse_layout(pair[1])
    return not old.is_plain() or (whole and new.factor(old.axes[axis % old.ndim].letter) > 1)


def normalization(site: Site) -> LayoutPlan | None:
    """Data in any layout, parameters per channel as they are; batch_norm also returns statistics per channel."""
    pair = site.given[0]
    if pair is None or any(p is not None for p in site.given[1:]) or _splits(pair, site.attrs.axis):
        return None
    attrs = site.attrs.replace(axis=moved_axis(site.attrs.axis, pair))
    count = len(site.result.fields) if isinstance(site.result, TupleType) else 1
    return LayoutPlan((pair, *([None] * (len(site.given) - 1))), (pair, *([None] * (count - 1))), attrs)


def pad(site: Site) -> LayoutPlan | None:
    """Widths move with the axes; the value is a scalar."""
    pair = site.given[0]
    if pair is None or not parse_layout(pair[0]).is_plain():
        return None

    def blocks(width: Sequence[int], size: int) -> Sequence[int] | None:
        return None if any(w % size for w in width) else [w // size for w in width]

    widths = moved(site.attrs.pad_width, (0, 0), pair, blocks)
    if widths is None:
        return None
    return LayoutPlan((pair, None), (pair,), site.attrs.replace(pad_width=widths))


def strided_slice(site: Site) -> LayoutPlan | None:
    """Begins, ends and strides move with the axes."""
    pair, attrs = site.first, site.attrs
    if pair is None or not parse_layout(pair[0]).is_plain():
        return None
    rank = parse_layout(pair[0]).ndim
    if attrs.axes is not None:
        split = any(_splits(pair, a) for a in attrs.axes)
        return None if split else _same(site, 1, attrs.replace(axes=[moved_axis(a, pair) for a in attrs.axes]))
    if attrs.count is not None or any(v is None or len(v) != rank for v in (attrs.begin, attrs.end)):
        return None
    strides = attrs.strides if attrs.strides is not None and len(attrs.strides) == rank else [1] * rank
    source = cast(TensorType, site.types[0]).shape
    ranges = list(zip(attrs.begin, attrs.end, strides, source, strict=True))
    if not parse_layout(pair[1]).is_plain() and attrs.slice_mode != "end":
        return None
    cut = moved(ranges, (0, 0, 0, 0), pair, _block_range)
    if cut is None:
        return None
    new = [r if r != (0, 0, 0, 0) else (0, a.factor, 1, a.factor) for r, a in zip(cut, parse_layout(pair[1]).axes)]
    begin, end, strides = ([r[k] for r in new] for k in range(3))
    return _same(site, 1, attrs.replace(begin=begin, end=end, strides=strides))


def _block_range(cut: tuple[int, int, int, Any], size: int) -> tuple[int, int, int, Any] | None:
    """Begin, end and stride along an axis as blocks; None if they are not."""
    begin, end, stride, extent = cut
    if not isinstance(extent, int) or stride != 1 or begin < 0 or end < 0:
        return None
    end = min(end, extent)
    return None if begin % size or end % size or begin >= end else (begin // size, end // size, 1, extent // size)


def own_layout(site: Site) -> LayoutPlan | None:
    """An operator with an attribute `layout` takes over that of its argument; a pooling also one with blocks of
    channels.
    """
    pair, attrs = site.given[0], site.attrs
    if pair is None or pair[0] != attrs.layout or ("out_layout" in attrs.fields and attrs.out_layout):
        return None  # who says the layout of the result wants it so
    layout = parse_layout(pair[1])
    if not layout.is_plain() and not ("_pool" in op_name(site.call) and _splits_only("C", layout)):
        return None
    rest = (None,) * (len(site.given) - 1)
    return LayoutPlan((pair, *rest), (pair,), attrs.replace(layout=pair[1]))


def _plain(pair: Pair | None) -> bool:
    return pair is not None and all(parse_layout(text).is_plain() for text in pair)


def _without(pair: Pair, letters: set[str]) -> Pair | None:
    """The layouts of what is left when axes go; None if it is the same in both."""
    old, new = ("".join(a.text for a in parse_layout(text).axes if a.letter not in letters) for text in pair)
    return (old, new) if len(old) > 1 and old != new else None


def squeeze(site: Site) -> LayoutPlan | None:
    """The axes that go are others in the new layout."""
    pair, attrs = site.first, site.attrs
    if pair is None or not _plain(pair):
        return None
    old = parse_layout(pair[0])
    shape = cast(TensorType, site.types[0]).shape
    axes = [k for k, n in enumerate(shape) if n == 1] if attrs.axis is None else [a % old.ndim for a in attrs.axis]
    new = attrs.replace(axis=sorted(moved_axis(a, pair) for a in axes))
    return LayoutPlan((pair,), (_without(pair, {old.axes[a].letter for a in axes}),), new)


def transpose(site: Site) -> LayoutPlan | None:
    """Takes the axes from where they are: the result is what the program wants."""
    pair = site.first
    if pair is None or not _plain(pair):
        return None
    rank = parse_layout(pair[0]).ndim
    axes = [moved_axis(a, pair) for a in site.attrs.axes or range(rank - 1, -1, -1)]
    return LayoutPlan((pair,), (None,), site.attrs.replace(axes=axes))


def along_axes(site: Site) -> LayoutPlan | None:
    """An attribute `axis` or `axes` with several that move with the layout."""
    pair = site.first
    if pair is None or not _plain(pair):
        return None
    name = "axes" if "axes" in site.attrs.fields else "axis"
    axes = site.attrs.get(name)
    return _same(site, 1, site.attrs.replace(**{name: axes and [moved_axis(a, pair) for a in axes]}))


def slice_like(site: Site) -> LayoutPlan | None:
    """Both tensors in one layout."""
    pair = site.first
    ranks = {site.rank(0), site.rank(1)}
    return along_axes(site) if pair is not None and ranks == {parse_layout(pair[0]).ndim} else None


def quantized_broadcast(site: Site) -> LayoutPlan | None:
    """Both tensors in one layout, scales and zero points as they are along axes that move."""
    pair = site.first
    if pair is None or not _plain(pair) or any(p is not None and p[0] != pair[0] for p in site.given):
        return None
    rank, ranks = parse_layout(pair[0]).ndim, (site.rank(0), site.rank(1))
    if max(ranks) != rank or min(ranks) not in (0, rank):
        return None
    axes = {name: moved_axis(site.attrs.get(name), pair) for name in ("lhs_axis", "rhs_axis")}
    inputs = [pair if r else None for r in ranks]
    return LayoutPlan((*inputs, *[None] * (len(site.given) - 2)), (pair,), site.attrs.replace(**axes))


def quantized_concatenate(site: Site) -> LayoutPlan | None:
    """The tensors in one layout, with a scale and a zero point each as they are."""
    pair, count = site.first, (len(site.given) - 2) // 3
    if pair is None or not _plain(pair) or any(site.rank(i) != parse_layout(pair[0]).ndim for i in range(count)):
        return None
    attrs = site.attrs.replace(axis=moved_axis(site.attrs.axis, pair))
    return LayoutPlan((pair,) * count + (None,) * (len(site.given) - count), (pair,), attrs)


def _splits_only(letter: str, layout: Layout) -> bool:
    return all(layout.factor(x) == 1 for x in layout.letters if x != letter)


RULES: dict[str, LayoutRule] = {
    **dict.fromkeys(("sum", "mean", "max", "min", "prod", "all", "any", "argmax", "argmin"), reduce),
    **dict.fromkeys(("concatenate", "split", "topk", "cumsum", "cumprod", "repeat"), along_axis),
    "take": taken,
    "nn.lrn": along_axis,
    **dict.fromkeys(("nn.batch_norm", "nn.instance_norm", "nn.layer_norm", "nn.prelu"), normalization),
    "where": broadcast,
    **dict.fromkeys(("qnn.quantize", "qnn.dequantize", "qnn.requantize"), normalization),
    **dict.fromkeys(("qnn.add", "qnn.subtract", "qnn.mul"), quantized_broadcast),
    "qnn.concatenate": quantized_concatenate,
    "nn.l2_normalize": along_axes,
    "slice_like": slice_like,
    "squeeze": squeeze,
    "transpose": transpose,
    **dict.fromkeys(("nn.dropout", "annotation.stop_fusion", "annotation.checkpoint"), elementwise),
    "nn.pad": pad,
    "strided_slice": strided_slice,
    **dict.fromkeys(
        [f"nn.{kind}_pool{n}d" for kind in ("max", "avg", "adaptive_max", "adaptive_avg") for n in (1, 2, 3)],
        own_layout,
    ),
    **dict.fromkeys(("nn.global_max_pool2d", "nn.global_avg_pool2d", "nn.upsampling", "nn.upsampling3d"), own_layout),
    **dict.fromkeys(("image.resize1d", "image.resize2d", "image.resize3d"), own_layout),
}


def rule_for(op: Op) -> LayoutRule | None:
    """The rule of an operator; None if it works only in the layout that it was written for."""
    if op.name in RULES:
        return RULES[op.name]
    if issubclass(cast(type, op.definition), Broadcast):
        return broadcast if not op.definition.fields else None  # an attribute may name an axis
    return elementwise if issubclass(cast(type, op.definition), Elementwise) else None
