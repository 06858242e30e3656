"""`create_executor`: the ways of running a program, by kind: debug, graph, vm, aot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from relaylab.analysis import infer_expr, infer_module
from relaylab.codegen import vm
from relaylab.codegen.build import build
from relaylab.codegen.native_function import flat
from relaylab.codegen.network.mapped import unchanged_files
from relaylab.interp import EXECUTORS, Interpreter, create_executor
from relaylab.interp.executor import bound, check_count
from relaylab.interp.machine import Machine
from relaylab.interp.values import ConstructorValue, Value, rebuilt
from relaylab.ir.base import Expr
from relaylab.ir.expr import Constant, Function, GlobalVar, Var
from relaylab.ir.module import IRModule
from relaylab.ir.names import parameter_names
from relaylab.ir.types import TupleType, Type, is_dynamic
from relaylab.runtime.container import ADT
from relaylab.runtime.device import Device, cpu
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.ndarray import NDArray, array
from relaylab.support.checked import checked, fitting
from relaylab.support.errors import DiagnosticError, RelayTypeError, RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.transform import InferType

__all__ = ["create_executor"]


@checked
class CompiledExecutor:
    """Compiles what it is asked to evaluate; `evaluate()` gives a callable for `main`."""

    def __init__(self, mod: IRModule | None, device: Device | None, target: object, params: Mapping[str, Any] | None):
        self.mod = mod if mod is not None else IRModule()
        self.device = device if device is not None else cpu(0)
        self.target, self.params = target, dict(params or {})

    def evaluate(self, expr: Expr | None = None, binds: Mapping[Var, object] | None = None) -> Any:
        """A Python callable for a function (for `main` without `expr`), else the value of the expression."""
        if binds and expr is not None:
            expr = bound(expr, binds)
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


@fitting
class GraphRunner(CompiledExecutor):
    """Static graphs of tensors: one native entry point."""

    def compiled(self, mod: IRModule) -> Callable[..., Any]:
        main = InferType()(mod)["main"]
        if is_dynamic(main.ret_type):
            raise RelayValueError(
                f"Graph Executor only supports static graphs, got output type {main.ret_type}",
                code="executor.dynamic",
                help='use create_executor("vm")',
            )
        module = GraphModule(build(mod, target=self.target, params=self.params)["default"](self.device))
        params = [p for p in main.params if p.name_hint not in self.params]

        def run(*args: object, **kwargs: object) -> object:
            for index, value in enumerate(flat(tuple(ordered(params, args, kwargs)))):
                module.set_input(index, value.data if isinstance(value, Constant) else value)
            module.run()
            outputs = iter([array(module.get_output(i).numpy()) for i in range(module.get_num_outputs())])
            return nested(main.ret_type, outputs)

        return run


class AotRunner(GraphRunner):
    """As `GraphRunner`: every network is compiled ahead of time to one native entry point."""


def ordered(params: Sequence[Var], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The values of parameters from positional and named arguments; RelayTypeError for too many, missing or unknown."""
    names = parameter_names(params)
    check_count(names, args)
    rest = names[len(args) :]
    wrong = [n for n in kwargs if n not in rest]
    if wrong:
        raise RelayTypeError(
            f"main has no further input `{wrong[0]}`",
            code="executor.arguments",
            help=did_you_mean(wrong[0], rest) or f"inputs: {', '.join(names)}",
        )
    missing = [n for n in rest if n not in kwargs]
    if missing:
        raise RelayTypeError(f"no value is given for {', '.join(missing)}", code="executor.arguments")
    return [*args, *(kwargs[n] for n in rest)]


def nested(type_: Type, outputs: Iterator[NDArray]) -> NDArray | list:
    """Outputs as the type nests them: an array, or lists of them."""
    return [nested(field, outputs) for field in type_.fields] if isinstance(type_, TupleType) else next(outputs)


@fitting
class VMRunner(CompiledExecutor):
    """The whole language: control flow as native instructions where it can be, else evaluated; kernels run natively."""

    def compiled(self, mod: IRModule) -> Callable[..., Any]:
        machine = vm.VirtualMachine(vm.compile(mod, self.target, params=self.params), self.device)
        return machine.run


@checked
class DebugRunner(Interpreter):
    """The evaluator; a program that is ill-typed is refused, as by the others, one whose types are open is not."""

    def evaluate(self, expr: Expr | None = None, binds: Mapping[Var, object] | None = None) -> Value:
        if expr is not None and binds:
            expr, binds = bound(expr, binds), None
        try:
            infer_module(self.mod) if expr is None else infer_expr(expr, self.mod)
        except DiagnosticError as error:
            if any(getattr(fault, "code", "") != "type.unresolved" for fault in error.diagnostics):
                raise
        return super().evaluate(expr, binds)

    def machine(self) -> Machine:
        """What evaluates, if the weights are those that were imported."""
        with unchanged_files(self.mod):
            return super().machine()


def _packed(item: Value, fields: tuple[Value, ...]) -> Value:
    return rebuilt(item, fields) if isinstance(item, ConstructorValue) else ADT(0, fields)


EXECUTORS.insert("graph", GraphRunner)
EXECUTORS.insert("aot", AotRunner)
EXECUTORS.insert("vm", VMRunner)
EXECUTORS.insert("debug", lambda mod, device, target, params: DebugRunner(mod, params, array, _packed), replace=True)
