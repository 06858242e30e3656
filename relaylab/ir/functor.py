"""The public visitors and mutators: subclass one and override `visit_call`, `visit_let` …

They call one method per node, as Relay's do. Kinds of nodes whose method is the inherited one are
walked with an explicit stack; a method of your own decides itself whether and when to go below.

Choices: docs/choices.md, The language.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NoReturn

from relaylab.ir import adt
from relaylab.ir import expr as ex
from relaylab.ir.op import Op
from relaylab.ir.trail import current_trail, derived
from relaylab.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeData,
    TypeVar,
    map_type,
    type_parts,
)
from relaylab.ir.visit import children, rebuild, walk
from relaylab.support.errors import RelayTypeError, kind_of

_METHODS: dict[type, str] = {
    ex.Function: "visit_function",
    ex.Call: "visit_call",
    ex.Let: "visit_let",
    ex.Var: "visit_var",
    ex.GlobalVar: "visit_global_var",
    ex.If: "visit_if",
    ex.Tuple: "visit_tuple",
    ex.TupleGetItem: "visit_tuple_getitem",
    ex.Constant: "visit_constant",
    Op: "visit_op",
    ex.RefCreate: "visit_ref_create",
    ex.RefRead: "visit_ref_read",
    ex.RefWrite: "visit_ref_write",
    adt.Constructor: "visit_constructor",
    adt.Match: "visit_match",
}


class ExprFunctor:
    """A function on expressions, one method per kind of node, each node visited once (`memo_map`)."""

    def __init__(self) -> None:
        self.memo_map: dict[ex.Expr, Any] = {}
        self._outermost = True

    def visit(self, expr: ex.Expr) -> Any:
        """The value for `expr`: what the method for its kind returns."""
        if expr in self.memo_map:
            return self.memo_map[expr]
        if not self._outermost:
            return self._visit_below(expr)
        if type(expr) not in _METHODS:
            return self._visit_one(expr)
        self._outermost = False
        try:
            with room_for(expr):
                return self._visit_below(expr)
        finally:
            self._outermost = True

    def _unwritten(self, node: ex.Expr) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not say what to do with {kind_of(node)}")

    visit_function = visit_call = visit_let = visit_if = visit_tuple = visit_tuple_getitem = _unwritten
    visit_ref_create = visit_ref_read = visit_ref_write = visit_match = visit_var = visit_global_var = _unwritten
    visit_constant = visit_op = visit_constructor = _unwritten

    def _visit_below(self, expr: ex.Expr) -> Any:
        return self._visit_one(expr)

    def _visit_one(self, expr: ex.Expr) -> Any:
        name = _METHODS.get(type(expr))
        if name is None:
            raise RelayTypeError(f"cannot visit {kind_of(expr)}", code="ir.cannot-visit")
        result = self.memo_map[expr] = getattr(self, name)(expr)
        return result


@contextmanager
def room_for(expr: ex.Expr) -> Generator[None, None, None]:
    """Let methods that a user overrides recurse as deeply as `expr` needs (Python frames live on the heap)."""
    before = sys.getrecursionlimit()
    needed = before + 12 * sum(1 for _ in walk((expr,)))
    if needed < before + 3000:
        yield
        return
    sys.setrecursionlimit(max(before, needed))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class _Walking(ExprFunctor):
    """Visits the nodes below with an explicit stack where the method for their kind is the inherited one."""

    def __init__(self) -> None:
        super().__init__()
        base = next(kind for kind in type(self).__mro__ if kind.__module__ == __name__)
        names = [*_METHODS.values(), "visit"]
        self._own = {name for name in names if getattr(type(self), name) is not getattr(base, name)}

    def _below(self, node: ex.Expr) -> tuple[ex.Expr, ...]:
        return () if node in self.memo_map or _METHODS.get(type(node)) in self._own else children(node)

    def _visit_below(self, expr: ex.Expr) -> Any:
        if "visit" in self._own:
            return self._visit_one(expr)
        for node in walk((expr,), self._below):
            if node not in self.memo_map:
                self._visit_one(node)
        return self.memo_map[expr]


class ExprVisitor(_Walking):
    """Visits every node once; override the kinds of interest, and call `super().visit_call(call)` to go on below."""

    def _visit_children(self, node: ex.Expr) -> None:
        for child in children(node):
            self.visit(child)

    visit_function = visit_call = visit_let = visit_if = visit_tuple = visit_tuple_getitem = _visit_children
    visit_ref_create = visit_ref_read = visit_ref_write = visit_match = _visit_children
    visit_var = visit_global_var = visit_constant = visit_op = visit_constructor = _visit_children


class ExprMutator(_Walking):
    """Rebuilds a program; override the kinds that change. What does not change stays the same object."""

    def _visit_one(self, expr: ex.Expr) -> Any:
        trail = current_trail()
        outer = trail.site if trail is not None else None
        if trail is not None:
            trail.site = expr
        result = super()._visit_one(expr)
        if trail is not None:
            trail.site = outer
            if isinstance(result, ex.Expr):
                derived(result, expr)
        return result

    def _rebuild(self, node: ex.Expr) -> ex.Expr:
        return rebuild(node, [self.visit(c) for c in children(node)])

    def _leaf(self, node: ex.Expr) -> ex.Expr:
        return node

    visit_function = visit_call = visit_let = visit_if = visit_tuple = visit_tuple_getitem = _rebuild
    visit_ref_create = visit_ref_read = visit_ref_write = visit_match = _rebuild
    visit_var = visit_global_var = visit_constant = visit_op = visit_constructor = _leaf


_TYPE_METHODS: dict[type, str] = {
    TypeVar: "visit_type_var",
    IncompleteType: "visit_incomplete_type",
    TensorType: "visit_tensor_type",
    FuncType: "visit_func_type",
    TupleType: "visit_tuple_type",
    RefType: "visit_ref_type",
    GlobalTypeVar: "visit_global_type_var",
    TypeCall: "visit_type_call",
    TypeData: "visit_type_data",
}


class TypeFunctor:
    """A function on types, one method per kind."""

    def visit(self, typ: Type) -> Any:
        """Call the method for the kind of `typ`."""
        name = _TYPE_METHODS.get(type(typ))
        if name is None:
            raise RelayTypeError(f"cannot visit {kind_of(typ)}", code="ir.cannot-visit")
        return getattr(self, name)(typ)

    def _unwritten(self, typ: Type) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} does not say what to do with {kind_of(typ)}")

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_func_type = visit_tuple_type = _unwritten
    visit_ref_type = visit_global_type_var = visit_type_call = visit_type_data = _unwritten


class TypeVisitor(TypeFunctor):
    """Visits a type and its parts."""

    def _visit_parts(self, typ: Type) -> None:
        for part in type_parts(typ):
            self.visit(part)

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_func_type = visit_tuple_type = _visit_parts
    visit_ref_type = visit_global_type_var = visit_type_call = visit_type_data = _visit_parts


class TypeMutator(TypeFunctor):
    """Rebuilds a type; what does not change stays the same object."""

    def _map(self, typ: Type) -> Type:
        return map_type(typ, self.visit)

    visit_type_var = visit_incomplete_type = visit_tensor_type = visit_func_type = visit_tuple_type = _map
    visit_ref_type = visit_global_type_var = visit_type_call = visit_type_data = _map
