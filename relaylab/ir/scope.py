"""Scopes: where in a program each shared node is to be computed.

A scope is the inside of a function body, of a `let` body, of a branch or of a match clause.
A node belongs to the lowest common ancestor of the scopes of its uses: it is computed there
once, however many users it has. Ancestors are found in logarithmic time with jump pointers
(Myers, "An applicative random-access stack", 1983), since scopes nest as deeply as lets chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from relaylab.ir.adt import Match, pattern_vars
from relaylab.ir.expr import Expr, Function, If, Let, Var
from relaylab.ir.free import bound_by
from relaylab.ir.module import IRModule
from relaylab.ir.visit import children, post_order

OPENERS = (Function, Let, If, Match)
"""The kinds of nodes that open scopes."""


class Scope:
    """One scope; `owner` is the node that opens it (None for the outermost), `slot` says which of its parts."""

    __slots__ = ("parent", "owner", "slot", "depth", "jump")

    def __init__(self, parent: Scope | None = None, owner: Expr | None = None, slot: int = 0):
        # the outermost scope is its own parent
        self.parent: Scope = self if parent is None else parent
        self.owner, self.slot = owner, slot
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.jump: Scope = self
        if parent is not None:
            far = parent.jump
            self.jump = far.jump if parent.depth - far.depth == far.depth - far.jump.depth else parent

    def ancestor_at(self, depth: int) -> Scope:
        """The enclosing scope of that depth (itself included)."""
        scope = self
        while scope.depth > depth:
            scope = scope.jump if scope.jump.depth >= depth else scope.parent
        return scope

    def __repr__(self) -> str:
        return f"Scope(depth={self.depth}, owner={type(self.owner).__name__}, slot={self.slot})"


def lca(a: Scope, b: Scope) -> Scope:
    """The lowest common ancestor of two scopes."""
    depth = min(a.depth, b.depth)
    a, b = a.ancestor_at(depth), b.ancestor_at(depth)
    while a is not b:
        if a.jump is b.jump:
            a, b = a.parent, b.parent
        else:
            a, b = a.jump, b.jump
    return a


def uses(node: Expr, scope: Scope) -> Iterator[tuple[Expr, Scope]]:
    """The children of `node` with the scope in which each is used; opens the scopes that `node` opens."""
    match node:
        case Function():
            inner = Scope(scope, node)
            yield from ((p, inner) for p in node.params)
            yield node.body, inner
        case Let():
            inner = Scope(scope, node)
            # a function bound by `let` may call itself: its variable is visible in the value
            yield node.var, scope
            yield node.value, scope
            yield node.body, inner
        case If():
            yield node.cond, scope
            yield node.true_branch, Scope(scope, node, 0)
            yield node.false_branch, Scope(scope, node, 1)
        case Match():
            yield node.data, scope
            for slot, clause in enumerate(node.clauses):
                inner = Scope(scope, node, slot)
                yield from ((v, inner) for v in pattern_vars(clause.lhs))
                yield clause.rhs, inner
        case _:
            yield from ((c, scope) for c in children(node))


def scopes(expr: Expr, order: Sequence[Expr] | None = None) -> dict[Expr, Scope]:
    """For every node of `expr`, the scope in which it is to be computed; `order` is its post-order, if known."""
    found: dict[Expr, Scope] = {expr: Scope()}
    for node in reversed(post_order(expr) if order is None else order):
        for child, scope in uses(node, found[node]):
            known = found.get(child)
            found[child] = scope if known is None or known is scope else lca(known, scope)
    return found


def lifted(expr: Expr) -> list[Expr]:
    """The nodes that are computed in an outer scope than that of (some) use: what basic-block normal form must bind."""
    order = post_order(expr)
    inside = order[:-1] if isinstance(expr, Function) else order
    if not any(isinstance(n, OPENERS) for n in inside):
        return []
    found = scopes(expr, order)
    out: dict[Expr, None] = {}
    for node in order:
        for child, scope in uses(node, found[node]):
            if children(child) and not isinstance(child, Var) and _outside(found[child], scope):
                out[child] = None
    return list(out)


def _outside(home: Scope, use: Scope) -> bool:
    """Scopes are compared by what opens them: `uses` makes new objects for each call."""
    return home.depth < use.depth


# ---- well-formedness: every variable is bound once and used only where it is in scope


def well_formed(program: Expr | IRModule) -> bool:
    """Whether each variable is bound once and no use is out of scope; free variables are allowed."""
    roots = program.functions.values() if isinstance(program, IRModule) else (program,)
    return not any(scope_faults(root) for root in roots)


def scope_faults(expr: Expr) -> list[tuple[str, Expr]]:
    """What is wrong with the scopes of `expr`: a message and a node for each fault."""
    order = post_order(expr)
    binder: dict[Var, Expr] = {}
    faults: list[tuple[str, Expr]] = []
    for node in order:
        for var in bound_by(node):
            if var in binder:
                faults.append((f"%{var.name_hint} is bound twice", node))
            binder.setdefault(var, node)
    if faults or (isinstance(expr, Function) and binder.keys() <= set(expr.params)):  # nothing below opens a scope
        return faults
    return [(f"%{var.name_hint} is used out of its scope", var) for var in _escaping(order, binder)]


def _escaping(order: list[Expr], binder: dict[Var, Expr]) -> list[Var]:
    """The variables that are reached from outside of the scope in which they are bound."""
    home: dict[Expr, Scope] = {order[-1]: Scope()}
    bound_in: dict[Var, Scope] = {}
    for node in reversed(order):
        for child, scope in _uses_in(node, home[node]):
            if isinstance(child, Var) and binder.get(child) is node:
                bound_in.setdefault(child, scope)
            known = home.get(child)
            home[child] = scope if known is None else lca(known, scope)
    return [v for v in order if isinstance(v, Var) and v in bound_in and home[v] is not bound_in[v]]


def _uses_in(node: Expr, scope: Scope) -> Iterator[tuple[Expr, Scope]]:
    """As `scope.uses`, but a `let` is one scope: its variable is visible in its value, for recursion."""
    if isinstance(node, Let):
        inner = Scope(scope, node)
        return iter(((node.var, inner), (node.value, inner), (node.body, inner)))
    return uses(node, scope)
