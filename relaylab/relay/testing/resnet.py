"""relay.testing.resnet: see relaylab.zoo.resnet."""

from relaylab.zoo.resnet import *  # noqa: F403
