"""relay.op.vision."""

from relaylab.op.vision import *  # noqa: F403
from relaylab.support.missing import missing as _missing

__getattr__ = _missing(__name__, globals())
