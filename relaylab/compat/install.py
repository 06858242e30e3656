"""Lets `import tvm…` find relaylab."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from relaylab.compat.finder import FINDER
from relaylab.support.errors import RelayError


def install_as_tvm() -> ModuleType:
    """Make `import tvm` and everything Relay programs import below it resolve to relaylab; returns the module `tvm`.

    Targets and devices that are not here (`cuda`, `opencl`, other CPUs) are read as this CPU then, with one warning.
    Raises `RelayError` if another package named tvm has been imported already in this process.
    """
    known = sys.modules.get("tvm")
    if known is not None and known is not sys.modules.get("relaylab.tvm"):
        raise RelayError(
            f"a package named tvm is imported already, from {getattr(known, '__file__', 'somewhere')}",
            code="compat.other-tvm",
            help="call relaylab.install_as_tvm() before importing it, or in a new process",
        )
    FINDER.roots.add("tvm")
    _foreign_as_cpu(True)
    return importlib.import_module("tvm")


def uninstall_tvm() -> None:
    """Undo `install_as_tvm`; modules that were imported stay usable under relaylab's names."""
    FINDER.roots.discard("tvm")
    _foreign_as_cpu(False)
    for name in [n for n in sys.modules if n == "tvm" or n.startswith("tvm.")]:
        del sys.modules[name]


def _foreign_as_cpu(as_cpu: bool) -> None:
    from relaylab.support.foreign import FOREIGN

    FOREIGN.switch(as_cpu=as_cpu)
