"""What lived in tvm.contrib: the visualizer, the graph executor, temporary folders, test helpers.

The parts load when they are first used.
"""

import importlib as _importlib
from typing import Any as _Any

from relaylab.support.missing import missing as _missing

__all__ = ["gradients", "graph_executor", "patterns", "registry", "relay_viz", "target", "testing", "utils"]


def __getattr__(name: str) -> _Any:
    if name not in __all__:
        _missing(__name__, __all__)(name)
    return _importlib.import_module(f"{__name__}.{name}")
