"""Functions made for an external compiler (attribute `Compiler`): there is none, so they are compiled here.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from relaylab.ir import IRModule
from relaylab.support.errors import warn
from relaylab.transform import InlineCompilerFunctionsBoundTo, OutlineCompilerFunctionsWithExistingGlobalSymbols


def inline_external(mod: IRModule) -> IRModule:
    """The module with functions of external compilers back where they are called; a warning names the compilers."""
    outlined = OutlineCompilerFunctionsWithExistingGlobalSymbols()(mod)
    names = [gv for gv, func in outlined.functions.items() if func.attr("Compiler")]
    if not names:
        return mod
    compilers = ", ".join(sorted({f"`{outlined[gv].attr('Compiler')}`" for gv in names}))
    text = f"no code generator is registered for {compilers}: relaylab compiles what was partitioned for it itself"
    warn(text)
    return InlineCompilerFunctionsBoundTo(names)(outlined)
