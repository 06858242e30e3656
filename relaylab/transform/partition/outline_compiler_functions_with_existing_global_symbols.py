"""OutlineCompilerFunctionsWithExistingGlobalSymbols: functions for an external compiler move to the module."""

from __future__ import annotations

from typing import Annotated

from relaylab.ir import Call, Expr, Function, GlobalVar, IRModule
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass
from relaylab.transform.engine.renewal import rewrite_function


@pass_(level=0, idempotent=True)
class OutlineCompilerFunctionsWithExistingGlobalSymbols(ModulePass):
    """Moves functions written in place for an external compiler to the module, under their `global_symbol`."""

    compiler_filter: Annotated[str, "Only functions for this compiler; empty: for all."] = ""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        known: dict[str, GlobalVar] = {gv.name_hint: gv for gv in mod.functions}
        made: dict[GlobalVar, Function] = {}

        def at(new: Expr, old: Expr) -> Expr:
            if not isinstance(new, Call) or not isinstance(new.op, Function):
                return new
            compiler, symbol = new.op.attr("Compiler"), new.op.attr("global_symbol")
            if not compiler or not symbol or self.compiler_filter not in ("", str(compiler)):
                return new
            gv = known.setdefault(str(symbol), GlobalVar(str(symbol)))
            made.setdefault(gv, new.op)
            return Call(gv, new.args, new.attrs, (), span=new.span)

        functions = {gv: f if f.attr("Compiler") else rewrite_function(f, at) for gv, f in mod.functions.items()}
        return mod.with_functions({**made, **functions})
