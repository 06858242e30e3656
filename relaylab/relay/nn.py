"""relay.nn: operators of neural networks."""

from relaylab.op.nn import *  # noqa: F403
