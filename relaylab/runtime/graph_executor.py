"""`GraphModule`, the way Relay programs run compiled networks, and `create` for graph, library and device."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from relaylab.runtime.benchmark import BenchmarkResult, Evaluator
from relaylab.runtime.device import Device, cpu, require_present
from relaylab.runtime.module import GraphExecutorFactoryModule, GraphExecutorModule
from relaylab.runtime.ndarray import NDArray, array, as_numpy
from relaylab.runtime.profiling import Report
from relaylab.runtime.roofline import profile
from relaylab.support.checked import checked, fitting
from relaylab.support.errors import RelayTypeError, RelayValueError, is_a, warn
from relaylab.support.table import did_you_mean

__all__ = ["BenchmarkResult", "GraphModule", "create"]


@fitting
class GraphModule:
    """A network ready to run: `m = GraphModule(lib["default"](dev))`, `m.set_input`, `m.run`, `m.get_output`."""

    def __init__(self, module: GraphExecutorModule):
        if not is_a(module, GraphExecutorModule):
            raise RelayTypeError(
                f"GraphModule needs an instance of a network, got {type(module).__name__}",
                code="runtime.graph-module",
                help='write GraphModule(lib["default"](dev))',
            )
        self.module = module
        self._executor = module.executor
        self._set: set[int] = set()

    # Inputs

    def set_input(
        self, key: int | str | Mapping[str, object] | None = None, value: object = None, **params: object
    ) -> None:
        """Copy values into inputs: one by name or number, and any number by keyword.

        A keyword that is no input of the network is skipped, as parameters that were folded away are; a warning
        names one that was likely meant for an input of its shape that nobody has set.
        RelayValueError for an unknown `key` or a wrong shape, RelayTypeError for a dtype of another kind.
        """
        if isinstance(key, Mapping):
            params = {**key, **params}
        elif key is not None or value is not None:
            self._executor.set_input(key, value)
            self._set.add(self._executor.input_index(key))
        self._set_params(params)

    def _set_params(self, params: Mapping[str, object]) -> None:
        known = {name: as_numpy(value) for name, value in params.items() if name in self._executor.index}
        for name in sorted(known, key=lambda name: -known[name].size):  # TVM's order: large arrays first
            self._executor.set_input(name, known[name])
        self._set.update(self._executor.index[name] for name in known)
        if len(known) < len(params):
            self._warn_of_likely_slips(params)

    def _warn_of_likely_slips(self, params: Mapping[str, object]) -> None:
        shapes = self._executor.input_info()[0]
        open_inputs = {name: shape for name, shape in shapes.items() if self._executor.index[name] not in self._set}
        for name, value in params.items() if open_inputs else ():
            if name not in self._executor.index:
                shape = tuple(getattr(value, "shape", ()))
                alike = [input for input in open_inputs if open_inputs[input] == shape]
                only = f"did you mean `{alike[0]}`?" if alike and len(params) == 1 else ""
                near = did_you_mean(name, alike) or only
                if near:
                    warn(f"set_input skips `{name}`, which is no input of the network: {near}")

    def set_input_zero_copy(self, key: int | str, value: object) -> None:
        """As `set_input`: inputs are always copied, so that `value` may change afterwards."""
        self._executor.set_input(key, value)

    def get_input(self, index: int | str, out: NDArray | None = None) -> NDArray:
        """An input; copied into `out` if that is given."""
        return _into(self._executor.get_input(index), out)

    def get_input_index(self, name: str) -> int:
        """The number of an input, -1 if there is none of that name."""
        return self._executor.index.get(name, -1)

    def get_num_inputs(self) -> int:
        """The number of inputs, parameters included."""
        return len(self._executor.names)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """Shapes and dtypes of the inputs that are no built-in parameters, by name."""
        return self._executor.input_info()

    @checked
    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Set parameters from the bytes of `save_param_dict`."""
        self._executor.load_params(params_bytes)

    @checked
    def share_params(self, other: GraphModule, params_bytes: bytes | bytearray) -> None:
        """Use the parameters of `other` that are named in `params_bytes`."""
        if not is_a(other, GraphModule):
            raise RelayTypeError(f"expected a GraphModule, got {type(other).__name__}", code="runtime.graph-module")
        self._executor.share_params(other._executor, params_bytes)

    # Running

    def run(self, **input_dict: object) -> None:
        """Run the network once, after setting the given inputs (an unknown name raises RelayValueError)."""
        for name, value in input_dict.items():
            self._executor.set_input(name, value)
        self._executor.run()

    def get_num_outputs(self) -> int:
        """The number of outputs."""
        return len(self._executor.plan.outputs)

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """An output of the last run; copied into `out` if that is given. It never changes by later runs."""
        return _into(self._executor.get_output(index), out)

    @checked
    def debug_get_output(self, node: int | str, out: NDArray | None = None) -> NDArray:
        """What a node of the graph, by name or number, gives; runs the network up to it. Of an input its value."""
        number, nodes = self._node(node), self._nodes()
        if nodes[number]["op"] == "null":
            return _into(array(self.get_input(nodes[number]["name"])), out)
        return _into(self._executor.debug_output(number), out)

    def _nodes(self) -> list[dict[str, Any]]:
        return json.loads(self._executor.executable.graph_json)["nodes"]

    def _node(self, node: int | str) -> int:
        names = [entry["name"] for entry in self._nodes()]
        if isinstance(node, int) and 0 <= node < len(names):
            return node
        if node not in names:
            raise RelayValueError(
                f"the graph has no node {node!r}", code="runtime.node", help=did_you_mean(str(node), names)
            )
        return names.index(node)

    def __getitem__(self, key: str) -> Callable[..., Any]:
        return self.module.get_function(key)

    # Measuring

    def time_evaluator(self, func_name: str = "run", dev: Device | None = None, **options: Any) -> Evaluator:
        """A callable that times `func_name`; see `Module.time_evaluator`."""
        return self.module.time_evaluator(func_name, dev, **options)

    @checked
    def benchmark(
        self,
        device: Device | None = None,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: object,
    ) -> BenchmarkResult:
        """Time runs of the network: `repeat` measurements of `number` runs each.

        `kwargs` are inputs. With `end_to_end` the time of setting them and copying the outputs is included.
        """
        require_present(cpu(0) if device is None else device)
        options = (
            number,
            repeat,
            min_repeat_ms or 0,
            limit_zero_time_iterations,
            cooldown_interval_ms,
            repeats_to_cooldown,
        )
        if end_to_end:
            return Evaluator(lambda: self._end_to_end(kwargs), *options)()
        for name, value in kwargs.items():
            self._executor.set_input(name, value)
        return Evaluator(self.module.get_function(func_name), *options)()

    def _end_to_end(self, inputs: Mapping[str, object]) -> None:
        self.run(**inputs)
        for index in range(self.get_num_outputs()):
            self.get_output(index).numpy()

    def profile(self, collectors: object = None, repeat: int = 5, roofline: bool = True, **inputs: object) -> Report:
        """Time every kernel call: the fastest of `repeat` runs each, GFLOP/s, GB/s and shares of the machine's peak.

        The peaks are measured at the first profile of a process; without `roofline` they are left out.
        """
        for name, value in inputs.items():
            self._executor.set_input(name, value)
        library = self.module.factory
        return profile(self._executor, repeat, library.relay_text if library.has_stage("relay") else None, roofline)


