"""relay.qnn: the quantized dialect."""

from relaylab.op.qnn import *  # noqa: F403
from relaylab.relay.qnn import op, transform
from relaylab.support.missing import missing as _missing

__getattr__ = _missing(__name__, globals())
