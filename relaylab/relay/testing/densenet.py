"""relay.testing.densenet: see relaylab.zoo.densenet."""

from relaylab.zoo.densenet import *  # noqa: F403
