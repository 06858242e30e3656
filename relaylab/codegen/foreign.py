"""Functions made for an external compiler (attribute `Compiler`): there is none here, so relaylab compiles them itself."""

from __future__ import annotations

import warnings

from relaylab.ir import IRModule
from relaylab.transform import InlineCompilerFunctionsBoundTo, OutlineCompilerFunctionsWithExistingGlobalSymbols


def taken_back(mod: IRModule) -> IRModule:
    """The module with the functions of external compilers back in the program, and a warning that names the compilers."""
    outlined = OutlineCompilerFunctionsWithExistingGlobalSymbols()(mod)
    names = [gv for gv, func in outlined.functions.items() if func.attr("Compiler")]
    if not names:
        return mod
    compilers = ", ".join(sorted({f"`{outlined[gv].attr('Compiler')}`" for gv in names}))
    text = f"no code generator is registered for {compilers}: relaylab compiles what was partitioned for it itself"
    warnings.warn(text, UserWarning, stacklevel=2)
    return InlineCompilerFunctionsBoundTo(names)(outlined)
