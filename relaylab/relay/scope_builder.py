"""relay.scope_builder: ScopeBuilder."""

from relaylab.ir.scope_builder import ScopeBuilder
from relaylab.support.missing import missing as _missing

__all__ = ["ScopeBuilder"]

__getattr__ = _missing(__name__, globals())
