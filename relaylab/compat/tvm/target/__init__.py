"""tvm.target: what to compile for."""

from relaylab.contrib.target import Target
from relaylab.support.missing import missing as _missing

__all__ = ["Target"]

__getattr__ = _missing(__name__, globals())
