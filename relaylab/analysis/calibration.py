"""Calibration data: what flows in and out of the functions made for other compilers, on given inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylab.interp.executor import Interpreter
from relaylab.interp.machine import Frame, Machine
from relaylab.interp.values import Closure, Value
from relaylab.ir.expr import Call, Function, GlobalVar
from relaylab.ir.module import IRModule


class _Recorder(Machine):
    """Evaluates and keeps the arguments and the results of functions with a `Compiler` attribute."""

    def __init__(self, mod: IRModule):
        super().__init__(mod)
        self.watched: dict[Function, GlobalVar] = {f: gv for gv, f in mod.functions.items() if f.attr("Compiler")}
        self.seen: dict[GlobalVar, dict[str, list[Value]]] = {}

    def enter(self, call: Call, frame: Frame, closure: Closure, args: list[Value]) -> None:
        gv = self.watched.get(closure.function)
        if gv is not None:
            self.seen.setdefault(gv, {"inputs": list(args), "outputs": []})
        super().enter(call, frame, closure, args)

    def leave(self, what: tuple, inner: Frame) -> None:
        root = inner.plan.root
        gv = self.watched.get(root) if isinstance(root, Function) else None
        if gv is not None and isinstance(root, Function) and what[1] is root.body and not self.seen[gv]["outputs"]:
            result = inner.value(what[1])
            self.seen[gv]["outputs"] = list(result) if isinstance(result, tuple) else [result]
        super().leave(what, inner)


def get_calibration_data(mod: IRModule, data: Mapping[str, Any]) -> dict[GlobalVar, dict[str, list[Any]]]:
    """For each function of `mod` with a `Compiler` attribute, the `inputs` and `outputs` of its first call when
    `main` runs on `data` (arrays by parameter name).
    """
    machine = _Recorder(mod)
    main = mod.get_global_var("main")
    args = Interpreter(mod, data).arguments(mod[main])
    machine.call(machine.run(main), args)
    return machine.seen
