"""relay.nn: operators of neural networks."""

from relaylab.op.nn import *  # noqa: F403
from relaylab.support.missing import missing as _missing

__getattr__ = _missing(__name__, globals())
