"""tvm.contrib.graph_runtime: the old name of graph_executor."""

from relaylab.contrib.graph_executor import *  # noqa: F403
