"""relay.op.vision."""

from relaylab.op.vision import *  # noqa: F403
