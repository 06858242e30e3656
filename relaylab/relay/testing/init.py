"""relay.testing.init: see relaylab.zoo.init."""

from relaylab.zoo.init import *  # noqa: F403
