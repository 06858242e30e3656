"""relay.expr: expressions."""

from relaylab.ir.expr import (
    Call,
    Constant,
    Expr,
    ExprWithOp,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    TempExpr,
    Tuple,
    TupleGetItem,
    TupleWrapper,
    Var,
    const,
    var,
)
from relaylab.relay.build_module import bind

__all__ = [
    "Call",
    "Constant",
    "Expr",
    "ExprWithOp",
    "GlobalVar",
    "If",
    "Let",
    "RefCreate",
    "RefRead",
    "RefWrite",
    "TempExpr",
    "Tuple",
    "TupleGetItem",
    "TupleWrapper",
    "Var",
    "bind",
    "const",
    "var",
]
