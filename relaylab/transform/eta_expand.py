"""EtaExpand: constructors and functions used as values become lambdas that call them."""

from __future__ import annotations

from relaylab.ir import (
    Call,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    TypeVar,
    Var,
    children,
    rebuild,
    rewrite,
)
from relaylab.ir.types import TypeCall, substitute_type
from relaylab.support.errors import RelayValueError
from relaylab.transform.copying import copied
from relaylab.transform.manager import ModulePass, Pass, PassInfo, register_pass

PARAM = "eta_expand_param"


def _constructor(ctor: Constructor, mod: IRModule) -> Function:
    data = mod[ctor.belong_to]
    own = {v: TypeVar(v.name_hint, v.kind) for v in data.type_vars}
    params = [Var(PARAM, substitute_type(t, own)) for t in ctor.inputs]
    result = TypeCall(ctor.belong_to, own.values())
    return Function(params, Call(ctor, params, None, own.values()), result, own.values())


def _function(gv: GlobalVar, mod: IRModule) -> Function:
    func = mod[gv]
    own = {v: TypeVar(v.name_hint, v.kind) for v in func.type_params}
    typ = func.annotated_type() or func._checked_type
    types = list(typ.arg_types) if isinstance(typ, FuncType) else [p.type_annotation for p in func.params]
    params = [Var(PARAM, None if t is None else substitute_type(t, own)) for t in types]
    result = typ.ret_type if isinstance(typ, FuncType) else func.ret_type
    result = None if result is None else substitute_type(result, own)
    return Function(params, Call(gv, params, None, own.values()), result, own.values())


class _Expander:
    """Expands what one function uses; each global function gets one lambda."""

    def __init__(self, mod: IRModule, constructors: bool, globals_: bool):
        self.mod, self.constructors, self.globals = mod, constructors, globals_
        self.known: dict[Expr, Function] = {}

    def expand(self, func: Function) -> Function:
        """`func` with its values expanded."""
        self.known = {}
        return rewrite(func, self._at)  # type: ignore[return-value]

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
            make = _constructor if isinstance(used, Constructor) else _function
            self.known[used] = copied(make(used, self.mod), used)  # type: ignore[arg-type, assignment]
        return self.known[used]


@register_pass(expand_constructor=True)
def EtaExpand(expand_constructor: bool = False, expand_global_var: bool = False) -> Pass:
    """Wraps constructors that are not called, global functions, or both into lambdas."""
    if not (expand_constructor or expand_global_var):
        raise RelayValueError(
            "EtaExpand has nothing to expand",
            code="pass.nothing-to-do",
            help="set expand_constructor or expand_global_var",
        )

    def run(mod: IRModule, ctx: object) -> IRModule:
        expander = _Expander(mod, expand_constructor, expand_global_var)
        return mod.with_functions({gv: expander.expand(f) for gv, f in mod.functions.items()})

    return ModulePass(PassInfo(1, "EtaExpand"), run)
