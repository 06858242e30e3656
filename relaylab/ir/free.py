"""Free, bound and all variables of an expression, in the order in which they are met; the sizes in dimensions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast
from weakref import WeakKeyDictionary

from relaylab.ir.adt import Match, pattern_vars
from relaylab.ir.dims import AnyDim, Atom, Dim, Quotient, SizeVar, SymbolicDim, UndecidedSize, apply_operation, dim
from relaylab.ir.expr import Call, Constant, Expr, Function, GlobalVar, Let, Var
from relaylab.ir.types import FuncType, TensorType, Type, TypeVar, type_leaves
from relaylab.ir.visit import post_order, walk

BINDERS = frozenset((Function, Let, Match))


def bound_by(node: Expr) -> tuple[Var, ...]:
    """The variables that one node binds."""
    if type(node) not in BINDERS:
        return ()
    match node:
        case Function():
            return node.params
        case Let():
            return (node.var,)
        case Match():
            return tuple(v for c in node.clauses for v in pattern_vars(c.lhs))
        case _:
            return ()


def all_vars(expr: Expr) -> list[Var]:
    """Every variable of `expr`, sub-expressions first."""
    return [n for n in walk((expr,)) if isinstance(n, Var)]


def bound_vars(expr: Expr) -> list[Var]:
    """The variables that `expr` binds."""
    bound = {v for n in walk((expr,)) for v in bound_by(n)}
    return [v for v in all_vars(expr) if v in bound]


def free_vars(expr: Expr) -> list[Var]:
    """The variables that `expr` uses and does not bind."""
    return unbound(post_order(expr))


def unbound(nodes: Sequence[Expr]) -> list[Var]:
    """The variables among all nodes of an expression that none of them binds."""
    bound = {v for n in nodes if type(n) in BINDERS for v in bound_by(n)}
    return [n for n in nodes if type(n) is Var and n not in bound]


def types_in(expr: Expr) -> Iterator[Type]:
    """The types written in an expression: annotations, type arguments, result types."""
    return (t for n in walk((expr,)) for t in written(n))


_WRITTEN = frozenset((Call, Var, Function))


def written(node: Expr) -> tuple[Type, ...]:
    """The types that are written in one node."""
    kind = type(node)
    if kind is Call:
        return cast(Call, node).type_args
    stated = cast(Var, node).type_annotation if kind is Var else None
    if kind is Function:
        stated = cast(Function, node).ret_type
    return () if stated is None else (stated,)


def all_type_vars(expr: Expr | Type, mod: object = None) -> list[TypeVar]:
    """Every type variable of an expression or a type."""
    types = [expr] if isinstance(expr, Type) else list(types_in(expr))
    declared = (
        [] if isinstance(expr, Type) else [p for n in walk((expr,)) if isinstance(n, Function) for p in n.type_params]
    )
    found = [v for t in types for part in type_leaves(t) for v in _vars_of(part)]
    return list(dict.fromkeys((*declared, *found)))


def _vars_of(t: Type) -> tuple[TypeVar, ...]:
    if isinstance(t, TypeVar):
        return (t,)
    return t.type_params if isinstance(t, FuncType) else ()


def bound_type_vars(expr: Expr | Type, mod: object = None) -> list[TypeVar]:
    """The type variables that functions (or function types) in `expr` declare."""
    bound: dict[TypeVar, None] = {}
    for t in [expr] if isinstance(expr, Type) else types_in(expr):
        bound.update((v, None) for part in type_leaves(t) if isinstance(part, FuncType) for v in part.type_params)
    if isinstance(expr, Expr):
        bound.update((v, None) for n in walk((expr,)) if isinstance(n, Function) for v in n.type_params)
    return list(bound)


def free_type_vars(expr: Expr | Type, mod: object = None) -> list[TypeVar]:
    """The type variables that are used and not declared."""
    return _undeclared([expr], []) if isinstance(expr, Type) else unbound_types(post_order(expr))


def unbound_types(nodes: Sequence[Expr]) -> list[TypeVar]:
    """The type variables among all nodes of an expression that none of them declares."""
    types = [t for n in nodes if type(n) in _WRITTEN for t in written(n) if type(t) is not TensorType]
    return _undeclared(types, [v for n in nodes if isinstance(n, Function) for v in n.type_params]) if types else []


def _undeclared(types: Sequence[Type], declared: Sequence[TypeVar]) -> list[TypeVar]:
    parts = [part for t in types for part in type_leaves(t)]
    bound = {*declared, *(v for part in parts if isinstance(part, FuncType) for v in part.type_params)}
    return list(dict.fromkeys(v for part in parts for v in _vars_of(part) if v not in bound))


def global_vars(expr: Expr) -> list[GlobalVar]:
    """The functions of the module that `expr` refers to."""
    if type(expr) is not Function:
        return [n for n in walk((expr,)) if isinstance(n, GlobalVar)]
    known = _globals.get(expr)
    if known is None:  # asked for each function of a module, for each of its functions
        known = _globals[expr] = tuple(n for n in walk((expr,)) if isinstance(n, GlobalVar))
    return list(known)


_globals: WeakKeyDictionary[Function, tuple[GlobalVar, ...]] = WeakKeyDictionary()


def constants(expr: Expr) -> list[Constant]:
    """The constants of `expr`."""
    return [n for n in walk((expr,)) if isinstance(n, Constant)]


def sizes_in(dims: Iterable[Dim]) -> dict[SizeVar, None]:
    """The sizes of which dimensions are made, in an order that follows from their names."""
    found: dict[SizeVar, None] = {}
    todo = list[Dim | Atom](dims)[::-1]
    while todo:
        part = todo.pop()
        if isinstance(part, SizeVar):
            found[part] = None
        elif isinstance(part, Quotient):
            todo.append(part.numerator)
        elif isinstance(part, SymbolicDim):
            todo += [atom for monomial in part.terms for atom in monomial][::-1]
    return found


def with_sizes(d: Dim, values: Mapping[SizeVar, Dim]) -> Dim:
    """`d` with sizes replaced by others; `?` where what results is no expression."""
    if not isinstance(d, SymbolicDim):
        return d
    try:
        return dim(_evaluated(d, values))
    except UndecidedSize:
        return AnyDim()


def _evaluated(d: SymbolicDim, values: Mapping[SizeVar, Dim]) -> Dim | int:
    total: Dim | int = 0
    for monomial, factor in d.terms.items():
        term: Dim | int = factor
        for a in monomial:
            value = values.get(a, a) if isinstance(a, SizeVar) else a.value(_evaluated(a.numerator, values))
            term = apply_operation("tir.Mul", term, value)
        total = apply_operation("tir.Add", total, term)
    return total
