"""Rewriting where what a `let` binds is decided before its body is looked at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from relaylab.ir import Expr, Function, Let, Match, children, walk
from relaylab.ir.node import expect
from relaylab.ir.trail import current_trail, derived, made_from
from relaylab.ir.visit import remade


class Bound:
    """The moment between the value and the body of a `let`."""

    __slots__ = ("let",)

    def __init__(self, let: Let):
        self.let = let


Event = Expr | Bound


def below(node: Event) -> tuple[Event, ...]:
    """The parts in the order of evaluation, with the moment of binding, without the binders themselves."""
    of = _BELOW.get(type(node))
    return children(cast(Expr, node)) if of is None else of(node)


_BELOW: dict[type, Callable[[Any], tuple[Event, ...]]] = {
    Bound: lambda node: (),
    Let: lambda node: (node.value, Bound(node), node.body),
    Function: lambda node: (node.body,),
    Match: lambda node: (node.data, *(c.rhs for c in node.clauses)),
}


def events(roots: Iterable[Expr], keep: Callable[[Event], bool]) -> Iterator[Event]:
    """Expressions and moments of binding in the order of evaluation, without what is below where `keep` holds."""
    return walk(roots, cast(Any, lambda n: () if keep(n) else below(n)))


def rewrite_lets(
    root: Expr,
    post: Callable[[Expr, Expr], Expr],
    bind: Callable[[Let, Expr, bool], Expr | None],
    keep: Callable[[Expr], bool] | None = None,
) -> Expr:
    """`root` rewritten from the leaves up, each `let` decided between its value and its body.

    `post(new, old)` gives what stands in the place of a node. `bind(let, value, recursive)` gets the
    rewritten value and returns what replaces the variable in the body, so that the `let` goes, or
    None to keep it. Nodes for which `keep` holds are left alone, with all below them.
    """
    memo: dict[Expr, Expr] = {}
    gone: set[Expr] = set()
    trail = current_trail()

    def parts(node: Event) -> tuple[Event, ...]:
        if keep is not None and not isinstance(node, Bound) and keep(node):
            memo[node] = node
            return ()
        return below(node)

    with made_from(root):
        for node in walk((root,), cast(Any, parts)):
            if isinstance(node, Bound):
                _decide(node.let, memo, gone, bind)
            elif node not in memo:
                if trail is not None:
                    trail.site = node
                memo[node] = _replaced(node, memo, gone, post)
    return memo[root]


def _replaced(node: Expr, memo: dict[Expr, Expr], gone: set[Expr], post: Callable[[Expr, Expr], Expr]) -> Expr:
    if node in gone:
        return derived(memo[cast(Let, node).body], node)
    old = children(node)
    parts = tuple([memo.get(c, c) for c in old])
    new = node if parts == old else derived(remade(node, parts), node)
    after = post(new, node)
    return after if after is new else derived(expect(after, Expr, "what a node becomes"), node, new)


def _decide(let: Let, memo: dict[Expr, Expr], gone: set[Expr], bind: Callable[[Let, Expr, bool], Expr | None]) -> None:
    with made_from(let):
        instead = bind(let, memo[let.value], let.var in memo)
    if instead is not None:
        memo[let.var] = derived(instead, let.var)
        gone.add(let)
