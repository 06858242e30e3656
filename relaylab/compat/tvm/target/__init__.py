"""tvm.target: what to compile for."""

from relaylab.codegen.target import Target

__all__ = ["Target"]
