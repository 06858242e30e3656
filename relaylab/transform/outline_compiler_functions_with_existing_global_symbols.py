"""OutlineCompilerFunctionsWithExistingGlobalSymbols: functions for an external compiler move to the module."""

from __future__ import annotations

from relaylab.ir import Call, Expr, Function, GlobalVar, IRModule, rewrite
from relaylab.transform.manager import ModulePass, Pass, PassInfo, register_pass


@register_pass(idempotent=True)
def OutlineCompilerFunctionsWithExistingGlobalSymbols(compiler_filter: str = "") -> Pass:
    """Moves functions written in place for an external compiler to the module, under their `global_symbol`."""

    def run(mod: IRModule, ctx: object) -> IRModule:
        known: dict[str, GlobalVar] = {gv.name_hint: gv for gv in mod.functions}
        made: dict[GlobalVar, Function] = {}

        def at(new: Expr, old: Expr) -> Expr:
            if not isinstance(new, Call) or not isinstance(new.op, Function):
                return new
            compiler, symbol = new.op.attr("Compiler"), new.op.attr("global_symbol")
            if not compiler or not symbol or compiler_filter not in ("", str(compiler)):
                return new
            gv = known.setdefault(str(symbol), GlobalVar(str(symbol)))
            made.setdefault(gv, new.op)
            return Call(gv, new.args, new.attrs, (), new.span)

        functions = {gv: f if f.attr("Compiler") else rewrite(f, at) for gv, f in mod.functions.items()}
        return mod.with_functions({**made, **functions})  # type: ignore[dict-item]

    return ModulePass(PassInfo(0, "OutlineCompilerFunctionsWithExistingGlobalSymbols"), run)
