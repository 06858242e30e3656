"""contrib.graph_executor: running a compiled graph."""

from relaylab.runtime.graph_executor import GraphModule, create

__all__ = ["GraphModule", "create"]
