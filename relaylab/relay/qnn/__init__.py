"""relay.qnn: the quantized dialect."""

from relaylab.op.qnn import *  # noqa: F403
from relaylab.relay.qnn import op, transform
