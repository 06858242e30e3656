"""`relay.build`: from a Relay program to a compiled module, and `relay.optimize`, its first half."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from relaylab.codegen.cache import ObjectCache
from relaylab.codegen.entry import entry_text
from relaylab.codegen.first_order import first_order
from relaylab.codegen.foreign import taken_back
from relaylab.codegen.graph_json import graph_json
from relaylab.codegen.jit import Compilation, compile_objects
from relaylab.codegen.kernel import Kernel, module_text
from relaylab.codegen.layout import Layouts, lay_out
from relaylab.codegen.network import Network, network_of
from relaylab.codegen.options import Executor, Runtime
from relaylab.codegen.plan import Planned, make_plan
from relaylab.codegen.remembered import Memo
from relaylab.codegen.select import jobs_of
from relaylab.codegen.stages import Served, Stages
from relaylab.codegen.target import Target
from relaylab.ir import Function, IRModule
from relaylab.runtime.executable import Executable, TargetInfo
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.native import host_triple
from relaylab.runtime.ndarray import NDArray
from relaylab.support.collection import no_collection
from relaylab.support.errors import RelayTypeError, RelayValueError
from relaylab.transform import BindParams, PassContext, Sequential, default_passes

WINOGRAD = "relay.codegen.winograd"
BASELINE = "llvm -mcpu=x86-64"


def build(
    ir_mod: IRModule | Function,
    target: Any = None,
    target_host: Any = None,
    executor: Executor | str = "graph",
    runtime: Runtime | str = "cpp",
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
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
    with no_collection():
        final = _optimized(_module(ir_mod), params)
        return compile_main(final, wanted, mod_name, chosen, ir_mod)


def optimize(ir_mod: IRModule | Function, target: Any = None, params: Mapping[str, Any] | None = None) -> tuple[
        IRModule, dict[str, Any]]:
    """The module after all passes of `relay.build` at the current level, and the parameters it still lacks: none."""
    parse_target(target)
    return _optimized(_module(ir_mod), params), {}


def compile_main(mod: IRModule, target: Target, mod_name: str = "default", executor: Any = "graph",
                 ir_mod: Any = None) -> GraphExecutorFactoryModule:
    """Compile the `main` of a module that the passes have fused."""
    main = mod["main"]
    network = network_of(main, f"tvmgen_{mod_name}")
    minimal = bool(PassContext.current().get_config(WINOGRAD, True))
    jobs = [job for operation in network.operations for job in jobs_of(operation, target, minimal)]
    layouts = lay_out(network, jobs)
    cache = ObjectCache.default()
    with Compilation(target, cache) as compilation:
        made = lambda kernel: compilation.add(_text(kernel, target))
        planned = make_plan(network, layouts, target, Memo(target, cache, {WINOGRAD: minimal}), made)
        entry, = compile_objects([entry_text(host_triple())], entry_target(target), cache=cache)
        objects = tuple(compilation.objects(_text(kernel, target) for kernel in planned.kernels.values()))
    executable = Executable(
        mod_name, TargetInfo(host_triple(), target.needs, str(target)), planned.plan, entry, objects,
        planned.constants, {t.name: t.data for t in network.constants}, graph_json(network, planned.storage),
    )
    return GraphExecutorFactoryModule(executable, ir_mod=mod if ir_mod is None else ir_mod, target=target,
                                      executor=executor, stage_source=_stages(network, planned, layouts, target))


def parse_target(target: Any) -> Target:
    """A target from what `relay.build` accepts: None, text, a Target, or one of these in a list or dict."""
    while isinstance(target, (list, tuple, Mapping)) and not isinstance(target, str):
        if isinstance(target, Mapping) and "kind" in target:
            return _from_config(target)
        values = list(target.values() if isinstance(target, Mapping) else target)
        if len(values) != 1:
            raise RelayValueError(f"relaylab compiles for one target, not {len(values)}", code="build.target",
                                  help='write target="llvm"')
        target = values[0]
    if target is None or isinstance(target, (str, Target)):
        return Target.parse(target)
    text = str(target)
    if not text.startswith("llvm"):
        raise RelayTypeError(f"{type(target).__name__} is no target", code="build.target", help='write target="llvm"')
    return Target.parse(text)


def _from_config(config: Mapping[str, Any]) -> Target:
    """A target from its description as a dict: kind, mcpu, mattr."""
    words = [str(config["kind"])]
    words += [f"-mcpu={config['mcpu']}"] if config.get("mcpu") else []
    mattr = config.get("mattr")
    words += [f"-mattr={mattr if isinstance(mattr, str) else ','.join(mattr)}"] if mattr else []
    return Target.parse(" ".join(words))


def _module(ir_mod: Any) -> IRModule:
    if isinstance(ir_mod, Function):
        warnings.warn("relay.build takes an IRModule; a Function is wrapped: IRModule.from_expr(func)",
                      DeprecationWarning, stacklevel=3)
        return IRModule.from_expr(ir_mod)
    if not isinstance(ir_mod, IRModule):
        raise RelayValueError(f"relay.build compiles an IRModule, not {type(ir_mod).__name__}", code="build.input",
                              help="wrap an expression: IRModule.from_expr(expr)")
    if "main" not in ir_mod:
        names = ", ".join(f"@{v.name_hint}" for v in ir_mod.get_global_vars()) or "nothing"
        raise RelayValueError(f"the module has no function @main, it has {names}", code="build.no-main",
                              help='name the function to compile "main"')
    return ir_mod


def _optimized(mod: IRModule, params: Mapping[str, Any] | None) -> IRModule:
    bound = BindParams(_plain(params))(mod) if params else mod
    return Sequential(default_passes())(first_order(taken_back(bound)))


def _plain(params: Any) -> Any:
    """NDArrays as numpy arrays over their memory: binding copies them, once is enough."""
    if not isinstance(params, Mapping):
        return params
    return {name: value.view() if isinstance(value, NDArray) else value for name, value in params.items()}


def _text(kernel: Kernel, target: Target) -> str:
    return module_text([kernel], attributes=target.attributes)


def entry_target(target: Target) -> Target:
    """The entry uses no special features, so that all modules of a process share one."""
    return Target.parse(BASELINE) if host_triple().startswith("x86_64") else target


def _stages(network: Network, planned: Planned, layouts: Layouts, target: Target) -> Stages:
    functions = {operation.name: operation.function for operation in reversed(network.operations)}
    kernels: dict[str, dict[str, Served]] = {}
    for step, job in zip(planned.plan.steps, planned.jobs):
        kernels.setdefault(step.name, {}).setdefault(step.kernel, (planned.kernels[step.kernel], job))
    return Stages(target, functions, {name: tuple(found.values()) for name, found in kernels.items()}, layouts)
