"""tvm.contrib: executors, the visualizer, temporary folders."""

from relaylab.contrib import graph_executor, relay_viz, utils

__all__ = ["graph_executor", "relay_viz", "utils"]
