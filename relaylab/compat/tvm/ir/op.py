"""tvm.ir.op: operators."""

from relaylab.contrib.registry import register_op_attr
from relaylab.ir import Op

__all__ = ["Op", "register_op_attr"]
