"""relay.vision: operators of detectors."""

from relaylab.op.vision import *  # noqa: F403
