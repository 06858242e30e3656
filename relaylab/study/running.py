"""Running what was built: seeded inputs, profiles, listings of kernels."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, TypeGuard, TypeVar

import numpy as np

from relaylab import relay, viz
from relaylab.codegen.inspection.llvm_passes import LLVMStep, llvm_passes
from relaylab.codegen.kernels.kernel import module_text
from relaylab.codegen.network.open_sizes import evaluated
from relaylab.codegen.specializations import FIRST_SIZE
from relaylab.codegen.vm import VirtualMachine, VMExecutable
from relaylab.codegen.vm_parts import CompiledParts
from relaylab.codegen.vm_profiler import VirtualMachineProfiler
from relaylab.interp import random_inputs
from relaylab.interp.inputs import random_value
from relaylab.interp.values import Value
from relaylab.ir import Function
from relaylab.ir.dims import SymbolicDim
from relaylab.ir.free import sizes_in
from relaylab.ir.types import TensorType
from relaylab.runtime.device import cpu
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.module import STAGES, GraphExecutorFactoryModule
from relaylab.runtime.profiling import Count, Duration, Metric, Percent, Report
from relaylab.study.checking import leaves, needs_vm
from relaylab.study.program import Loadable, load, with_known_sizes
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.support.words import counted
from relaylab.transform import PassContext

T = TypeVar("T")
Compiled = GraphExecutorFactoryModule | VMExecutable
EXAMPLE_SIZE = FIRST_SIZE
"""What open sizes are where something is measured and nobody can say any: as in the figures of `summary`."""
HOT = 5
"""Of how many kernels a report has the Relay function."""


def timed(what: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and the seconds that it took."""
    start = time.perf_counter()
    return what(), time.perf_counter() - start


@checked
def run(
    program: Loadable,
    inputs: Mapping[str, Any] | None = None,
    opt_level: int = 3,
    seed: int = 0,
    executor: str | None = None,
) -> np.ndarray | list[np.ndarray]:
    """What the program gives: an array, or a list of them; inputs that are not given are drawn from `seed`."""
    program = load(program)
    mod = relay.transform.InferType()(program.mod)
    given = {**program.params, **(inputs or {})}
    names = [p.name_hint for p in mod["main"].params]
    for name in inputs or {}:
        if name not in names:
            raise RelayValueError(
                f"the program has no input `{name}`",
                code="study.no-input",
                help=did_you_mean(name, names) or f"it has: {', '.join(names)}",
            )
    values = [given.get(n, v) for n, v in zip(names, random_inputs(mod["main"], seed))]
    with PassContext(opt_level=opt_level):
        found = leaves(relay.create_executor(executor or ("vm" if needs_vm(mod) else "graph"), mod).evaluate()(*values))
    return found[0] if len(found) == 1 else found


@checked
def run_library(lib: Compiled, inputs: Mapping[str, Any], seed: int = 0) -> np.ndarray | list[np.ndarray]:
    """What a compiled program gives; inputs that are not given are drawn from `seed`."""
    if isinstance(lib, VMExecutable):
        return run_executable(lib, inputs, seed)
    module = seeded(lib, inputs, seed)
    module.run()
    found = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    return found[0] if len(found) == 1 else found


@checked
def seeded(lib: GraphExecutorFactoryModule, inputs: Mapping[str, Any] | None = None, seed: int = 0) -> GraphModule:
    """A graph module of a library with its inputs set: the given ones, the rest drawn from `seed`."""
    module = GraphModule(lib["default"](cpu(0)))
    shapes, dtypes = module.get_input_info()
    rng = np.random.default_rng(seed)
    bound = set(lib.get_params())
    for name, value in (inputs or {}).items():
        module.set_input(name, value)
    for name in shapes:
        if name not in bound and name not in (inputs or {}):
            module.set_input(name, rng.uniform(-1, 1, shapes[name]).astype(dtypes[name]))
    return module


def built(
    program: Loadable, opt_level: int = 3, config: Mapping[str, Any] | None = None, target: str = "llvm"
) -> GraphExecutorFactoryModule:
    """A program compiled with its parameters, under a level of passes and options of the build."""
    program = with_known_sizes(load(program))
    with PassContext(opt_level=opt_level, config=dict(config or {})):
        return relay.build(program.mod, target=target, params=dict(program.params))


def profile(
    what: Loadable | Compiled,
    opt_level: int = 3,
    number: int = 20,
    target: str = "llvm",
    inputs: Mapping[str, Any] | None = None,
) -> Report:
    """Measured time per kernel of a library, an executable or a program, as a report; `target` is what a program is
    built for. `inputs` that are not given are drawn; those of open size have to be given.
    """
    if isinstance(what, GraphExecutorFactoryModule | VMExecutable):
        lib = what
    else:
        program = load(what)
        lib = compiled(program if inputs else with_known_sizes(program), opt_level, target)
    if isinstance(lib, VMExecutable):
        return profile_executable(lib, inputs, number)
    return seeded(lib, inputs).profile(repeat=number)


