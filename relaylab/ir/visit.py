"""The one traversal kernel: post-order, folds and rewrites with explicit stacks, never by recursion.

Everything that walks a program stands on these functions, so that a chain of a hundred
thousand nodes passes through every analysis, every pass and every picture.

Choices: docs/choices.md, Kernels and Passes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, cast
from typing import TypeVar as _T
from weakref import WeakKeyDictionary

from relaylab.ir.adt import Clause, Constructor, Match, map_pattern, pattern_vars
from relaylab.ir.base import placed, set_type
from relaylab.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relaylab.ir.node import expect
from relaylab.ir.op import Op
from relaylab.ir.trail import current_trail, kept_trail
from relaylab.support.errors import RelayValueError

R = _T("R")
E = _T("E", bound=Expr)
LEAVES = frozenset((Var, GlobalVar, Constant, Op, Constructor))
"""The kinds of nodes that are made of no others."""


# one function for each kind of node; the table is what makes its argument of that kind
_CHILDREN: dict[type[Expr], Callable[[Any], tuple[Expr, ...]]] = {}
_REBUILD: dict[type[Expr], Callable[[Any, tuple[Expr, ...]], Expr]] = {}


def _kind(kind: type[E], parts: Callable[[E], tuple[Expr, ...]], made: Callable[[E, tuple[Expr, ...]], Expr]) -> None:
    """Nodes of `kind` have these direct sub-expressions, and are made anew from others so."""
    _CHILDREN[kind], _REBUILD[kind] = parts, made


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions in evaluation order: operator before arguments, parameters before body, bound
    variables included.
    """
    of = _CHILDREN.get(type(expr))
    return of(expr) if of is not None else ()


def _rebuild_match(e: Match, new: tuple[Expr, ...]) -> Match:
    rest = iter(new[1:])
    clauses: list[Clause] = []
    for c in e.clauses:
        lhs = map_pattern(c.lhs, lambda v: cast(Var, next(rest)))
        rhs = next(rest)
        clauses.append(c if lhs is c.lhs and rhs is c.rhs else Clause(lhs, rhs))
    return Match(new[0], clauses, e.complete, span=e.span)


def _rebuild_function(e: Function, new: tuple[Expr, ...]) -> Function:
    params = cast("tuple[Var, ...]", new[:-1])
    return placed(Function(params, new[-1], e.ret_type, e.type_params, e.attrs, span=e.span), e.device)


_kind(Call, lambda e: (e.op, *e.args), lambda e, n: Call(n[0], n[1:], e.attrs, e.type_args, span=e.span))
_kind(Tuple, lambda e: e.fields, lambda e, n: Tuple(n, span=e.span))
_kind(TupleGetItem, lambda e: (e.tuple_value,), lambda e, n: TupleGetItem(n[0], e.index, span=e.span))
_kind(Function, lambda e: (*e.params, e.body), _rebuild_function)
_kind(Let, lambda e: (e.var, e.value, e.body), lambda e, n: Let(cast(Var, n[0]), n[1], n[2], span=e.span))
_kind(If, lambda e: (e.cond, e.true_branch, e.false_branch), lambda e, n: If(n[0], n[1], n[2], span=e.span))
_kind(RefCreate, lambda e: (e.value,), lambda e, n: RefCreate(n[0], span=e.span))
_kind(RefRead, lambda e: (e.ref,), lambda e, n: RefRead(n[0], span=e.span))
_kind(RefWrite, lambda e: (e.ref, e.value), lambda e, n: RefWrite(n[0], n[1], span=e.span))
_kind(Match, lambda e: (e.data, *(x for c in e.clauses for x in (*pattern_vars(c.lhs), c.rhs))), _rebuild_match)


