"""Lets `import tvm…` find relaylab: an alias finder in front of Python's own."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from types import ModuleType

from relaylab.support.errors import RelayError
from relaylab.support.missing import reason

# the longest prefix wins; what follows it is looked up below the target
ALIASES = {"tvm": "relaylab.compat.tvm", "tvm.relay": "relaylab.relay"}

FACES = tuple(f"{target}." for target in ALIASES.values())


def target_of(name: str) -> str | None:
    """The module of relaylab that stands behind a name under `tvm`."""
    for prefix in sorted(ALIASES, key=len, reverse=True):
        if name == prefix or name.startswith(prefix + "."):
            return ALIASES[prefix] + name[len(prefix) :]
    return None


class _Alias(importlib.abc.Loader):
    """Loads a module by giving out the one of relaylab, unchanged: both names are one object."""

    def __init__(self, target: str):
        self.target = target

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # importing under the alias has replaced it


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `tvm…`; also asked for what `from tvm.relay import x` lacks, and then says why it is not there."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        name = target_of(fullname)
        if name is None:
            if fullname.startswith(FACES) and importlib.machinery.PathFinder.find_spec(fullname, path) is None:
                raise _absent(fullname)
            return None
        try:
            found = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise _absent(name)
        return importlib.machinery.ModuleSpec(fullname, _Alias(name), is_package=found.submodule_search_locations is not None)


def _absent(name: str) -> ModuleNotFoundError:
    """The error for a module of relaylab that is not there, under the name that programs use."""
    name = name.replace("relaylab.", "tvm.", 1).replace("tvm.compat.tvm", "tvm", 1)
    why = reason(name) or "relaylab keeps Relay, its runtime and its visualizer under the name tvm"
    return ModuleNotFoundError(f"there is no {name}: {why}", name=name)


_finder = _Finder()


def install_as_tvm() -> ModuleType:
    """Make `import tvm` and everything Relay programs import below it resolve to relaylab; returns the module `tvm`.

    Raises `RelayError` if another package named tvm has been imported already in this process.
    """
    known = sys.modules.get("tvm")
    if known is not None and known is not sys.modules.get("relaylab.compat.tvm"):
        raise RelayError(
            f"a package named tvm is imported already, from {getattr(known, '__file__', 'somewhere')}",
            code="compat.other-tvm",
            help="call relaylab.install_as_tvm() before importing it, or in a new process",
        )
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    return importlib.import_module("tvm")


def uninstall_tvm() -> None:
    """Undo `install_as_tvm`; modules that were imported stay usable under relaylab's names."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in [n for n in sys.modules if n == "tvm" or n.startswith("tvm.")]:
        del sys.modules[name]
