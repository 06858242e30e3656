"""Post-dominators: for each value of a graph the nearest node through which all its uses flow."""

from __future__ import annotations

from relaylab.ir.expr import Expr, Function
from relaylab.ir.scope import Scope, lca
from relaylab.ir.visit import children, walk
from relaylab.support.errors import RelayValueError


def post_dominators(expr: Expr) -> dict[Expr, Expr | None]:
    """The immediate post-dominator of every node; None for the root.

    On a graph without cycles it is the lowest common ancestor of the users in the tree of
    post-dominators, which is built from the root down (near-linear with jump pointers).
    """
    root = expr.body if isinstance(expr, Function) else expr
    order = list(walk((root,)))
    place: dict[Expr, Scope] = {root: Scope(None, root)}
    common: dict[Expr, Scope] = {}
    for node in reversed(order):
        if node is not root:
            place[node] = Scope(common[node], node)
        for part in children(node):
            known = common.get(part)
            common[part] = place[node] if known is None else lca(known, place[node])
    return {n: None if n is root else common[n].owner for n in order}


def post_dominates(tree: dict[Expr, Expr | None], late: Expr, early: Expr) -> bool:
    """Whether every path from `early` to the result passes through `late`."""
    node: Expr | None = early
    while node is not None and node is not late:
        if node not in tree:
            raise RelayValueError("the tree of dominators is of another expression", code="analysis.other-tree")
        node = tree[node]
    return node is late
