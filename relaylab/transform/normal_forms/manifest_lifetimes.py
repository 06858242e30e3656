"""ManifestLifetimes: the program says where each value is used last, so that its memory can be given back.

Works on A-normal form: after the binding in which a variable occurs last, `memory.kill` ends it.
"""

from __future__ import annotations

from collections.abc import Callable

from relaylab.ir import Expr, Function, IRModule, Let, TensorType, TupleType, Var, children, let_chain, rebuild, walk
from relaylab.ir.trail import derived, made_from
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.let_rewrite import rewrite_lets
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import as_function, copied


def _uses(expr: Expr) -> dict[Var, None]:
    """The variables that occur in an expression, nested functions and branches included, in order."""
    return {n: None for n in walk((expr,)) if isinstance(n, Var)}


def _holds_memory(var: Var) -> bool:
    return isinstance(type_of(var) or var.type_annotation, (TensorType, TupleType))


class _Block:
    """One chain of lets, rebuilt from its end."""

    def __init__(self, expr: Expr, built: Callable[[Expr], Expr]):
        self.lets, self.tail = let_chain(expr)
        self.built = built

    def run(self) -> Expr:
        own = {let.var for let in self.lets if _holds_memory(let.var)}
        alive = _uses(self.tail)
        body = self.built(self.tail)
        # from the end: where a variable is met first, it is used last
        for let in reversed(self.lets):
            used = [v for v in (*_uses(let.value), let.var) if v in own]
            for var in reversed(used):
                if var not in alive:
                    body = _kill(var, body, let)
            alive.update(dict.fromkeys(used))
            body = self._let(let, body)
        return body

    def _let(self, let: Let, body: Expr) -> Expr:
        with made_from(let):
            return derived(rebuild(let, (let.var, self.built(let.value), body)), let)


def _kill(var: Var, body: Expr, let: Let) -> Expr:
    with made_from(let):
        return copied(Let(copied(Var("_"), let), copied(call("memory.kill", var), let), body), let)


def _without_aliases(func: Function) -> Function:
    """`func` without second names: a value must not end under one name and live under another."""
    known = lambda let, value, recursive: value if isinstance(value, Var) else None
    return as_function(rewrite_lets(func, lambda new, old: new, known))


def manifest_lifetimes(func: Function) -> Function:
    """`func`, best in A-normal form, with `memory.kill` where values are used last."""
    below = lambda n: () if isinstance(n, Function) and n.is_primitive else children(n)
    order = list(walk((_without_aliases(func),), below))
    # a chain is rebuilt from its head: from each of its lets would be quadratic
    inner = {node.body for node in order if isinstance(node, Let)}
    memo: dict[Expr, Expr] = {}

    def built(node: Expr) -> Expr:
        """A node after the pass; a chain of lets is rebuilt as a whole where it begins."""
        if node not in memo:
            memo[node] = _Block(node, built).run()
        return memo[node]

    for node in order:
        if not isinstance(node, Let):
            with made_from(node):
                memo[node] = derived(_rebuilt(node, built), node)
        elif node not in inner:
            built(node)
    return as_function(memo[order[-1]])


def _rebuilt(node: Expr, built: Callable[[Expr], Expr]) -> Expr:
    if isinstance(node, Function) and node.is_primitive:
        return node
    return rebuild(node, [built(c) for c in children(node)])


@pass_(level=0)
class ManifestLifetimes(FunctionPass):
    """Ends the life of every `let`-bound tensor after its last use; the program must be in A-normal form."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return manifest_lifetimes(func)
