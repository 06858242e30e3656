"""From Relay to machine code: fused functions to loops, to LLVM IR, to object code, and the plan that runs them.

    from relaylab import codegen
    lib = codegen.build.build(mod, codegen.parse_target("llvm -mcpu=haswell"), params)

`relay.build` is `build.build`. The parts load when they are first used.
"""

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from relaylab.codegen import build
    from relaylab.codegen.build import optimize, parse_target
    from relaylab.codegen.executors import create_executor
    from relaylab.codegen.isa.target import CpuTarget
    from relaylab.codegen.options import Executor, Runtime
    from relaylab.codegen.vm import VirtualMachine, VMExecutable, compile

__all__ = [
    "CpuTarget", "Executor", "Runtime", "VMExecutable", "VirtualMachine", "build", "compile", "create_executor",
    "optimize", "parse_target",
]  # fmt: skip

_MODULES = {
    **dict.fromkeys(("optimize", "parse_target"), "build"),
    **dict.fromkeys(("Executor", "Runtime"), "options"),
    **dict.fromkeys(("VMExecutable", "VirtualMachine", "compile"), "vm"),
    "CpuTarget": "isa.target",
    "create_executor": "executors",
}


def __getattr__(name: str) -> object:
    if name == "build":
        return _importlib.import_module(f"{__name__}.build")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    return value


__dir__ = lambda: sorted(__all__)  # what is meant for others: without the modules behind it