def rebuild(expr: Expr, new: Sequence[Expr]) -> Expr:
    """`expr` with other direct sub-expressions; the same object if they are all the same.

    RelayValueError if they are not as many.
    """
    old, parts = children(expr), tuple(new)
    if old == parts:  # nodes are equal only to themselves, and tuples compare without a step of Python for each
        return expr
    if len(old) != len(parts):
        raise RelayValueError(
            f"{type(expr).__name__} has {len(old)} direct sub-expressions, not {len(parts)}", code="ir.parts"
        )
    return remake(expr, parts)


def remake(expr: Expr, new: Sequence[Expr]) -> Expr:
    """A new node of the same kind with these direct sub-expressions, even if they are the old ones."""
    return _REBUILD[type(expr)](expr, tuple(new))


def remade(expr: Expr, new: tuple[Expr, ...]) -> Expr:
    """`expr` made anew of other parts, with its type if that cannot be another one: inference need not find it again.

    A call of an operator or of a function written in place has it as long as its parts have theirs, and no constant is
    new that may be refused.
    """
    asked = False
    if type(expr) is Call:
        made = Call.of_parts(new[0], new[1:], expr.attrs, expr.type_args, expr.span)
        if type(expr.op) is Op:
            asked = expr.op.definition.refuses_values
        elif type(expr.op) is not Function:
            return made
    else:
        made = remake(expr, new)
    found = expr.inferred
    if found is None or type(expr) not in _OF_PARTS:
        return made
    for part, old in zip(new, children(expr)):
        if part is not old:
            typ = part.inferred
            if typ is None or (typ is not old.inferred and typ != old.inferred) or (asked and type(part) is Constant):
                return made
    set_type(made, found)
    return made


_OF_PARTS = (Call, Tuple, TupleGetItem)
"""The kinds of nodes whose types follow from the types of their parts."""


def operands_of(expr: Expr) -> tuple[Expr, ...]:
    """What an expression of a graph is computed from; functions are not looked into."""
    match expr:
        case Call():
            return expr.args
        case Tuple():
            return expr.fields
        case TupleGetItem():
            return (expr.tuple_value,)
        case _:
            return ()


def walk(roots: Iterable[Expr], below: Callable[[Expr], Iterable[Expr]] = children) -> Iterator[Expr]:
    """Every node reachable from `roots`, once each, sub-expressions first."""
    roots = tuple(roots)
    if below is children and len(roots) == 1 and type(roots[0]) is Function:
        return chain(_order_within(roots[0]), roots)
    return _walk(roots, below)


_orders: WeakKeyDictionary[Function, list[Expr]] = WeakKeyDictionary()


def _order_within(func: Function) -> list[Expr]:
    """What a function is made of, sub-expressions first; nodes do not change, and passes ask for it again and again."""
    known = _orders.get(func)
    if known is None:
        known = list(_walk((func,), children))
        known.pop()  # the function itself, or it would never be freed
        _orders[func] = known
    return known


def keep_order(func: Function, order: list[Expr]) -> None:
    """`order` is what a function just made is made of, sub-expressions first, without itself."""
    _orders[func] = order


def _walk(roots: tuple[Expr, ...], below: Callable[[Expr], Iterable[Expr]]) -> Iterator[Expr]:
    seen: set[Expr] = set()
    stack: list[Any] = [*roots]  # None: what lies below the node under it has been seen
    stack.reverse()
    pop, usual = stack.pop, below is children
    while stack:
        node: Expr | None = pop()
        if node is None:
            yield pop()
        elif node not in seen:
            seen.add(node)
            # a call less for each node where nothing is left out
            of = _CHILDREN.get(type(node)) if usual else below
            parts = () if of is None else tuple(of(node))
            if parts:
                stack += (node, None)
                stack += parts[::-1]
            else:
                yield node


def post_order(expr: Expr) -> list[Expr]:
    """Every node of `expr`, once each, sub-expressions first, left to right."""
    return list(walk((expr,)))


def operators_in(expr: Expr) -> frozenset[Op]:
    """The operators that an expression is made of: what is not among them no pass need look for."""
    if type(expr) is not Function:
        return frozenset(n for n in walk((expr,)) if type(n) is Op)
    known = _operators.get(expr)
    if known is None:
        known = _operators[expr] = frozenset(n for n in _order_within(expr) if type(n) is Op)
    return known


