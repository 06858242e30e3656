"""tvm.contrib.relay_viz.dot."""

from relaylab.contrib.relay_viz import *  # noqa: F403
