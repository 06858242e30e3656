"""`relay.build`: from a Relay program to a compiled module, and `relay.optimize`, its first half."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from functools import partial
from types import MappingProxyType
from typing import Any

from relaylab.codegen.inspection.stages import Stages
from relaylab.codegen.isa.target import CpuTarget, is_foreign
from relaylab.codegen.kernels.kernel import Kernel, module_texts
from relaylab.codegen.llvm.cache import ObjectCache
from relaylab.codegen.llvm.jit import Compilation
from relaylab.codegen.native.entry import entry_text
from relaylab.codegen.network.external import inline_external
from relaylab.codegen.network.graph_json import graph_json
from relaylab.codegen.network.mapped import unchanged_files
from relaylab.codegen.network.network import Network, NetworkConstants, Operation, Recipes, network_of
from relaylab.codegen.operations.generic import VERIFY
from relaylab.codegen.operations.layout import lay_out
from relaylab.codegen.operations.memo import KernelMemo
from relaylab.codegen.operations.plan import NetworkPlan, Planner
from relaylab.codegen.operations.records import tell_unused, tuned_schedules
from relaylab.codegen.operations.schedules import chosen_schedules
from relaylab.codegen.operations.select import jobs_of
from relaylab.codegen.operations.zero_rows import padded_products
from relaylab.codegen.options import Executor, Runtime
from relaylab.ir import Function, IRModule
from relaylab.loop.schedule import Schedule
from relaylab.runtime.aot_executor import AOTExecutorFactoryModule
from relaylab.runtime.executable import Executable, TargetInfo
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError, warn
from relaylab.support.foreign import FOREIGN
from relaylab.support.handover import hand_over_soon
from relaylab.support.progress import part
from relaylab.transform import PassContext
from relaylab.transform.engine.recipes import noting
from relaylab.transform.micro_batch import micro_batches
from relaylab.transform.pipeline import optimize as after_passes

WINOGRAD = "relay.codegen.winograd"
BASELINE = "llvm -mcpu=x86-64"


def build(
    ir_mod: IRModule | Function,
    target: object = None,
    target_host: object = None,
    executor: Executor | str = "graph",
    runtime: Runtime | str = "cpp",
    workspace_memory_pools: object = None,
    constant_memory_pools: object = None,
    params: Mapping[str, Any] | None = None,
    mod_name: str = "default",
) -> GraphExecutorFactoryModule:
    """Compile the `main` of a module for a target, with `params` (by name) built in.

    The passes of the current PassContext's level run first. Raises RelayError `build.not-static` for programs that
    are no static graph, and whatever type inference finds.
    """
    chosen = executor if isinstance(executor, Executor) else Executor(executor)
    if not isinstance(runtime, Runtime):
        Runtime(runtime)
    wanted = parse_target(target)
    # A build makes many nodes and drops few: looking for cycles was 12-20 % of the passes' time and found none.
    mod = _module(ir_mod)
    compilation = Compilation(wanted, ObjectCache.default())
    with unchanged_files(mod, params), no_collection(), noting() as recipes, compilation:
        _entry(compilation)  # follows from the target alone, and while the passes run LLVM has nothing else to do
        # The program after the passes has no other owner: its weights go as they are packed.
        return compile_main(
            after_passes(inline_external(mod), params), wanted, mod_name, chosen, ir_mod, recipes, compilation
        )


def optimize(
    ir_mod: IRModule | Function, target: object = None, params: Mapping[str, Any] | None = None
) -> tuple[IRModule, dict[str, Any]]:
    """The module after all passes of `relay.build` at the current level, and the parameters it still lacks: none."""
    parse_target(target)
    return after_passes(inline_external(_module(ir_mod)), params), {}


def compile_main(
    mod: IRModule,
    target: CpuTarget,
    mod_name: str = "default",
    executor: Executor | str = "graph",
    ir_mod: IRModule | Function | None = None,
    recipes: Recipes = MappingProxyType({}),
    begun: Compilation | None = None,
) -> GraphExecutorFactoryModule:
    """Compile the `main` of a module that the passes have fused; `recipes` compute constants of it again. What is
    `begun` compiles for the same target already.
    """
    main, parts = micro_batches(mod["main"])
    network = network_of(main, f"tvmgen_{mod_name}", recipes=recipes)
    ir_mod = mod if ir_mod is None else ir_mod
    del mod, main
    tuned, chosen = tuned_schedules(network, target), chosen_schedules(network)
    compiled = partial(_compiled, ir_mod, network, target, mod_name, executor, parts, begun)
    try:
        return compiled(tuned | chosen)
    except RelayError as error:
        if not tuned or not error.code.startswith("schedule."):
            raise
        refused = str(error)
    made = compiled(chosen)  # a chosen schedule may be at fault
    tell_unused(f"the records of tuning are not used: {refused}")
    return made


def _waited(compilation: Compilation, started: Sequence[Future[bytes]]) -> Iterator[bytes]:
    for k, kernel in enumerate(started, 1):
        part("kernel", k, len(started))
        yield compilation.result(kernel)


def compiled_plan(
    planner: Planner, launched: Callable[[], None] = lambda: None, begun: Compilation | None = None
) -> tuple[NetworkPlan, bytes, tuple[bytes, ...]]:
    """The plan of a network, the object file of the entry and those of the kernels.

    `launched` is called when all kernels are written, before memory is planned.
    """
    target = planner.target
    started: dict[str, Future[bytes]] = {}
    written = itertools.count(1)
    compiling = Compilation(target, planner.memo.cache) if begun is None else nullcontext(begun)
    with hand_over_soon(), compiling as compilation:
        entry = _entry(compilation)

        # LLVM needs no Python while it compiles: each kernel's text goes to its threads while the next one is written.
        def compile_kernel(kernel: Kernel) -> None:
            part("loops", next(written), len(planner.layouts.jobs))
            for text in module_texts(kernel, target.attributes):
                started.setdefault(text, compilation.add(text))

        planner.launch(compile_kernel)
        launched()
        planned = planner.plan()
        return planned, compilation.result(entry), tuple(_waited(compilation, list(started.values())))


def _entry(compilation: Compilation) -> Future[bytes]:
    """The code that goes through a plan, to be."""
    target = compilation.target
    return compilation.add(entry_text(target.triple), entry_target(target))


def is_minimal() -> bool:
    """Whether the current PassContext allows algorithms with fewer products."""
    return bool(PassContext.current().get_config(WINOGRAD, True))


def kernel_memo(target: CpuTarget, cache: ObjectCache | None = None) -> KernelMemo:
    """What a build makes, through the cache, known by the settings of the current PassContext that decide about it."""
    options = {VERIFY: True} if PassContext.current().get_config(VERIFY, False) else {}
    return KernelMemo(target, cache or ObjectCache.default(), options)


def _compiled(
    ir_mod: IRModule | Function,
    network: Network,
    target: CpuTarget,
    mod_name: str,
    executor: Executor | str,
    parts: int,
    begun: Compilation | None,
    schedules: Mapping[Operation, Schedule],
) -> GraphExecutorFactoryModule:
    """A module that runs a network for each of `parts` of a batch; the named kernels have these schedules."""
    exact = padded_products(network) if is_minimal() else set(network.operations)
    jobs = [j for o in network.operations for j in jobs_of(o, target, o not in exact, schedules.get(o))]
    layouts = lay_out(network, jobs)
    memo = kernel_memo(target, begun.cache if begun else None)
    planner = Planner(network, layouts, target, memo, parts=parts)
    planned, entry, objects = compiled_plan(planner, begun=begun)
    executable = Executable(
        mod_name,
        TargetInfo(target.triple, target.needs, str(target)),
        planned.plan,
        entry,
        objects,
        planned.constants,
        NetworkConstants(network),
        graph_json(network, planned.storage, parts),
    )
    kind = AOTExecutorFactoryModule if str(executor) == "aot" else GraphExecutorFactoryModule
    return kind(
        executable,
        ir_mod=ir_mod,
        target=target,
        executor=executor,
        stage_source=Stages.of(network, planned, layouts, target),
    )


_PARAMS = 'parameters have a name: relay.build(mod, target="llvm", params=params)'


def parse_target(target: object) -> CpuTarget:
    """A target from what `relay.build` accepts: None, text, a Target, or one of these in a list or dict."""
    while isinstance(target, (list, tuple, Mapping)):
        if isinstance(target, Mapping) and any(hasattr(value, "shape") for value in target.values()):
            raise RelayTypeError("a dict of arrays is no target", code="build.target", help=_PARAMS)
        if isinstance(target, Mapping) and "kind" in target:
            return CpuTarget.parse(target_text(target))
        values = list(target.values() if isinstance(target, Mapping) else target)
        if len(values) > 1 and FOREIGN.read(f"a program for {len(values)} targets"):
            return CpuTarget.parse()
        if len(values) != 1:
            raise RelayValueError(
                f"relaylab compiles for one target, not {len(values)}", code="build.target", help='write target="llvm"'
            )
        target = values[0]
    if target is None or isinstance(target, (str, CpuTarget)):
        return CpuTarget.parse(target)
    text = "" if isinstance(target, (int, float)) else str(target)
    if not text.startswith("llvm") and not is_foreign(text.partition(" ")[0]):
        raise RelayTypeError(f"{type(target).__name__} is no target", code="build.target", help='write target="llvm"')
    return CpuTarget.parse(text)


def target_text(config: Mapping[str, Any]) -> str:
    """A target as text, of a dict: its kind and its options."""
    given = {name: value for name, value in config.items() if name not in ("kind", "keys", "host", "tag")}
    words = [
        f"-{name}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}"
        for name, value in given.items()
        if value not in (None, "", [], ())
    ]
    return " ".join([str(config["kind"]), *map(shlex.quote, words)])


def _module(ir_mod: object) -> IRModule:
    if isinstance(ir_mod, Function):
        warn("relay.build takes an IRModule; a Function is wrapped: IRModule.from_expr(func)", DeprecationWarning)
        return IRModule.from_expr(ir_mod)
    if not isinstance(ir_mod, IRModule):
        raise RelayValueError(
            f"relay.build compiles an IRModule, not {type(ir_mod).__name__}",
            code="build.input",
            help="wrap an expression: IRModule.from_expr(expr)",
        )
    if "main" not in ir_mod:
        names = ", ".join(f"@{v.name_hint}" for v in ir_mod.get_global_vars()) or "nothing"
        raise RelayValueError(
            f"the module has no function @main, it has {names}",
            code="build.no-main",
            help='name the function to compile "main"',
        )
    return ir_mod


def entry_target(target: CpuTarget) -> CpuTarget:
    """The entry uses no special features, so that all modules of a process share one."""
    # It only walks the table of steps: wider vectors would gain nothing, and two targets' modules in one process can
    # then share the one pool of threads (docs/choices.md, Running).
    return CpuTarget(target.architecture.baseline, "", 1, target.triple)
