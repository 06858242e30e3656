"""relay.loops: while loops as recursive closures."""

from relaylab.ir.loops import while_loop

__all__ = ["while_loop"]
