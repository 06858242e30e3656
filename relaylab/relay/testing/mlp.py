"""relay.testing.mlp: see relaylab.zoo.mlp."""

from relaylab.zoo.mlp import *  # noqa: F403
