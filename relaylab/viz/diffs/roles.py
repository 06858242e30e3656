"""What changed between two views whose common parts have the same ids: the five roles, and one merged view.

Choices: docs/choices.md, The explorer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from relaylab.support.words import counted
from relaylab.viz.graph.view import Edge, Group, Node, View


class Roles:
    """The roles of all parts of two views. A part is in both if its id is.

    added: only after. removed: only before. changed: operator, attributes, type, folded operands or binding
    differ; of a kernel, its attributes. moved: the same in another box,
    or no longer in a kernel. merged: stands for several parts of before, or is a new kernel.
    """

    def __init__(self, before: View, after: View):
        self.before, self.after = before, after
        self.kept = before.node_by_id.keys() & after.node_by_id.keys()
        self.kept_groups = before.group_by_id.keys() & after.group_by_id.keys()
        self.absorbed: dict[str, str] = {}
        for node in after.nodes:
            gone = self._gone(node)
            if node.id in self.kept or len(gone) > 1:
                self.absorbed.update(dict.fromkeys(gone, node.id))
        self._into: dict[str, list[str]] = {}
        for old, new in self.absorbed.items():
            self._into.setdefault(new, []).append(old)
        self._kept_inside = Counter(n.group for n in after.nodes if n.id in self.kept)
        self._old_edges = {_key(e) for e in before.edges}
        self._new_edges = {_key(e) for e in after.edges}

    def _gone(self, node: Node) -> list[str]:
        """The origins of a node that are in the view before and have no node of their own after."""
        return [
            o for o in node.origins if o in self.before.node_by_id and o not in self.kept and o not in self.absorbed
        ]

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """The nodes of `after` with their roles, by id: both sides and the merged view show them."""
        return {n.id: self.node(n) for n in self.after.nodes}

    @cached_property
    def groups(self) -> dict[str, Group]:
        """The groups of `after` with their roles, by id."""
        return {g.id: self.group(g) for g in self.after.groups}

    @cached_property
    def ghosts(self) -> list[Node]:
        """The nodes of `before` that are no more, and that no other one stands for."""
        return [n for n in self.before.nodes if n.id not in self.kept and n.id not in self.absorbed]

    @cached_property
    def counts(self) -> Counter[str]:
        """How many nodes and groups have each role: those after, and of those before what is removed."""
        found = Counter(part.role for part in (*self.nodes.values(), *self.groups.values()))
        found["removed"] = len(self.ghosts) + len(self.before.groups) - len(self.kept_groups)
        return found

    # -- after -----------------------------------------------------------------------------------

    def node(self, node: Node) -> Node:
        """A node of `after` with its role and, in words, why."""
        into = self._into.get(node.id) if node.origins else None
        if into:
            own = [node.id] if node.id in self.kept else []
            return replace(
                node, role="merged", note="from " + _list(self.before.node_by_id[o].title for o in own + into)
            )
        if node.id not in self.kept:
            origins = [self.before.node_by_id[o].title for o in node.origins if o in self.before.node_by_id]
            return replace(node, role="added", note=f"from {_list(origins)}" if origins else "")
        old = self.before.node_by_id[node.id]
        changes = list(differences(old, node))
        if changes:
            return replace(node, role="changed", note="; ".join(changes))
        if node.group != old.group and {node.group, old.group} <= self.kept_groups | {""}:
            return replace(node, role="moved", note=f"from {self._group_title(old.group)}")
        if self._was_fused(old) and node.group in self.kept_groups | {""}:
            return replace(node, role="moved", note="out of one kernel")
        return node

    def _was_fused(self, old: Node) -> bool:
        """Whether a node was in a kernel that is no more."""
        home = self.before.group_by_id.get(old.group)
        return home is not None and home.kind == "primitive" and home.id not in self.kept_groups

    def _group_title(self, name: str) -> str:
        return self.before.group_by_id[name].title if name else "the top level"

    def group(self, group: Group) -> Group:
        """A group of `after` with its role."""
        if group.id in self.kept_groups:
            old = self.before.group_by_id[group.id]
            note = "; ".join(attribute_differences(old, group)) if group.kind == "primitive" else ""
            return replace(group, role="changed", note=note) if note else group
        if group.kind == "primitive" and (inside := self._kept_inside[group.id]):
            return replace(group, role="merged", note=f"{counted(inside, 'node')} of before in one kernel")
        return replace(group, role="added")

    def edge(self, edge: Edge) -> Edge:
        """An edge of `after` with its role."""
        return edge if _key(edge) in self._old_edges else replace(edge, role="added")

    # -- before ----------------------------------------------------------------------------------

    def old_node(self, node: Node) -> Node:
        """A node of `before` with the role it has in a picture of its own."""
        if node.id in self.absorbed:
            new = self.after.node_by_id[self.absorbed[node.id]]
            return replace(node, role="merged", note=f"into {new.title}")
        if node.id not in self.kept:
            return replace(node, role="removed")
        now = self.nodes[node.id]
        return (
            replace(node, role=now.role, note="" if now.role == "changed" else now.note)
            if now.role != "added"
            else node
        )

    def old_group(self, group: Group) -> Group:
        """A group of `before` with the role it has in a picture of its own."""
        if group.id not in self.kept_groups:
            return replace(group, role="removed")
        role = self.groups[group.id].role
        return replace(group, role=role) if role else group

    def sides(self) -> tuple[View, View]:
        """Both views with roles."""
        before = replace(
            self.before,
            nodes=tuple(map(self.old_node, self.before.nodes)),
            groups=tuple(map(self.old_group, self.before.groups)),
            edges=tuple(e if _key(e) in self._new_edges else replace(e, role="removed") for e in self.before.edges),
        )
        after = replace(
            self.after,
            nodes=tuple(self.nodes.values()),
            groups=tuple(self.groups.values()),
            edges=tuple(map(self.edge, self.after.edges)),
        )
        return before, after

    def merged(self) -> View:
        """One view: `after` with roles, and what was removed as ghosts in its old place."""
        groups = dict(self.groups)
        for ghost in self.ghosts:
            self._keep_groups(ghost.group, groups)
        nodes = [*self.nodes.values()] + [replace(g, role="removed") for g in self.ghosts]
        known = {n.id for n in nodes} | groups.keys()
        gone = [replace(e, role="removed") for e in self.before.edges if _key(e) not in self._new_edges]
        gone = [e for e in gone if e.source in known and e.target in known]
        return View(
            self.after.title, tuple(nodes), (*(self.edge(e) for e in self.after.edges), *gone), tuple(groups.values())
        )

    def _keep_groups(self, name: str, groups: dict[str, Group]) -> None:
        """Make sure that the boxes around a ghost are there."""
        while name and name not in groups:
            group = self.before.group_by_id[name]
            groups[name] = replace(group, role="removed")
            name = group.parent


def differences(old: Node, new: Node) -> Iterable[str]:
    """What differs between a node before and after, in words."""
    if old.title != new.title:
        yield f"was {old.title}"
    known = {a.name: a.value for a in old.attrs}
    for attr in new.attrs:
        if old.title == new.title and known.get(attr.name, attr.value) != attr.value:
            yield f"{attr.name}: {known[attr.name]} → {attr.value}"
    if old.type and new.type and old.type != new.type:
        yield f"type was {old.type}"
    rows = {o.position: o for o in old.operands if o.text}
    for operand in new.operands:
        before = rows.get(operand.position)
        if operand.text and before and _row(before) != _row(operand):
            yield f"{operand.name or operand.position} was {before.text}"
    if bool(old.names) != bool(new.names):
        yield f"bound to {', '.join(new.names)}" if new.names else f"no longer bound to {', '.join(old.names)}"


def attribute_differences(old: Group, new: Group) -> Iterable[str]:
    """What attributes of a kernel are others, in words: passes that label kernels write nothing else."""
    known, now = ({a.name: a.value for a in group.attrs} for group in (old, new))
    for name in dict.fromkeys((*known, *now)):
        if name not in now:
            yield f"without {name}"
        elif now[name] != known.get(name):
            yield f"{name}: {known[name]} → {now[name]}" if name in known else f"with {name} = {now[name]}"


def _row(operand) -> tuple:
    return operand.kind, operand.text, operand.type if operand.kind == "constant" else "", operand.detail


def _key(edge: Edge) -> tuple:
    return edge.source, edge.target, edge.position, edge.kind


def _list(names: Iterable[str], most: int = 4) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
