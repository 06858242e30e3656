"""OutlineCompilerFunctionsWithExistingGlobalSymbols: functions for an external compiler move to the module."""

from __future__ import annotations

from typing import Annotated, TypeGuard

from relaylab.ir import Call, Expr, Function, GlobalVar, IRModule, Let, walk
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.let_rewrite import rewrite_lets
from relaylab.transform.engine.manager import ModulePass, is_optimizable
from relaylab.transform.engine.renewal import as_function


@pass_(level=0, idempotent=True)
class OutlineCompilerFunctionsWithExistingGlobalSymbols(ModulePass):
    """Moves functions written in place for an external compiler to the module, under their `global_symbol`.

    They come after the others, in the order of their calls; the variable of a `let` that names one goes.
    """

    compiler_filter: Annotated[str, "Only functions for this compiler; empty: for all."] = ""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        known: dict[str, GlobalVar] = {gv.name_hint: gv for gv in mod.functions}
        made: dict[GlobalVar, Function] = {}

        def at(new: Expr, old: Expr) -> Expr:
            if not isinstance(new, Call) or not self._moves(new.op):
                return new
            symbol = str(new.op.attr("global_symbol"))
            gv = known.setdefault(symbol, GlobalVar(symbol))
            if gv not in mod.functions:
                made.setdefault(gv, new.op)
            return Call(gv, new.args, new.attrs, new.type_args, span=new.span)

        def bind(let: Let, value: Expr, recursive: bool) -> Expr | None:
            return value if self._moves(value) else None

        functions = {
            gv: as_function(rewrite_lets(f, at, bind)) if is_optimizable(f) and any(map(self._moves, walk((f,)))) else f
            for gv, f in mod.functions.items()
        }
        return mod.with_functions({**functions, **made})

    def _moves(self, func: Expr) -> TypeGuard[Function]:
        if not isinstance(func, Function) or not func.attr("global_symbol"):
            return False
        compiler = func.attr("Compiler")
        return bool(compiler) and self.compiler_filter in ("", str(compiler))
