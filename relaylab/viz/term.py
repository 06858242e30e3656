"""A view as text for a terminal: a tree from the results down to the operands; shared parts are shown once."""

from __future__ import annotations

from collections.abc import Iterable

from relaylab.viz.card import short_type
from relaylab.viz.theme import ROLE_ICONS
from relaylab.viz.view import Edge, Node, View

Entry = tuple[str, bool, str, str]  # the prefix of its line, whether it is the last, the label, a node id or a leaf text


def tree(view: View, *, width: int = 120) -> str:
    """The view as a tree of lines of at most `width` characters, one tree for each result.

    A node with several users is written out at its first use, marked `[n]`, and referred to as `^n` after.
    """
    return "\n".join(line if len(line) <= width else line[: width - 1] + "…" for line in _Tree(view).lines()) + "\n"


class _Tree:
    """The state of one tree being written."""

    def __init__(self, view: View):
        self.view = view
        shared = [n.id for n in view.nodes if len(view.outgoing.get(n.id, ())) > 1]
        self.number = {name: i for i, name in enumerate(shared, 1)}
        self.shown: set[str] = set()

    def lines(self) -> Iterable[str]:
        """All lines, in order; no recursion, a stack of entries that wait."""
        if self.view.title:
            yield self.view.title
        yield from self.view.notes
        roots = [n for n in self.view.nodes if not any(e.kind != "recursion" for e in self.view.outgoing.get(n.id, ()))]
        for root in [*roots, *self.view.nodes]:
            if root.id not in self.shown:
                yield from self._from(root)

    def _from(self, root: Node) -> Iterable[str]:
        stack: list[Entry] = [("", True, "", root.id)]
        first = True
        while stack:
            prefix, last, label, name = stack.pop()
            head = "" if first else prefix + ("`-- " if last else "|-- ")
            below = "" if first else prefix + ("    " if last else "|   ")
            first = False
            node = self.view.node_by_id.get(name)
            yield head + (f"{label}: " if label else "") + (self._line(node) if node else name)
            if node and name not in self.shown:
                self.shown.add(name)
                stack.extend(reversed(self._below(node, below)))

    def _line(self, node: Node) -> str:
        if node.id in self.shown:
            return f"^{self.number[node.id]} {node.title}" if node.id in self.number else node.title
        mark = f"[{self.number[node.id]}] " if node.id in self.number else ""
        role = f"{ROLE_ICONS[node.role]} " if node.role else ""
        names = "".join(f"{n} = " for n in node.names)
        attrs = ", ".join(f"{a.name}={a.value}" for a in node.attrs if not a.default)
        rows = "".join(f"  {r}" for r in node.rows)
        kind = f"  : {short_type(node.type, 400)}" if node.type else ""
        note = f"  ({node.note})" if node.note else ""
        return f"{role}{mark}{names}{node.title}{f'({attrs})' if attrs else ''}{rows}{kind}{note}"

    def _below(self, node: Node, prefix: str) -> list[Entry]:
        """The operands in order, edges and folded rows together."""
        leaves = [(o.position, o.name, f"{o.text}{f' : {short_type(o.type, 400)}' if o.type else ''}") for o in node.operands if o.text]
        edges = [(e.position, self._edge_label(e), e.source) for e in self.view.incoming.get(node.id, ())]
        parts = sorted([*leaves, *edges], key=lambda p: p[0])
        return [(prefix, i == len(parts) - 1, label, what) for i, (_, label, what) in enumerate(parts)]

    def _edge_label(self, edge: Edge) -> str:
        role = f"{ROLE_ICONS[edge.role]} " if edge.role else ""
        if edge.kind in ("callee", "recursion"):
            return f"{role}calls"
        return role + ("after" if edge.kind == "order" else edge.label)
