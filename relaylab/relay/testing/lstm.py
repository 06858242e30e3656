"""relay.testing.lstm: see relaylab.zoo.lstm."""

from relaylab.zoo.lstm import *  # noqa: F403
