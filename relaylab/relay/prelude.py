"""relay.prelude: the standard library of data types and functions."""

from relaylab.text.prelude import Prelude

__all__ = ["Prelude"]
