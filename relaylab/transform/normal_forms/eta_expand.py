"""EtaExpand: constructors and functions used as values become lambdas that call them."""

from __future__ import annotations

from typing import Annotated, cast

from relaylab.ir.adt import Constructor
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Function, GlobalVar, Var
from relaylab.ir.module import IRModule
from relaylab.ir.types import FuncType, TypeCall, TypeVar, substitute_type
from relaylab.ir.visit import children, rebuild
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.renewal import copied, rewrite_function

PARAM = "eta_expand_param"


def constructor_lambda(ctor: Constructor, mod: IRModule) -> Function:
    """A lambda that calls a constructor."""
    data = mod[ctor.belong_to]
    own = {v: TypeVar(v.name_hint, v.kind) for v in data.type_vars}
    params = [Var(PARAM, substitute_type(t, own)) for t in ctor.inputs]
    result = TypeCall(ctor.belong_to, own.values())
    return Function(params, Call(ctor, params, None, own.values()), result, own.values())


def function_lambda(gv: GlobalVar, mod: IRModule) -> Function:
    """A lambda that calls a function of the module."""
    func = mod[gv]
    own = {v: TypeVar(v.name_hint, v.kind) for v in func.type_params}
    typ = func.annotated_type() or func.inferred
    types = list(typ.arg_types) if isinstance(typ, FuncType) else [p.type_annotation for p in func.params]
    params = [Var(PARAM, None if t is None else substitute_type(t, own)) for t in types]
    result = typ.ret_type if isinstance(typ, FuncType) else func.ret_type
    result = None if result is None else substitute_type(result, own)
    return Function(params, Call(gv, params, None, own.values()), result, own.values())


def with_lambdas(func: Function, mod: IRModule) -> Function:
    """`func` with functions of the module and constructors that are not called made lambdas that call them."""

    def value(part: Expr) -> Expr:
        if isinstance(part, Constructor):
            return constructor_lambda(part, mod)
        known = isinstance(part, GlobalVar) and part in mod.functions
        return function_lambda(cast(GlobalVar, part), mod) if known else part

    def at(new: Expr, old: Expr) -> Expr:
        called = isinstance(new, Call)
        return rebuild(new, [c if called and i == 0 else value(c) for i, c in enumerate(children(new))])

    kernel = lambda n: isinstance(n, Function) and bool(n.is_primitive or n.attr("Compiler"))
    return rewrite_function(func, at, kernel)


class _Expander:
    """Expands what one function uses; each global function gets one lambda."""

    def __init__(self, mod: IRModule, constructors: bool, globals_: bool):
        self.mod, self.constructors, self.globals = mod, constructors, globals_
        self.known: dict[Expr, Function] = {}

    def expand(self, func: Function) -> Function:
        """`func` with its values expanded."""
        self.known = {}
        return rewrite_function(func, self._at)

    def _at(self, new: Expr, old: Expr) -> Expr:
        if isinstance(new, GlobalVar) and self.globals and new in self.mod.functions:
            return self._lambda(new)
        called = 0 if isinstance(new, Call) else -1
        parts = children(new)
        return rebuild(new, [self._lambda(c) if self._is_value(c, i == called) else c for i, c in enumerate(parts)])

    def _is_value(self, part: Expr, called: bool) -> bool:
        return isinstance(part, Constructor) and self.constructors and not called

    def _lambda(self, used: Expr) -> Function:
        if used not in self.known:
            is_constructor = isinstance(used, Constructor)
            made = (
                constructor_lambda(used, self.mod)
                if is_constructor
                else function_lambda(cast(GlobalVar, used), self.mod)
            )
            self.known[used] = copied(made, used)
        return self.known[used]


@pass_(level=1, example={"expand_constructor": True})
class EtaExpand(ModulePass):
    """Wraps constructors that are not called, global functions, or both into lambdas."""

    expand_constructor: Annotated[bool, "Wrap constructors."] = False
    expand_global_var: Annotated[bool, "Wrap functions of the module."] = False

    def __post_init__(self) -> None:
        if not (self.expand_constructor or self.expand_global_var):
            raise RelayValueError(
                "EtaExpand has nothing to expand",
                code="pass.nothing-to-do",
                help="set expand_constructor or expand_global_var",
            )

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        expander = _Expander(mod, self.expand_constructor, self.expand_global_var)
        return mod.with_functions({gv: expander.expand(f) for gv, f in mod.functions.items()})
