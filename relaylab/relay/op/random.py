"""relay.op.random."""

from relaylab.op.random import *  # noqa: F403
