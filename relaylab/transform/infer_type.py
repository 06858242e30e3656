"""InferType: the types of all expressions, filled in on a new module."""

from __future__ import annotations

from relaylab.analysis.infer import infer_expr, infer_module
from relaylab.ir import Constant, Expr, IRModule, TensorType, Type
from relaylab.support.errors import RelayTypeError
from relaylab.transform.manager import ModulePass, Pass, PassInfo, register_pass


@register_pass(idempotent=True)
def InferType() -> Pass:
    """Finds the type of every expression; all type errors of a module are reported together."""
    return ModulePass(PassInfo(0, "InferType"), lambda mod, ctx: infer_module(mod))


def typed(expr: Expr, mod: IRModule | None = None) -> Expr:
    """`expr` with the types of all its parts, `mod` being known; the same object if they are filled in already."""
    return infer_expr(expr, mod)


def type_of(expr: Expr) -> Type | None:
    """The type of an expression as far as inference or the expression itself tells."""
    if isinstance(expr, Constant):
        return expr.type
    return expr._checked_type


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


def rank_of(expr: Expr) -> int:
    """The rank of a typed tensor expression."""
    return len(tensor_of(expr).shape)


def dtype_of(expr: Expr) -> str:
    """The data type of a typed tensor expression."""
    return tensor_of(expr).dtype


def InferTypeLocal(expr: Expr) -> Type | None:
    """The type of one expression, its module being unknown; the expression itself stays as it is."""
    return type_of(typed(expr))
