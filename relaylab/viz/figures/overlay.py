"""Figures over a picture: any metric of nodes and groups as colour and badge, with sums and a legend.

A figure is data first (`measured` puts it beside the node's other costs, so that it is summed where groups collapse)
and colour last (`painted`, when it is known what is drawn). `overlay` does both.
"""

from __future__ import annotations

import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeVar

from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, RelayValueError, is_a, kind_of
from relaylab.support.table import did_you_mean
from relaylab.viz.graph.figure import FIGURES, abbreviated, known
from relaylab.viz.graph.view import Group, Node, View
from relaylab.viz.scene.theme import HEAT
from relaylab.viz.selection.fold import group_costs, outer_first, outermost
from relaylab.viz.selection.repeats import in_order

Values = Mapping[str, float] | Mapping[str | Node | Group, float]
"""A figure of some parts, by id or by the node or group itself."""
AnyPart = TypeVar("AnyPart", Node, Group)
PREFIX = re.compile(r"^(?:tvmgen_default_|tvmgen_\w*?_(?=fused_))?(?:fused_)?")


@checked
def overlay(
    view: View, name: str, values: Values | None = None, *, unit: str = "", how: str = "sum", hot: bool = False
) -> View:
    """The view with a metric as colour and badge; without `values` one that nodes have (`MACs`, `bytes`, `intensity`).

    `values` are by id or by node; groups without a value get the `sum` or the `max` of what is inside (`how`). `hot`
    marks the path of the largest sum. Raises `RelayValueError` for an id not there or a figure that no node has.
    """
    return painted(measured(view, name, values, how=how) if values is not None else view, name, unit=unit, hot=hot)


def measured(view: View, name: str, values: Values, *, how: str = "sum") -> View:
    """The view with a figure more; groups say it as their own only if they are given it or `how` is `max`."""
    if how not in ("sum", "max"):
        raise RelayValueError(f"figures are aggregated by sum or max, not by {how!r}", code="viz.option")
    for key in values:
        if not is_a(key, str, Node, Group):
            message = f"values are by id or by node of a view, not by {kind_of(key)}"
            help = "viz.show(program, overlay=values) takes nodes of the program"
            raise RelayTypeError(message, code="viz.overlay", help=help)
    table = {key if isinstance(key, str) else key.id: float(value) for key, value in values.items()}
    for key, value in table.items():
        if key not in view.node_by_id and key not in view.group_by_id:
            help = did_you_mean(key, [*view.node_by_id, *view.group_by_id])
            raise RelayValueError(f"the picture has no node `{key}`", code="viz.unknown-node", help=help)
        if not math.isfinite(value):
            raise RelayValueError(f"`{key}` has {value}, which no colour can show", code="viz.overlay")
    if how == "max":
        table = _largest(view, table)
    return replace(
        view,
        nodes=tuple(_with(n, name, table) for n in view.nodes),
        groups=tuple(_with(g, name, table) for g in view.groups),
    )


def _with(part: AnyPart, name: str, table: Mapping[str, float]) -> AnyPart:
    if part.id not in table:
        return part
    return replace(part, cost=(*((k, v) for k, v in part.cost if k != name), (name, table[part.id])))


def _largest(view: View, table: Mapping[str, float]) -> dict[str, float]:
    found = dict(table)
    inner = ((n.id, n.group) for n in view.nodes)
    for part, home in (*inner, *((g.id, g.parent) for g in reversed(outer_first(view)))):
        if part in found and home and home not in table:
            found[home] = max(found.get(home, found[part]), found[part])
    return found


def painted(view: View, name: str, *, unit: str = "", hot: bool = False) -> View:
    """The view coloured by a figure of its nodes (of `FIGURES` or their `cost`); the last step before drawing."""
    groups = _with_sums(view)
    shown = _values(view, groups, name)
    if not shown:
        there = sorted({k for n in view.nodes for k, _ in n.cost})
        others = f"there are: {', '.join(there)}" if there else "operators have some once they are typed"
        near = did_you_mean(name, sorted({*there, *FIGURES} - {name}))
        help = near if near and any(f"`{figure}`" in near for figure in there) else f"{near} {others}".strip()
        raise RelayValueError(f"no node of the picture has a figure `{name}`", code="viz.overlay", help=help)
    unit = unit or known(name).unit_beside
    leaves = _leaves(view, shown)
    top = max((abs(v) for k, v in shown.items() if k in view.node_by_id or k in leaves), default=0.0) or 1.0
    total = 0.0 if known(name).ratio else sum(leaves.values())
    path = hot_path(view, {k: v for k, v in shown.items() if k in view.node_by_id}) if hot else ()
    nodes = tuple(_painted(n, name, shown.get(n.id), top, total, unit, n.id in path) for n in view.nodes)
    boxes = (_titled(groups[g.id], shown.get(g.id), total, unit) for g in view.groups)
    return replace(view, nodes=nodes, groups=tuple(boxes), notes=(*view.notes, *_legend(name, top, total, unit)))


def values_of(view: View, name: str) -> dict[str, float]:
    """A figure of every node and group that has it, by id; groups have the sum of what is inside."""
    return _values(view, _with_sums(view), name)


