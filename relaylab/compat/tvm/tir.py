"""tvm.tir: what Relay programs take from it, dimensions."""

from relaylab.contrib.registry import IntImm
from relaylab.ir.types import Any
from relaylab.ir.types import SizeVar
from relaylab.ir.types import SizeVar as Var
from relaylab.support.missing import missing as _missing

__all__ = ["Any", "IntImm", "SizeVar", "Var"]

__getattr__ = _missing(__name__, globals())
