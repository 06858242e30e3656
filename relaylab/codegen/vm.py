"""The virtual machine: programs with control flow, closures, data types and cells, whose kernels run natively.

`compile` runs the VM's pipeline, so that all arithmetic is in Primitive functions, and makes machine code of
those whose shapes are known. Functions that need no others run as native instructions (`flow/machine.py`). The rest,
Primitive functions over shapes that only run time knows, is evaluated by the operators' reference semantics: slower,
the same numbers. A program with open sizes is compiled whole, as a static one, for the shapes that it is called with
(`specializations.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import numpy as np

from relaylab.codegen.build import parse_target
from relaylab.codegen.flow.form import FlowForm
from relaylab.codegen.flow.machine import FlowFunctions
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.native_function import NativeFunction, flat, with_native_code
from relaylab.codegen.network.external import inline_external
from relaylab.codegen.open_results import aligned_copy
from relaylab.codegen.specializations import Key, Specializations, saved_options
from relaylab.codegen.vm_listing import constants, listing
from relaylab.codegen.vm_networks import is_network, with_networks
from relaylab.codegen.vm_straight import Straight
from relaylab.interp import Interpreter
from relaylab.interp.machine import Frame, Machine
from relaylab.interp.plan import Plan
from relaylab.interp.values import Closure, ConstructorValue, Value
from relaylab.ir.adt import Constructor
from relaylab.ir.base import Expr
from relaylab.ir.equal import StructuralTable
from relaylab.ir.expr import Call, Constant, Function, GlobalVar
from relaylab.ir.module import IRModule
from relaylab.ir.names import parameter_names
from relaylab.ir.visit import children, walk
from relaylab.runtime.benchmark import BenchmarkResult, Evaluator
from relaylab.runtime.container import ADT
from relaylab.runtime.device import Device, cpu
from relaylab.runtime.memory import aligned_like
from relaylab.runtime.module import Module
from relaylab.runtime.ndarray import NDArray, array
from relaylab.runtime.vm_library import VMLibrary
from relaylab.support import progress
from relaylab.support.checked import checked
from relaylab.support.errors import RelayTypeError, RelayValueError, is_a, kind_of
from relaylab.support.table import did_you_mean
from relaylab.transform import InferType, optimize


@checked
class VMExecutable:
    """A compiled program: the optimized module and the machine code of its kernels."""

    def __init__(
        self,
        mod: IRModule,
        natives: Mapping[Function, NativeFunction],
        params: Mapping[str, Any],
        target: str = "llvm",
        specializations: Specializations | None = None,
    ):
        self.mod, self.natives, self.params, self.target = mod, dict(natives), dict(params), target
        self.specializations = specializations
        self.functions = FlowFunctions(mod, self.natives, parse_target(target))
        self.plans: dict[Function, Plan] = {}
        self.values: dict[Constant, np.ndarray] = {}

    def constant(self, node: Constant) -> np.ndarray:
        """The value of a constant where kernels can read it; nobody writes to it."""
        if node not in self.values:
            value = node.data.numpy()
            self.values[node] = aligned_like(value.shape, value.dtype)
            self.values[node][...] = value
            self.values[node].flags.writeable = False
        return self.values[node]

    @cached_property
    def straight(self) -> Straight | None:
        """`main` as instructions, if it has no control flow."""
        return Straight.of(self.mod["main"], self.natives, self.constant) if "main" in self.mod else None

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
    def bytecode(self) -> str:
        """What the functions do, one instruction for each value, as text; then those that run natively, if some do."""
        text = listing(self.mod, {f: n.name for f, n in self.natives.items()})
        form = None if self.specializations is None else self.specializations.open
        native = [form.listing()] if isinstance(form, FlowForm) else []
        return "\n\n".join([text, *native, *self.functions.listings()])

    @property
    def constants(self) -> list[NDArray]:
        """The constants of the program."""
        return [array(c.data.numpy()) for c in constants(self.mod)]

    @property
    def lib(self) -> VMLibrary:
        """What `load_exec` needs besides the code: what the kernels are compiled for."""
        return VMLibrary(self.target, self.primitive_ops)

    def save(self) -> tuple[bytearray, VMLibrary]:
        """The program as bytes, and its library, which `export_library` writes; `load_exec` takes both.

        The bytes are the optimized module as text; its kernels are compiled again when it is loaded (object files that
        the cache has are taken from there). Of a program with open sizes they are the module before the passes, which
        run again, and under what options.
        """
        text = self.mod.astext() if self.specializations is None else self.specializations.text()
        return bytearray(text.encode()), self.lib

    @staticmethod
    def load_exec(bytecode: bytes | bytearray, lib: VMLibrary) -> VMExecutable:
        """The executable that `save` gave; `RelayError` for bytes that are no such program."""
        if not is_a(lib, VMLibrary):
            raise RelayTypeError(
                f"the library of an executable is needed, not {kind_of(lib)}",
                code="vm.library",
                help="give what exe.save() returned, or load_module(path) of the file that it was exported to",
            )
        try:
            text = bytes(bytecode).decode()
        except UnicodeDecodeError:
            raise RelayValueError("the bytes are no saved program", code="vm.code") from None
        options = saved_options(text)
        if options is None:
            return executable_of(InferType()(IRModule.from_text(text)), lib.target)
        with options:
            return compile(IRModule.from_text(text), lib.target)

    @property
    def stats(self) -> str:
        """What was compiled, in words."""
        kernels = {id(n) for n in self.natives.values()}
        said = f"{len(self.mod.functions)} functions, {len(self.natives)} calls of {len(kernels)} native kernels"
        said = "\n".join([said, *self.functions.summary()])
        return said if self.specializations is None else f"{said}\n{self.specializations.summary()}"


def compile(
    mod: IRModule | Function, target: object = None, target_host: object = None, params: Mapping[str, Any] | None = None
) -> VMExecutable:
    """The executable of a program for the virtual machine; `params` (by name) are built in."""
    if isinstance(mod, Expr):
        mod = IRModule.from_expr(mod)
    source = inline_external(mod)
    return executable_of(optimize(source, params, vm=True).mod, target, (source, params or {}))


def executable_of(
    final: IRModule, target: object, source: tuple[IRModule, Mapping[str, Any]] | None = None
) -> VMExecutable:
    """The executable of a module after the passes; `source` is the module before them and its parameters."""
    native = parse_target(target)
    forms = None if source is None else Specializations.of(*source, native)
    whole = with_networks(final)
    return VMExecutable(whole, natives_of(whole, native), {}, str(native), forms)


@checked
class VMCompiler:
    """Compiles step by step: `set_params`, `lower` (or `optimize` alone), `codegen`, `get_exec`."""

    def __init__(self) -> None:
        self.params: dict[str, Any] = {}
        self._final: tuple[IRModule, object, tuple[IRModule, Mapping[str, Any]]] | None = None
        self._executable: VMExecutable | None = None

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Values of parameters, by name, to be built in."""
        self.params.update(params)

    def get_params(self) -> dict[str, Any]:
        """The values of parameters that were set."""
        return dict(self.params)

    def optimize(
        self, mod: IRModule, target: object = None, target_host: object = None, params: Mapping[str, Any] | None = None
    ) -> tuple[IRModule, dict[str, Any]]:
        """The module after the passes of the virtual machine, and the parameters."""
        if isinstance(mod, Expr):
            mod = IRModule.from_expr(mod)
        parse_target(target)
        self.set_params(params or {})
        return optimize(inline_external(mod), self.params or None, vm=True).mod, self.get_params()

    def lower(self, mod: IRModule, target: object = None, target_host: object = None) -> None:
        """Run the passes; `codegen` comes next."""
        source = inline_external(IRModule.from_expr(mod) if isinstance(mod, Expr) else mod)
        self._final = self.optimize(source, target)[0], target, (source, self.get_params())

    def codegen(self) -> None:
        """Compile the kernels of what was lowered."""
        if self._final is None:
            raise RelayValueError("nothing was lowered", code="vm.compiler", help="call lower(mod, target) first")
        self._executable = executable_of(*self._final)

    def get_exec(self) -> VMExecutable:
        """The executable that `codegen` made."""
        if self._executable is None:
            raise RelayValueError("nothing was compiled", code="vm.compiler", help="call codegen() first")
        return self._executable


