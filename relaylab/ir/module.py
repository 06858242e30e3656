"""IRModule: named functions and data types, the unit that passes work on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zlib import crc32

from relaylab.ir.adt import Constructor
from relaylab.ir.attrs import DictAttrs
from relaylab.ir.display import Shown, node_text
from relaylab.ir.expr import Call, Expr, Function, GlobalVar, Var
from relaylab.ir.free import free_type_vars, free_vars, unbound, unbound_types
from relaylab.ir.names import NameSupply, check_names
from relaylab.ir.node import expect
from relaylab.ir.types import GlobalTypeVar, Type, TypeData
from relaylab.ir.visit import post_order, rewrite
from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.support.hook import Hook
from relaylab.support.table import did_you_mean


@Hook
def import_text(
    mod: IRModule, text: str | None = None, source_name: str = "from_string", path: str = "", std: str = ""
) -> IRModule:
    """Take a text, a file or a file of the standard library into `mod`; the typed module. The text room does it."""
    raise RelayTypeError("the text format is not loaded", code="module.no-text", help="import relaylab.text")


@checked
class IRModule(Shown):
    """Functions by global variable and algebraic data types by name. Passes return a new one; `mod[...] = f` changes
    it.
    """

    def __init__(
        self,
        functions: Mapping[Any, Any] | None = None,
        type_definitions: Mapping[Any, TypeData] | None = None,
        attrs: Mapping[str, object] | None = None,
    ):
        self.functions: dict[GlobalVar, Function] = {}
        self._index: tuple[object, dict[str, GlobalVar]] = (None, {})  # by name, of which dictionary of functions
        self.type_definitions: dict[GlobalTypeVar, TypeData] = {}
        self.attrs: DictAttrs | None = DictAttrs(attrs) if attrs else None
        self.source_map: dict[str, str] = {}
        self.imports: set[str] = set()
        for header, data in (type_definitions or {}).items():
            self._add_type(header, data)
        for var, func in (functions or {}).items():
            name = var if isinstance(var, str) else expect(var, GlobalVar, "the name of a function").name_hint
            if self._find(name) is not None:
                raise RelayValueError(f"the module has two functions named `{name}`", code="module.duplicate")
            self._add(var, func)

    # ---- building

    def _add(self, var: GlobalVar | str, func: Expr, update: bool = True) -> None:
        if isinstance(var, str):
            var = self._find(var) or GlobalVar(var)
        expect(var, GlobalVar, "the name of a function")
        other = self._find(var.name_hint)
        if other is not None and not update:
            text = f"the module has a function named `{var.name_hint}`"
            raise RelayValueError(text, code="module.duplicate", help="update=True replaces it")
        made = _checked(var, _as_function(func))
        if other is not None and other is not var:
            del self.functions[other], self._index[1][var.name_hint]
        self.functions[var], self._index[1][var.name_hint] = made, var

    def _add_type(self, header: GlobalTypeVar | str, data: TypeData) -> None:
        check_names(expect(data, TypeData, "a type definition"))
        name = header if isinstance(header, str) else header.name_hint
        known = self._find_type(name)
        if known is not None:
            del self.type_definitions[known]
        self.type_definitions[data.header] = data
        for index, ctor in enumerate(data.constructors):
            ctor.register(_tag(data.header.name_hint, index))

    def __setitem__(self, var: GlobalVar | GlobalTypeVar | str, val: Expr | TypeData) -> None:
        if isinstance(val, Type):
            self._add_type(expect(var, (GlobalTypeVar, str), "the name of a type"), val)
        else:
            func = _eta(val, self[val]) if isinstance(val, GlobalVar) else val
            self._add(expect(var, (GlobalVar, str), "the name of a function"), func)

    def update_func(self, var: GlobalVar, func: Function) -> None:
        """Replace or add one function."""
        self._add(var, func)

    def remove(self, var: GlobalVar | str) -> None:
        """Take a function out."""
        del self.functions[self.get_global_var(var if isinstance(var, str) else var.name_hint)]

    def update(self, other: IRModule | Mapping[Any, Any]) -> None:
        """Take in another module; where names collide this module's variables stay and the functions are replaced."""
        other = other if isinstance(other, IRModule) else IRModule(other)
        for header, data in other.type_definitions.items():
            if self._find_type(header.name_hint) is None:
                self._add_type(header, data)
        rename = {
            gv: mine for gv in other.functions if (mine := self._find(gv.name_hint)) is not None and mine is not gv
        }
        for gv, func in other.functions.items():
            self._add(rename.get(gv, gv), replace_globals(func, rename) if rename else func)
        self.source_map.update(other.source_map)
        self.imports |= other.imports

    def shallow_copy(self) -> IRModule:
        """A module with the same functions and types."""
        new = object.__new__(IRModule)
        new.functions, new.type_definitions = dict(self.functions), dict(self.type_definitions)
        new._index = (None, {})
        new.attrs, new.source_map, new.imports = self.attrs, dict(self.source_map), set(self.imports)
        return new

    def with_functions(self, functions: Mapping[GlobalVar, Function]) -> IRModule:
        """The module with these functions instead; the same object if they are the same ones."""
        if list(functions) == list(self.functions) and all(functions[k] is f for k, f in self.functions.items()):
            return self
        new = self.shallow_copy()
        new.functions = dict(functions)
        return new

    def with_attr(self, key: str, value: object) -> IRModule:
        """A copy with one module attribute set."""
        new = self.shallow_copy()
        new.attrs = DictAttrs({**(self.attrs or {}), key: value})
        return new

    def get_attr(self, key: str) -> Any:
        """A module attribute, or None."""
        return None if self.attrs is None else self.attrs.get(key)

    # ---- looking up

    def _find(self, name: str) -> GlobalVar | None:
        of, known = self._index
        # `functions` may be changed from outside: what is put in is the last
        stale = of is not self.functions or len(known) != len(self.functions)
        if stale or (known and next(reversed(known.values())) is not next(reversed(self.functions))):
            known = {gv.name_hint: gv for gv in reversed(self.functions)}  # the first of a name
            known = dict(reversed(known.items()))
            self._index = (self.functions, known)
        return known.get(name)

    def _find_type(self, name: str) -> GlobalTypeVar | None:
        return next((gtv for gtv in self.type_definitions if gtv.name_hint == name), None)

    def __getitem__(self, var: GlobalVar | GlobalTypeVar | str) -> Any:
        if isinstance(var, GlobalTypeVar):
            return self.type_definitions[self.get_global_type_var(var.name_hint)]
        if isinstance(var, GlobalVar) and var in self.functions:
            return self.functions[var]
        return self.functions[
            self.get_global_var(
                var if isinstance(var, str) else expect(var, GlobalVar, "the key of a module").name_hint
            )
        ]

    def __contains__(self, var: object) -> bool:
        return var in self.functions if isinstance(var, GlobalVar) else self._find(str(var)) is not None

    def get_global_var(self, name: str) -> GlobalVar:
        """The global variable of that name; `RelayValueError` if the module has none."""
        found = self._find(name)
        if found is None:
            names = [gv.name_hint for gv in self.functions]
            raise RelayValueError(
                f'Cannot find global var "{name}" in the Module',
                code="module.no-function",
                help=did_you_mean(name, names) or f"candidates are: {names}",
            )
        return found

    def get_global_vars(self) -> list[GlobalVar]:
        return list(self.functions)

    def contain_global_var(self, name: str) -> bool:
        return self._find(name) is not None

    def get_global_type_var(self, name: str) -> GlobalTypeVar:
        """The name of a data type; `RelayValueError` if the module has none of that name."""
        found = self._find_type(name)
        if found is None:
            names = [gtv.name_hint for gtv in self.type_definitions]
            raise RelayValueError(
                f'Cannot find global type var "{name}" in the Module',
                code="module.no-type",
                help=did_you_mean(name, names) or f"candidates are: {names}",
            )
        return found

    def get_global_type_vars(self) -> list[GlobalTypeVar]:
        return list(self.type_definitions)

    def get_constructor(self, tag: int, of: GlobalTypeVar | str | None = None) -> Constructor:
        """The constructor with that tag, of any data type or of one; `RelayValueError` if there is none."""
        name = of if isinstance(of, str) or of is None else of.name_hint
        for header in self.type_definitions if name is None else (self.get_global_type_var(name),):
            for ctor in self.type_definitions[header].constructors:
                if ctor.tag == tag:
                    return ctor
        raise RelayValueError(f"no constructor has the tag {tag}", code="module.no-constructor")

    def get_type(self, name: str) -> tuple[GlobalTypeVar, *tuple[Constructor, ...]]:
        """The name of a data type followed by its constructors."""
        header = self.get_global_type_var(name)
        return (header, *self.type_definitions[header].constructors)

    # ---- text

    @staticmethod
    def from_expr(
        expr: Expr, functions: Mapping[Any, Any] | None = None, type_defs: Mapping[Any, TypeData] | None = None
    ) -> IRModule:
        """A module whose `main` is `expr`: a function as it is, another expression as the body of one with its free
        variables.
        """
        mod = IRModule(functions, type_defs)
        func = expect(expr, Expr, "the expression of a module")
        if not isinstance(func, Function):
            func = Function(free_vars(expr), expr, None, free_type_vars(expr))
        supply = NameSupply()
        for gv in mod.functions:
            supply.reserve_name(gv.name_hint)
        mod._add(supply.fresh_name(func.attr("global_symbol", "main")), func)
        return mod

    @staticmethod
    def from_text(text: str, source_name: str = "from_string", init_module: IRModule | None = None) -> IRModule:
        """The module that `text` describes, in addition to the definitions of `init_module`."""
        mod = init_module.shallow_copy() if init_module is not None else IRModule()
        import_text(mod, text, source_name)
        return mod

    def _import(self, file_to_import: str) -> None:
        """Take in the definitions of a file, once."""
        import_text(self, path=str(file_to_import))

    def import_from_std(self, file_to_import: str) -> IRModule:
        """Take in the definitions of a file of the standard library (`prelude.rly`, `nat.rly` …), once; the typed
        module.
        """
        return import_text(self, std=str(file_to_import))

    def script(self, *args: object, **settings: object) -> str:
        """The text of the module, under the name that TVM 0.9 and later have for it."""
        return node_text(self)

    def show(self, *args: object, **settings: object) -> None:
        """Print the text of the module; a style is not asked for."""
        print(node_text(self))

    def same_as(self, other: object) -> bool:
        """Whether both are one object."""
        return self is other

    def __str__(self) -> str:
        return node_text(self)

    def __repr__(self) -> str:
        return self.astext()


