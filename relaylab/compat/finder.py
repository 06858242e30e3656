"""Finds the modules of the table, in front of Python's own finders: below `relaylab`, and below `tvm` when asked to."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

from relaylab.compat import elsewhere, older
from relaylab.compat.face import Face
from relaylab.compat.table import FACES, SAME

if TYPE_CHECKING:
    from importlib.abc import Loader
else:
    Loader = object  # importlib.abc takes longer to import than all that is here


class _Made(Loader):
    """Loads a module of names."""

    def __init__(self, key: str):
        self.key = key

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Face(self.key)

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run: names are found when they are asked for."""


class _Unkept(_Made):
    """Loads a module of a part of TVM that is not kept."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return elsewhere.UnkeptPart(self.key)


class _Same(Loader):
    """Loads a module by giving out another one, unchanged: both names are one object."""

    def __init__(self, target: str):
        self.target = target

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        alias, module.__spec__ = str(module.__spec__ and module.__spec__.name), self._spec  # importing has replaced it
        for name in [n for n in sys.modules if n.startswith(f"{self.target}.")]:  # else each would be bound once more
            sys.modules.setdefault(alias + name.removeprefix(self.target), sys.modules[name])


class Finder:
    """Finds what the table has below its `roots`, and says of the rest why it is not there."""

    def __init__(self) -> None:
        self.roots = {"relaylab"}

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        root, _, key = fullname.partition(".")
        if root not in self.roots:
            return None
        if root != "relaylab":
            key = fullname
        home = same(key)
        older.told_of_module(key)
        if home != key or root != "relaylab":
            found = _found(f"relaylab.{home}")
            if found is None:
                raise self.absent(home)
            is_package = found.submodule_search_locations is not None
            return ModuleSpec(fullname, _Same(f"relaylab.{home}"), is_package=is_package)
        if key not in FACES and elsewhere.is_part(key):
            return ModuleSpec(fullname, _Unkept(key), is_package=True)
        if key not in FACES and "." in key and key.partition(".")[0] in ROOTS:
            raise self.absent(key)
        return ModuleSpec(fullname, _Made(key), is_package=True) if key in FACES and key != REAL else None

    def absent(self, key: str) -> ModuleNotFoundError:
        """The error for a module or a name that is not there; what it says loads when it is needed."""
        from relaylab.compat.missing import absent_module

        parent = sys.modules.get(f"relaylab.{key.rpartition('.')[0]}")
        return absent_module(key, dir(parent) if parent else (), "tvm" in self.roots)


ROOTS = frozenset(key.partition(".")[0] for key in FACES)
REAL = "relay"
"""The one module of the table that is a file too: the names that it does not import itself."""

FINDER = Finder()
sys.meta_path.insert(0, FINDER)


_HOMES = {**older.MODULES, **SAME}


def same(key: str) -> str:
    """The module that a module of the table is, by the longest prefix; itself if it is no other."""
    head = key
    while head and head not in _HOMES:
        head = head.rpartition(".")[0]
    return _HOMES[head] + key[len(head) :] if head else key


def _found(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
