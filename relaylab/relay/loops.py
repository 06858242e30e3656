"""relay.loops: while loops as recursive closures."""

from relaylab.ir.loops import while_loop
from relaylab.support.missing import missing as _missing

__all__ = ["while_loop"]

__getattr__ = _missing(__name__, globals())
