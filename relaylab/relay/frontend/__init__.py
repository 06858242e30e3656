"""relay.frontend: importers of other formats."""

from relaylab.support.missing import missing as _missing

__all__: list[str] = []

__getattr__ = _missing(__name__, globals())
