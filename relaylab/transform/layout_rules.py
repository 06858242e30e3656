"""How each operator's layouts go with each other: what it makes of an argument that comes in another layout.

A layout names the axes of a tensor (`NCHW`). A rule answers, for a call whose arguments may come in
new layouts, which layout each argument must have, which one the result has, and which attributes
say so; None if the operator only works in the layout that it was written for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any as AnyAttrs

from relaylab.ir import Attrs, Call, Op, TensorType, TupleType, Type, facets, op_name
from relaylab.op.base import Broadcast, Elementwise
from relaylab.op.layout import parse_layout

Pair = tuple[str, str]
"""The layout that the program was written in, and the new one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The layouts of a call's arguments (tuples flattened) and results, old and new; None: not concerned."""

    inputs: tuple[Pair | None, ...]
    outputs: tuple[Pair | None, ...]
    attrs: Attrs | None


@dataclass(frozen=True, slots=True)
class Site:
    """A call as a rule sees it: attributes, the layouts in which arguments come, their types and that of the result."""

    call: Call
    given: tuple[Pair | None, ...]
    types: tuple[Type | None, ...]
    result: Type | None

    @property
    def attrs(self) -> AnyAttrs:
        return facets(self.call)

    @property
    def first(self) -> Pair | None:
        """The layouts of the first argument that comes in a new one."""
        return next((pair for pair in self.given if pair is not None), None)

    def rank(self, index: int) -> int:
        """The rank of an argument; -1 if it is not a tensor."""
        found = self.types[index]
        return len(found.shape) if isinstance(found, TensorType) else -1


Rule = Callable[[Site], Plan | None]


def moved_axis(axis: int, pair: Pair) -> int:
    """Where an axis of the old layout is in the new one."""
    old, new = parse_layout(pair[0]), parse_layout(pair[1])
    return new.axes.index(old.axes[axis % old.ndim])


def moved(values: Sequence[AnyAttrs], pair: Pair) -> list[AnyAttrs]:
    """One value per axis of the old layout, in the order of the new one."""
    old, new = parse_layout(pair[0]), parse_layout(pair[1])
    return [values[old.axes.index(a)] for a in new.axes]


def _same(site: Site, count: int = 1, attrs: Attrs | None = None) -> Plan:
    """Arguments and results all in the layout of the first argument."""
    pair = site.first
    return Plan((pair,) * len(site.given), (pair,) * count, attrs if attrs is not None else site.call.attrs)


def elementwise(site: Site) -> Plan | None:
    """Works in any layout."""
    return _same(site)


def broadcast(site: Site) -> Plan | None:
    """All operands in one layout; those of lower rank get leading axes, scalars stay."""
    pair = site.first
    rank = parse_layout(pair[0]).ndim if pair else -1
    ranks = [site.rank(i) for i in range(len(site.given))]
    if pair is None or max(ranks) != rank or min(ranks) < 0:
        return None
    others = [p for p in site.given if p is not None and p[0] != pair[0]]
    if others or not isinstance(site.result, TensorType) or len(site.result.shape) != rank:
        return None
    return Plan(tuple(None if r == 0 else pair for r in ranks), (pair,), site.call.attrs)  # type: ignore[arg-type]


def reduce(site: Site) -> Plan | None:
    """Reduced axes move with the layout; without `keepdims` they leave it. Positions count along axes in their order."""
    pair, attrs = site.first, site.attrs
    if pair is None or site.given[0] is None or len(site.given) > 1:
        return None
    old = parse_layout(pair[0])
    axes = list(range(old.ndim)) if attrs.axis is None else [a % old.ndim for a in attrs.axis]
    if getattr(attrs, "exclude", False):
        axes = [a for a in range(old.ndim) if a not in axes]
    new_axes = sorted(moved_axis(a, pair) for a in axes)
    if op_name(site.call) in ("argmax", "argmin") and new_axes != [moved_axis(a, pair) for a in sorted(axes)]:
        return None
    changed = attrs.replace(axis=new_axes, exclude=False) if attrs.axis is not None else attrs
    if attrs.keepdims:
        return Plan((pair,), (pair,), changed)
    gone = {old.axes[a].letter for a in axes}
    left = tuple("".join(c for c in text if c not in gone) for text in pair)
    return Plan((pair,), (left if len(left[0]) > 1 and left[0] != left[1] else None,), changed)


def along_axis(site: Site) -> Plan | None:
    """One attribute `axis` that moves with the layout."""
    pair = site.first
    count = len(site.result.fields) if isinstance(site.result, TupleType) else 1
    return pair and _same(site, count, site.attrs.replace(axis=moved_axis(site.attrs.axis, pair)))


def normalization(site: Site) -> Plan | None:
    """Data in any layout, parameters per channel as they are; batch_norm also returns statistics per channel."""
    pair = site.given[0]
    if pair is None or any(p is not None for p in site.given[1:]):
        return None
    attrs = site.attrs.replace(axis=moved_axis(site.attrs.axis, pair))
    count = len(site.result.fields) if isinstance(site.result, TupleType) else 1
    return Plan((pair, *([None] * (len(site.given) - 1))), (pair, *([None] * (count - 1))), attrs)


def pad(site: Site) -> Plan | None:
    """Widths move with the axes; the value is a scalar."""
    pair = site.given[0]
    return pair and Plan((pair, None), (pair,), site.attrs.replace(pad_width=moved(site.attrs.pad_width, pair)))


def strided_slice(site: Site) -> Plan | None:
    """Begins, ends and strides move with the axes."""
    pair, attrs = site.first, site.attrs
    rank = parse_layout(pair[0]).ndim if pair else 0
    if attrs.axes is not None and pair is not None:
        return _same(site, 1, attrs.replace(axes=[moved_axis(a, pair) for a in attrs.axes]))
    if pair is None or any(v is None or len(v) != rank for v in (attrs.begin, attrs.end)):
        return None
    strides = attrs.strides if attrs.strides is not None and len(attrs.strides) == rank else [1] * rank
    return _same(
        site, 1, attrs.replace(begin=moved(attrs.begin, pair), end=moved(attrs.end, pair), strides=moved(strides, pair))
    )


def own_layout(site: Site) -> Plan | None:
    """An operator with an attribute `layout` takes over that of its argument, if it splits no axis."""
    pair, attrs = site.given[0], site.attrs
    if pair is None or pair[0] != attrs.layout or not parse_layout(pair[1]).is_plain():
        return None
    changes = {"layout": pair[1], **({"out_layout": ""} if "out_layout" in attrs.fields else {})}
    rest = (None,) * (len(site.given) - 1)
    return Plan((pair, *rest), (pair,), attrs.replace(**changes))


RULES: dict[str, Rule] = {
    **dict.fromkeys(("sum", "mean", "max", "min", "prod", "all", "any", "argmax", "argmin"), reduce),
    **dict.fromkeys(("concatenate", "split"), along_axis),
    **dict.fromkeys(("nn.batch_norm", "nn.instance_norm", "nn.prelu"), normalization),
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


def rule_for(op: Op) -> Rule | None:
    """The rule of an operator; None if it works only in the layout that it was written for."""
    if op.name in RULES:
        return RULES[op.name]
    if issubclass(op.definition, Broadcast):
        return broadcast if not op.definition.fields else None  # an attribute may name an axis
    return elementwise if issubclass(op.definition, Elementwise) else None
