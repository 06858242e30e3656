"""relay.testing.resnet_3d: see relaylab.zoo.resnet_3d."""

from relaylab.zoo.resnet_3d import *  # noqa: F403
