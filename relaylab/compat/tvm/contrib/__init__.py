"""tvm.contrib: executors, the visualizer, temporary folders."""

from relaylab.contrib import graph_executor, relay_viz, utils
from relaylab.support.missing import missing as _missing

__all__ = ["graph_executor", "relay_viz", "utils"]

__getattr__ = _missing(__name__, globals())
