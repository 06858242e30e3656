"""Which values of a graph become one kernel: groups, merged towards post-dominators in three phases.

Phase 0 lets elementwise operators join the heavy ones before them, phase 1 merges injective
operators and tuples, phase 2 takes injective operators into tuples that were merged already.
"""

from __future__ import annotations

from collections.abc import Callable

from relaylab.ir import Expr, Function
from relaylab.op.base import OpPattern
from relaylab.support.errors import RelayError
from relaylab.transform.fuse_graph import (
    BROADCAST,
    COMM_REDUCE,
    ELEMWISE,
    INJECTIVE,
    OPAQUE,
    OUT_FUSABLE,
    TUPLE,
    Node,
    build,
)

Condition = Callable[[OpPattern, bool], bool]


class Group:
    """A set of nodes in a union-find forest; `root` is the node whose value leaves the group."""

    __slots__ = ("above", "pattern", "root", "anchored", "size")

    def __init__(self, node: Node):
        self.above: Group | None = None
        self.pattern, self.root, self.size = node.pattern, node.ref, 1
        self.anchored = node.pattern == OUT_FUSABLE

    def find(self) -> Group:
        """The group that this one was merged into, directly or not."""
        top = self
        while top.above is not None:
            top = top.above
        at = self
        while at.above is not None:
            at.above, at = top, at.above
        return top

    def merge_into(self, other: Group) -> None:
        mine, target = self.find(), other.find()
        if mine is target:
            return
        target.size += mine.size
        mine.above = target
        if mine.anchored:
            if target.anchored or (mine.pattern > BROADCAST and target.pattern > BROADCAST):
                raise RelayError("two heavy operators cannot be in one kernel", code="fuse.two-anchors")
            target.anchored, target.pattern = True, max(mine.pattern, target.pattern)


def _injective(kind: OpPattern, is_sink: bool) -> bool:
    return kind <= INJECTIVE


def _broadcast(kind: OpPattern, is_sink: bool) -> bool:
    return kind <= BROADCAST


def _into_tail(kind: OpPattern, is_sink: bool) -> bool:
    """The last node may already belong to a heavy operator's group or be a reduction."""
    return kind <= INJECTIVE or (is_sink and kind in (COMM_REDUCE, OUT_FUSABLE))


class Partitioner:
    """Groups the nodes of one function."""

    def __init__(self, nodes: list[Node], max_depth: int):
        self.nodes, self.max_depth = nodes, max_depth
        self.groups = [Group(node) for node in nodes]

    def run(self) -> None:
        """All three phases."""
        for phase in range(3):
            for node in self.nodes:
                self._consider(node, phase)

    def _consider(self, node: Node, phase: int) -> None:
        group, sink = self.groups[node.index], node.parent
        if group.pattern == OPAQUE or sink is None:
            return
        condition = self._late(group, sink) if phase == 2 else self._early(group, node, sink, phase)
        if condition is None:
            return
        between = self._between(node, sink)
        if self._size(between, sink) <= self.max_depth and self._allowed(between, sink, condition):
            for inner in between:
                self.groups[inner.index].merge_into(self.groups[sink.index])

    def _late(self, group: Group, sink: Node) -> Condition | None:
        target = self.groups[sink.index]
        root = target.find()
        if group.pattern > INJECTIVE or root.pattern == TUPLE:
            return None
        return _injective if target.pattern == TUPLE and root.pattern <= INJECTIVE else None

    def _early(self, group: Group, node: Node, sink: Node, phase: int) -> Condition | None:
        target = self.groups[sink.index]
        if group.find() is target.find() or target.pattern == TUPLE:
            return None
        if group.pattern == OUT_FUSABLE:
            return _broadcast if phase == 0 and node.relation == ELEMWISE else None
        if group.pattern <= BROADCAST:
            return _into_tail if node.relation <= INJECTIVE or node.relation == COMM_REDUCE else None
        if group.pattern in (INJECTIVE, TUPLE):
            return _injective if phase == 1 else None
        return None

    def _between(self, node: Node, sink: Node) -> list[Node]:
        """The node and all on the ways from it to `sink`, without `sink`."""
        met = {node: None}
        stack = [node]
        while stack:
            for user, _ in stack.pop().outputs:
                if user is not sink and user not in met:
                    met[user] = None
                    stack.append(user)
        return list(met)

    def _allowed(self, between: list[Node], sink: Node, condition: Condition) -> bool:
        inner = between[1:]
        return condition(self._kind(sink), True) and all(condition(self._kind(n), False) for n in inner)

    def _kind(self, node: Node) -> OpPattern:
        return self.groups[node.index].find().pattern

    def _size(self, between: list[Node], sink: Node) -> int:
        return self.groups[sink.index].find().size + sum(self.groups[n.index].size for n in between)


def partition(func: Function, max_depth: int, fuse: bool) -> dict[Expr, Group]:
    """The group of every value of a function; with `fuse` false each value is a group of its own."""
    nodes = build(func)
    partitioner = Partitioner(nodes, max_depth)
    if fuse:
        partitioner.run()
    return {node.ref: group for node, group in zip(nodes, partitioner.groups)}
