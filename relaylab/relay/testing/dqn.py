"""relay.testing.dqn: see relaylab.zoo.dqn."""

from relaylab.zoo.dqn import *  # noqa: F403
