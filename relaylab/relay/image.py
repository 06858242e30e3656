"""relay.image: operators on images."""

from relaylab.op.image import *  # noqa: F403
