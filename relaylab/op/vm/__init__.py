"""`relay.op.vm`: operators of the virtual machine."""

from relaylab.op.vm.machine import invoke_tvm_op, reshape_tensor, shape_of

__all__ = ["invoke_tvm_op", "reshape_tensor", "shape_of"]
