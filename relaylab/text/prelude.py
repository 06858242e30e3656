"""The prelude: lists, options and trees, with the functions that everybody needs on them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from relaylab.ir.adt import Constructor
from relaylab.ir.expr import GlobalVar
from relaylab.ir.module import IRModule
from relaylab.ir.types import GlobalTypeVar
from relaylab.support.checked import checked
from relaylab.support.errors import RelayAttributeError, RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.text.library import import_text
from relaylab.text.tensor_array import StaticTensorArrayOps, TensorArrayOps, get_tensor_array_shape, static_name

__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps", "get_tensor_array_shape"]

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

    def get_global_var(self, name: str, dtype: str | None = None) -> GlobalVar:
        """The global variable of a function of the module; with a data type, that of a function on tensor arrays."""
        return self.mod.get_global_var(self.get_name(name, dtype))

    def get_type(self, ty_name: str, dtype: str | None = None) -> GlobalTypeVar:
        """The name of a data type; with `dtype`, that of elements of tensor arrays (`tensor_t`)."""
        return self.mod.get_global_type_var(self.get_name(ty_name, dtype))

    def get_ctor(self, ty_name: str, ctor_name: str, dtype: str | None = None) -> Constructor:
        """A constructor of a data type."""
        wanted, data = self.get_name(ctor_name, dtype), self.mod[self.mod.get_global_type_var(ty_name)]
        for ctor in data.constructors:
            if ctor.name_hint == wanted:
                return ctor
        help = did_you_mean(wanted, [c.name_hint for c in data.constructors])
        raise RelayValueError(f"{ty_name} has no constructor `{wanted}`", code="module.no-constructor", help=help)

    # ---- tensor arrays

    def get_name(self, canonical: str, dtype: str | None = None) -> str:
        """The full name of a function, type or constructor of tensor arrays, whose functions the module then has."""
        if dtype is None:
            return canonical
        TensorArrayOps(self, dtype).register()
        return f"tensor_{dtype}_t" if canonical == "tensor_t" else f"{canonical}_{dtype}"

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Constructor:
        """A constructor of elements of tensor arrays: `tensor_nil`, `tensor0` … `tensor6`."""
        return self.get_ctor(self.get_name("tensor_t", dtype), canonical, dtype)

    def get_name_static(self, canonical: str, dtype: str, shape: Sequence[object], batch_dim: int | None = None) -> str:
        """The full name of a function, type or constructor of tensor arrays with elements of one shape."""
        return static_name(canonical, dtype, shape, batch_dim)

    def get_global_var_static(
        self, canonical: str, dtype: str, shape: Sequence[object], batch_dim: int | None = None
    ) -> GlobalVar:
        """The global variable of a function on tensor arrays of one shape, which `StaticTensorArrayOps` registered."""
        return self.mod.get_global_var(static_name(canonical, dtype, shape, batch_dim))

    def get_type_static(self, canonical: str, dtype: str, shape: Sequence[object]) -> GlobalTypeVar:
        """The name of a data type of elements of one shape."""
        return self.mod.get_global_type_var(static_name(canonical, dtype, shape))

    def get_ctor_static(self, ty_name: str, name: str, dtype: str, shape: Sequence[object]) -> Constructor:
        """A constructor of the data type `ty_name` of elements of one shape."""
        return self.get_ctor(static_name(ty_name, dtype, shape), static_name(name, dtype, shape))

    def get_tensor_ctor_static(self, name: str, dtype: str, shape: Sequence[object]) -> Constructor:
        """A constructor of elements of one shape: `tensor_nil`, `tensor_constructor`."""
        return self.get_ctor_static("tensor_t", name, dtype, shape)

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
