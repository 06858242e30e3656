"""`BuildModule` and `GraphExecutorCodegen`: building a network step by step, as older programs do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylab.codegen.build import build, optimize
from relaylab.codegen.options import Executor, Runtime
from relaylab.ir import Function, IRModule
from relaylab.runtime.device import Device
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError

__all__ = ["BuildModule", "GraphExecutorCodegen"]


@checked
class BuildModule:
    """Builds a network; graph, library and parameters are then there one by one."""

    def __init__(self) -> None:
        self._params: dict[str, Any] = {}
        self._built: GraphExecutorFactoryModule | None = None
        self._module: IRModule | None = None

    def build(
        self,
        mod: IRModule | Function,
        target: object = None,
        target_host: object = None,
        executor: Executor | str = "graph",
        runtime: Runtime | str = "cpp",
        workspace_memory_pools: object = None,
        constant_memory_pools: object = None,
        params: Mapping[str, Any] | None = None,
        mod_name: str | None = None,
    ) -> tuple[str, GraphExecutorFactoryModule, dict[str, NDArray]]:
        """As `relay.build`; the graph as JSON, the library and the parameters."""
        given = {**self._params, **(params or {})}
        name = mod_name or "default"
        built = build(mod, target, target_host, executor, runtime, params=given or None, mod_name=name)
        self._built, self._module = built, mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)
        return built.get_graph_json(), built, built.get_params()

    def optimize(
        self,
        mod: IRModule | Function,
        target: object = None,
        target_host: object = None,
        params: Mapping[str, Any] | None = None,
    ) -> tuple[IRModule, dict[str, Any]]:
        """As `relay.optimize`."""
        self._module, rest = optimize(mod, target, {**self._params, **(params or {})} or None)
        return self._module, rest

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Values of parameters, by name, to be built in."""
        self._params.update(params)

    def _network(self) -> GraphExecutorFactoryModule:
        if self._built is None:
            raise RelayValueError("nothing is built yet", code="build.order", help="call build(mod, target) first")
        return self._built

    def get_graph_json(self) -> str:
        """The graph as JSON text."""
        return self._network().get_graph_json()

    def get_module(self) -> GraphExecutorFactoryModule:
        """The library of kernels."""
        return self._network()

    def get_params(self) -> dict[str, NDArray]:
        """The parameters built into the network."""
        return self._network().get_params()

    def get_function_metadata(self) -> dict[str, Any]:
        """What is known of the functions beside their code."""
        return self._network().function_metadata

    def get_devices(self) -> list[Device]:
        """The devices that the network runs on."""
        return self._network().get_devices()

    def get_irmodule(self) -> IRModule:
        """The module that was built or optimized last."""
        if self._module is None:
            raise RelayValueError("nothing is built yet", code="build.order", help="call build or optimize first")
        return self._module


@checked
class GraphExecutorCodegen:
    """Makes the graph of a function whose operators are fused: `codegen` gives the graph, libraries and parameters."""

    def __init__(self, mod: object = None, target: object = None):
        self.mod, self.target = mod, target

    def codegen(
        self, ir_module: IRModule, func: Function
    ) -> tuple[str, dict[str, GraphExecutorFactoryModule], dict[str, NDArray]]:
        """The graph as JSON, the library by its target, and the parameters."""
        mod = ir_module.shallow_copy()
        mod["main"] = func
        built = build(mod, self.target)
        return built.get_graph_json(), {str(built.target): built}, built.get_params()
