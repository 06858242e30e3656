"""relay.backend: executors and runtimes as options of `relay.build`."""

from relaylab.codegen.options import Executor, Runtime
from relaylab.support.missing import missing as _missing

__all__ = ["Executor", "Runtime"]

__getattr__ = _missing(__name__, globals())
