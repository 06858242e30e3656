"""Networks built for the executor "aot": the same native entry point, under the names that programs use for it."""

from __future__ import annotations

from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.module import GraphExecutorFactoryModule

__all__ = ["AOTExecutorFactoryModule", "AotModule"]


class AOTExecutorFactoryModule(GraphExecutorFactoryModule):
    """A compiled network that was built with `Executor("aot")`."""

    type_key = "AotExecutorFactory"


class AotModule(GraphModule):
    """A network ready to run: `m = AotModule(lib["default"](dev))`, then as a `GraphModule`."""

    def get_input_name(self, index: int) -> str:
        """The name of an input; RelayValueError if there are not so many."""
        return self.module.executor.names[index]
