"""tvm.contrib.relay_viz.terminal."""

from relaylab.contrib.relay_viz import *  # noqa: F403
