"""What two types of the same kind have in common, part by part; unknown dimensions win over known ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relaylab.ir.dims import AnyDim, Dim, differ
from relaylab.ir.types import FuncType, IncompleteType, RefType, TensorType, TupleType, Type, TypeCall

if TYPE_CHECKING:
    from relaylab.analysis.infer.solver import Solver


class Conflict(Exception):
    """Two types that cannot be made equal; `detail` says which parts of them differ."""

    def __init__(self, left: Type, right: Type, detail: str = ""):
        self.left, self.right, self.detail = left, right, detail
        super().__init__(detail)


def _join_tensors(s: Solver, t: TensorType, u: TensorType) -> Type:
    if t.dtype != u.dtype:
        raise Conflict(t, u, f"data type {t.dtype} against {u.dtype}")
    if len(t.shape) != len(u.shape):
        raise Conflict(t, u, f"{len(t.shape)} dimensions against {len(u.shape)}")
    if t.shape == u.shape:
        return t
    return TensorType([_join_dims(k, a, b, t, u) for k, (a, b) in enumerate(zip(t.shape, u.shape))], t.dtype)


def _join_dims(axis: int, a: Dim, b: Dim, t: Type, u: Type) -> Dim:
    if a == b:
        return a
    if not differ(a, b):
        return AnyDim()
    raise Conflict(t, u, f"dimension {axis}: {a} against {b}")


def _join_tuples(s: Solver, t: TupleType, u: TupleType) -> Type:
    if len(t.fields) != len(u.fields):
        raise Conflict(t, u, f"{len(t.fields)} fields against {len(u.fields)}")
    fields = s.unify_all(t.fields, u.fields, "field")
    return t if _same(fields, t.fields) else TupleType(fields)


def _join_functions(s: Solver, t: FuncType, u: FuncType) -> Type:
    if len(t.type_params) != len(u.type_params):  # a polymorphic function stands for each of its instances
        t, u = (f.instantiate([IncompleteType() for _ in f.type_params]) if f.type_params else f for f in (t, u))
    elif t.type_params and t.type_params != u.type_params:
        u = FuncType(*_parts(u.instantiate(t.type_params)), t.type_params)
    if len(t.arg_types) != len(u.arg_types):
        raise Conflict(t, u, f"{len(t.arg_types)} arguments against {len(u.arg_types)}")
    args = s.unify_all(t.arg_types, u.arg_types, "argument")
    (ret,) = s.unify_all((t.ret_type,), (u.ret_type,), "result")
    return t if _same(args, t.arg_types) and ret is t.ret_type else FuncType(args, ret, t.type_params)


def _join_calls(s: Solver, t: TypeCall, u: TypeCall) -> Type:
    if t.func != u.func or len(t.args) != len(u.args):
        raise Conflict(t, u)
    args = s.unify_all(t.args, u.args, "type argument")
    return t if _same(args, t.args) else TypeCall(t.func, args)


def _join_refs(s: Solver, t: RefType, u: RefType) -> Type:
    (value,) = s.unify_all((t.value,), (u.value,), "content")
    return t if value is t.value else RefType(value)


def _same(a: tuple, b: tuple) -> bool:
    return all(x is y for x, y in zip(a, b))


def _parts(f: FuncType) -> tuple[tuple[Type, ...], Type]:
    return f.arg_types, f.ret_type


JOINS: dict[type, Callable] = {
    TensorType: _join_tensors,
    TupleType: _join_tuples,
    FuncType: _join_functions,
    TypeCall: _join_calls,
    RefType: _join_refs,
}
