"""tvm.runtime.vm: the virtual machine."""

from relaylab.codegen.vm import Executable, VirtualMachine

__all__ = ["Executable", "VirtualMachine"]
