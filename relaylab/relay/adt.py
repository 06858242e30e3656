"""relay.adt: algebraic data types."""

from relaylab.ir.adt import Clause, Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard
from relaylab.ir.types import TypeData
from relaylab.support.missing import missing as _missing

__all__ = ["Clause", "Constructor", "Match", "Pattern", "PatternConstructor", "PatternTuple", "PatternVar", "PatternWildcard", "TypeData"]

__getattr__ = _missing(__name__, globals())
