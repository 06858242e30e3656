"""relay.frontend: importers of other formats. They load when they are first used."""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from relaylab.support.missing import missing as _missing

if _TYPE_CHECKING:
    from relaylab.frontend import from_onnx

__all__ = ["from_onnx"]

_unknown = _missing(__name__, __all__)


def __getattr__(name: str) -> _Any:
    return getattr(_importlib.import_module("relaylab.frontend"), name) if name in __all__ else _unknown(name)
