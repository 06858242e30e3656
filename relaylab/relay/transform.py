"""relay.transform: passes."""

from relaylab.transform import *  # noqa: F403
