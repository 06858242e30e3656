"""tvm.runtime.profiling: reports of measured time."""

from relaylab.runtime.profiling import *  # noqa: F403
