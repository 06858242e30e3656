"""Which loops a value depends on, and for which of their turns a condition holds.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relaylab.loop.affine import Linear, inequalities
from relaylab.loop.expr import (
    INDEX,
    Apply,
    Axis,
    Const,
    Guard,
    Local,
    Reduce,
    ScalarExpr,
    Size,
    apply,
    as_index,
    children,
    guard,
    post_order,
)
from relaylab.loop.program import identity
from relaylab.loop.simplify import Simplifier

Turns = dict[Axis, tuple[ScalarExpr, ScalarExpr]]
"""Axes with their first turn and the end of their turns."""


class Dependence:
    """The axes (outer ones, or of enclosing reductions) that the value of an expression depends on."""

    def __init__(self) -> None:
        self._known: dict[ScalarExpr, frozenset[Axis]] = {}

    def __call__(self, root: ScalarExpr) -> frozenset[Axis]:
        """The axes that `root` depends on."""
        if root not in self._known:
            for node in post_order(root, known=self._known):
                self._known[node] = self._own(node)
        return self._known[root]

    def _own(self, node: ScalarExpr) -> frozenset[Axis]:
        if isinstance(node, Axis):
            return frozenset((node,))
        below = frozenset[Axis]().union(*(self._known[c] for c in children(node)))
        return below - frozenset(node.axes) if isinstance(node, Reduce) else below

    def stands_for(self, local: Local, value: ScalarExpr) -> None:
        """From now on `local` depends on what `value` depends on."""
        self._known[local] = self(value)


def guarded_turns(
    node: Reduce, axes: Sequence[Axis], around: frozenset[ScalarExpr | None], simplifier: Simplifier
) -> tuple[Turns, ScalarExpr]:
    """For which turns of some of its axes the guard of a reduction holds, and its value without what they say.

    Only what follows from the axes `around` counts, and only if the value changes nothing elsewhere.
    """
    value = node.value
    if not axes or not isinstance(value, Guard) or not isinstance(value.otherwise, Const):
        return {}, value
    if value.otherwise.value != identity(node.kind, node.dtype).value:
        return {}, value
    found: Turns = {}
    stays: ScalarExpr | None = None
    for condition in _conjuncts(value.condition):
        limits = _limits(condition, axes, around, simplifier)
        for axis, low, end in limits:
            first, last = found.get(axis, (as_index(0), as_index(axis.extent)))
            found[axis] = apply("max", first, low), apply("min", last, end)
        if not limits:
            stays = condition if stays is None else apply("land", stays, condition)
    inner = value.value if stays is None else simplifier(guard(stays, value.value, value.otherwise))
    return {a: (simplifier(low), simplifier(end)) for a, (low, end) in found.items()}, inner


def _conjuncts(condition: ScalarExpr) -> Iterator[ScalarExpr]:
    """The conditions that hold together where one does."""
    stack = [condition]
    while stack:
        node = stack.pop()
        if isinstance(node, Apply) and node.op == "land":
            stack.extend(reversed(node.args))
        else:
            yield node


def _limits(
    condition: ScalarExpr, axes: Sequence[Axis], around: frozenset[ScalarExpr | None], simplifier: Simplifier
) -> list[tuple[Axis, ScalarExpr, ScalarExpr]]:
    """The first turns and the ends of axes that a condition says; [] if it says anything else."""
    if not isinstance(condition, Apply) or len(condition.args) != 2 or condition.args[0].dtype != INDEX:
        return []
    a, c = map(simplifier.linear, condition.args)
    found: list[tuple[Axis, ScalarExpr, ScalarExpr]] = []
    for fact in inequalities(condition.op, a - c, True):
        axis = next((k for k in axes if fact.terms.get(k) in (1, -1)), None)
        if axis is None:
            return []
        rest = simplifier.index(fact - Linear({axis: fact.terms[axis]}))
        if not all(n in around or isinstance(n, (Apply, Const, Size)) for n in post_order(rest)):
            return []
        low, end = (rest * -1, as_index(axis.extent)) if fact.terms[axis] > 0 else (as_index(0), rest + 1)
        found.append((axis, low, end))
    return found
