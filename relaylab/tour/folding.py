"""Views with groups folded into one box each: functions, fused kernels, branches, and repeated blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from relaylab.viz.graph import Edge, Group, Node, View


def folded(view: View, closed: Collection[str]) -> View:
    """The view with each group in `closed` drawn as one node that has the group's id, its cost the sum of what is inside."""
    homes = _homes(view, closed)
    if not any(homes.values()):
        return view
    inside: dict[str, list[Node]] = {}
    for node in view.nodes:
        if homes[node.id]:
            inside.setdefault(homes[node.id], []).append(node)
    alike = Counter(_signature(nodes) for nodes in inside.values())
    boxes = tuple(_box(view.group_by_id[g], nodes, alike[_signature(nodes)]) for g, nodes in inside.items())
    nodes = tuple(n for n in view.nodes if not homes[n.id]) + boxes
    groups = tuple(g for g in view.groups if not homes[g.id])
    return View(view.title, nodes, _edges(view, homes), groups, view.notes)


def _homes(view: View, closed: Collection[str]) -> dict[str, str]:
    """For each node and group the outermost closed group that it is in (a closed group is in itself); empty if none."""
    home: dict[str, str] = {"": ""}
    for group in view.groups:
        chain, at = [], group.id
        while at not in home:
            chain.append(at)
            at = view.group_by_id[at].parent
        for name in reversed(chain):
            home[name] = home[view.group_by_id[name].parent] or (name if name in closed else "")
    return home | {n.id: home[n.group] for n in view.nodes}


def _signature(nodes: list[Node]) -> tuple:
    """What makes two folded boxes alike: the same operators with the same attributes and types, in order."""
    return tuple((n.kind, n.operator, n.type, n.attrs) for n in nodes)


def _box(group: Group, nodes: list[Node], alike: int) -> Node:
    cost: dict[str, float] = {}
    for node in nodes:
        for name, value in node.cost:
            cost[name] = cost.get(name, 0.0) + value
    rows = (f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}, folded", *([f"×{alike} alike"] if alike > 1 else []))
    return Node(
        group.id, "function", group.title, family="call" if group.kind == "primitive" else "function", group=group.parent,
        rows=rows, type=group.type, attrs=group.attrs, span=group.span, cost=tuple(cost.items()), text=group.text,
    )


def _edges(view: View, homes: dict[str, str]) -> tuple[Edge, ...]:
    """Edges with the boxes as ends; those inside a box are gone, and parallel ones are one."""
    kept: dict[tuple, Edge] = {}
    for edge in view.edges:
        source, target = homes[edge.source] or edge.source, homes[edge.target] or edge.target
        if source == target and homes[edge.source]:
            continue
        moved = replace(edge, source=source, target=target) if (source, target) != (edge.source, edge.target) else edge
        key = (source, target, edge.kind) if homes[edge.target] else (source, target, edge.kind, edge.position)
        kept.setdefault(key, moved)
    return tuple(kept.values())
