"""relaylab: explore tensor compilers by hand.

    import relaylab
    from relaylab import relay
    mod, params = relay.testing.resnet.get_workload(num_layers=18)
    relaylab.show(mod)                         # a picture
    relaylab.explore(mod)                      # every pass, step by step
    lib = relay.build(mod, "llvm", params=params)

The parts load when they are first used, so that `import relaylab` is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from relaylab.compat import finder as _finder  # noqa: F401  (relaylab.relay.nn and others are modules of a table)

__version__ = "0.1.0"

# name: (module, attribute; empty for the module itself)
_LAZY: dict[str, tuple[str, str]] = {
    "relay": ("relaylab.relay", ""),
    "viz": ("relaylab.viz", ""),
    "transform": ("relaylab.transform", ""),
    "runtime": ("relaylab.runtime", ""),
    "contrib": ("relaylab.contrib", ""),
    "IRModule": ("relaylab.relay", "IRModule"),
    "parse": ("relaylab.relay", "parse"),
    "build": ("relaylab.relay", "build"),
    "show": ("relaylab.viz", "show"),
    "save": ("relaylab.viz", "save"),
    "explore": ("relaylab.study", "explore"),
    "load": ("relaylab.study", "load"),
    "check": ("relaylab.study", "check"),
    "RelayError": ("relaylab.support.errors", "RelayError"),
    "DiagnosticError": ("relaylab.support.errors", "DiagnosticError"),
    "install_as_tvm": ("relaylab.compat", "install_as_tvm"),
    "load_ipython_extension": ("relaylab.lab", "load_ipython_extension"),
    "unload_ipython_extension": ("relaylab.lab", "unload_ipython_extension"),
}

__all__ = ["__version__", *_LAZY]

if TYPE_CHECKING:
    from relaylab.relay import IRModule as IRModule
    from relaylab.relay import build as build
    from relaylab.relay import parse as parse


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'relaylab' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    value = importlib.import_module(module)
    value = getattr(value, attribute) if attribute else value
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
