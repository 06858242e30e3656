"""relay.op.contrib: tables of patterns."""

from relaylab.contrib.patterns import get_pattern_table, register_pattern_table
from relaylab.relay.op.contrib import register
from relaylab.support.missing import missing as _missing

__getattr__ = _missing(__name__, globals())
