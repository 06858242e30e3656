"""Repeated blocks: stretches of a graph that come again at once, such as the layers of a stage, as groups.

The parts of every group are brought into an order in which values are made before they are used; a stretch of that
order that equals the one before it, operator by operator and edge by edge, is a repetition. Sizes that grow from layer
to layer (types, channels) do not matter. A stretch of such an order has no path that leaves it and comes back, so it
can be drawn as one card. Linear time: periods are bounded, and what was found is not searched again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

from relaylab.viz.graph.view import Group, Node, View
from relaylab.viz.selection.fold import census, of_kind, outer_first

WIDTHS = frozenset({"channels", "units", "newshape"})
"""Attributes that only say how wide a layer is; they may differ between repetitions."""
SIZES = (16, 64, 256, 1024)
"""The most parts that a repeated block has, round by round: small blocks first, then repetitions of what holds them."""
TRIES = 6
"""Next occurrences of a part that are tried as the beginning of the next repetition."""
WORTH = 4
"""Parts that a repetition must save to be folded."""


@dataclass(frozen=True, slots=True)
class Run:
    """`count` equal stretches of `size` parts, from position `start` on."""

    start: int
    size: int
    count: int

    @property
    def end(self) -> int:
        """The position after the last part."""
        return self.start + self.size * self.count


def repeats(view: View) -> View:
    """The view with a group of kind `repeat` around each run of equal blocks, one of kind `block` around each block.

    Ids come from the first node (`repeat:…`, `block:…`), so they are as stable as the nodes'. `view` itself if nothing
    repeats. `fold.collapse(view, fold.of_kind(view, "repeat", "block"))` draws them as "×N" cards.
    """
    for longest in SIZES:
        view = _round(view, longest)
    return view


def _round(view: View, longest: int) -> View:
    blocks = of_kind(view, "repeat", "block")
    found = _Search(view)
    made = [(home, run) for home in found.items if home not in blocks for run in found.runs(home, longest)]
    if not made:
        return view
    groups: list[Group] = []
    homes: dict[str, str] = {}
    for home, run in made:
        groups += _grouped(view, home, found.items, run, homes)
    nodes = tuple(replace(n, group=homes.get(n.id, n.group)) for n in view.nodes)
    old = tuple(replace(g, parent=homes.get(g.id, g.parent)) for g in view.groups)
    return View(view.title, nodes, view.edges, (*old, *groups), view.notes)


def _grouped(view: View, home: str, parts: Mapping[str, Sequence[str]], run: Run, homes: dict[str, str]) -> list[Group]:
    """The groups of one run; notes in `homes` which block each part is now in."""
    items = parts[home]
    blocks = [items[run.start + k * run.size : run.start + (k + 1) * run.size] for k in range(run.count)]
    rows = tuple(census(_operators(view, blocks[0], parts)))
    outer = Group(f"repeat:{blocks[0][0]}", "repeat", f"×{run.count}", home, rows=rows)
    if run.size == 1:
        homes.update((b[0], outer.id) for b in blocks)
        return [outer]
    made = [outer]
    for k, block in enumerate(blocks):
        made.append(Group(f"block:{block[0]}", "block", f"{k + 1} of {run.count}", outer.id, rows=rows))
        homes.update(dict.fromkeys(block, made[-1].id))
    return made


def _operators(view: View, names: Sequence[str], parts: Mapping[str, Sequence[str]]) -> Counter[str]:
    """The operators among some parts and in them."""
    counts: Counter[str] = Counter()
    stack = list(reversed(names))
    while stack:
        name = stack.pop()
        node = view.node_by_id.get(name)
        if node is not None and node.operator:
            counts[node.operator] += 1
        stack.extend(reversed(parts.get(name, ())))
    return counts


def in_order(view: View) -> dict[str, list[str]]:
    """The parts (nodes and groups) of each group and, under the empty name, the top level, in evaluation order."""
    return _Search(view).items


class _Search:
    """The parts of every group in order, and what makes two parts alike."""

    def __init__(self, view: View):
        self.view = view
        self.parent = {g.id: g.parent for g in view.groups} | {n.id: n.group for n in view.nodes}
        self.depth = {"": 0}
        for group in outer_first(view):
            self.depth[group.id] = self.depth[group.parent] + 1
        self.sources: dict[str, list[tuple[str, Hashable]]] = {}
        self.users: dict[str, list[str]] = {}
        for edge in view.edges:
            if edge.kind != "recursion":
                self._lift(edge.source, edge.target, (edge.position, edge.kind))
        self.items = self._ordered()
        self.place = {name: k for names in self.items.values() for k, name in enumerate(names)}
        self.label = self._labels()

    def _lift(self, source: str, target: str, port: Hashable) -> None:
        """Note an edge between the two parts of the innermost group that holds both ends."""
        a, b = source, target
        while self.parent[a] != self.parent[b]:
            deeper = self._level(a) - self._level(b)
            a, b = (self.parent[a] if deeper >= 0 else a), (self.parent[b] if deeper <= 0 else b)
        if a != b:
            self.sources.setdefault(b, []).append((a, port if b == target else ""))
            self.users.setdefault(a, []).append(b)

    def _level(self, name: str) -> int:
        return self.depth[self.parent[name]]

    def _ordered(self) -> dict[str, list[str]]:
        """The parts of each group, sources first, each part as late as its first user allows."""
        members: dict[str, list[str]] = {}
        for name in (*(n.id for n in self.view.nodes), *(g.id for g in self.view.groups)):
            members.setdefault(self.parent[name], []).append(name)
        return {home: self._post_order(names) for home, names in members.items()}

    def _post_order(self, names: Sequence[str]) -> list[str]:
        out: list[str] = []
        seen: set[str] = set()
        results = [n for n in names if n not in self.users]
        stack = [(n, False) for n in (*reversed(names), *reversed(results))]
        while stack:
            name, done = stack.pop()
            if done:
                out.append(name)
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack += [(s, False) for s, _ in reversed(self.sources.get(name, ())) if s not in seen]
        return out

    def _labels(self) -> dict[str, int]:
        label = {n.id: hash(_node_label(n)) for n in self.view.nodes}
        for group in reversed(outer_first(self.view)):
            inside = tuple(label[i] for i in self.items.get(group.id, ()))
            label[group.id] = hash((group.kind, group.kind in ("function", "primitive") or group.title, inside))
        return label

    # -- runs ------------------------------------------------------------------------------------

    def runs(self, home: str, longest: int) -> list[Run]:
        """The repetitions among the parts of a group, from left to right; they do not overlap."""
        names = self.items[home]
        labels = [self.label[n] for n in names]
        edges = [
            tuple(sorted((k - self.place[s], str(p)) for s, p in self.sources.get(n, ()))) for k, n in enumerate(names)
        ]
        following = _following(labels)
        widths = self._widths(names)
        found: list[Run] = []
        at = 0
        while at < len(names):
            run = _best(labels, edges, following, at, longest)
            if run is not None:
                run = _turned(run, widths, _matching(labels, edges, run.start, run.size) % run.size)
                found.append(run)
            at = run.end if run else at + 1
        return found

    def _widths(self, names: Sequence[str]) -> list[int]:
        """How many values are alive before each position: where it is one, a block may begin."""
        change = [0] * (len(names) + 2)
        for k, name in enumerate(names):
            last = max((self.place[u] for u in self.users.get(name, ())), default=k)
            if last > k:
                change[k + 1] += 1
                change[last + 1] -= 1
        widths, total = [], 0
        for delta in change:
            total += delta
            widths.append(total)
        return widths


def _node_label(node: Node) -> Hashable:
    attrs = tuple((a.name, a.value) for a in node.attrs if a.name not in WIDTHS)
    rows = tuple((o.position, o.kind, o.text if o.kind == "scalar" else "") for o in node.operands)
    title = "" if node.kind in ("var", "constant", "function") else node.title
    return node.kind, title, attrs, rows, node.role


def _following(labels: Sequence[int]) -> list[int]:
    """For each position the next one with the same label; the length of the list for none."""
    next_at: dict[int, int] = {}
    found = [len(labels)] * len(labels)
    for k in range(len(labels) - 1, -1, -1):
        found[k] = next_at.get(labels[k], len(labels))
        next_at[labels[k]] = k
    return found


def _best(labels: Sequence[int], edges: Sequence[tuple], following: Sequence[int], at: int, longest: int) -> Run | None:
    """The run that begins here and covers the most; of equal ones that with the shortest block."""
    best, again = None, at
    for _ in range(TRIES):
        again = following[again]
        size = again - at
        if again >= len(labels) or size > longest:
            break
        run = Run(at, size, _matching(labels, edges, at, size) // size + 1)
        worth = run.count > 1 and size * (run.count - 1) >= WORTH
        if worth and (best is None or run.end > best.end):
            best = run
    return best


def _matching(labels: Sequence[int], edges: Sequence[tuple], start: int, size: int) -> int:
    """How many parts from `start` on equal the part `size` further: label, and edges within reach of a block."""
    k = start
    while (
        k + size < len(labels)
        and labels[k] == labels[k + size]
        and _near(edges[k], size) == _near(edges[k + size], size)
    ):
        k += 1
    return k - start


def _near(edges: tuple, size: int) -> list:
    return sorted((min(back, size + 1), port) for back, port in edges)


def _turned(run: Run, widths: Mapping[int, int] | Sequence[int], slack: int) -> Run:
    """The run begun where the fewest values cross the border, if that costs no repetition or there are three."""
    shift = min(range(run.size), key=lambda k: (widths[run.start + k], k))
    if shift <= slack:
        return Run(run.start + shift, run.size, run.count)
    return Run(run.start + shift, run.size, run.count - 1) if run.count > 2 else run
