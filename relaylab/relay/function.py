"""relay.function: functions."""

from relaylab.ir.expr import BaseFunc, Function, FunctionWithFields
from relaylab.support.missing import missing as _missing

__all__ = ["BaseFunc", "Function", "FunctionWithFields"]

__getattr__ = _missing(__name__, globals())
