"""relay.testing.mobilenet: see relaylab.zoo.mobilenet."""

from relaylab.zoo.mobilenet import *  # noqa: F403
