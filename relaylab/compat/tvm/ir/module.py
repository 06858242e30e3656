"""tvm.ir.module: modules."""

from relaylab.ir import IRModule

__all__ = ["IRModule"]
