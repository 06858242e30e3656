"""tvm.parser: Relay text."""

from relaylab.text import fromtext, parse, parse_expr
from relaylab.support.missing import missing as _missing

__all__ = ["fromtext", "parse", "parse_expr"]

__getattr__ = _missing(__name__, globals())
