"""relay.op.image."""

from relaylab.op.image import *  # noqa: F403
