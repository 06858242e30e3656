"""tvm.transform: the pass manager."""

from relaylab.transform.context import PassContext
from relaylab.transform.print_ir import PrintIR
from relaylab.transform.manager import ModulePass, Pass, PassInfo, Sequential, module_pass
from relaylab.support.missing import missing as _missing

__all__ = ["ModulePass", "Pass", "PassContext", "PassInfo", "PrintIR", "Sequential", "module_pass"]

__getattr__ = _missing(__name__, globals())
