"""relay_viz.terminal under the name that Relay programs import."""

from relaylab.viz.relay_viz.terminal import *  # noqa: F403
