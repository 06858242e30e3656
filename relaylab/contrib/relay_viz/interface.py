"""relay_viz.interface under the name that Relay programs import."""

from relaylab.viz.relay_viz.interface import *  # noqa: F403
