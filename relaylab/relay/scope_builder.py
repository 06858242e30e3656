"""relay.scope_builder: ScopeBuilder."""

from relaylab.ir.scope_builder import ScopeBuilder

__all__ = ["ScopeBuilder"]
