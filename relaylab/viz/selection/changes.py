"""Only what changed: equal changes once, with how often they are made; what is far from them as dotted stretches.

A stretch is what hangs together and is not shown. On the longest way there are equally many shown parts after each part
of a stretch, so that no way leaves it, passes something that is shown and comes back: it is drawn as one card.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from relaylab.support.words import counted
from relaylab.viz.graph.view import Group, Node, View
from relaylab.viz.selection.exemplars import Exemplar, exemplars
from relaylab.viz.selection.fold import census, folded, spread
from relaylab.viz.selection.parts import Parts

HOPS = 2
"""Edges around a change that are shown with it."""
SMALL = 24
"""Nodes up to which a picture is shown whole."""
SAVED = 0.75
"""A picture that keeps a larger share of its nodes is shown whole."""
LEAST = 3
"""Nodes that a stretch has at least; fewer are shown."""
STRETCH = "stretch:"
"""How the id of a stretch begins; its first node follows."""


def changes(view: View, hops: int = HOPS, opened: Collection[str] = ()) -> View:
    """A picture of differences without what is more than `hops` edges from a change; equal changes are shown once.

    The first of several equal changes stands in a box that says how many there are. Of `opened`, what is a node is
    shown with what is around it, what is a stretch is shown whole. Small pictures, those in which nothing changed, and
    those that would hardly be smaller are given back as they are.
    """
    kinds = exemplars(view) or _joints(view)
    if len(view.nodes) <= SMALL or not kinds:
        return view
    shown = _near(view, kinds, hops, opened)
    if len(shown) > SAVED * len(view.nodes):
        return view
    made, homes = _stretches(view, shown, kinds, opened)
    return _counted(folded(view, spread(view, homes), {g.id: g for g in made}), kinds)


def _joints(view: View) -> list[Exemplar]:
    """Where only edges are others: the nodes at their ends."""
    ends = dict.fromkeys(end for e in view.edges if e.role for end in (e.source, e.target) if end in view.node_by_id)
    return [Exemplar(tuple(ends), 1)] if ends else []


def _near(view: View, kinds: Sequence[Exemplar], hops: int, opened: Collection[str]) -> set[str]:
    """The first of each kind and what is around it; the ways end where an equal change begins."""
    others = frozenset[str]().union(*(kind.others for kind in kinds))
    seen = {name for kind in kinds for name in kind.nodes}
    groups = {name for name in opened if name in view.group_by_id}
    within = (n.id for n in view.nodes if groups and any(g.id in groups for g in view.around(n.group)))
    rim = list(seen) + [name for name in (*opened, *within) if name in view.node_by_id and name not in seen]
    seen.update(rim)
    for _ in range(hops):
        near = (end for name in rim for end in _neighbours(view, name))
        rim = [n for n in dict.fromkeys(near) if n in view.node_by_id and n not in seen and n not in others]
        seen.update(rim)
    return seen


def _neighbours(view: View, name: str) -> Iterator[str]:
    yield from (e.source for e in view.incoming.get(name, ()))
    yield from (e.target for e in view.outgoing.get(name, ()))


# -- stretches -------------------------------------------------------------------------------------


def _stretches(
    view: View, shown: Collection[str], kinds: Sequence[Exemplar], opened: Collection[str]
) -> tuple[list[Group], dict[str, str]]:
    """A group for each stretch, and the stretch that each part of one is in."""
    parts = Parts(view)
    visible = {"", *shown, *(g.id for name in shown for g in view.around(view.node_by_id[name].group))}
    inside = _inside(view, parts)
    number = {name: k for k, kind in enumerate(kinds) for name in kind.others}
    sizes = [max(1, len(kind.nodes)) for kind in kinds]
    groups: list[Group] = []
    homes: dict[str, str] = {}
    for home in (h for h in parts.items if h in visible):
        for stretch in _joined(parts, home, visible):
            held = [name for part in stretch for name in inside[part]]
            made = STRETCH + held[0] if held else ""
            if len(held) < LEAST or made in opened:
                continue
            equal = Counter(number[name] for name in held if name in number)
            again = sum(round(n / sizes[k]) for k, n in equal.items())
            rows = census(Counter(op for name in held if (op := view.node_by_id[name].operator)))
            rows += [counted(again, "equal change")] if again else []
            groups.append(Group(made, "stretch", f"… {len(held)} nodes", home, rows=tuple(rows)))
            homes.update(dict.fromkeys(stretch, made))
    return groups, homes


def _inside(view: View, parts: Parts) -> dict[str, list[str]]:
    """The nodes that each part holds: itself, or all in it."""
    found = {n.id: [n.id] for n in view.nodes}
    for group in sorted(view.groups, key=lambda g: -parts.depth[g.id]):
        found[group.id] = [name for part in parts.items.get(group.id, ()) for name in found[part]]
    return found


def _joined(parts: Parts, home: str, visible: Collection[str]) -> Iterable[list[str]]:
    """What hangs together among the parts of a group that are not shown and have as many shown ones after them."""
    items = parts.items[home]
    level: dict[str, int] = {}
    for part in reversed(items):
        level[part] = max((level[u] + (u in visible) for u in parts.users.get(part, ()) if u in level), default=0)
    left = dict.fromkeys(part for part in items if part not in visible)
    order = {part: k for k, part in enumerate(items)}
    while left:
        first = next(iter(left))
        del left[first]
        stretch = [first]
        for part in stretch:
            beside = (*(s for s, _ in parts.sources.get(part, ())), *parts.users.get(part, ()))
            for other in dict.fromkeys(beside):
                if other in left and level[other] == level[part]:
                    del left[other]
                    stretch.append(other)
        yield sorted(stretch, key=order.__getitem__)


# -- equal changes ---------------------------------------------------------------------------------


def _counted(view: View, kinds: Sequence[Exemplar]) -> View:
    """The view with the number of equal changes on the box around the first, or on its first node where none fits."""
    titles: dict[str, str] = {}
    rows: dict[str, str] = {}
    boxes: list[Group] = []
    homes: dict[str, str] = {}
    parts = Parts(view)
    for kind in (kind for kind in kinds if kind.count > 1):
        times, nodes, first = f"×{kind.count}", kind.nodes, kind.nodes[0]
        around = {view.node_by_id[name].group for name in nodes}
        home = next(iter(around))
        if len(around) == 1 and home and view.group_by_id[home].role:
            titles[home] = f" {times}"
        elif len(around) == 1 and len(nodes) > 1 and _whole(parts, home, nodes):
            boxes.append(Group(f"equal:{first}", "equal", f"{times} equal changes", home))
            homes.update(dict.fromkeys(nodes, boxes[-1].id))
        else:
            rows[first] = f"{times} equal changes"
    return replace(
        view,
        nodes=tuple(_with(n, homes.get(n.id, n.group), rows.get(n.id)) for n in view.nodes),
        groups=(*(replace(g, title=g.title + titles.get(g.id, "")) for g in view.groups), *boxes),
    )


def _with(node: Node, group: str, row: str | None) -> Node:
    return replace(node, group=group, rows=(*node.rows, row) if row else node.rows)


def _whole(parts: Parts, home: str, nodes: Collection[str]) -> bool:
    """Whether no way leaves some parts of a group and comes back to them."""
    left: set[str] = set()
    for part in parts.items[home]:
        before = {s for s, _ in parts.sources.get(part, ())}
        if part in nodes and before & left:
            return False
        if part not in nodes and before & (left | set(nodes)):
            left.add(part)
    return True
