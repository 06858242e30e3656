"""tvm.te: what Relay programs take from it, symbolic sizes."""

from relaylab.ir.types import SizeVar as size_var
from relaylab.ir.types import SizeVar as var

__all__ = ["size_var", "var"]