def operator_table(what: Loadable, opt_level: int = 3, number: int = 20, target: str = "llvm") -> viz.OperatorTable:
    """Operators as they are compiled, with MACs, bytes and measured time; `viz.operator_table` says what counts."""
    program = with_known_sizes(load(what))
    with PassContext(opt_level=opt_level):
        mod, _ = relay.optimize(program.mod, target=target, params=dict(program.params))
    view, lib = viz.view(mod), compiled(program, opt_level, target)
    if isinstance(lib, VMExecutable):
        report = profile_executable(lib, number=number)
    else:
        report = seeded(lib).profile(repeat=number, roofline=False)
    return viz.operator_table(view, viz.kernel_times(view, report.calls))


@checked
def llvm_steps(lib: Compiled | CompiledParts, kernel: str) -> list[LLVMStep]:
    """What LLVM's own passes would do to a kernel (`relay.build` runs none): each with its time and the text after.

    `kernel` is (part of) a kernel's name. Raises `RelayError` for a loaded library, which has only machine code.
    """
    kept = looked_at(lib)
    parts = kept.linked(kept.kernel_called(kernel))
    return [
        step
        for part in parts
        for step in llvm_passes(module_text([part.kernel], attributes=part.target.attributes), part.target)
    ]


@checked
def listing(lib: Compiled, kernel: str | None = None, stage: str = "asm") -> str:
    """A kernel of a compiled program as text at one of `STAGES`, or "all" of them; without a name the table of kernels.

    A part of a name means all kernels that have it in theirs.
    """
    if stage not in (*STAGES, "all"):
        help = did_you_mean(stage, STAGES) or f"stages: {', '.join(STAGES)}"
        raise RelayValueError(f"there is no stage `{stage}`", code="runtime.stage", help=help)
    parts = looked_at(lib)
    if kernel is None:
        return parts.summary()
    names = parts.kernels()
    found = [n for n in names if n == kernel] or [n for n in names if kernel in n] or [parts.kernel_called(kernel)]
    stages = [s for s in STAGES if parts.has_stage(s)] if stage == "all" else (stage,)
    return "\n\n".join(f"// {name}: {s}\n{parts.inspect(s, name)}" for name in found for s in stages)


@checked
def describe(lib: Compiled) -> str:
    """What was compiled, in words: kernels, how often they run, memory; or the forms of an executable."""
    if isinstance(lib, VMExecutable):
        return lib.stats
    plan = lib.executable.plan
    kernels = len({step.kernel for step in plan.steps})
    constants = sum(p.nbytes for p in lib.executable.params.values())
    sizes = (plan.arena_bytes, constants)
    tensors, weights = (f"{n / 2**20:.1f} MiB" if n >= 2**20 / 10 else f"{n / 2**10:.1f} KiB" for n in sizes)
    run = f"{counted(len(plan.steps), 'step')} of {counted(kernels, 'kernel')}"
    return f"{run}, {tensors} for tensors, {weights} of constants"


def is_compiled(what: object) -> TypeGuard[Compiled]:
    """Whether something is what `relay.build` or `relay.vm.compile` gives."""
    return isinstance(what, GraphExecutorFactoryModule | VMExecutable)


def compiled(program: Loadable, opt_level: int = 3, target: str = "llvm") -> Compiled:
    """A program compiled with its parameters: a library, or an executable of the virtual machine where it has control
    flow, or sizes that only a call or data decides.
    """
    program = load(program)
    with PassContext(opt_level=opt_level):
        if needs_vm(relay.transform.InferType()(program.mod)):
            return relay.vm.compile(program.mod, target=target, params=dict(program.params))
        return relay.build(program.mod, target=target, params=dict(program.params))


def looked_at(lib: Compiled | CompiledParts) -> GraphExecutorFactoryModule | CompiledParts:
    """What has the kernels of a compiled program, their loops and their code."""
    return lib.parts() if isinstance(lib, VMExecutable) else lib


@checked
def arguments(exe: VMExecutable, inputs: Mapping[str, Any] | None = None, seed: int = 0) -> list[Value]:
    """The arguments of `main`: the given ones by name, the rest drawn from `seed`.

    RelayValueError `study.no-input` for a name that is none, `study.open-sizes` for inputs of open size that nobody
    gives: how long something takes depends on them.
    """
    given, main = inputs or {}, _main(exe)
    names = exe.get_function_params("main")
    for name in given:
        if name not in names:
            help = did_you_mean(name, names) or f"it has: {', '.join(names)}"
            raise RelayValueError(f"the program has no input `{name}`", code="study.no-input", help=help)
    for name, p in zip(names, main.params):
        if name not in given and isinstance(p.checked_type, TensorType) and p.checked_type.is_dynamic:
            raise RelayValueError(
                f"the input `{name}` has open sizes: {p.checked_type}",
                code="study.open-sizes",
                help=f"give an array of the size that you want to know of: {name}=array",
            )
    return [given.get(name, value) for name, value in zip(names, random_inputs(main, seed))]


