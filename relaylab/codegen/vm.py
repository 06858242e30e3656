"""The virtual machine: control flow, closures, data types and cells are evaluated, kernels run natively.

`compile` runs the VM's pipeline, so that all arithmetic is in Primitive functions, and makes machine code of
those whose shapes are known. The rest, Primitive functions over shapes that only run time knows and operators
without a loop form (sorting), is evaluated by the operators' reference semantics: slower, the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from relaylab.codegen.build import compile_main, parse_target
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.network.external import inline_external
from relaylab.interp import Interpreter
from relaylab.interp.machine import Frame, Machine
from relaylab.interp.values import Closure, Value
from relaylab.ir.base import Expr
from relaylab.ir.equal import StructuralTable
from relaylab.ir.expr import Call, Function, Var
from relaylab.ir.module import IRModule
from relaylab.ir.names import parameter_names
from relaylab.ir.op import Op
from relaylab.ir.types import TensorType, TupleType, Type, is_dynamic
from relaylab.ir.visit import walk
from relaylab.op.base import Operator
from relaylab.runtime.benchmark import BenchmarkResult, Evaluator
from relaylab.runtime.device import Device, cpu
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.ndarray import array
from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.transform import InferType, optimize


class NativeFunction:
    """A Primitive function as machine code: takes and gives values of evaluation."""

    def __init__(self, func: Function, target: CpuTarget):
        self.function = func
        params = [Var(p.name_hint, p.inferred) for p in func.params]
        lib = compile_main(InferType()(IRModule.from_expr(Function(params, Call(func, params)))), target, "vm")
        self.library = lib
        self.module = GraphModule(lib["default"](cpu(0)))

    def __call__(self, *args: Value) -> Value:
        for index, arg in enumerate(leaf for a in args for leaf in flat(a)):
            self.module.set_input(index, arg)
        self.module.run()
        leaves = [self.module.get_output(i).numpy() for i in range(self.module.get_num_outputs())]
        return leaves[0] if isinstance(self.function.body.inferred, TensorType) else tuple(leaves)


def flat(value: Value) -> list[np.ndarray]:
    """The arrays of a value made of arrays and tuples, left to right."""
    out, stack = [], [value]
    while stack:
        item = stack.pop()
        if isinstance(item, tuple):
            stack.extend(reversed(item))
        else:
            out.append(item)
    return out


def compilable(func: Function) -> bool:
    """Whether a Primitive function has known shapes, tensors (not tuples) as inputs, a flat result and a loop form."""
    types = [p.inferred or p.type_annotation for p in func.params]
    result = func.ret_type or func.body.inferred
    tensors = all(isinstance(t, TensorType) and not is_dynamic(t) for t in types)
    return (
        tensors
        and _flat_result(result)
        and all("lower" not in cast("type[Operator]", op.definition).waivers for op in _operators(func))
    )


def _operators(func: Function) -> Iterator[Op]:
    return (node for node in walk((func,)) if isinstance(node, Op))


def _flat_result(t: Type | None) -> bool:
    fields = t.fields if isinstance(t, TupleType) else (t,)
    return all(isinstance(f, TensorType) and not is_dynamic(f) for f in fields)


@checked
class VMExecutable:
    """A compiled program: the optimized module and the machine code of its kernels."""

    def __init__(self, mod: IRModule, natives: Mapping[Function, NativeFunction], params: Mapping[str, Any]):
        self.mod, self.natives, self.params = mod, dict(natives), dict(params)

    @property
    def globals(self) -> list[str]:
        """The names of the functions."""
        return [gv.name_hint for gv in self.mod.functions]

    @property
    def primitive_ops(self) -> list[str]:
        """The names of the compiled kernels, each once."""
        return list(dict.fromkeys(name for n in self.natives.values() for name in n.library.kernels()))

    def get_function_params(self, func_name: str) -> list[str]:
        """The parameters of a function."""
        return parameter_names(self.mod[func_name].params)

    @property
    def stats(self) -> str:
        """What was compiled, in words."""
        kernels = {id(n) for n in self.natives.values()}
        return f"{len(self.mod.functions)} functions, {len(self.natives)} calls of {len(kernels)} native kernels"


def compile(
    mod: IRModule | Function, target: object = None, target_host: object = None, params: Mapping[str, Any] | None = None
) -> VMExecutable:
    """The executable of a program for the virtual machine; `params` (by name) are built in."""
    if isinstance(mod, Expr):
        mod = IRModule.from_expr(mod)
    final = optimize(inline_external(mod), params, vm=True).mod
    return VMExecutable(final, natives_of(final, parse_target(target)), {})


def natives_of(mod: IRModule, target: CpuTarget) -> dict[Function, NativeFunction]:
    """Machine code for the Primitive functions of a module; equal ones share it."""
    natives: dict[Function, NativeFunction] = {}
    made: StructuralTable[NativeFunction] = StructuralTable()
    for func in [
        n for n in walk(mod.functions.values()) if isinstance(n, Function) and n.is_primitive and compilable(n)
    ]:
        natives[func] = made.at(func, lambda _, func=func: NativeFunction(func, target))  # type: ignore[misc]
    return natives


class NativeMachine(Machine):
    """The evaluator, with calls of compiled functions run natively."""

    def __init__(self, executable: VMExecutable):
        super().__init__(executable.mod)
        self.natives = executable.natives

    def enter(self, call: Call, frame: Frame, closure: Closure, args: list[Value]) -> None:
        native = self.natives.get(closure.function)
        if native is None:
            super().enter(call, frame, closure, args)
        else:
            frame.values[call] = native(*args)
            frame.release(call)


class _VMInterpreter(Interpreter):
    """Runs the functions of an executable on the native machine."""

    def __init__(self, executable: VMExecutable):
        super().__init__(executable.mod, executable.params, array)
        self.executable = executable

    def machine(self) -> Machine:
        return NativeMachine(self.executable)


@checked
class VirtualMachine:
    """Runs an executable: `vm.invoke("main", x)`, or `set_input` and then `run`."""

    def __init__(self, exe: VMExecutable, device: Device | None = None, memory_cfg: object = None):
        if not isinstance(exe, VMExecutable):
            raise RelayTypeError(
                f"the virtual machine runs what relay.vm.compile gives, not a {type(exe).__name__}",
                code="vm.executable",
            )
        self.exe, self.device = exe, device if device is not None else cpu(0)
        self._interpreter = _VMInterpreter(exe)
        self._inputs: dict[str, dict[str, Any]] = {}
        self._outputs: Any = None

    def invoke(self, func_name: str, *args: object, **kwargs: object) -> Any:
        """Call a function of the executable."""
        if func_name not in self.exe.globals:
            raise RelayValueError(
                f"the executable has no function `{func_name}`",
                code="vm.no-function",
                help=did_you_mean(func_name, self.exe.globals),
            )
        given = self._inputs.get(func_name, {}) if not args and not kwargs else {}
        self._outputs = self._interpreter.evaluate(self.exe.mod.get_global_var(func_name))(*args, **{**given, **kwargs})
        return self._outputs

    def run(self, *args: object, **kwargs: object) -> Any:
        """Call `main`."""
        return self.invoke("main", *args, **kwargs)

    def set_input(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Keep arguments for the next `invoke` without any."""
        names = self.exe.get_function_params(func_name)
        self._inputs[func_name] = {**dict(zip(names, args)), **kwargs}

    def invoke_stateful(self, func_name: str) -> None:
        """Call a function with the inputs that were set; `get_outputs` gives what it returned."""
        self.invoke(func_name)

    def get_outputs(self) -> list[Any]:
        """What the last call returned, as a list."""
        return list(self._outputs) if isinstance(self._outputs, (tuple, list)) else [self._outputs]

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The position of a parameter, -1 if there is none of that name."""
        names = self.exe.get_function_params(func_name)
        return names.index(input_name) if input_name in names else -1

    def benchmark(
        self,
        device: Device | None = None,
        *args: object,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        **kwargs: object,
    ) -> BenchmarkResult:
        """Measured time of calls."""
        return Evaluator(lambda: self.invoke(func_name, *args, **kwargs), number=number, repeat=repeat)()
