"""relay.backend: executors and runtimes as options of `relay.build`."""

from relaylab.codegen.options import Executor, Runtime

__all__ = ["Executor", "Runtime"]
