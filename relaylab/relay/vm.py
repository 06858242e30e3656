"""relay.vm: compiling for the virtual machine."""

from relaylab.codegen.vm import Executable, VirtualMachine, compile
from relaylab.support.missing import missing as _missing

__all__ = ["Executable", "VirtualMachine", "compile"]

__getattr__ = _missing(__name__, globals())
