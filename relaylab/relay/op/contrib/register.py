"""relay.op.contrib.register."""

from relaylab.contrib.patterns import get_pattern_table, register_pattern_table

__all__ = ["get_pattern_table", "register_pattern_table"]
