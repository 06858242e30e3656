"""`relay.op.memory`: explicit allocation."""

from relaylab.op.vm.machine import alloc_storage, alloc_tensor, kill

__all__ = ["alloc_storage", "alloc_tensor", "kill"]