_operators: WeakKeyDictionary[Function, frozenset[Op]] = WeakKeyDictionary()


def kinds_in(func: Function) -> frozenset[type[Expr]]:
    """The kinds of nodes that a function is made of, itself left out."""
    known = _kinds.get(func)
    if known is None:
        known = _kinds[func] = frozenset(map(type, _order_within(func)))
    return known


_kinds: WeakKeyDictionary[Function, frozenset[type[Expr]]] = WeakKeyDictionary()


def post_order_visit(expr: Expr, fvisit: Callable[[Expr], object]) -> None:
    """Call `fvisit` on every node once, sub-expressions first."""
    for node in walk((expr,)):
        fvisit(node)


def fold(expr: Expr, combine: Callable[[Expr, tuple[R, ...]], R]) -> R:
    """The value that `combine(node, values of its children)` gives for `expr`, each node computed once."""
    value: dict[Expr, R] = {}
    for node in walk((expr,)):
        value[node] = combine(node, tuple(value[c] for c in children(node)))
    return value[expr]


def rewrite(
    expr: Expr,
    post: Callable[[Expr, Expr], Expr],
    *,
    keep: Callable[[Expr], bool] | None = None,
    memo: dict[Expr, Expr] | None = None,
    only: Collection[str] | None = None,
) -> Expr:
    """`expr` rewritten from the leaves up; sharing is preserved, and what does not change stays the same object.

    `post(new, old)` gets each node with its sub-expressions rewritten already and returns what
    stands in its place. Nodes for which `keep` holds are left alone, with all below them.
    `memo` maps old nodes to new ones; entries present at the start are taken as they are.
    `only` are operators without any of which `post` changes nothing: where there is none, nothing is visited.
    """
    if only is not None and not any(op.name in only for op in operators_in(expr)):
        return expr
    done = {} if memo is None else memo
    trail, kept = current_trail(), kept_trail()

    def unknown(n: Expr) -> tuple[Expr, ...]:
        return () if n in done or (keep is not None and keep(n)) else children(n)

    below = unknown if keep is not None or done else children
    moved = bool(done)  # until something has become something else all parts are the old ones
    for node in walk((expr,), below):
        if node in done:
            continue
        if keep is not None and keep(node):
            done[node] = node
            continue
        if trail is not None:
            trail.site = node
        new = node
        if moved and (parts := children(node)):
            fresh = tuple([done[c] for c in parts])
            if fresh != parts:
                new = remade(node, fresh)
                if kept is not None:
                    kept.record(node, new)
        after = done[node] = post(new, node)
        if after is not node:
            moved = True
            expect(after, Expr, "what a node becomes")
            if kept is not None:
                kept.record(node, after)
    if trail is not None:
        trail.site = None
    return done[expr]


def substitute(expr: Expr, binds: dict[Var, Expr]) -> Expr:
    """`expr` with variables replaced by expressions (which are not looked into)."""
    if not binds:
        return expr
    for new in binds.values():
        expect(new, Expr, "what stands for a variable")
    return rewrite(expr, lambda new, old: new, memo={**binds})


def let_chain(expr: Expr) -> tuple[list[Let], Expr]:
    """The lets that `expr` starts with, outermost first, and the body below them."""
    lets: list[Let] = []
    while isinstance(expr, Let):
        lets.append(expr)
        expr = expr.body
    return lets, expr


def users(expr: Expr, order: Iterable[Expr] | None = None) -> dict[Expr, list[Expr]]:
    """For every node, the nodes that use it directly (once per occurrence); `order` is its post-order, if known."""
    out: dict[Expr, list[Expr]] = {}
    for node in walk((expr,)) if order is None else order:
        out.setdefault(node, [])
        for c in children(node):
            out[c].append(node)
    return out