def natives_of(mod: IRModule, target: CpuTarget) -> dict[Function, NativeFunction]:
    """Machine code for the networks and Primitive functions of a module; equal ones share it."""
    natives: dict[Function, NativeFunction] = {}
    made: StructuralTable[NativeFunction] = StructuralTable()
    nodes = walk(mod.functions.values(), lambda n: () if isinstance(n, Function) and is_network(n) else children(n))
    functions = [n for n in nodes if isinstance(n, Function)]
    for func in [f for f in functions if is_network(f) or with_native_code(f)]:
        natives[func] = made.at(func, lambda _, func=func: NativeFunction(func, target))  # type: ignore[misc]
    return natives


class NativeMachine(Machine):
    """The evaluator, with calls of compiled functions run natively."""

    def __init__(self, executable: VMExecutable):
        super().__init__(executable.mod)
        self.executable = executable
        self.natives, self.known_plans = executable.natives, executable.plans

    def constant(self, node: Constant) -> Value:
        return self.executable.constant(node)

    def plan_of(self, func: Function, name: str) -> Plan:
        if func not in self.known_plans:
            self.known_plans[func] = super().plan_of(func, name)
        return self.known_plans[func]

    def enter(self, call: Call, frame: Frame, closure: Closure, args: list[Value]) -> None:
        native = self.natives.get(closure.function)
        if native is None:
            super().enter(call, frame, closure, args)
        else:
            frame.values[call] = native(*args)
            frame.release(call)


