"""relay.type_functor: visitors and mutators of types."""

from relaylab.ir.functor import TypeFunctor, TypeMutator, TypeVisitor

__all__ = ["TypeFunctor", "TypeMutator", "TypeVisitor"]
