"""Which values of a graph become one kernel: groups, merged towards post-dominators in three phases.

Phase 0 lets elementwise operators join the heavy ones before them, phase 1 merges injective
operators and tuples, phase 2 takes injective operators into tuples that were merged already.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relaylab.ir import Expr, Function
from relaylab.ir.op import op_name
from relaylab.op.base import OpPattern
from relaylab.support.errors import RelayError
from relaylab.transform.fusion.fuse_graph import (
    BROADCAST,
    COMM_REDUCE,
    ELEMWISE,
    INJECTIVE,
    OPAQUE,
    OUT_FUSABLE,
    TUPLE,
    FusionNode,
    build,
)

Condition = Callable[[OpPattern, bool], bool]


class FusionGroup:
    """A set of nodes in a union-find forest; `root` is the node whose value leaves the group."""

    __slots__ = ("above", "pattern", "root", "anchored", "size")

    def __init__(self, node: FusionNode):
        self.above: FusionGroup | None = None
        self.pattern, self.root, self.size = node.pattern, node.ref, 1
        self.anchored = node.pattern == OUT_FUSABLE

    def find(self) -> FusionGroup:
        """The group that this one was merged into, directly or not."""
        top = self
        while top.above is not None:
            top = top.above
        at = self
        # path compression: the next search from here is one step
        while at.above is not None:
            at.above, at = top, at.above
        return top

    def merge_into(self, other: FusionGroup) -> None:
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


def _label(node: FusionNode) -> str:
    return op_name(node.ref) or type(node.ref).__name__


class Partitioner:
    """Groups the nodes of one function. With `notes` a table, why a node joins nothing is noted there by phase."""

    def __init__(self, nodes: list[FusionNode], max_depth: int):
        self.nodes, self.max_depth = nodes, max_depth
        self.groups = [FusionGroup(node) for node in nodes]
        self.notes: dict[Expr, dict[int, str]] | None = None

    def run(self) -> None:
        """All three phases."""
        # a phase is finished first: heavy operators get their tails before injective ones take them
        # who asks is told of all; else those are left out to which no phase does anything
        asks = self.notes is not None
        nodes = self.nodes if asks else [n for n in self.nodes if n.parent is not None and n.pattern != OPAQUE]
        for phase in range(3):
            for node in nodes:
                self._consider(node, phase)

    def _consider(self, node: FusionNode, phase: int) -> None:
        sink = node.parent
        condition = self._condition(node, sink, phase)
        if isinstance(condition, str) or sink is None:
            self._note(node, phase, condition)
            return
        # where nobody asks why, the first few of many nodes on the way tell it
        between = self._between(node, sink, condition if self.notes is None else None)
        if between is None:
            return
        refused = self._refused(between, sink, condition)
        self._note(node, phase, refused)
        if not refused:
            for inner in between:
                self.groups[inner.index].merge_into(self.groups[sink.index])

    def _note(self, node: FusionNode, phase: int, why: Condition | str) -> None:
        if self.notes is not None and isinstance(why, str):
            self.notes.setdefault(node.ref, {})[phase] = why

    def _condition(self, node: FusionNode, sink: FusionNode | None, phase: int) -> Condition | str:
        """What the nodes up to `sink` must be for `node` to join them in this phase; or why it does not try."""
        group = self.groups[node.index]
        if group.pattern == OPAQUE:
            return "it is opaque: nothing is fused with it"
        if sink is None:
            return "its value leaves for something that is no operator, or for several that never meet"
        return self._late(group, sink) if phase == 2 else self._early(group, node, sink, phase)

    def _late(self, group: FusionGroup, sink: FusionNode) -> Condition | str:
        target = self.groups[sink.index]
        root = target.find()
        if group.pattern > INJECTIVE or root.pattern == TUPLE:
            return f"{group.pattern.words} does not join a tuple"
        return _injective if target.pattern == TUPLE and root.pattern <= INJECTIVE else ""

    def _early(self, group: FusionGroup, node: FusionNode, sink: FusionNode, phase: int) -> Condition | str:
        target = self.groups[sink.index]
        if group.find() is target.find():
            return ""
        if target.pattern == TUPLE:
            return "it goes into a tuple, which makes no kernel"
        if group.pattern == OUT_FUSABLE:
            return self._heavy(node, phase)
        if group.pattern <= BROADCAST:
            fits = node.relation <= INJECTIVE or node.relation == COMM_REDUCE
            return (
                _into_tail
                if fits
                else f"what reads it is {node.relation.words}, which takes no operand into its kernel"
            )
        if group.pattern in (INJECTIVE, TUPLE):
            return _injective if phase == 1 else ""
        return f"{group.pattern.words} ends its kernel"

    @staticmethod
    def _heavy(node: FusionNode, phase: int) -> Condition | str:
        if node.relation != ELEMWISE:
            follows = node.relation.words
            return f"a heavy operator takes along only what reads it elementwise, and what follows is {follows}"
        return _broadcast if phase == 0 else ""

    def _refused(self, between: list[FusionNode], sink: FusionNode, condition: Condition) -> str:
        """Why the nodes up to `sink` do not become one kernel; empty if they do."""
        size = self._size(between, sink)
        if size > self.max_depth:
            return f"the kernel would have {size} operators, more than {self.max_depth}"
        for node in (sink, *between[1:]):
            if not condition(self._kind(node), node is sink):
                place = "" if node is sink else f" on the way to {_label(sink)}"
                kind, joins = self._kind(node).words, self._kind(between[0]).words
                return f"{_label(node)}{place} is {kind}, or is in the kernel of one: {joins} does not join it"
        return ""

    def _between(self, node: FusionNode, sink: FusionNode, condition: Condition | None) -> list[FusionNode] | None:
        """The node and all on the ways from it to `sink`, without `sink`; None as soon as one breaks a condition."""
        if condition is not None and not condition(self._kind(sink), True):
            return None
        if len(node.outputs) == 1 and node.outputs[0][0] is sink:
            return [node]
        met = {node: None}
        stack = [node]
        while stack:
            for user, _ in stack.pop().outputs:
                if user is not sink and user not in met:
                    if condition is not None and (not condition(self._kind(user), False) or len(met) > self.max_depth):
                        return None
                    met[user] = None
                    stack.append(user)
        return list(met)

    def _kind(self, node: FusionNode) -> OpPattern:
        return self.groups[node.index].find().pattern

    def _size(self, between: list[FusionNode], sink: FusionNode) -> int:
        return self.groups[sink.index].find().size + sum(self.groups[n.index].size for n in between)


def partition(func: Function, max_depth: int, fuse: bool) -> dict[Expr, FusionGroup]:
    """The group of every value of a function; with `fuse` false each value is a group of its own."""
    nodes = build(func)
    partitioner = Partitioner(nodes, max_depth)
    if fuse:
        partitioner.run()
    return {node.ref: group for node, group in zip(nodes, partitioner.groups)}


@dataclass(frozen=True)
class Account:
    """How a function is grouped: each value's group, what it might have joined, and why it joined nothing, by phase;
    what each operator is."""

    groups: dict[Expr, FusionGroup]
    sinks: dict[Expr, Expr]
    notes: dict[Expr, dict[int, str]]
    kinds: dict[Expr, OpPattern]


def account(func: Function, max_depth: int) -> Account:
    """The grouping of a function with the reasons for it; the same decisions as `partition`."""
    nodes = build(func)
    partitioner = Partitioner(nodes, max_depth)
    # the partitioner itself takes the notes: reasons that are found apart could tell another story
    partitioner.notes = {}
    partitioner.run()
    groups = {node.ref: group.find() for node, group in zip(nodes, partitioner.groups)}
    sinks = {n.ref: n.parent.ref for n in nodes if n.parent is not None}
    return Account(groups, sinks, partitioner.notes, {n.ref: n.pattern for n in nodes})
