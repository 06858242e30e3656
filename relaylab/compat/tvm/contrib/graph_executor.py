"""tvm.contrib.graph_executor."""

from relaylab.contrib.graph_executor import *  # noqa: F403
