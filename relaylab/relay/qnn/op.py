"""relay.qnn.op: quantized operators."""

from relaylab.op.qnn import *  # noqa: F403
