"""relay.prelude: the standard library of data types and functions."""

from relaylab.text.prelude import Prelude
from relaylab.support.missing import missing as _missing

__all__ = ["Prelude"]

__getattr__ = _missing(__name__, globals())
