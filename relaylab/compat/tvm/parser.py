"""tvm.parser: Relay text."""

from relaylab.text import fromtext, parse, parse_expr

__all__ = ["fromtext", "parse", "parse_expr"]
