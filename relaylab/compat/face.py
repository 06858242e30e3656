"""Public modules made of names of other modules, which load when a name is first asked for."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cached_property
from types import FunctionType, ModuleType

from relaylab.compat import elsewhere, older
from relaylab.compat.table import FACES, SAME
from relaylab.support.collection import no_collection

FUNCTIONS = frozenset({"relay.analysis.count_layers", "relay.transform.recast"})
"""Modules that have the name of a function beside them, as in TVM: `relay.transform.recast` is the function."""


class PublicNames:
    """What a module of the table has: `find` gives the value of a name, `public` lists the names.

    `key` is the module below `relaylab`, such as `relay.nn`.
    """

    def __init__(self, key: str):
        self.key = key
        self.doc, sources = FACES[key]
        self.named: dict[str, tuple[str, str]] = {}
        self.stars: list[str] = []
        for source, text in sources.items():
            for item in map(str.strip, text.split(",")):
                old, _, new = item.partition(" as ")
                if old == "*":
                    self.stars.append(source)
                else:
                    self.named[new or old] = (source, old)

    @cached_property
    def modules(self) -> set[str]:
        """The modules right below this one, without those whose name a function of this one has."""
        below = f"{self.key}."
        every = (*FACES, *SAME, *elsewhere.PARTS)
        return {k.removeprefix(below).split(".")[0] for k in every if k.startswith(below) and k not in FUNCTIONS}

    @cached_property
    def exported(self) -> dict[str, str]:
        """The names that whole modules give, each with its module; loads them."""
        return {name: source for source in self.stars for name in _exports(importlib.import_module(_full(source)))}

    def public(self) -> set[str]:
        """All names; loads the modules that are taken whole."""
        return {*self.modules, *self.named, *self.exported}

    def starred(self) -> set[str]:
        """What `from module import *` brings: modules only where nothing is taken whole."""
        return {*self.named, *self.exported, *(() if self.stars else self.modules)}

    def find(self, name: str) -> object:
        """The value of a name; an AttributeError that helps if there is no such name."""
        if name in self.modules:
            return importlib.import_module(_full(f"{self.key}.{name}"))
        if name in self.named:
            source, old = self.named[name]
            return _attribute(_full(source), old)
        if name.startswith("_"):  # what Python and notebooks look for in all modules
            raise AttributeError(f"module {_full(self.key)!r} has no attribute {name!r}")
        if f"{self.key}.{name}" in older.MODULES:
            return importlib.import_module(_full(f"{self.key}.{name}"))
        if (former := older.old_name(f"{self.key}.{name}")) is not None:
            return former
        if name not in self.exported and elsewhere.is_part(self.key):
            return elsewhere.found(f"{self.key}.{name}")
        if name not in self.exported:
            raise explained(self.key, name, self.public())
        return _attribute(_full(self.exported[name]), name)


class Face(ModuleType):
    """A module of the table."""

    def __init__(self, key: str):
        self._names = PublicNames(key)
        super().__init__(_full(key), f"{key}: {self._names.doc}.")

    def __getattr__(self, name: str) -> object:
        if name == "__all__":
            return sorted(self._names.starred())
        value = self.__dict__["_names"].find(name)
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # importing a module puts it into the one above it, also where a function has its name
        if not (isinstance(value, ModuleType) and f"{self.__name__}.{name}" in map(_full, FUNCTIONS)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._names.public()})


def explained(key: str, name: str, names: Iterable[str]) -> AttributeError:
    """The error for a name that a module does not have; what it says loads when it is needed."""
    from relaylab.compat.missing import absent

    return absent(key, name, names)


def _full(key: str) -> str:
    return f"relaylab.{key}"


def _exports(module: ModuleType) -> list[str]:
    plain = (n for n, value in vars(module).items() if n[0] != "_" and not isinstance(value, ModuleType))
    return list(getattr(module, "__all__", plain))


def _attribute(module: str, name: str) -> object:
    """An attribute of a module, which may be a module below it."""
    with no_collection():  # modules make many objects that stay: looking for cycles among them took a fifth of the time
        loaded = importlib.import_module(module)
        value = getattr(loaded, name) if hasattr(loaded, name) else importlib.import_module(f"{module}.{name}")
    if not isinstance(value, FunctionType):
        return value
    from relaylab.support.checked import checked  # brings numpy, which `import relaylab` does without

    return checked(value)
