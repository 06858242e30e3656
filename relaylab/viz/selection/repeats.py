"""Repeated blocks: stretches of a graph that come again at once, such as the layers of a stage, as groups.

The parts of every group are brought into an order in which values are made before they are used; a stretch of that
order that equals the one before it, operator by operator and edge by edge, is a repetition. Sizes that grow from layer
to layer (types, channels) do not matter. A stretch of such an order has no path that leaves it and comes back, so it
can be drawn as one card. Linear time: periods are bounded, and what was found is not searched again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from relaylab.viz.graph.view import Group, Node, View
from relaylab.viz.selection.fold import census, of_kind, outer_first
from relaylab.viz.selection.parts import Parts

WIDTHS = frozenset({"channels", "units", "newshape"})
"""Attributes that only say how wide a layer is; they may differ between repetitions."""
SIZES = (16, 64, 256, 1024)
"""The most parts that a repeated block has, round by round: small blocks first, then repetitions of what holds them."""
TRIES = 6
"""Next occurrences of a part that are tried as the beginning of the next repetition."""
PLACES = 64
"""Places at which a block may begin that are compared."""
PREFIX = re.compile(r"%[^\W\d]*?\d+")
"""What the parameters of one layer have in common, such as `%layer3`."""
SHAPE = re.compile(r"Tensor\[\(([^()]*)\)")
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
    rows = (*census(_operators(view, blocks[0], parts)), *_sizes(view, blocks, parts))
    outer = Group(f"repeat:{blocks[0][0]}", "repeat", f"×{run.count}", home, rows=rows)
    if run.size == 1:
        homes.update((b[0], outer.id) for b in blocks)
        return [outer]
    made = [outer]
    for k, block in enumerate(blocks):
        made.append(Group(f"block:{block[0]}", "block", f"{k + 1} of {run.count}", outer.id, rows=rows))
        homes.update(dict.fromkeys(block, made[-1].id))
    return made


def _sizes(view: View, blocks: Sequence[Sequence[str]], parts: Mapping[str, Sequence[str]]) -> list[str]:
    """The shapes of what the blocks make, if they are not all the same."""
    last = [block[-1] for block in blocks]
    for k, name in enumerate(last):
        while name not in view.node_by_id and parts.get(name):
            name = parts[name][-1]
        last[k] = name
    types = [view.node_by_id[name].type for name in last if name in view.node_by_id]
    found = [shape[1].replace(", ", "×") for made in types if (shape := SHAPE.match(made)) is not None]
    return [f"{found[0]} … {found[-1]}"] if len({*found}) > 1 else []


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
    return Parts(view).items


class _Search(Parts):
    """What makes two parts alike, and where they come again."""

    def __init__(self, view: View):
        super().__init__(view)
        self.place = {name: k for names in self.items.values() for k, name in enumerate(names)}
        self.label = self._labels()

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
                run = self._turned(run, names, widths, _matching(labels, edges, run.start, run.size) % run.size)
                found.append(run)
            at = run.end if run else at + 1
        return found

    def _turned(self, run: Run, names: Sequence[str], widths: Sequence[int], slack: int) -> Run:
        """The run begun where the fewest values cross the border, if that costs no repetition or there are three.

        Of several such places that where most parameters of a block have one prefix (`layer3_`), then that where most
        values of a block have one type, then that where the value that crosses has most users.
        """
        least = min(widths[run.start : run.start + run.size])
        places = [k for k in range(run.size) if widths[run.start + k] == least][:PLACES]

        def begun(k: int) -> Run:
            return Run(run.start + k, run.size, run.count - (k > slack))

        def rank(k: int) -> tuple[bool, int, int, int, int]:
            start, size = run.start + k, run.size
            crossing = sum(
                self.place[s] < start for n in names[start : start + size] for s, _ in self.sources.get(n, ())
            )
            owners, types = (self._mixed(names, begun(k), known) for known in (self.owner, self.made))
            return k > slack, owners, types, -crossing, k

        best = begun(min(places, key=rank))
        return best if best.count > 1 else run

    @staticmethod
    def _mixed(names: Sequence[str], run: Run, known: Mapping[str, str]) -> int:
        """How many parts of blocks are not known as most in their block are."""
        told = ([known[n] for n in names[at : at + run.size] if known[n]] for at in range(run.start, run.end, run.size))
        return sum(len(block) - max(Counter(block).values(), default=0) for block in told)

    @cached_property
    def owner(self) -> dict[str, str]:
        """The prefix of the parameters that a part reads, up to the first number in their names; empty without any."""
        return self._of_first(
            lambda node: next((m[0] for o in node.operands if (m := PREFIX.match(o.text)) is not None), "")
        )

    @cached_property
    def made(self) -> dict[str, str]:
        """The type of a part's value."""
        return self._of_first(lambda node: node.type)

    def _of_first(self, told: Callable[[Node], str]) -> dict[str, str]:
        """What a function tells of each node; of a group what it tells of the first in it."""
        found = {n.id: told(n) for n in self.view.nodes}
        for group in reversed(outer_first(self.view)):
            found[group.id] = next((found[i] for i in self.items.get(group.id, ()) if found[i]), "")
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
