"""relay_viz under the name that Relay programs import."""

from relaylab.viz.relay_viz import *  # noqa: F403
from relaylab.viz.relay_viz import __all__  # noqa: F401
