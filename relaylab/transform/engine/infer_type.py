"""InferType: the types of all expressions, filled in on a new module."""

from __future__ import annotations

from typing import TypeVar, cast

from relaylab.analysis.infer import infer_expr, infer_module
from relaylab.ir import Constant, Expr, GlobalVar, IRModule, Op, TensorType, TupleType, Type, walk
from relaylab.ir.base import set_type
from relaylab.support.errors import RelayTypeError
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass

E = TypeVar("E", bound=Expr)


@pass_(level=0, idempotent=True)
class InferType(ModulePass):
    """Finds the type of every expression; all type errors of a module are reported together."""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return infer_module(mod)


def typed(expr: E, mod: IRModule | None = None) -> E:
    """`expr` with the types of all its parts, `mod` being known; the same object if they are filled in already."""
    return cast(E, infer_expr(expr, mod))


def type_of(expr: Expr) -> Type | None:
    """The type of an expression as far as inference or the expression itself tells."""
    if isinstance(expr, Constant):
        return expr.type
    return expr.inferred


def tensor_of(expr: Expr) -> TensorType:
    """The tensor type of an expression; `RelayTypeError` if it has none (yet)."""
    found = type_of(expr)
    if not isinstance(found, TensorType):
        what = "no type yet" if found is None else f"the type {found}"
        raise RelayTypeError(
            f"this pass needs a typed tensor; the {type(expr).__name__} has {what}",
            code="pass.untyped",
            help="run InferType first",
        )
    return found


def shape_of(expr: Expr) -> tuple:
    """The shape of a typed tensor expression (ints and `Any`)."""
    return tensor_of(expr).shape


def fields_of(expr: Expr) -> tuple[Type, ...]:
    """The types of the fields of a typed tuple; `RelayTypeError` if it is none."""
    found = type_of(expr)
    if not isinstance(found, TupleType):
        raise RelayTypeError(
            f"this pass needs a typed tuple, not {found}", code="pass.untyped", help="run InferType first"
        )
    return found.fields


def rank_of(expr: Expr) -> int:
    """The rank of a typed tensor expression."""
    return len(tensor_of(expr).shape)


def dtype_of(expr: Expr) -> str:
    """The data type of a typed tensor expression."""
    return tensor_of(expr).dtype


def InferTypeLocal(expr: Expr) -> Type | None:
    """The type of one expression, its module being unknown, which is its `checked_type` from then on."""
    found = typed(expr)
    for old, new in zip(walk((expr,)), walk((found,))):
        if old.inferred is None and not isinstance(old, (Op, GlobalVar)):
            set_type(old, new.inferred)
    return type_of(found)
