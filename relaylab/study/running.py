"""Running what was built: seeded inputs, profiles, listings of kernels."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from relaylab import relay, viz
from relaylab.codegen.inspection.llvm_passes import LLVMStep, llvm_passes
from relaylab.codegen.kernels.kernel import module_text
from relaylab.interp import random_inputs
from relaylab.runtime.device import cpu
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.module import STAGES, GraphExecutorFactoryModule
from relaylab.runtime.profiling import Report
from relaylab.study.checking import leaves, needs_vm
from relaylab.study.program import Loadable, load, with_known_sizes
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.support.words import counted
from relaylab.transform import PassContext

T = TypeVar("T")


def timed(what: Callable[[], T]) -> tuple[T, float]:
    """What a call returns, and the seconds that it took."""
    start = time.perf_counter()
    return what(), time.perf_counter() - start


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


def run_library(
    lib: GraphExecutorFactoryModule, inputs: Mapping[str, Any], seed: int = 0
) -> np.ndarray | list[np.ndarray]:
    """What a compiled library gives; inputs that are not given are drawn from `seed`."""
    module = seeded(lib, inputs, seed)
    module.run()
    found = [module.get_output(i).numpy() for i in range(module.get_num_outputs())]
    return found[0] if len(found) == 1 else found


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
    what: Loadable | GraphExecutorFactoryModule, opt_level: int = 3, number: int = 20, target: str = "llvm"
) -> Report:
    """Measured time per kernel of a library or of a program, as a report; `target` is what a program is built for."""
    lib = what if isinstance(what, GraphExecutorFactoryModule) else built(what, opt_level, target=target)
    return seeded(lib).profile(repeat=number)


def operator_table(what: Loadable, opt_level: int = 3, number: int = 20, target: str = "llvm") -> viz.OperatorTable:
    """Operators as they are compiled, with MACs, bytes and measured time; `viz.operator_table` says what counts."""
    program = with_known_sizes(load(what))
    with PassContext(opt_level=opt_level):
        mod, _ = relay.optimize(program.mod, target=target, params=dict(program.params))
    view, lib = viz.view(mod), built(program, opt_level, target=target)
    return viz.operator_table(view, viz.kernel_times(view, seeded(lib).profile(repeat=number, roofline=False).calls))


def llvm_steps(lib: GraphExecutorFactoryModule, kernel: str) -> list[LLVMStep]:
    """What LLVM's own passes would do to a kernel (`relay.build` runs none): each with its time and the text after.

    `kernel` is (part of) a kernel's name. Raises `RelayError` for a loaded library, which has only machine code.
    """
    parts = lib.linked(lib.kernel_called(kernel))
    return [
        step
        for part in parts
        for step in llvm_passes(module_text([part.kernel], attributes=part.target.attributes), part.target)
    ]


def listing(lib: GraphExecutorFactoryModule, kernel: str | None = None, stage: str = "asm") -> str:
    """A kernel of a library as text at one of `STAGES`, or at "all" of them; without a name the table of kernels.

    A part of a name means all kernels that have it in theirs.
    """
    if kernel is None:
        return lib.summary()
    names = lib.kernels()
    found = [n for n in names if n == kernel] or [n for n in names if kernel in n] or [lib.kernel_called(kernel)]
    stages = [s for s in STAGES if lib.has_stage(s)] if stage == "all" else (stage,)
    return "\n\n".join(f"// {name}: {s}\n{lib.inspect(s, name)}" for name in found for s in stages)


def describe(lib: GraphExecutorFactoryModule) -> str:
    """What was compiled, in words: kernels, how often they run, memory."""
    plan = lib.executable.plan
    kernels = len({step.kernel for step in plan.steps})
    constants = sum(p.nbytes for p in lib.executable.params.values())
    sizes = (plan.arena_bytes, constants)
    tensors, weights = (f"{n / 2**20:.1f} MiB" if n >= 2**20 / 10 else f"{n / 2**10:.1f} KiB" for n in sizes)
    run = f"{counted(len(plan.steps), 'step')} of {counted(kernels, 'kernel')}"
    return f"{run}, {tensors} for tensors, {weights} of constants"
