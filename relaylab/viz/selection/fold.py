"""Views made smaller: groups collapsed into one card each, in place, and the neighbourhood of a node.

What is collapsed is a set of group ids beside the view, never a state of it: `collapse(view, closed)` with one id more
or less is the next picture, and every id means the same in all of them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.support.words import counted
from relaylab.viz.graph.view import Edge, Group, Node, View

MOST_ROWS = 3
"""Lines that say what is inside a collapsed card."""
PER_ROW = 3
FOUND = ("repeat", "block", "stretch")
"""Kinds of groups that are found in a picture: nothing of the program stands for them."""
MARKS = frozenset({"Primitive", "hash"})
"""Attributes of kernels that a card need not say."""
SIDES = ("in", "out", "both")


def collapse(view: View, closed: Collection[str]) -> View:
    """The view with each group of `closed` as one card that has the group's id; `view` itself if none is there.

    The card says what is inside, sums its cost and counts the cards with the same content; edges into and out of the
    group end at the card, parallel ones are one; what changed inside (the roles of a diff) becomes the card's role:
    two stages are compared first and collapsed then. Linear time. Ids that the view does not
    have are no error: a set of closed groups outlives the stage of a pipeline that had them.
    """
    return folded(view, outermost(view, closed), view.group_by_id)


def folded(view: View, homes: Mapping[str, str], cards: Mapping[str, Group]) -> View:
    """As `collapse`: each part is folded into the one of `cards` that `homes` names, empty for none."""
    inside: dict[str, list[Node]] = {}
    for node in view.nodes:
        if homes[node.id]:
            inside.setdefault(homes[node.id], []).append(node)
    if not inside:
        return view
    costs, results = _costs(view, homes), _results(view, homes)
    content = {g: () if cards[g].kind in FOUND else _content(nodes) for g, nodes in inside.items()}
    alike = Counter(content.values())
    made = [_card(cards[g], nodes, costs[g], results.get(g, ()), alike[content[g]]) for g, nodes in inside.items()]
    nodes = (*(n for n in view.nodes if not homes[n.id]), *made)
    groups = tuple(g for g in view.groups if not homes[g.id])
    return View(view.title, nodes, _edges(view, homes), groups, view.notes)


def outermost(view: View, closed: Collection[str]) -> dict[str, str]:
    """For each node and group the outermost group of `closed` around it (one is in itself); empty for none."""
    return spread(view, {g.id: g.id for g in view.groups if g.id in closed})


def spread(view: View, into: Mapping[str, str]) -> dict[str, str]:
    """For each node and group what the outermost part around it (itself, too) goes `into`; empty for nothing."""
    home: dict[str, str] = {"": ""}
    for group in outer_first(view):
        home[group.id] = home[group.parent] or into.get(group.id, "")
    return home | {n.id: home[n.group] or into.get(n.id, "") for n in view.nodes}


def outer_first(view: View) -> list[Group]:
    """The groups, each after the one around it."""
    depth = depths(view)
    return sorted(view.groups, key=lambda g: depth[g.id])


def depths(view: View) -> dict[str, int]:
    """How many groups are around each group."""
    found = {"": -1}
    for group in view.groups:
        chain, at = [], group.id
        while at not in found:
            chain.append(at)
            at = view.group_by_id[at].parent
        for name in reversed(chain):
            found[name] = found[view.group_by_id[name].parent] + 1
    del found[""]
    return found


def levels(view: View) -> int:
    """How many levels there are to expand: 0 shows the outermost groups as cards, this number shows everything."""
    return max(depths(view).values(), default=-1) + 1


def closed_at(view: View, level: int) -> frozenset[str]:
    """The groups to close so that `level` levels are open: 0 is "collapse all", `levels(view)` "expand all"."""
    return frozenset(name for name, depth in depths(view).items() if depth >= level)


def of_kind(view: View, *kinds: str) -> frozenset[str]:
    """The groups of some kinds (`primitive`, `function`, `branch`, `clause`, `let`, `repeat`, `block`)."""
    return frozenset(g.id for g in view.groups if g.kind in kinds)


def toggled(closed: Collection[str], group: str) -> frozenset[str]:
    """The closed groups after a click on one of them."""
    return frozenset(closed) ^ {group}


def reveal(view: View, closed: Collection[str], node: str) -> frozenset[str]:
    """The closed groups without those that hide a node or group."""
    part = view.node_by_id.get(node)
    at = part.group if part else view.group_by_id[node].parent if node in view.group_by_id else ""
    around = set()
    while at:
        around.add(at)
        at = view.group_by_id[at].parent
    return frozenset(closed) - around


def group_costs(view: View) -> dict[str, dict[str, float]]:
    """The cost of every group: a figure of its own where it has it (a kernel), else the sum of what is inside."""
    sums: dict[str, dict[str, float]] = {"": {}, **{g.id: {} for g in view.groups}}
    for node in view.nodes:
        _add(sums[node.group], node.cost)
    for group in reversed(outer_first(view)):
        sums[group.id].update(group.cost)
        _add(sums[group.parent], sums[group.id].items())
    del sums[""]
    return sums


def _costs(view: View, homes: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """The cost of every card: of the outermost parts in it, of which one may be itself."""
    sums: dict[str, dict[str, float]] = defaultdict(dict)
    groups = group_costs(view)
    for node in view.nodes:
        if homes[node.id] != homes[node.group]:
            _add(sums[homes[node.id]], node.cost)
    for group in view.groups:
        if homes[group.id] != homes[group.parent]:
            _add(sums[homes[group.id]], groups[group.id].items())
    return sums


def _add(total: dict[str, float], more: Iterable[tuple[str, float]]) -> None:
    for name, value in more:
        total[name] = total.get(name, 0.0) + value


# -- cards and edges -------------------------------------------------------------------------------


def _content(nodes: list[Node]) -> tuple:
    """What makes two cards alike: the same operators with the same attributes and types, in order."""
    return tuple((n.kind, n.operator, n.type, n.attrs) for n in nodes)


def _card(group: Group, nodes: list[Node], cost: Mapping[str, float], results: Collection[str], alike: int) -> Node:
    """The card of a collapsed group; `results`: the types of values that leave it, `alike`: how many cards equal it."""
    role, note = _role(group, nodes)
    one = next(iter(results)) if len(results) == 1 else ""
    return Node(
        group.id,
        {"repeat": "stack", "stretch": "stretch"}.get(group.kind, "folded"),
        group.title,
        family="call" if group.kind == "primitive" else "value" if group.kind in FOUND else "function",
        group=group.parent,
        rows=tuple(_rows(group, nodes, alike)),
        type=group.type or one,
        attrs=tuple(replace(a, default=a.default or a.name in MARKS) for a in group.attrs),
        span=group.span,
        cost=tuple(cost.items()),
        text=group.text,
        role=role,
        note=note,
    )


def _rows(group: Group, nodes: list[Node], alike: int) -> Iterable[str]:
    """What is inside, in words: how many nodes, and of which operators."""
    if group.kind not in FOUND:
        yield f"{len(nodes)} node{'s' if len(nodes) > 1 else ''} inside{f', ×{alike} alike' if alike > 1 else ''}"
    yield from group.rows
    counts = Counter(n.operator for n in nodes if n.operator)
    if group.kind != "primitive" and not group.rows:
        yield from census(counts)


def census(counts: Counter[str]) -> list[str]:
    """Operators with how often they occur, the most frequent first, in a few lines."""
    parts = [f"{count} × {name}" if count > 1 else name for name, count in counts.most_common(MOST_ROWS * PER_ROW)]
    more = len(counts) - len(parts)
    parts += [f"{more} more" if more else ""] if more else []
    return [", ".join(parts[i : i + PER_ROW]) for i in range(0, len(parts), PER_ROW)]


def _role(group: Group, nodes: list[Node]) -> tuple[str, str]:
    counts = Counter(n.role for n in nodes if n.role)
    if group.role or not counts or group.kind == "stretch":
        return group.role, group.note
    if len(counts) == 1 and counts.total() == len(nodes):
        return next(iter(counts)), group.note
    return "changed", "inside: " + ", ".join(f"{n} {role}" for role, n in counts.items())


def _results(view: View, homes: Mapping[str, str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for edge in view.edges:
        home, node = homes[edge.source], view.node_by_id.get(edge.source)
        if home and node and homes[edge.target] != home and edge.kind in ("data", "body"):
            found.setdefault(home, set()).add(node.type)
    return found


def _edges(view: View, homes: Mapping[str, str]) -> tuple[Edge, ...]:
    """The edges between what is drawn; those that a card has in parallel are one, with their number."""
    bundles: dict[tuple, list[Edge]] = {}
    for edge in view.edges:
        source, target = homes[edge.source] or edge.source, homes[edge.target] or edge.target
        if source == target and homes[edge.source]:
            continue
        card = homes[edge.source] or homes[edge.target]
        key = (source, target, edge.kind, edge.role, None if card else edge.position)
        bundles.setdefault(key, []).append(edge)
    arrived: Counter[str] = Counter()
    kept = []
    for (source, target, *_), edges in bundles.items():
        into = bool(homes[edges[0].target])
        position = arrived[target] if into else edges[0].position
        arrived[target] += into
        several = f"×{len(edges)}" if len(edges) > 1 and homes[edges[0].source] and not into else ""
        label = several or ("" if into else edges[0].label)
        kept.append(replace(edges[0], source=source, target=target, position=position, label=label))
    return tuple(kept)


# -- neighbourhood ---------------------------------------------------------------------------------


def focus(view: View, nodes: str | Iterable[str], hops: int = 1, side: str = "both") -> View:
    """What is at most `hops` edges from some nodes or groups: against the edges (`in`), along them (`out`) or `both`.

    Nodes at the rim say how many of their neighbours are not shown. Raises `RelayValueError` for an id that is
    not in the view, a negative number, another side.
    """
    start = [nodes] if isinstance(nodes, str) else list(nodes)
    _check_focus(view, start, hops, side)
    near = _reach(view, _members(view, start), hops, side)
    missing = _missing(view, near)
    kept = tuple(
        replace(n, rows=(*n.rows, missing[n.id])) if n.id in missing else n for n in view.nodes if n.id in near
    )
    around = _around(view, near)
    edges = tuple(e for e in view.edges if {e.source, e.target} <= near | around)
    note = f"{len(kept)} of {counted(len(view.nodes), 'node')}, within {counted(hops, 'edge')}"
    return View(view.title, kept, edges, tuple(g for g in view.groups if g.id in around), (*view.notes, note))


def _check_focus(view: View, start: list[str], hops: int, side: str) -> None:
    for name in start:
        if name not in view.node_by_id and name not in view.group_by_id:
            known = [*view.node_by_id, *view.group_by_id]
            raise RelayValueError(
                f"the picture has no node `{name}`", code="viz.unknown-node", help=did_you_mean(name, known)
            )
    if hops < 0 or side not in SIDES:
        raise RelayValueError(
            f"`focus` goes 0 or more edges {' or '.join(SIDES)}, not {hops} {side}", code="viz.option"
        )


def _members(view: View, start: Collection[str]) -> set[str]:
    """The nodes meant: groups stand for what is in them."""
    homes = outermost(view, [s for s in start if s in view.group_by_id])
    return {n.id for n in view.nodes if n.id in start or homes[n.id]}


def _reach(view: View, start: set[str], hops: int, side: str) -> set[str]:
    seen, rim = set(start), list(start)
    for _ in range(hops):
        rim = [n for at in rim for n in _beside(view, at, side) if n in view.node_by_id and n not in seen]
        rim = list(dict.fromkeys(rim))
        seen.update(rim)
    return seen


def _beside(view: View, node: str, side: str) -> Iterable[str]:
    if side != "out":
        yield from (e.source for e in view.incoming.get(node, ()))
    if side != "in":
        yield from (e.target for e in view.outgoing.get(node, ()))


def _missing(view: View, near: set[str]) -> dict[str, str]:
    words = {}
    for name in near:
        sources = {e.source for e in view.incoming.get(name, ())} - near - view.group_by_id.keys()
        users = {e.target for e in view.outgoing.get(name, ())} - near - view.group_by_id.keys()
        parts = [
            f"{len(s)} more {what}{'s' if len(s) > 1 else ''}" for s, what in ((sources, "input"), (users, "user")) if s
        ]
        if parts:
            words[name] = "… " + ", ".join(parts)
    return words


def _around(view: View, nodes: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for name in nodes:
        at = view.node_by_id[name].group
        while at and at not in found:
            found.add(at)
            at = view.group_by_id[at].parent
    return found
