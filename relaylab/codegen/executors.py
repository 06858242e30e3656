"""`create_executor`: the ways of running a program, by kind: debug, graph, vm, aot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relaylab.codegen import vm
from relaylab.codegen.build import build
from relaylab.interp import EXECUTORS, Interpreter, create_executor
from relaylab.ir import Expr, Function, GlobalVar, IRModule, TupleType, Var, is_dynamic, substitute
from relaylab.runtime.device import Device, cpu
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.ndarray import array
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.transform import InferType

__all__ = ["create_executor"]


class CompiledExecutor:
    """Compiles what it is asked to evaluate; `evaluate()` gives a callable for `main`."""

    kind = ""

    def __init__(self, mod: IRModule | None, device: Device | None, target: Any, params: Mapping[str, Any] | None):
        self.mod = mod if mod is not None else IRModule()
        self.device = device if device is not None else cpu(0)
        self.target, self.params = target, dict(params or {})

    def evaluate(self, expr: Expr | None = None, binds: Mapping[Var, Expr] | None = None) -> Any:
        """A Python callable for a function (for `main` without `expr`), else the value of the expression."""
        if binds and expr is not None:
            expr = substitute(expr, dict(binds))
        if expr is None or (isinstance(expr, GlobalVar) and expr.name_hint == "main"):
            return self.compiled(self.mod)
        func = self.mod[expr] if isinstance(expr, GlobalVar) else expr
        run = self.compiled(self._with_main(func))
        return run if isinstance(func, Function) else run()

    def _with_main(self, expr: Expr) -> IRModule:
        mod = self.mod.shallow_copy()
        mod["main"] = expr if isinstance(expr, Function) else Function([], expr)
        return mod

    def compiled(self, mod: IRModule) -> Callable[..., Any]:
        """A callable for the `main` of a module."""
        raise RelayTypeError(f"{type(self).__name__} cannot compile", code="executor.abstract")


class GraphRunner(CompiledExecutor):
    """Static graphs of tensors: one native entry point."""

    kind = "graph"

    def compiled(self, mod: IRModule) -> Callable[..., Any]:
        main = InferType()(mod)["main"]
        if is_dynamic(main.ret_type):
            raise RelayValueError(
                f"Graph Executor only supports static graphs, got output type {main.ret_type}", code="executor.dynamic", help='use create_executor("vm")'
            )
        module = GraphModule(build(mod, target=self.target, params=self.params)["default"](self.device))
        names = [p.name_hint for p in main.params if p.name_hint not in self.params]
        as_list = isinstance(main.ret_type, TupleType)

        def run(*args: Any, **kwargs: Any) -> Any:
            if len(args) > len(names):
                raise RelayTypeError(f"main takes {len(names)} inputs, {len(args)} are given", code="executor.arguments")
            for index, value in enumerate(args):  # by position: parameters may share a name
                module.set_input(index, value)
            for name, value in kwargs.items():
                module.set_input(name, value)
            module.run()
            outputs = [array(module.get_output(i).numpy()) for i in range(module.get_num_outputs())]
            return outputs if as_list else outputs[0]

        return run


class VMRunner(CompiledExecutor):
    """The whole language: control flow is evaluated, kernels run natively."""

    kind = "vm"

    def compiled(self, mod: IRModule) -> Callable[..., Any]:
        machine = vm.VirtualMachine(vm.compile(mod, self.target, params=self.params), self.device)
        return machine.run


EXECUTORS.insert("graph", GraphRunner)
EXECUTORS.insert("aot", GraphRunner)
EXECUTORS.insert("vm", VMRunner)
EXECUTORS.insert("debug", lambda mod, device, target, params: Interpreter(mod, params, array), replace=True)
