"""The virtual machine: programs with control flow, closures, data types and cells, whose kernels run natively.

`compile` runs the VM's pipeline, so that all arithmetic is in Primitive functions, and makes machine code of
those whose shapes are known. Functions that need no others run as native instructions (`flow/machine.py`). The rest,
Primitive functions over shapes that only run time knows, is evaluated by the operators' reference semantics: slower,
the same numbers. A program with sizes that a call or data decides is compiled whole, for all of them (`open`), and as a
static one for the shapes that it is often called with (`specializations.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from relaylab.codegen.native_function import flat
from relaylab.codegen.specializations import Key, Specializations
from relaylab.codegen.vm_executable import VMCompiler, VMExecutable, compile, executable_of
from relaylab.interp import Interpreter
from relaylab.interp.executor import check_names
from relaylab.interp.machine import Frame, Machine
from relaylab.interp.plan import Plan
from relaylab.interp.values import Closure, ConstructorValue, Value
from relaylab.ir.expr import Call, Constant, Function, GlobalVar
from relaylab.runtime.benchmark import BenchmarkResult, Evaluator
from relaylab.runtime.container import ADT
from relaylab.runtime.device import Device, cpu, require_present
from relaylab.runtime.module import Module
from relaylab.runtime.ndarray import NDArray, array
from relaylab.runtime.vm_library import VMLibrary
from relaylab.support import progress
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError, kind_of
from relaylab.support.table import did_you_mean


class NativeMachine(Machine):
    """The evaluator, with calls of compiled functions run natively."""

    def __init__(self, executable: VMExecutable):
        super().__init__(executable.program)
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


Values = tuple[Value, ...]


class VMInterpreter(Interpreter):
    """Runs the functions of an executable on the native machine."""

    def __init__(self, executable: VMExecutable):
        executable.check_machine()  # else it would be evaluated: slowly, and nobody would know
        super().__init__(executable.program, wrap=array, pack=as_adt)
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
        elif not kwargs and (arrays := self.executable.arrays) is not None:
            taken = arrays.taken(args)
            if taken is not None:
                return self.run(taken)
        values = self.arguments(self.mod["main"], args, kwargs)
        if forms is None:
            return self.run(values)
        key, form = forms.find(values)
        if form is not None:
            out = form.run(flat(values))
            return self.run(values) if out is None else out
        out = forms.opened(key, flat(values))
        if out is None:
            start = time.perf_counter()
            try:
                out = self.run(values)
            except RelayError as error:
                out = self.beyond(forms, key, values)
                if out is not None:
                    return out
                error.help = error.help or forms.beyond.get(key, "")
                raise
            forms.took(key, time.perf_counter() - start)
        return out

    @staticmethod
    def beyond(forms: Specializations, key: Key, values: Sequence[Value]) -> Value | None:
        """What the form for shapes that no other takes gives: its types are those of numbers."""
        form = forms.find(values)[1] if key in forms.beyond else None
        return None if form is None else form.run(flat(values))

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
        out = self.executable.functions.run(entry, values)
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
            "get_input_index": run.get_input_index,
        }


@checked
class VirtualMachine:
    """Runs an executable: `vm.invoke("main", x)`, or `set_input` and then `run`."""

    NAIVE_ALLOCATOR, POOLED_ALLOCATOR = 1, 2

    def __init__(
        self,
        exe: VMExecutable | VMLibrary,
        device: Device | Sequence[Device] | None = None,
        memory_cfg: str | Mapping[Device, str] | None = None,
    ):
        """`exe`: what was compiled, or the module in a file that `exe.mod` was exported to; one device, or a list."""
        if isinstance(exe, VMLibrary) and exe.code is not None:
            exe = VMExecutable.load_exec(exe.code, exe)
        if not isinstance(exe, VMExecutable):
            raise RelayTypeError(
                f"the virtual machine runs what relay.vm.compile gives, not {kind_of(exe)}",
                code="vm.executable",
                help="a library without the code needs it: Executable.load_exec(code, lib)",
            )
        devices = (device,) if isinstance(device, Device) else tuple(device or (cpu(0),))
        self.exe, self.device = exe, [require_present(d) for d in devices][0]
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
            entry = self.exe.program.get_global_var(func_name)
            values = self.interpreter.arguments(self.exe.program[entry], args, kwargs)
            self._outputs = self.interpreter.called(entry, values)
        return self._outputs

    def run(self, *args: object, **kwargs: object) -> Any:
        """Call `main`."""
        return self._invoke("main", args, kwargs)

    def set_input(self, func_name: str, *args: object, **kwargs: object) -> None:
        """Keep arguments for the next `invoke` without any."""
        names = self.exe.get_function_params(func_name)
        check_names(names, args, kwargs)
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


__all__ = ["VMCompiler", "VMExecutable", "VirtualMachine", "VirtualMachineModule", "compile", "executable_of"]