def _as_function(func: Expr) -> Function:
    if isinstance(func, Function):
        return func
    return Function([], expect(func, Expr, "a function of a module"))


def _checked(var: GlobalVar, func: Function) -> Function:
    nodes = post_order(func)
    free = unbound(nodes)
    if free:
        names = ", ".join(f"%{v.name_hint}" for v in free)
        raise RelayValueError(
            f"@{var.name_hint} uses {names} without binding {'it' if len(free) == 1 else 'them'}",
            code="module.free-variable",
            help="make it a parameter, or use IRModule.from_expr on the body",
        )
    loose = unbound_types(nodes)
    if loose:
        raise RelayValueError(
            f"@{var.name_hint} uses type variables that it does not declare: {', '.join(map(str, loose))}",
            code="module.free-type-variable",
        )
    return func


def _eta(gv: GlobalVar, func: Function) -> Function:
    """`fn (params) { @gv(params) }`."""
    params = [Var(p.name_hint, p.type_annotation) for p in func.params]
    return Function(params, Call(gv, params, None, func.type_params), func.ret_type, func.type_params)


def replace_globals(expr: Expr, rename: Mapping[GlobalVar, GlobalVar]) -> Expr:
    """`expr` with global variables exchanged."""
    return rewrite(expr, lambda new, old: rename.get(new, new) if isinstance(new, GlobalVar) else new)


def _tag(type_name: str, index: int) -> int:
    """A tag that is the same in every process: twenty bits of the type's name, then the constructor's number."""
    tag = (crc32(type_name.encode()) & 0xFFFFF) << 12 | index
    return tag - (1 << 32) if tag >= 1 << 31 else tag
