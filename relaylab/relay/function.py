"""relay.function: functions."""

from relaylab.ir.expr import BaseFunc, Function, FunctionWithFields

__all__ = ["BaseFunc", "Function", "FunctionWithFields"]
