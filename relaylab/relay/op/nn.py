"""relay.op.nn."""

from relaylab.op.nn import *  # noqa: F403
