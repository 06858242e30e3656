"""relay.type_functor: visitors and mutators of types."""

from relaylab.ir.functor import TypeFunctor, TypeMutator, TypeVisitor
from relaylab.support.missing import missing as _missing

__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]

__getattr__ = _missing(__name__, globals())
