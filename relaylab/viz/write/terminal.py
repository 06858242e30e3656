"""A view as text for a terminal: a tree from the results down to the operands; shared parts are shown once."""

from __future__ import annotations

from collections.abc import Iterable

from relaylab.viz.draw.card import short_type
from relaylab.viz.graph.view import Edge, Node, View
from relaylab.viz.scene.metrics import plain
from relaylab.viz.scene.theme import ROLE_ICONS

DEEP = 24
"""A tree indented further than this goes on at the margin."""
BLOCK = 4
"""What several nodes use is written at the margin where it would be indented as far as this."""
WIDE = 400.0  # points that a type may fill

Entry = tuple[str, str, str, str, int]  # prefix, mark before the line, label, node id or leaf text, depth
LAST, NEXT, CHAIN = "`-- ", "|-- ", "<- "
INSIDE = {"": "", LAST: "    ", NEXT: "|   ", CHAIN: "   "}


def tree(view: View, *, width: int = 120) -> str:
    """The view as a tree of lines of at most `width` characters, one tree for each result.

    A node with several users is written out at its first use, marked `[n]`, and referred to as `^n` after. Where only
    one operand is still to be written out, it follows as `<-` at the same level: a chain is a list.
    """
    lines = map(plain, _Tree(view).lines())
    return "\n".join(line if len(line) <= width else line[: width - 1] + "…" for line in lines) + "\n"


class _Tree:
    """The state of one tree being written."""

    def __init__(self, view: View):
        self.view = view
        self.shared = {n.id for n in view.nodes if self._operands(n) and self._referred(n)}
        self.number: dict[str, int] = {}
        self.shown: set[str] = set()
        self.later: list[str] = []

    def _referred(self, node: Node) -> bool:
        out = self.view.outgoing.get(node.id, ())
        return len(out) > 1 or any(e.kind == "recursion" for e in out)

    def _operands(self, node: Node) -> bool:
        return bool(self.view.incoming.get(node.id)) or any(o.text for o in node.operands)

    def lines(self) -> Iterable[str]:
        """All lines, in order; no recursion, a stack of entries that wait."""
        if self.view.title:
            yield self.view.title
        yield from self.view.notes
        results = [
            n.id for n in self.view.nodes if not any(e.kind != "recursion" for e in self.view.outgoing.get(n.id, ()))
        ]
        for root in [*results, *(n.id for n in self.view.nodes)]:
            if root not in self.shown:
                self.later.append(root)
            for waiting in self.later:
                if waiting not in self.shown:
                    yield from self._from(waiting)
            self.later.clear()

    def _from(self, root: str) -> Iterable[str]:
        stack: list[Entry] = [("", "", "", root, 0)]
        while stack:
            prefix, mark, label, name, depth = stack.pop()
            yield prefix + mark + (f"{label}: " if label else "") + self._text(name, depth)
            node = self.view.node_by_id.get(name)
            if node and name not in self.shown and not self._postponed(node, depth):
                self.shown.add(name)
                stack.extend(reversed(self._below(node, prefix, mark, depth)))

    def _postponed(self, node: Node, depth: int) -> bool:
        """Whether a node that would stand here is written at the margin."""
        return depth >= (BLOCK if node.id in self.shared else DEEP) and self._operands(node)

    def _text(self, name: str, depth: int) -> str:
        """The line of a node in full, or a reference to where it stands."""
        node = self.view.node_by_id.get(name)
        if node is None:
            group = self.view.group_by_id.get(name)
            return group.title if group else name
        if not self._operands(node):
            return self._line(node)
        new = name not in self.number
        late = self._postponed(node, depth)
        if late and name not in self.shown and new:
            self.later.append(name)
            return f"^{self._count(name)} {self._short(node)} (below)"
        if name in self.shown or (late and not new):
            return f"^{self._count(name)} {self._short(node)}"
        mark = f"[{self._count(name)}] " if name in self.shared or not new else ""
        return mark + self._line(node)

    def _count(self, name: str) -> int:
        return self.number.setdefault(name, len(self.number) + 1)

    @staticmethod
    def _short(node: Node) -> str:
        return node.names[0] if node.names else node.title

    @staticmethod
    def _line(node: Node) -> str:
        role = f"{ROLE_ICONS[node.role]} " if node.role else ""
        names = "".join(f"{n} = " for n in node.names)
        attrs = ", ".join(f"{a.name}={a.value}" for a in node.attrs if not a.default)
        rows = "".join(f"  {r}" for r in node.rows)
        kind = f"  : {short_type(node.type, WIDE)}" if node.type else ""
        note = f"  ({node.note})" if node.note else ""
        return f"{role}{names}{node.title}{f'({attrs})' if attrs else ''}{rows}{kind}{note}"

    def _below(self, node: Node, prefix: str, mark: str, depth: int) -> list[Entry]:
        """The operands in order, edges and folded rows together; what goes on as a chain is the last."""
        leaves = [
            (o.position, o.name, f"{o.text}{f' : {short_type(o.type, WIDE)}' if o.type else ''}")
            for o in node.operands
            if o.text
        ]
        edges = [(e.position, self._edge_label(e), e.source) for e in self.view.incoming.get(node.id, ())]
        parts = sorted([*leaves, *edges], key=lambda p: p[0])
        level = max(1, depth)
        long = [p for p in parts if self._goes_on(p[2], level)]
        chain = long[0] if depth and len(long) == 1 else None
        short = [p for p in parts if p is not chain]
        below = prefix + INSIDE[mark]
        marks = [NEXT] * (len(short) - 1) + [LAST]
        entries = [(below, how, label, what, depth + 1) for how, (_, label, what) in zip(marks, short)]
        if chain is None:
            return entries
        return [*entries, (prefix if mark == CHAIN else below, CHAIN, chain[1], chain[2], level)]

    def _goes_on(self, name: str, depth: int) -> bool:
        """Whether an operand would be written out with operands of its own."""
        node = self.view.node_by_id.get(name)
        return node is not None and name not in self.shown and self._operands(node) and not self._postponed(node, depth)

    @staticmethod
    def _edge_label(edge: Edge) -> str:
        role = f"{ROLE_ICONS[edge.role]} " if edge.role else ""
        if edge.kind in ("callee", "recursion"):
            return f"{role}calls"
        return role + ("after" if edge.kind == "order" else edge.label)
