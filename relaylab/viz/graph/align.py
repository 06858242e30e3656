"""Which node of one view corresponds to which of another, found by structure alone (no trail is known).

First nodes with equal names and equal history of operands, then nodes alike in themselves in the order of
the two views, then nodes of the same operator between those, then nodes that stand in the same place: between the same
neighbours, or as variables of one type. Groups follow the nodes in them. What is left has no counterpart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from relaylab.viz.graph.view import Node, View

LONG = 4000
"""Sequences longer than this are matched by counting (first with first), which takes no quadratic time."""


def align(before: View, after: View) -> dict[str, str]:
    """For ids of `after` the ids of `before` that they correspond to, one to one."""
    pairs: dict[str, str] = {}
    _alike(pairs, before, after)
    for key in (_own_key, _name_key):
        _match(pairs, *_left(pairs, before, after), lambda n, side, key=key: key(n))
    _in_place(pairs, before, after)
    return pairs | _groups(pairs, before, after)


def complete(before: View, after: View) -> dict[str, str]:
    """As `align`, where a trail gave common ids to what it knows: only for the rest, and only what is certain.

    Whatever the trail says something about (by ids or origins) stays as it says. Where it knows nothing at all, the two
    are aligned as strangers.
    """
    known = {n.id: n.id for n in after.nodes if n.id in before.node_by_id}
    explained = {o for n in after.nodes for o in n.origins}
    if not known and not explained & before.node_by_id.keys():
        return align(before, after)
    pairs = dict(known)
    made = {n.id for n in after.nodes if any(o in before.node_by_id and o not in known for o in n.origins)}
    settled = (explained - known.keys(), made - known.keys())
    _alike(pairs, before, after, *settled)
    _in_place(pairs, before, after, *settled)
    for here, there in ((before.groups, after.groups), _functions(before, after)):
        new_ids = {(p.kind, p.title): p.id for p in reversed(there)}
        taken = {*pairs.values(), *(g.id for g in after.groups)}
        for part in here:
            new = new_ids.get((part.kind, part.title), part.id)
            if new not in pairs and new not in before.group_by_id and part.id not in taken:
                pairs[new] = part.id
    return {new: old for new, old in pairs.items() if new != old}


def _functions(*views: View) -> list[list[Node]]:
    return [[n for n in view.nodes if n.kind == "function" and n.title.startswith("@")] for view in views]


def _left(
    pairs: Mapping[str, str], before: View, after: View, old: Collection[str] = (), new: Collection[str] = ()
) -> tuple[list[Node], list[Node]]:
    """The nodes of both sides that have no counterpart yet, but for some `old` and `new` ones that are to have none."""
    taken = {*pairs.values(), *old}
    return [n for n in before.nodes if n.id not in taken], [
        n for n in after.nodes if n.id not in pairs and n.id not in new
    ]


def _alike(pairs: dict[str, str], before: View, after: View, *without: Collection[str]) -> None:
    """Pair what is alike with all that flows into it."""
    left, right = _left(pairs, before, after, *without)
    if left and right:
        deep = [_deep_keys(view) for view in (before, after)]
        _match(pairs, left, right, lambda n, side: deep[side][n.id])


def _in_place(pairs: dict[str, str], before: View, after: View, *without: Collection[str]) -> None:
    """Pair what is left over on both sides and stands in the same place; each place that is unique."""
    same = {old: old for old in pairs.values()}
    left, right = _left(pairs, before, after, *without)
    for place in (_neighbours, _variable):
        old, new = _by_place(left, before, same, place), _by_place(right, after, pairs, place)
        for key in old.keys() & new.keys():
            if old[key].id not in same and new[key].id not in pairs:
                pairs[new[key].id] = same[old[key].id] = old[key].id


def _by_place(
    nodes: Iterable[Node], view: View, names: dict[str, str], place: Callable[[Node, View, dict[str, str]], Hashable]
) -> dict[Hashable, Node]:
    """The nodes by where they stand; not those that share their place with another."""
    found: dict[Hashable, list[Node]] = {}
    for node in nodes:
        key = place(node, view, names)
        if key is not None:
            found.setdefault(key, []).append(node)
    return {key: nodes[0] for key, nodes in found.items() if len(nodes) == 1}


def _neighbours(node: Node, view: View, names: dict[str, str]) -> Hashable:
    """What flows in and where it goes, if all of that has a counterpart."""
    edges = (view.incoming.get(node.id, ()), view.outgoing.get(node.id, ()))
    near = [(e.position, e.kind, names.get(e.source if e.target == node.id else e.target)) for es in edges for e in es]
    if node.kind in ("function", "pattern") or not all(edges) or any(name is None for *_, name in near):
        return None
    return node.kind, tuple(near)


def _variable(node: Node, view: View, names: dict[str, str]) -> Hashable:
    return (node.kind, node.type) if node.kind == "var" else None


def _groups(pairs: Mapping[str, str], before: View, after: View) -> dict[str, str]:
    """Groups of one kind and title: those that share nodes, the most first; the rest in order."""
    old, new = (_titled(view) for view in (before, after))
    titles = [{g.id: (g.kind, g.title) for g in view.groups} for view in (before, after)]
    shared = Counter((after.node_by_id[n].group, before.node_by_id[o].group) for n, o in pairs.items())
    found: dict[str, str] = {}
    taken: set[str] = set()

    def pair(there: str, here: str) -> None:
        if there not in found and here not in taken:
            found[there] = here
            taken.add(here)

    for (there, here), _ in shared.most_common():
        if there and here and titles[1][there] == titles[0][here]:
            pair(there, here)
    for title in (t for t in new if t in old):
        left = (g for g in new[title] if g not in found)
        for there, here in zip(left, [g for g in old[title] if g not in taken]):
            pair(there, here)
    return found


def _titled(view: View) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for group in view.groups:
        found.setdefault((group.kind, group.title), []).append(group.id)
    return found


def _own_key(node: Node) -> Hashable:
    rows = tuple((o.position, o.text, o.type) for o in node.operands if o.text)
    return node.kind, node.title, node.attrs, rows, node.type


def _name_key(node: Node) -> Hashable:
    return node.kind, node.title


def _deep_keys(view: View) -> dict[str, int]:
    """A number for each node: equal for nodes that are alike with all that flows into them."""
    keys: dict[str, int] = {}
    for node in view.nodes:
        below = tuple((e.position, e.kind, keys.get(e.source, 0)) for e in view.incoming.get(node.id, ()))
        keys[node.id] = hash((_own_key(node), below))
    return keys


def _match(
    pairs: dict[str, str], left: Sequence[Node], right: Sequence[Node], key: Callable[[Node, int], Hashable]
) -> None:
    a, b = [key(n, 0) for n in left], [key(n, 1) for n in right]
    for i, j in _common(a, b):
        pairs[right[j].id] = left[i].id


def _common(a: Sequence[Hashable], b: Sequence[Hashable]) -> Iterable[tuple[int, int]]:
    """Pairs of positions of equal elements, in order."""
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        yield start, start
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        yield len(a) - 1 - end, len(b) - 1 - end
        end += 1
    rest_a, rest_b = a[start : len(a) - end], b[start : len(b) - end]
    if max(len(rest_a), len(rest_b)) > LONG:
        yield from _counted(rest_a, rest_b, start)
        return
    for block in SequenceMatcher(None, rest_a, rest_b, autojunk=False).get_matching_blocks():
        yield from ((start + block.a + k, start + block.b + k) for k in range(block.size))


def _counted(a: Sequence[Hashable], b: Sequence[Hashable], start: int) -> Iterable[tuple[int, int]]:
    places: dict[Hashable, list[int]] = {}
    for i in range(len(a) - 1, -1, -1):
        places.setdefault(a[i], []).append(i)
    for j, element in enumerate(b):
        if places.get(element):
            yield start + places[element].pop(), start + j
