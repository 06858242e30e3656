"""Which loops a value depends on."""

from __future__ import annotations

from relaylab.loop.expr import Axis, Local, Reduce, ScalarExpr, children, post_order


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
