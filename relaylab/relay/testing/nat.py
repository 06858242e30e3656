"""relay.testing.nat: see relaylab.zoo.nat."""

from relaylab.zoo.nat import *  # noqa: F403
