"""What a matcher must know of the expression around a node: who uses it, of which type it is."""

from __future__ import annotations

from relaylab.ir.base import Expr
from relaylab.ir.trail import unrecorded
from relaylab.ir.types import Type
from relaylab.ir.visit import post_order, users
from relaylab.support.errors import DiagnosticError
from relaylab.transform.engine.infer_type import typed


class Uses:
    """Who uses what in one expression, found when first asked for."""

    def __init__(self, root: Expr):
        self.root = root
        self._users: dict[Expr, list[Expr]] | None = None

    def of(self, node: Expr) -> list[Expr]:
        """The nodes that use `node` directly."""
        if self._users is None:
            self._users = users(self.root)
        return self._users.get(node, [])


class InferredTypes:
    """The types in one expression: those that its nodes carry, else what inference finds, when first asked for."""

    def __init__(self, root: Expr):
        self.root = root
        self._found: dict[Expr, Type | None] | None = None

    def of(self, node: Expr) -> Type | None:
        """The type of `node`; None if the expression cannot be typed."""
        if node.inferred is not None:
            return node.inferred
        if self._found is None:
            self._found = self._inferred()
        return self._found.get(node)

    def _inferred(self) -> dict[Expr, Type | None]:
        try:
            with unrecorded():
                new = typed(self.root)
        except DiagnosticError:
            return {}
        # inference keeps the sharing: node for node the same order
        return {a: b.inferred for a, b in zip(post_order(self.root), post_order(new), strict=True)}
