"""relay.testing.darknet: see relaylab.zoo.darknet."""

from relaylab.zoo.darknet import *  # noqa: F403