def _values(view: View, groups: Mapping[str, Group], name: str) -> dict[str, float]:
    figure = known(name)
    found = {p.id: figure.value(view, p) for p in (*view.nodes, *groups.values())}
    return {key: value for key, value in found.items() if value is not None}


def _with_sums(view: View) -> dict[str, Group]:
    totals = group_costs(view)
    return {g.id: replace(g, cost=tuple(totals[g.id].items())) for g in view.groups}


def _leaves(view: View, shown: Mapping[str, float]) -> dict[str, float]:
    """The figures that add up to the whole: of kernels that have their own, else of nodes."""
    owners = {g.id for g in view.groups if g.cost and g.id in shown}
    homes = outermost(view, owners)
    return {g: shown[g] for g in owners if homes[g] == g} | {
        n.id: shown[n.id] for n in view.nodes if n.id in shown and not homes[n.id]
    }


def _painted(node: Node, name: str, value: float | None, top: float, total: float, unit: str, hot: bool) -> Node:
    if value is None:
        return node
    step = min(len(HEAT) - 1, int(abs(value) / top * len(HEAT)))
    border = ("width:2.6",) if hot else ()
    paint = (*node.paint, *((f"heat-{step}",) if value else ()), *border)
    return replace(node, rows=(*node.rows, f"{name} {_amount(value, total, unit)}"), paint=paint)


def _titled(group: Group, value: float | None, total: float, unit: str) -> Group:
    return group if value is None else replace(group, title=f"{group.title}  ·  {_amount(value, total, unit)}")


def _amount(value: float, total: float, unit: str) -> str:
    share = f" ({value / total:.1%})" if total and value else ""
    return f"{abbreviated(value)}{' ' + unit if unit else ''}{share}"


def _legend(name: str, top: float, total: float, unit: str) -> Iterable[str]:
    whole = f", {abbreviated(total)} {unit}".rstrip() + " in all" if total else ""
    yield f"{name}: pale 0 to strong {abbreviated(top)} {unit}".rstrip() + whole


def hot_path(view: View, values: Mapping[str, float]) -> tuple[str, ...]:
    """The nodes of the path along the edges with the largest sum of values, first to last; linear time."""
    edges = [e for e in view.edges if {e.source, e.target} <= view.node_by_id.keys() and e.kind != "recursion"]
    waiting = dict.fromkeys(view.node_by_id, 0)
    for edge in edges:
        waiting[edge.target] += 1
    ready = deque(n for n, count in waiting.items() if not count)
    best: dict[str, float] = {}
    before: dict[str, str] = {}
    while ready:
        at = ready.popleft()
        best[at] = best.get(at, 0.0) + values.get(at, 0.0)
        for edge in view.outgoing.get(at, ()):
            if edge.kind == "recursion" or edge.target not in waiting:
                continue
            if best[at] > best.get(edge.target, -1.0):
                best[edge.target], before[edge.target] = best[at], at
            waiting[edge.target] -= 1
            if not waiting[edge.target]:
                ready.append(edge.target)
    path = [max(best, key=lambda n: best[n])] if best else []
    while path and path[-1] in before:
        path.append(before[path[-1]])
    return tuple(reversed(path))


@checked
def kernel_times(view: View, calls: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Measured microseconds of the fused functions of a view, by group id, from the `calls` of a profile report.

    Where the view has more or fewer functions of a name than there were calls, the time is shared equally. Calls the
    view has no function for are left out.
    """
    calls = list(calls)
    times: dict[str, float] = {}
    spent: dict[str, float] = {}
    for call, home in zip(calls, kernel_boxes(view, [str(call["Name"]) for call in calls])):
        table, key = (times, home) if home else (spent, _stem(str(call["Name"])))
        table[key] = table.get(key, 0.0) + call["Duration (us)"].value
    for stem, places in _fused_boxes(view).items():
        if stem in spent:
            times.update(dict.fromkeys(places, spent[stem] / len(places)))
    return times


def kernel_boxes(view: View, names: Sequence[str]) -> list[str]:
    """For kernels that run one after another the ids of a view's fused functions; empty where that is uncertain.

    Kernels are named after the operators they fuse: those of one name go to the fused functions with these operators,
    both in the order of evaluation (steps of one kernel in a row are one call), if there are as many.
    """
    runs = [(name, len(list(steps))) for name, steps in groupby(names)]
    boxes = _fused_boxes(view)
    counts = Counter(_stem(name) for name, _ in runs)
    waiting = {stem: iter(places) for stem, places in boxes.items() if len(places) == counts[stem]}
    return [home for name, count in runs for home in [next(waiting.get(_stem(name), iter(())), "")] * count]


def _stem(kernel: str) -> str:
    return re.sub(r"_\d+$", "", PREFIX.sub("", kernel))


def _fused_boxes(view: View) -> dict[str, list[str]]:
    """The fused functions of a view in the order of evaluation, by the operators that are in them."""
    boxes: dict[str, list[str]] = {}
    inside: dict[str, list[str]] = {}
    for node in view.nodes:
        if node.operator:
            inside.setdefault(node.group, []).append(node.operator.replace(".", "_"))
    for name in (n for parts in in_order(view).values() for n in parts):
        if name in view.group_by_id and view.group_by_id[name].kind == "primitive":
            boxes.setdefault("_".join(inside.get(name, ())), []).append(name)
    return boxes
