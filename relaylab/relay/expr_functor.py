"""relay.expr_functor: visitors and mutators of expressions."""

from relaylab.ir.functor import ExprFunctor, ExprMutator, ExprVisitor

__all__ = ["ExprFunctor", "ExprMutator", "ExprVisitor"]
