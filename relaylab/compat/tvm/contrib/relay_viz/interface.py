"""tvm.contrib.relay_viz.interface."""

from relaylab.contrib.relay_viz import *  # noqa: F403
