"""tvm.contrib.debugger.debug_executor: running node by node."""

from relaylab.runtime.debug_executor import *  # noqa: F403