def as_adt(item: Value, fields: tuple[Value, ...]) -> ADT:
    """A tuple or a constructed value as programs get it."""
    made = isinstance(item, ConstructorValue)
    return ADT(item.tag, fields, item.constructor) if made else ADT(0, fields)


def _taken(memory: np.ndarray) -> NDArray:
    return NDArray(aligned_copy(memory), alone=True)


def _packed(made: Constructor | None, fields: Sequence[Value]) -> ADT:
    return ADT(0, fields) if made is None else ADT(made.tag, fields, made)


Values = tuple[Value, ...]


class VMInterpreter(Interpreter):
    """Runs the functions of an executable on the native machine."""

    def __init__(self, executable: VMExecutable):
        super().__init__(executable.mod, executable.params, array, as_adt)
        self.executable = executable

    def machine(self) -> Machine:
        return NativeMachine(self.executable)

    def main(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Value:
        """What `main` gives: by the native form for the shapes of the arguments, or by the machine."""
        if kwargs:
            args, kwargs = self.placed(args, kwargs)
        forms = self.executable.specializations
        if forms is not None and not forms.hopeless:
            if not kwargs and (out := forms.repeated(args)) is not None:
                return out
        elif (straight := self.executable.straight) is not None and not kwargs:
            taken = straight.taken(args)
            if taken is not None:
                return self.run(taken)
        values = self.arguments(self.mod["main"], args, kwargs)
        key, form = (None, None) if forms is None else forms.find(values)
        if forms is not None and form is not None:
            forms.note(args if not kwargs and len(args) == len(values) else (), cast(Key, key))
            return form.run(flat(values))
        if forms is not None and key is not None and (out := forms.opened(key, flat(tuple(values)))) is not None:
            return out
        start = time.perf_counter()
        out = self.run(values)
        if forms is not None and key is not None:
            forms.took(key, time.perf_counter() - start)
        return out

    def placed(self, args: Values, kwargs: Mapping[str, Value]) -> tuple[Values, Mapping[str, Value]]:
        """Arguments of `main` in order, if they have all names that are left and no other."""
        rest = self.executable.get_function_params("main")[len(args) :]
        return ((*args, *[kwargs[n] for n in rest]), {}) if kwargs.keys() == set(rest) else (args, kwargs)

    def run(self, values: Sequence[Value]) -> Value:
        """What `main` gives for the values of its parameters: by its instructions, or by the machine."""
        straight, failed = self.executable.straight, None
        if straight is not None and not progress.listened():
            try:
                value = straight.run(values)
                return straight.given(value) if straight.flat else self.given(value)
            except Exception as error:  # the machine says where it was
                failed = error
        out = self.called(self.mod.get_global_var("main"), tuple(values))
        if failed is not None:
            raise failed
        return out

    def called(self, entry: GlobalVar, values: tuple[Value, ...]) -> Value:
        """What a function gives: by its native instructions, if it has any, or by the machine."""
        out = self.executable.functions.run(entry, values, _taken, _packed)
        return self.evaluated(entry, values) if out is None else out

    def evaluated(self, entry: GlobalVar, values: tuple[Value, ...]) -> Value:
        """What the machine gives for a function."""
        machine = self.machine()
        return self.given(machine.call(machine.global_closure(entry), values))


class VirtualMachineModule(Module):
    """A virtual machine as a module: `vm.module.time_evaluator("invoke", dev)("main")` times it."""

    type_key = "VirtualMachine"

    def __init__(self, machine: VirtualMachine):
        self.machine = machine

    def functions(self) -> Mapping[str, Callable[..., Any]]:
        run = self.machine
        return {
            "invoke": run.invoke,
            "invoke_stateful": run.invoke_stateful,
            "set_input": run.set_input,
            "get_output": lambda index: run.get_outputs()[index],
            "get_num_outputs": lambda: len(run.get_outputs()),
            "get_input_index": lambda name, func_name="main": run.get_input_index(name, func_name),
        }


@checked
class VirtualMachine:
    """Runs an executable: `vm.invoke("main", x)`, or `set_input` and then `run`."""

    def __init__(self, exe: VMExecutable, device: Device | None = None, memory_cfg: object = None):
        if not isinstance(exe, VMExecutable):
            raise RelayTypeError(
                f"the virtual machine runs what relay.vm.compile gives, not {kind_of(exe)}", code="vm.executable"
            )
        self.exe, self.device = exe, device if device is not None else cpu(0)
        self.interpreter, self._names = VMInterpreter(exe), frozenset(exe.globals)
        self._inputs: dict[str, dict[str, Any]] = {}
        self._targets: dict[str, tuple[NDArray, ...]] = {}
        self._outputs: Any = None

    @property
    def module(self) -> VirtualMachineModule:
        """The machine as a module of named functions."""
        return VirtualMachineModule(self)

    def invoke(self, func_name: str, *args: object, **kwargs: object) -> Any:
        """Call a function of the executable."""
        return self._invoke(func_name, args, kwargs)

    def _invoke(self, func_name: str, args: Values, kwargs: Mapping[str, Value]) -> Value:
        if func_name not in self._names:
            raise RelayValueError(
                f"the executable has no function `{func_name}`",
                code="vm.no-function",
                help=did_you_mean(func_name, self.exe.globals),
            )
        if not args and not kwargs:
            kwargs = self._inputs.get(func_name, {})
        if func_name == "main":
            self._outputs = self.interpreter.main(args, kwargs)
        else:
            entry = self.exe.mod.get_global_var(func_name)
            values = self.interpreter.arguments(self.exe.mod[entry], args, kwargs)
            self._outputs = self.interpreter.called(entry, values)
        return self._outputs

    def run(self, *args: object, **kwargs: object) -> Any:
        """Call `main`."""
        return self._invoke("main", args, kwargs)

    def set_input(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Keep arguments for the next `invoke` without any."""
        names = self.exe.get_function_params(func_name)
        self._inputs[func_name] = {**dict(zip(names, args)), **kwargs}

    def set_one_input(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Keep one argument for the next call: `set_one_input("main", 0, value)`, or by its name."""
        names = self.exe.get_function_params(func_name)
        given: dict[str, object] = dict(kwargs)
        if len(args) == 2:
            key, value = args
            given[names[key] if isinstance(key, int) and 0 <= key < len(names) else str(key)] = value
        if len(given) != 1 or len(args) not in (0, 2) or next(iter(given)) not in names:
            raise RelayValueError(
                "one input is set by its number or its name", code="vm.input", help=f"inputs: {', '.join(names)}"
            )
        self._inputs.setdefault(func_name, {}).update(given)

    def set_outputs(self, func_name: str, *args: NDArray) -> None:
        """Arrays into which the next `invoke_stateful` copies what the function returns."""
        self._targets[func_name] = args

    def invoke_stateful(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Call a function with the inputs that were set, or are given here; `get_outputs` gives what it returned."""
        if args or kwargs:
            self.set_input(func_name, *args, **kwargs)
        self.invoke(func_name)
        for value, out in zip(self.get_outputs(), self._targets.pop(func_name, ())):
            value.copyto(out)

    def invoke_with_outputs(
        self, func_name: str, input_args: Mapping[str, object], output_args: Sequence[NDArray]
    ) -> None:
        """Call a function on named inputs and copy what it returns into arrays."""
        self.set_input(func_name, **input_args)
        self.set_outputs(func_name, *output_args)
        self.invoke_stateful(func_name)

    def load_late_bound_consts(self, *given: object) -> None:
        """Nothing is bound late: an executable has its constants in it."""

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
        min_repeat_ms: float | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: object,
    ) -> BenchmarkResult:
        """Measured time of calls: `repeat` measurements of `number` calls each.

        Values go in and come out of each call either way, so `end_to_end` measures the same.
        """
        options = (min_repeat_ms or 0, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown)
        return Evaluator(lambda: self.invoke(func_name, *args, **kwargs), number, repeat, *options)()
