"""relay.testing.layers: see relaylab.zoo.layers."""

from relaylab.zoo.layers import *  # noqa: F403
