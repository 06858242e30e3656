"""relay.testing.synthetic: see relaylab.zoo.synthetic."""

from relaylab.zoo.synthetic import *  # noqa: F403
