"""relay.testing.squeezenet: see relaylab.zoo.squeezenet."""

from relaylab.zoo.squeezenet import *  # noqa: F403
