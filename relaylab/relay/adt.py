"""relay.adt: algebraic data types."""

from relaylab.ir.adt import Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard
from relaylab.ir.types import TypeData

__all__ = ["Clause", "Constructor", "Match", "Pattern", "PatternConstructor", "PatternTuple", "PatternVar", "PatternWildcard", "TypeData"]
