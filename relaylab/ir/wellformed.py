"""Well-formedness: every variable is bound once and used only where it is in scope."""

from __future__ import annotations

from collections.abc import Iterator

from relaylab.ir.expr import Expr, Function, Let, Var
from relaylab.ir.free import bound_by
from relaylab.ir.module import IRModule
from relaylab.ir.scope import Scope, lca, uses
from relaylab.ir.visit import post_order


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
        for child, scope in _uses(node, home[node]):
            if isinstance(child, Var) and binder.get(child) is node:
                bound_in.setdefault(child, scope)
            known = home.get(child)
            home[child] = scope if known is None else lca(known, scope)
    return [v for v in order if isinstance(v, Var) and v in bound_in and home[v] is not bound_in[v]]


def _uses(node: Expr, scope: Scope) -> Iterator[tuple[Expr, Scope]]:
    """As `scope.uses`, but a `let` is one scope: its variable is visible in its value, for recursion."""
    if isinstance(node, Let):
        inner = Scope(scope, node)
        return iter(((node.var, inner), (node.value, inner), (node.body, inner)))
    return uses(node, scope)
