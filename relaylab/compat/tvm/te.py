"""tvm.te: what Relay programs take from it, symbolic sizes."""

from relaylab.ir.types import SizeVar as size_var
from relaylab.ir.types import SizeVar as var
from relaylab.support.missing import missing as _missing

__all__ = ["size_var", "var"]

__getattr__ = _missing(__name__, globals())
