"""ToGraphNormalForm: lets disappear; what was used twice by name becomes a shared node."""

from __future__ import annotations

from relaylab.ir import Expr, Function, Let, Match, Var, children, rebuild, walk
from relaylab.ir.trail import derived, made_from
from relaylab.transform.manager import FunctionPass, Pass, PassInfo, register_pass


class _Bound:
    """The moment between the value and the body of a `let`."""

    def __init__(self, let: Let):
        self.let = let


def _below(node: Expr | _Bound) -> tuple[Expr | _Bound, ...]:
    match node:
        case _Bound():
            return ()
        case Let():
            return (node.value, _Bound(node), node.body)
        case Function():
            return (node.body,)
        case Match():
            return (node.data, *(c.rhs for c in node.clauses))
        case _:
            return children(node)


def to_gnf(func: Expr) -> Expr:
    """An expression with every `let` replaced by its body, and its variable by the value.

    A function that calls itself keeps a `let`: each use of its name becomes `let f = fn ...; f`.
    """
    memo: dict[Expr, Expr] = {}
    for node in walk((func,), _below):
        if isinstance(node, _Bound):
            let = node.let
            recursive = let.var in memo
            with made_from(let):
                value = memo[let.value]
                memo[let.var] = Let(let.var, value, let.var) if recursive else value
            derived(memo[let.var], let.var)
            continue
        with made_from(node):
            memo[node] = derived(_rebuilt(node, memo), node)
    return memo[func]


def _rebuilt(node: Expr, memo: dict[Expr, Expr]) -> Expr:
    if isinstance(node, Let):
        return memo[node.body]
    return rebuild(node, [c if isinstance(c, Var) and c not in memo else memo[c] for c in children(node)])


@register_pass(idempotent=True)
def ToGraphNormalForm() -> Pass:
    """Replaces every `let` by sharing; the order of effects is lost."""
    return FunctionPass(PassInfo(1, "ToGraphNormalForm"), lambda func, mod, ctx: to_gnf(func))
