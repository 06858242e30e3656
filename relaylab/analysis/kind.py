"""Kinds: whether a type is written correctly, and the type of a constructor."""

from __future__ import annotations

from relaylab.ir.adt import Constructor
from relaylab.ir.module import IRModule
from relaylab.ir.types import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    Type,
    TypeCall,
    TypeData,
    TypeKind,
    TypeVar,
    map_type,
    type_leaves,
    type_parts,
)
from relaylab.support.errors import RelayTypeError
from relaylab.support.table import did_you_mean


def check_kind(t: Type, mod: IRModule | None = None) -> TypeKind:
    """The kind of a type; `RelayTypeError` if a part of it has the wrong kind (census §1.2).

    The name of a data type must be applied to as many types as it takes; with `mod` the name must be known.
    """
    fault = kind_fault(t, mod)
    if fault:
        raise RelayTypeError(fault, code="type.kind")
    return _own_kind(t)


def _own_kind(t: Type) -> TypeKind:
    if isinstance(t, (TypeVar, GlobalTypeVar, IncompleteType)):
        return t.kind
    return TypeKind.TypeData if isinstance(t, TypeData) else TypeKind.Type


def kind_fault(t: Type, mod: IRModule | None = None) -> str:
    """What is wrong with the kinds in `t`, or an empty string."""
    for part in type_leaves(t, _below):
        fault = _call_fault(part, mod) if isinstance(part, TypeCall) else ""
        wrong = next(
            (i for i in _below(part) if _own_kind(i) not in (TypeKind.Type, TypeKind.BaseType, TypeKind.AdtHandle)),
            None,
        )
        if wrong is not None:
            fault = fault or f"{wrong} is a {_own_kind(wrong).name}, not a type, in {part}"
        if fault:
            return fault
    return ""


def _below(t: Type) -> tuple[Type, ...]:
    return t.args if isinstance(t, TypeCall) else type_parts(t)


def _call_fault(t: TypeCall, mod: IRModule | None) -> str:
    if _own_kind(t.func) != TypeKind.AdtHandle:
        return f"{t.func} is not the name of a data type, in {t}"
    if mod is None or not isinstance(t.func, GlobalTypeVar):
        return ""
    data = find_type(mod, t.func)
    if data is None:
        known = did_you_mean(t.func.name_hint, (g.name_hint for g in mod.type_definitions))
        return f"there is no data type named {t.func}" + (f": {known}" if known else "")
    if len(data.type_vars) != len(t.args):
        return f"the data type {t.func} takes {len(data.type_vars)} types, not {len(t.args)}, in {t}"
    return ""


def find_type(mod: IRModule | None, header: Type) -> TypeData | None:
    """The definition of a data type, by the name of its header; None if `mod` has none."""
    return mod.type_definitions.get(header) if mod is not None and isinstance(header, GlobalTypeVar) else None


def apply_headers(t: Type) -> Type:
    """`t` with the name of a data type that takes no arguments written as its application: `Numbers` becomes
    `Numbers[]`.
    """
    if isinstance(t, GlobalTypeVar):
        return TypeCall(t, ())
    if isinstance(t, TypeCall):
        args = tuple(map(apply_headers, t.args))
        return t if all(a is b for a, b in zip(args, t.args)) else TypeCall(t.func, args)
    return map_type(t, apply_headers)


def constructor_type(ctor: Constructor, mod: IRModule | None) -> FuncType | None:
    """The type of a constructor as a function; None if its data type is not in the module."""
    data = find_type(mod, ctor.belong_to)
    if data is None:
        return None
    return FuncType(map(apply_headers, ctor.inputs), TypeCall(data.header, data.type_vars), data.type_vars)