def _main(exe: VMExecutable) -> Function:
    return (exe.program if exe.specializations is None else exe.specializations.mod)["main"]


def example_inputs(exe: VMExecutable, size: int = EXAMPLE_SIZE, seed: int = 0) -> dict[str, Value]:
    """Inputs whose sizes are open, drawn with this number for each open size."""
    given = dict[str, Value]()
    rng = np.random.default_rng(seed)
    for name, p in zip(exe.get_function_params("main"), _main(exe).params):
        t = p.checked_type
        if isinstance(t, TensorType) and t.is_dynamic:
            sizes = dict.fromkeys(sizes_in(t.shape), size)
            shape = [
                evaluated(d, sizes) if isinstance(d, SymbolicDim) else d if isinstance(d, int) else size
                for d in t.shape
            ]
            given[name] = random_value(TensorType(tuple(shape), t.dtype), rng)
    return given


def example_sizes(exe: VMExecutable, size: int = EXAMPLE_SIZE) -> str:
    """In words what the sizes of `example_inputs` are, as in `n = 8`; empty if no size is open."""
    shapes = [p.checked_type.shape for p in _main(exe).params if isinstance(p.checked_type, TensorType)]
    named = [str(d) for s in shapes for d in sizes_in(s)]
    unnamed = ["?" for s in shapes for d in s if not isinstance(d, int | SymbolicDim)]
    return ", ".join(f"{name} = {size}" for name in dict.fromkeys([*named, *unnamed]))


def run_executable(
    exe: VMExecutable, inputs: Mapping[str, Any] | None = None, seed: int = 0
) -> np.ndarray | list[np.ndarray]:
    """What an executable gives; inputs that are not given are drawn from `seed`."""
    found = leaves(VirtualMachine(exe).invoke("main", *arguments(exe, inputs, seed)))
    return found[0] if len(found) == 1 else found


def profile_executable(exe: VMExecutable, inputs: Mapping[str, Any] | None = None, number: int = 20) -> Report:
    """Measured time of the kernels that a call runs: of `number` calls the median, with the Relay of the slowest.

    What a whole call takes stands below: what is between kernels (Python, operators without code) is in no row.
    """
    values, machine = arguments(exe, inputs), VirtualMachineProfiler(exe)
    plain, turns = VirtualMachine(exe), range(max(1, number))
    plain.invoke("main", *values)
    whole = median([timed(lambda: plain.invoke("main", *values))[1] for _ in turns])
    reports = [machine.profile(*values) for _ in turns]
    alike = [r.calls for r in reports if [c["Name"] for c in r.calls] == [c["Name"] for c in reports[-1].calls]]
    calls = [_median(same) for same in zip(*alike)]
    total = sum(_microseconds(c) for c in calls)
    for call in calls:
        call["Percent"] = Percent(100 * _microseconds(call) / total if total else 0.0)
    device: dict[str, Metric] = {"Duration (us)": Duration(total), "Count": Count(len(calls))}
    parts = exe.parts()
    hottest = sorted(calls, key=_microseconds, reverse=True)
    texts: dict[str, str] = {}
    for name in dict.fromkeys(str(c["Name"]) for c in hottest):
        homes = [lib for _, lib in parts.parts if name in lib.kernels()]
        if homes and len(texts) < HOT:
            texts[name] = homes[0].relay_text(name)
    setup: dict[str, Metric] = {"Executor": "virtual machine", "A whole call (us)": Duration(1e6 * whole)}
    return Report(calls, {"cpu0": device}, setup, texts)


def calls_of(lib: Compiled, inputs: Mapping[str, Any]) -> Callable[[], Sequence[Mapping[str, Metric]]]:
    """A function that runs a compiled program on inputs and gives the measured calls of its kernels."""
    if isinstance(lib, VMExecutable):
        machine, values = VirtualMachineProfiler(lib), arguments(lib, inputs)
        return lambda: machine.profile(*values).calls
    module = seeded(lib, inputs)
    return lambda: module.profile(repeat=1, roofline=False).calls


def plain_name(kernel: str) -> str:
    """The name of a kernel without its first one, which what goes step by step, and parts of a form, have otherwise."""
    return kernel.partition("_fused_")[2] or kernel


def _microseconds(call: Mapping[str, Metric]) -> float:
    took = call["Duration (us)"]
    return took.microseconds if isinstance(took, Duration) else 0.0


def _median(same: Sequence[Mapping[str, Metric]]) -> dict[str, Metric]:
    """The same kernel in several calls, as one row."""
    return {**same[0], "Duration (us)": Duration(median(map(_microseconds, same)))}
