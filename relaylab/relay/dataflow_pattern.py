"""relay.dataflow_pattern: matching and rewriting parts of graphs."""

from relaylab.transform.pattern import *  # noqa: F403
from relaylab.support.missing import missing as _missing

__getattr__ = _missing(__name__, globals())
