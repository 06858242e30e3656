"""MarkCompilerFunctionsAsExtern: what was made for an external compiler is known to be compiled elsewhere."""

from __future__ import annotations

from typing import Annotated

from relaylab.ir import Function, FunctionWithFields, IRModule
from relaylab.ir.trail import derived
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import ModulePass


@pass_(level=0, idempotent=True)
class MarkCompilerFunctionsAsExtern(ModulePass):
    """Gives the functions made for an external compiler the one attribute `Extern=1`: no pass looks into them."""

    compiler_filter: Annotated[str, "The compiler whose functions are meant; empty: all."] = ""

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        return mod.with_functions({gv: self._marked(func) for gv, func in mod.functions.items()})

    def _marked(self, func: Function) -> Function:
        compiler = func.attr("Compiler")
        if compiler is None or (self.compiler_filter and compiler != self.compiler_filter):
            return func
        return derived(FunctionWithFields(func, attrs={"Extern": 1}), func)
