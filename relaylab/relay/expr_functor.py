"""relay.expr_functor: visitors and mutators of expressions."""

from relaylab.ir.functor import ExprFunctor, ExprMutator, ExprVisitor
from relaylab.support.missing import missing as _missing

__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor"]

__getattr__ = _missing(__name__, globals())
