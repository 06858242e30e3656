"""The prelude: lists, options and trees, with the functions that everybody needs on them."""

from __future__ import annotations

import warnings

from relaylab.ir.adt import Constructor
from relaylab.ir.expr import GlobalVar
from relaylab.ir.module import IRModule
from relaylab.ir.types import GlobalTypeVar
from relaylab.support.checked import checked
from relaylab.support.errors import RelayAttributeError, RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.text.library import import_text

_FORMER = {
    "l": "List", "nil": "List.Nil", "cons": "List.Cons", "optional": "Option", "some": "Option.Some",
    "none": "Option.None", "tree": "Tree", "rose": "Tree.Rose",
}  # fmt: skip
"""The types and constructors that were attributes in TVM 0.6."""


@checked
class Prelude:
    """A module (`mod`) with the prelude in it. Its functions are attributes: `prelude.map`, `prelude.foldl` …"""

    def __init__(self, mod: IRModule | None = None):
        self.mod = IRModule() if mod is None else mod
        self.load_prelude()

    def load_prelude(self) -> None:
        """Take the prelude into the module, if it is not there."""
        import_text(self.mod, std="prelude.rly")

    def get_global_var(self, name: str) -> GlobalVar:
        """The global variable of a function of the module."""
        return self.mod.get_global_var(name)

    def get_type(self, ty_name: str) -> GlobalTypeVar:
        """The name of a data type."""
        return self.mod.get_global_type_var(ty_name)

    def get_ctor(self, ty_name: str, ctor_name: str) -> Constructor:
        """A constructor of a data type."""
        data = self.mod[self.get_type(ty_name)]
        for ctor in data.constructors:
            if ctor.name_hint == ctor_name:
                return ctor
        help = did_you_mean(ctor_name, [c.name_hint for c in data.constructors])
        raise RelayValueError(f"{ty_name} has no constructor `{ctor_name}`", code="module.no-constructor", help=help)

    def __getattr__(self, name: str) -> GlobalVar | GlobalTypeVar | Constructor:
        if name in _FORMER:
            type_name, _, ctor = _FORMER[name].partition(".")
            words = f'get_ctor("{type_name}", "{ctor}")' if ctor else f'get_type("{type_name}")'
            warnings.warn(f"prelude.{name} is a former name: prelude.{words}", DeprecationWarning, stacklevel=2)
            return self.get_ctor(type_name, ctor) if ctor else self.get_type(type_name)
        names = [gv.name_hint for gv in self.__dict__["mod"].functions]
        if name in names:
            return self.mod.get_global_var(name)
        help = did_you_mean(name, names)
        raise RelayAttributeError(f"the prelude has no function `{name}`", code="module.no-function", help=help)
