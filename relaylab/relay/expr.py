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
from relaylab.ir.expr import Expr as RelayExpr
from relaylab.transform.bind import bind
from relaylab.support.missing import missing as _missing

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
    "RelayExpr",
    "TempExpr",
    "Tuple",
    "TupleGetItem",
    "TupleWrapper",
    "Var",
    "bind",
    "const",
    "var",
]

__getattr__ = _missing(__name__, globals())
