"""What the virtual machine runs: the optimized module, the machine code of its kernels, and what is made from both."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from functools import cached_property
from typing import Any

import numpy as np

from relaylab.codegen.build import build, parse_target
from relaylab.codegen.flow.form import FlowForm
from relaylab.codegen.flow.machine import FlowFunctions
from relaylab.codegen.inspection.vm_listing import listing
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.cache import Entries
from relaylab.codegen.native_function import NativeFunction, with_native_code
from relaylab.codegen.network.external import inline_external
from relaylab.codegen.network.mapped import unchanged_files
from relaylab.codegen.open.staged import StagedForm
from relaylab.codegen.operations.schedules import one_program
from relaylab.codegen.saved_program import options_now, saved_options, saved_text
from relaylab.codegen.specializations import Specializations
from relaylab.codegen.vm_networks import is_network, with_networks
from relaylab.codegen.vm_parts import CompiledParts, Titled, parts_of
from relaylab.codegen.vm_straight import ArrayArguments, Straight
from relaylab.interp.plan import Plan
from relaylab.ir.base import Expr
from relaylab.ir.equal import StructuralTable
from relaylab.ir.expr import Constant, Function
from relaylab.ir.module import IRModule
from relaylab.ir.names import parameter_names
from relaylab.ir.visit import children, walk
from relaylab.runtime.executable import TargetInfo
from relaylab.runtime.memory import aligned_copy
from relaylab.runtime.native import check_machine
from relaylab.runtime.ndarray import NDArray, array
from relaylab.runtime.vm_library import VMLibrary
from relaylab.support.checked import checked
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayTypeError, RelayValueError, is_a, kind_of
from relaylab.support.words import counted
from relaylab.transform import InferType, optimize


@checked
class VMExecutable:
    """A compiled program: the optimized module and the machine code of its kernels."""

    def __init__(self, mod: IRModule, target: CpuTarget, specializations: Specializations | None):
        self.program, self.target, self.specializations = mod, str(target), specializations
        self._target = target
        self.context = options_now() if specializations is None else specializations.context
        self.plans: dict[Function, Plan] = {}
        self.values: dict[Constant, np.ndarray] = {}

    def __repr__(self) -> str:
        cpu = self.target.partition(" -mattr")[0]  # its features would take ten lines
        return (
            f"<compiled program of {', '.join(f'@{name}' for name in self.globals[:8])} for the virtual machine, {cpu}>"
        )

    def check_machine(self) -> None:
        """ArtifactError `runtime.other-machine` unless this machine runs what it is compiled for."""
        check_machine(TargetInfo(self._target.triple, self._target.needs, self.target))

    def constant(self, node: Constant) -> np.ndarray:
        """The value of a constant where kernels can read it; nobody writes to it."""
        found = self.values.get(node)
        if found is None:
            plain = np.asarray(node.data)
            made = aligned_copy(plain, plain.dtype)
            made.flags.writeable = False
            found = self.values.setdefault(node, made)  # other threads see it when its numbers are there
        return found

    @cached_property
    def natives(self) -> Mapping[Function, NativeFunction]:
        """Machine code for the networks and Primitive functions of the module.

        Forms of a program with open sizes have their own: there it is made when they leave something to the machine.
        """
        with self.context, one_program(self.specializations is None):
            return natives_of(self.program, self._target)

    @cached_property
    def functions(self) -> FlowFunctions:
        """Functions with control flow, as far as they run natively."""
        return FlowFunctions(self.program, self.natives, self._target, self.context.objects)

    @cached_property
    def straight(self) -> Straight | None:
        """`main` as instructions, if it has no control flow."""
        return Straight.of(self.program["main"], self.natives, self.constant) if "main" in self.program else None

    @cached_property
    def arrays(self) -> ArrayArguments | None:
        """What arrays `main` takes."""
        return ArrayArguments(self.program["main"]) if "main" in self.program else None

    @property
    def globals(self) -> list[str]:
        """The names of the functions."""
        return [gv.name_hint for gv in self.program.functions]

    @property
    def primitive_ops(self) -> list[str]:
        """The names of the compiled kernels, each once."""
        return list(dict.fromkeys(name for n in self.natives.values() for name in n.library.kernels()))

    def parts(self) -> CompiledParts:
        """What was compiled as networks that can be looked at: the form for all sizes, those for the shapes that were
        called often; of a program without forms its kernels. What only a call would make is made for it, and let go.
        """
        forms, found = self.specializations, list[Titled]()
        with self.context:
            form = None if forms is None else forms.form()
            if forms is not None and form is not None:
                found += parts_of(form, forms.mod, self._target)
            elif forms is None or not forms.forms:
                libraries = {id(n): (f"{n.name}:", n.library) for n in self.natives.values()}
                found += libraries.values()
            for made in [] if forms is None else forms.forms.values():
                if isinstance(made.executor, FlowForm):
                    networks = parts_of(made.executor, made.mod, self._target)
                    found += [(f"for {made.shapes}, {title}", lib) for title, lib in networks]
                else:
                    found.append((f"for {made.shapes}:", build(made.mod, self._target)))
        return CompiledParts(found, "" if forms is None else forms.formless)

    def kernels(self) -> list[str]:
        """The names of the kernels, as `inspect` takes them."""
        return self.parts().kernels()

    def inspect(self, stage: str = "loop", kernel: str | None = None) -> str:
        """The text of a stage of one kernel, or of all: see `inspect` of what `relay.build` gives."""
        return self.parts().inspect(stage, kernel)

    def summary(self) -> str:
        """A table of the kernels of each compiled part."""
        return self.parts().summary()

    def get_function_params(self, func_name: str) -> list[str]:
        """The parameters of a function."""
        return parameter_names(self.program[func_name].params)

    @property
    def bytecode(self) -> str:
        """What the functions do, one instruction for each value, as text; then those that run natively, if some do."""
        text = listing(self.program, {f: n.name for f, n in self.natives.items()})
        form = None if self.specializations is None else self.specializations.open
        native = [form.listing()] if isinstance(form, (FlowForm, StagedForm)) else []
        return "\n\n".join([text, *native, *self.functions.listings()])

    @property
    def constants(self) -> list[NDArray]:
        """The constants of the program, those in its kernels too, each once."""
        return [array(n.data.numpy()) for n in walk(self.program.functions.values()) if isinstance(n, Constant)]

    @property
    def lib(self) -> VMLibrary:
        """What `load_exec` needs besides the code: what the kernels are compiled for, and their machine code."""
        return VMLibrary(self.target, self.primitive_ops, objects=self._noted)

    @cached_property
    def _noted(self) -> Mapping[str, bytes]:
        """What it was made from, with what only a call would make: that is made, and the executable stays as it is."""
        forms = self.specializations
        if (forms is None or forms.form() is None) and "main" in self.program:
            functions = FlowFunctions(self.program, self.natives, self._target, self.context.objects)
            functions.at(self.program.get_global_var("main"))
        return self.context.objects.known

    @property
    def mod(self) -> VMLibrary:
        """The whole executable as a module: `exe.mod.export_library(path)` writes one file, which `load_module` reads
        and `VirtualMachine` runs.
        """
        code, lib = self.save()
        return VMLibrary(lib.target, lib.kernels, bytes(code), lib.objects)

    module = mod

    @property
    def virtual_devices(self) -> str:
        """What its values live on, in words: there is one CPU."""
        return "VM VirtualDevice[0]: device type 1 and id 0"

    def save(self) -> tuple[bytearray, VMLibrary]:
        """The program as bytes, and its library, which `export_library` writes; `load_exec` takes both.

        The bytes are the optimized module as text, and the options that it was compiled with. Of a program with open
        sizes they are the module before the passes, which run again. The library has the machine code: nothing is
        compiled where the program is loaded but forms for shapes that were not compiled here. Code that is of another
        release of the compiler is compiled anew.
        """
        forms = self.specializations
        text = saved_text(self.program if forms is None else forms.mod, self.context, forms is not None)
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
        is_open, context = saved_options(text) or (False, nullcontext())
        with Entries(lib.objects), context:
            if is_open:
                return compile(IRModule.from_text(text), lib.target)
            return executable_of(InferType()(IRModule.from_text(text)), lib.target)

    @property
    def stats(self) -> str:
        """What was compiled, in words."""
        functions, calls = counted(len(self.program.functions), "function"), counted(len(self.natives), "call")
        said = f"{functions}, {calls} of {counted(len({*map(id, self.natives.values())}), 'native kernel')}"
        said = functions if self.specializations is not None and not self.natives else said  # its forms say what runs
        said = "\n".join([said, *self.functions.summary()])
        return said if self.specializations is None else f"{said}\n{self.specializations.summary()}"


def compile(
    mod: IRModule | Function, target: object = None, target_host: object = None, params: Mapping[str, Any] | None = None
) -> VMExecutable:
    """The executable of a program for the virtual machine; `params` (by name) are built in."""
    if isinstance(mod, Expr):
        mod = IRModule.from_expr(mod)
    source = inline_external(mod)
    with unchanged_files(source, params), no_collection():
        return executable_of(optimize(source, params, vm=True), target, (source, params or {}))


def executable_of(
    final: IRModule, target: object, source: tuple[IRModule, Mapping[str, Any]] | None = None
) -> VMExecutable:
    """The executable of a module after the passes; `source` is the module before them and its parameters."""
    native = parse_target(target)
    forms = None if source is None else Specializations.of(*source, native)
    made = VMExecutable(with_networks(final), native, forms)
    if forms is None or not (forms.open_inputs or forms.prepared()):
        _ = made.natives
    return made


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
        return optimize(inline_external(mod), self.params, vm=True), self.get_params()

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
    made: StructuralTable[NativeFunction] = StructuralTable()

    def native(func: Function) -> NativeFunction:
        return made.at(func, lambda _: NativeFunction(func, target))

    nodes = walk(mod.functions.values(), lambda n: () if isinstance(n, Function) and is_network(n) else children(n))
    return {n: native(n) for n in nodes if isinstance(n, Function) and (is_network(n) or with_native_code(n))}
