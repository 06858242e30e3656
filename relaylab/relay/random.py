"""relay.random: random numbers."""

from relaylab.op.random import *  # noqa: F403
