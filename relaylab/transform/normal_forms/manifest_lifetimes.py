"""ManifestLifetimes: the program says where each value is used last, so that its memory can be given back.

Works on A-normal form: after the binding in which a variable occurs last, `memory.kill` ends it. What is used last
within a branch ends there; what a function captures ends outside of it, since the function holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from relaylab.ir import Expr, Function, If, IRModule, Let, Match, TupleType, Var, children, let_chain, rebuild, walk
from relaylab.ir.adt import pattern_vars
from relaylab.ir.trail import made_from
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.let_rewrite import rewrite_lets
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import as_function, copied, rewrite_function


def _uses(*exprs: Expr) -> dict[Var, None]:
    """The variables that occur in expressions, nested functions and branches included, in order."""
    return {n: None for n in walk(exprs) if isinstance(n, Var)}


def _inner(value: Expr) -> list[tuple[Expr, Sequence[Var]]]:
    """The blocks that the value of a `let` goes on in, with the variables that each binds at its beginning."""
    match value:
        case If():
            return [(value.true_branch, ()), (value.false_branch, ())]
        case Match():
            return [(c.rhs, pattern_vars(c.lhs)) for c in value.clauses]
        case Let():
            return [(value, ())]
        case _:
            return []


class _Lifetimes:
    """Finds, from the outermost block in, after which `let` each variable of a function ends."""

    def __init__(self, func: Function):
        self.ends: dict[Expr, list[Var]] = {}
        self.waiting: list[tuple[Expr, Iterable[Var]]] = [(func.body, func.params)]
        seen: set[Expr] = set()
        while self.waiting:
            body, own = self.waiting.pop()
            if body not in seen:
                seen.add(body)
                self._block(body, own)

    def _block(self, body: Expr, given: Iterable[Var]) -> None:
        """One chain of lets; `given` are the variables from outside whose life ends within it."""
        lets, tail = let_chain(body)
        own = {v for v in (*given, *(let.var for let in lets)) if type_of(v) != TupleType()}
        self._enter(tail, own)
        alive = _uses(tail)
        # from the end: where a variable is met first, it is used last
        for let in reversed(lets):
            used = [v for v in (*_uses(let.value), let.var) if v in own]
            ending = dict.fromkeys(v for v in used if v not in alive)
            deeper = self._enter(let.value, ending)
            self.ends[let] = [v for v in ending if v not in deeper]
            alive.update(dict.fromkeys(used))

    def _enter(self, value: Expr, ending: Iterable[Var]) -> dict[Var, None]:
        """Look into the blocks of a value; returns the variables of `ending` that these may end."""
        known, inner = set(ending), _inner(value)
        deeper = {v: None for block, _ in inner for v in _uses(block) if v in known}
        for block, bound in inner:
            self.waiting.append((block, (*(v for v in _uses(block) if v in known), *bound)))
        blocks = {block for block, _ in inner}
        for node in walk((value,), lambda n: () if n in blocks or isinstance(n, Function) else children(n)):
            if isinstance(node, Function) and not node.is_primitive:
                self.waiting.append((node.body, node.params))
        return deeper


def _kill(var: Var, body: Expr, let: Expr) -> Expr:
    return copied(Let(copied(Var("_"), let), copied(call("memory.kill", var), let), body), let)


def _without_aliases(func: Function) -> Function:
    """`func` without second names: a value must not end under one name and live under another."""
    known = lambda let, value, recursive: value if isinstance(value, Var) else None
    return as_function(rewrite_lets(func, lambda new, old: new, known))


def manifest_lifetimes(func: Function) -> Function:
    """`func`, best in A-normal form, with `memory.kill` where values are used last."""
    func = _without_aliases(func)
    ends = _Lifetimes(func).ends

    def at(new: Expr, old: Expr) -> Expr:
        if not isinstance(new, Let) or not (ending := ends.get(old)):
            return new
        body = new.body
        with made_from(old):
            for var in reversed(ending):
                body = _kill(var, body, old)
            return rebuild(new, (new.var, new.value, body))

    return rewrite_function(func, at, lambda n: isinstance(n, Function) and n.is_primitive)


@pass_(level=0)
class ManifestLifetimes(FunctionPass):
    """Ends the life of every variable after its last use, parameters too; the program must be in A-normal form."""

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return manifest_lifetimes(func)
