"""tvm.contrib.debugger."""

from relaylab.compat.tvm.contrib.debugger import debug_executor

__all__ = ["debug_executor"]