def _into(value: NDArray, out: NDArray | None) -> NDArray:
    if out is not None and not is_a(out, NDArray):
        raise RelayTypeError(
            f"a value is copied into an NDArray, not into {type(out).__name__}",
            code="runtime.out",
            help='leave `out` away, or give relaylab.nd.empty(shape, "float32")',
        )
    return value if out is None else value.copyto(out)


def create(graph_json_str: str, libmod: object, device: Device | list[Device] | None = None) -> GraphModule:
    """A GraphModule from a graph, the library it belongs to, and a device.

    RelayValueError if the library was compiled from another graph.
    """
    if not isinstance(libmod, GraphExecutorFactoryModule):
        raise RelayTypeError(
            f"expected a compiled library, got {type(libmod).__name__}",
            code="runtime.graph-module",
            help="give what relay.build or load_module returned",
        )
    if _graph(graph_json_str) != json.loads(libmod.get_graph_json()):
        raise RelayValueError(
            "the library was compiled from another graph",
            code="runtime.other-graph",
            help="give the graph and the library of one build",
        )
    devices = device if isinstance(device, (list, tuple)) else [cpu(0) if device is None else device]
    return GraphModule(libmod.instantiate(*devices))


def _graph(text: str) -> object:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise RelayValueError(
            f"the graph is not JSON: {error}", code="runtime.graph-json", help="give the text of lib.get_graph_json()"
        ) from None


def get_device(
    libmod: object, device: Device | list[Device] | tuple[Device, ...]
) -> tuple[list[Device], int, list[int]]:
    """The devices of a network as a list, how many they are, and their kinds and numbers one after the other."""
    devices = list(device) if isinstance(device, (list, tuple)) else [device]
    for dev in devices:
        require_present(dev)
    return devices, len(devices), [number for dev in devices for number in (dev.device_type, dev.device_id)]
