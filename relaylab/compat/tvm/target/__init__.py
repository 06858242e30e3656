"""tvm.target: what to compile for."""

from relaylab.contrib.target import Target

__all__ = ["Target"]
