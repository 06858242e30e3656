"""relay_viz.dot under the name that Relay programs import."""

from relaylab.viz.relay_viz.dot import *  # noqa: F403
