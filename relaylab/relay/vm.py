"""relay.vm: compiling for the virtual machine."""

from relaylab.codegen.vm import Executable, VirtualMachine, compile

__all__ = ["Executable", "VirtualMachine", "compile"]
