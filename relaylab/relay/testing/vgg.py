"""relay.testing.vgg: see relaylab.zoo.vgg."""

from relaylab.zoo.vgg import *  # noqa: F403
