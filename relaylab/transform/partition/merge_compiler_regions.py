"""MergeCompilerRegions: neighbouring regions of one compiler become one region, as long as regions stay in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from relaylab.analysis.regions import AnnotatedRegionSet
from relaylab.ir import Call, Expr, Function, IRModule, children, post_order
from relaylab.ir.op import is_call_to
from relaylab.ir.scope import scopes
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import rewrite_function
from relaylab.transform.partition.annotate_target import BEGIN, END, compiler_of


class _Groups:
    """The nodes of a function in groups: the regions, growing, and every other node by itself.

    `first` and `last` are positions in post-order: what a group leads to ends after the group began.
    """

    def __init__(self, func: Function):
        regions = AnnotatedRegionSet(func)
        self.order = post_order(func)
        self.scope = {node: (s.owner, s.slot) for node, s in scopes(func).items()}
        self.leader: dict[Expr, Expr] = {n: next(iter(r.nodes)) for r in regions for n in r.nodes}
        self.first: dict[Expr, int] = {}
        self.last: dict[Expr, int] = {}
        self.sources: dict[Expr, set[Expr]] = {}
        for position, node in enumerate(self.order):
            group = self.leader.setdefault(node, node)
            self.first.setdefault(group, position)
            self.last[group] = position
            self.sources.setdefault(group, set()).update(children(node))

    def of(self, node: Expr) -> Expr:
        """The group of a node."""
        root = node
        while self.leader[root] is not root:
            root = self.leader[root]
        while self.leader[node] is not root:
            self.leader[node], node = root, self.leader[node]
        return root

    def merge_at(self, begin: Expr) -> None:
        """Join the regions on both sides of a border, if nothing that lies between them would be left in a circle."""
        end = _read(begin)
        before, after = self.of(end), self.of(begin)
        if before is after or compiler_of(begin) != compiler_of(end):
            return
        if self.scope[begin] != self.scope[_read(end)]:  # each use has an end of its own, in its own scope
            return
        if not self._between(before, after) and not self._between(after, before):
            self._join(before, after)

    def _between(self, start: Expr, stop: Expr) -> bool:
        """Whether a path leads from `start` to `stop` through another group."""
        stack = [g for g in self._before(stop) if g is not start]
        seen = set(stack)
        while stack:
            for group in self._before(stack.pop()):
                if group is start:
                    return True
                # a group that ended before `start` began cannot read it
                if group not in seen and self.last[group] > self.first[start]:
                    seen.add(group)
                    stack.append(group)
        return False

    def _before(self, group: Expr) -> Iterable[Expr]:
        """The groups that a group uses directly."""
        found = {self.of(n) for n in self.sources[group]} - {group}
        self.sources[group] = found
        return found

    def _join(self, a: Expr, b: Expr) -> None:
        # the smaller set into the larger: a node moves at most log n times
        if len(self.sources[a]) < len(self.sources[b]):
            a, b = b, a
        self.leader[b] = a
        self.sources[a] |= self.sources.pop(b)
        self.first[a], self.last[a] = min(self.first[a], self.first[b]), max(self.last[a], self.last[b])


def merge_regions(func: Function) -> Function:
    """`func` without the borders between regions that can be one."""
    groups = _Groups(func)
    inner = [n for n in groups.order if _is_crossing(n)]
    for begin in inner:
        groups.merge_at(begin)
    gone = {n for n in inner if groups.of(n) is groups.of(_read(n))}
    return rewrite_function(func, lambda new, old: _read(_read(new)) if old in gone else new)


def _read(border: Expr) -> Expr:
    """What a border passes on."""
    return cast(Call, border).args[0]


def _is_crossing(node: Expr) -> bool:
    """Whether a value enters one region straight from another."""
    return is_call_to(node, BEGIN) and is_call_to(_read(node), END)


@pass_(level=0, idempotent=True)
class MergeCompilerRegions(FunctionPass):
    """Joins neighbouring regions of one compiler, unless a value would leave the joined region and come back."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return merge_regions(func)
