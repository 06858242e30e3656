"""tvm.contrib.relay_viz: drawing programs."""

from relaylab.contrib.relay_viz import *  # noqa: F403
