"""What A-normal form and basic-block normal form share: binding expressions by `let` in the scope where they belong.

Every scope (the body of a function, a branch, a clause) has a list of bindings, filled in the
order of evaluation. Lets that the program has already go into the list of the scope around them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from relaylab.ir import Constructor, Expr, Function, GlobalVar, If, Let, Match, Op, Var, children, rebuild, walk
from relaylab.ir.adt import Clause
from relaylab.ir.scope import Scope, scopes
from relaylab.ir.trail import derived, made_from
from relaylab.transform.engine.renewal import as_function

ATOMS = (Var, GlobalVar, Op, Constructor)


class _Bound:
    """The moment between the value and the body of a `let`."""

    def __init__(self, let: Let):
        self.let = let


class LetBlocks:
    """Rebuilds one function with the expressions for which `binds` holds bound by `let`.

    With `aliases` the value of a `let` expression gets a name of its own too, as in Relay.
    """

    def __init__(self, root: Function, binds: Callable[[Expr], bool], aliases: bool = False):
        self.root, self.binds = root, binds
        self.atoms = ATOMS if aliases else (Let, *ATOMS)
        self.home = _blocks(scopes(root))
        self.bindings: dict[tuple[Expr | None, int], list[tuple[Var, Expr, Expr]]] = {}
        self.memo: dict[Expr, Expr] = {}
        self.named: dict[Expr, Let] = {}

    def run(self) -> Function:
        """The function in its new form; the same object if nothing had to be bound."""
        order = list(walk((self.root,), cast(Any, _below)))
        for node in order:
            # names first: a shared value may be met before the `let` that names it
            if isinstance(node, Let) and not isinstance(node.value, (Let, *ATOMS)):
                self.named.setdefault(node.value, node)
        for node in order:
            if isinstance(node, _Bound):
                self._name(node.let)
                continue
            with made_from(node):
                self.memo[node] = self._bind(node, derived(self._rebuild(node), node))
        return as_function(self.memo[self.root])

    def _name(self, let: Let) -> None:
        """Bind what a `let` names, unless that happened when its value was met."""
        if self.named.get(let.value) is not let:
            self._push(let, let.var, self.memo[let.value], let)

    def _push(self, at: Expr, var: Var, value: Expr, origin: Expr) -> None:
        self.bindings.setdefault(self.home[at], []).append((var, value, origin))

    def _rebuild(self, node: Expr) -> Expr:
        new = self.memo
        match node:
            case Let():
                return new[node.body]
            case Function():
                return (
                    node if node.is_primitive else rebuild(node, (*node.params, self._block(node, 0, new[node.body])))
                )
            case If():
                branches = (self._block(node, i, new[b]) for i, b in enumerate((node.true_branch, node.false_branch)))
                return rebuild(node, (new[node.cond], *branches))
            case Match():
                return self._match(node)
            case _:
                return rebuild(node, [new[c] for c in children(node)])

    def _match(self, node: Match) -> Expr:
        clauses = [Clause(c.lhs, self._block(node, i, self.memo[c.rhs])) for i, c in enumerate(node.clauses)]
        same = self.memo[node.data] is node.data and all(a.rhs is b.rhs for a, b in zip(clauses, node.clauses))
        return node if same else Match(self.memo[node.data], clauses, node.complete, span=node.span)

    def _bind(self, node: Expr, value: Expr) -> Expr:
        """Bind `value` where its node belongs, under the name that a `let` gives it or a fresh one."""
        let = self.named.get(node)
        if node is self.root or isinstance(node, self.atoms) or (let is None and not self.binds(node)):
            return value
        var = let.var if let is not None else derived(Var("x", span=node.span), node)
        self._push(node, var, value, node if let is None else let)
        return var

    def _block(self, owner: Expr, slot: int, body: Expr) -> Expr:
        """`body` under the bindings of one scope."""
        for var, value, origin in reversed(self.bindings.get((owner, slot), ())):
            body = self._let(var, value, body, origin)
        return body

    def _let(self, var: Var, value: Expr, body: Expr, origin: Expr) -> Expr:
        if isinstance(origin, Let) and origin.value is value and origin.body is body:
            return origin
        with made_from(origin):
            return derived(Let(var, value, body), origin) if isinstance(origin, Let) else Let(var, value, body)


def name_values(func: Function) -> Function:
    """A function in A-normal form, each value under one name."""
    return LetBlocks(func, lambda node: True).run()


def _below(node: Expr | _Bound) -> tuple[Expr | _Bound, ...]:
    """The parts in the order of evaluation, without binders and without the inside of kernels."""
    match node:
        case _Bound():
            return ()
        case Function():
            return () if node.is_primitive else (node.body,)
        case Let():
            return (node.value, _Bound(node), node.body)
        case Match():
            return (node.data, *(c.rhs for c in node.clauses))
        case _:
            return children(node)


def _blocks(found: dict[Expr, Scope]) -> dict[Expr, tuple[Expr | None, int]]:
    """For every node the nearest scope that has bindings of its own: a `let` continues the one around it."""
    known: dict[Scope, tuple[Expr | None, int]] = {}
    return {node: _block(scope, known) for node, scope in found.items()}


def _block(scope: Scope, known: dict[Scope, tuple[Expr | None, int]]) -> tuple[Expr | None, int]:
    way = []
    while scope not in known and isinstance(scope.owner, Let):
        way.append(scope)
        scope = cast(Scope, scope.parent)
    block = known.setdefault(scope, (scope.owner, scope.slot))
    known.update(dict.fromkeys(way, block))
    return block
