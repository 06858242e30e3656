"""Combining operators that read the same tensor: the engine that the three passes share.

A branch is an operator and the elementwise operators that follow it, each with one user. Branches
of one tensor that fit together become one branch on bigger tensors, cut apart at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

from relaylab.ir import Call, Expr, Function, Op, children, op_name, post_order, rebuild, walk
from relaylab.ir.free import bound_by
from relaylab.ir.scope import Scope, lca, scopes
from relaylab.ir.trail import derived, made_from
from relaylab.op.base import OpPattern
from relaylab.transform.engine.infer_type import shape_of
from relaylab.transform.engine.renewal import as_function
from relaylab.transform.fusion.sink_reshape import BY_PLACE

Branch = list[Call]


class Combiner:
    """How operators of one kind are combined; subclasses say which fit and how."""

    op_name = ""

    def supports(self, call: Call) -> bool:
        """Whether this call may be combined with others."""
        return True

    def compatible(self, a: Call, b: Call) -> bool:
        """Whether two calls that read the same tensor may be combined."""
        raise TypeError

    def combine(self, branches: Sequence[Branch]) -> Expr:
        """One call for the first operators of all branches."""
        raise TypeError

    def argument_fits(self, a: Call, b: Call, index: int) -> bool:
        """Whether an argument of two following operators can be combined."""
        raise TypeError

    def arguments(self, branches: Sequence[Branch], depth: int, index: int) -> Expr:
        """One argument for the following operators at `depth` of all branches."""
        raise TypeError

    def outputs(self, combined: Expr, branches: Sequence[Branch]) -> list[Expr]:
        """What each branch gets of the combined result."""
        raise TypeError

    def follows(self, call: Call) -> bool:
        """Whether an operator may be part of a branch."""
        return isinstance(call.op, Op) and call.op.pattern <= OpPattern.BROADCAST and call.op.name not in BY_PLACE


class _Finder:
    """Finds the groups of branches of one function."""

    def __init__(self, func: Function, combiner: Combiner):
        self.func, self.combiner = func, combiner
        self.order = {node: i for i, node in enumerate(post_order(func))}
        self.users: dict[Expr, list[Expr]] = {}
        self.roots: dict[Expr, list[Call]] = {}
        for node in self.order:
            for part in children(node):
                self.users.setdefault(part, []).append(node)
            if isinstance(node, Call) and op_name(node) == combiner.op_name and combiner.supports(node):
                self.roots.setdefault(node.args[0], []).append(node)

    def groups(self) -> list[list[Branch]]:
        """Branches of one tensor that fit together, in the order of the program."""
        out: list[list[Branch]] = []
        for calls in self.roots.values():
            found: list[list[Branch]] = []
            for call in calls:
                branch = self._branch(call)
                group = next((g for g in found if self.combiner.compatible(call, g[0][0])), None)
                if group is None:
                    found.append([branch])
                else:
                    group.append(branch)
            out += found
        return out

    def _branch(self, call: Call) -> Branch:
        branch = [call]
        while True:
            users = self.users.get(branch[-1], [])
            if len(users) != 1 or not isinstance(users[0], Call) or not self.combiner.follows(users[0]):
                return branch
            branch.append(users[0])

    @cached_property
    def scopes(self) -> dict[Expr, Scope]:
        """In which scope each value is computed."""
        return scopes(self.func, list(self.order))

    @cached_property
    def bound(self) -> dict[Expr, int]:
        """How deep the innermost scope is whose variables a value reads."""
        depth: dict[Expr, int] = {v: self.scopes[n].depth + 1 for n in self.order for v in bound_by(n)}
        for node in self.order:
            if node not in depth:
                inner = max((depth[c] for c in children(node)), default=0)
                depth[node] = min(inner, self.scopes[node].depth)  # variables bound within it are its own
        return depth

    def independent(self, branches: Sequence[Branch], depth: int) -> bool:
        """Whether no branch needs another one's result, or a variable that not all can see."""
        home = reduce(lca, (self.scopes[b[0]] for b in branches))
        if any(self.bound[a] > home.depth for b in branches for a in b[depth].args):
            return False
        heads = {b[0] for b in branches}
        first = min(self.order[h] for h in heads)
        inside = {n for b in branches for n in b[: depth + 1]}
        others = [a for b in branches for n in b[: depth + 1] for a in n.args if a not in inside]
        # what stands before the first head cannot read any: the walk ends there
        return not any(n in heads for n in walk(others, lambda n: children(n) if self.order[n] > first else ()))


def _same_level(branches: Sequence[Branch], depth: int, parent: int, combiner: Combiner) -> bool:
    """Whether the operators at one depth of all branches are alike."""
    first = branches[0][depth]
    for branch in branches:
        call = branch[depth]
        if shape_of(call) != shape_of(branch[depth - 1]):  # it would be cut apart along other axes
            return False
        if call.op is not first.op or call.attrs != first.attrs or len(call.args) != len(first.args):
            return False
        if call.args[parent] is not branch[depth - 1]:
            return False
        if not all(i == parent or combiner.argument_fits(first, call, i) for i in range(len(call.args))):
            return False
    return True


def _combine(branches: Sequence[Branch], finder: _Finder, combiner: Combiner) -> dict[Expr, Expr]:
    """What stands in the place of the last operators of a group of branches."""
    if not finder.independent(branches, 0):
        return {}
    heads = [b[0] for b in branches]
    with made_from(*heads):
        combined, depth = derived(combiner.combine(branches), *heads), 0
        for level in range(1, min(map(len, branches))):
            first = branches[0][level]
            parent = next(i for i, a in enumerate(first.args) if a is branches[0][level - 1])
            if not _same_level(branches, level, parent, combiner) or not finder.independent(branches, level):
                break
            args = [combined if i == parent else combiner.arguments(branches, level, i) for i in range(len(first.args))]
            combined = derived(Call(first.op, args, first.attrs), *(b[level] for b in branches))
            depth = level
        outputs = combiner.outputs(combined, branches)
    return {b[depth]: derived(out, b[depth]) for b, out in zip(branches, outputs)}


def combine_parallel(func: Function, combiner: Combiner, min_num_branches: int) -> Function:
    """`func` with groups of at least `min_num_branches` parallel branches combined."""
    finder = _Finder(func, combiner)
    instead: dict[Expr, Expr] = {}
    for branches in finder.groups():
        if len(branches) >= min_num_branches:
            instead.update(_combine(branches, finder, combiner))
    return _replaced(func, instead) if instead else func


def _replaced(func: Function, instead: dict[Expr, Expr]) -> Function:
    memo: dict[Expr, Expr] = {}
    # a replacement may read what is replaced itself: it is walked into as well
    for node in walk((func,), lambda n: (instead[n],) if n in instead else children(n)):
        with made_from(node):
            memo[node] = memo[instead[node]] if node in instead else rebuild(node, [memo[c] for c in children(node)])
        derived(memo[node], node)
    return as_function(memo[func])
