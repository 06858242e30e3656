"""`GraphModuleDebug`: runs a network node by node, prints where the time goes, and dumps every node's output."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from relaylab.runtime.benchmark import BenchmarkResult, Evaluator
from relaylab.runtime.device import Device
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.graph_executor import create as create_graph
from relaylab.runtime.module import GraphExecutorModule
from relaylab.runtime.ndarray import NDArray
from relaylab.runtime.params import save_param_dict
from relaylab.support.checked import fitting
from relaylab.support.errors import RelayValueError

COLUMNS = ("Node Name", "Ops", "Time(us)", "Time(%)", "Shape", "Inputs", "Outputs", "Measurements(us)")
PREFIX = "tvmdbg_"
FOLDER = "_tvmdbg_device_{device}"
GRAPH_FILE = "_tvmdbg_graph_dump.json"
TRACE_FILE = "_tvmdbg_execution_trace.json"
Options = tuple[int, int, float, int, float, int]  # what `Evaluator` takes after the function
OUTPUTS_FILE = "output_tensors.params"


@fitting
class GraphModuleDebug(GraphModule):
    """A GraphModule whose `run` also measures and dumps: the table goes to the terminal, files to `dump_path`."""

    def __init__(
        self,
        module: GraphExecutorModule,
        device: Device | Sequence[Device],
        graph_json_str: str,
        dump_root: str | os.PathLike[str] | None = None,
    ):
        super().__init__(module)
        first = device if isinstance(device, Device) else device[0]
        self.graph = json.loads(graph_json_str)
        self._temporary = dump_root is None
        self.dump_root = Path(tempfile.mkdtemp(prefix=PREFIX) if dump_root is None else dump_root)
        name = str(first).upper().replace("(", "_").replace(")", "")
        self.dump_path = self.dump_root / FOLDER.format(device=name)
        self.dump_path.mkdir(parents=True, exist_ok=True)
        (self.dump_path / GRAPH_FILE).write_text(json.dumps(self.graph, indent=2), encoding="utf-8")

    def run(
        self,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 1,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        **input_dict: object,
    ) -> None:
        """Run the network, time every node, print the table and dump outputs and trace."""
        super().run(**input_dict)
        options = (number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown)
        results = {node: self._evaluator(node, options)() for node in self._computing()}
        self._dump_outputs()
        self._dump_trace(results)
        super().run()
        print(self.table(results))

    def run_individual(
        self,
        number: int,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
    ) -> list[float]:
        """The mean time of every node in seconds, in the order of the graph; inputs take none."""
        options = (number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown)
        computing = set(self._computing())
        nodes = range(len(self.graph["nodes"]))
        return [self._evaluator(node, options)().mean if node in computing else 0.0 for node in nodes]

    def run_individual_node(
        self,
        index: int,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
    ) -> BenchmarkResult:
        """The times of one node; the nodes before it are run once."""
        steps = self._steps(self._node(index))
        if not steps:
            raise RelayValueError(f"node {index} computes nothing", code="runtime.node")
        self._executor.instance.run_range(0, steps[0])
        options = (number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown)
        return self._evaluator(index, options)()

    def exit(self) -> None:
        """Delete the dump directory if it was a temporary one."""
        if self._temporary:
            shutil.rmtree(self.dump_root, ignore_errors=True)

    def table(self, results: dict[int, BenchmarkResult]) -> str:
        """The measured nodes as a table."""
        total = sum(result.mean for result in results.values()) or 1.0
        rows = [self._row(node, result, total) for node, result in results.items()]
        rows.append(["Total_time", "-", f"{total * 1e6:.3f}", *["-"] * 5])
        lines = [list(COLUMNS), ["-" * len(column) for column in COLUMNS], *rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(COLUMNS))]
        return "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines)

    def _row(self, node: int, result: BenchmarkResult, total: float) -> list[str]:
        entry = self.graph["nodes"][node]
        measured = "[" + ", ".join(f"{seconds * 1e6:.3f}" for seconds in result.results) + "]"
        return [
            entry["name"],
            entry.get("attrs", {}).get("func_name", entry["name"]),
            f"{result.mean * 1e6:.3f}",
            f"{100 * result.mean / total:.2f}",
            self._shape(node),
            str(len(entry.get("inputs", ()))),
            str(entry.get("attrs", {}).get("num_outputs", 1)),
            measured,
        ]

    def _shape(self, node: int) -> str:
        shapes = self.graph.get("attrs", {}).get("shape", ["", []])[1]
        rows = self.graph.get("node_row_ptr", [])
        return str(tuple(shapes[rows[node]])) if node < len(rows) and rows[node] < len(shapes) else "-"

    def _steps(self, node: int) -> list[int]:
        return [k for k, step in enumerate(self._executor.plan.steps) if step.node == node]

    def _computing(self) -> list[int]:
        """The nodes that have steps, in order."""
        return sorted({step.node for step in self._executor.plan.steps if step.node >= 0})

    def _evaluator(self, node: int, options: Options) -> Evaluator:
        return Evaluator(self._runner(self._steps(node)), *options)

    def _runner(self, steps: list[int]) -> Callable[[], None]:
        executor = self._executor

        def run_node() -> None:
            with executor.lock:
                for step in steps:
                    executor.instance.run_step(step)

        return run_node

    def _dump_outputs(self) -> None:
        outputs: dict[str, NDArray] = {}
        for node, field, _ in self._executor.plan.values:
            name = f"{self.graph['nodes'][node]['name']}____{field}"
            outputs[name] = self._executor.debug_output(node, field)
        (self.dump_path / OUTPUTS_FILE).write_bytes(save_param_dict(outputs))

    def _dump_trace(self, results: dict[int, BenchmarkResult]) -> None:
        """The nodes one after the other, in the format of chrome://tracing."""
        events: list[dict[str, object]] = []
        at = time.time() * 1e6
        for node, result in results.items():
            name = self.graph["nodes"][node]["name"]
            events.append({"name": name, "ph": "X", "ts": at, "dur": result.mean * 1e6, "pid": 1, "tid": 1})
            at += result.mean * 1e6
        trace = {"displayTimeUnit": "ns", "traceEvents": events}
        (self.dump_path / TRACE_FILE).write_text(json.dumps(trace), encoding="utf-8")


def create(
    graph_json_str: str,
    libmod: object,
    device: Device | Sequence[Device],
    dump_root: str | os.PathLike[str] | None = None,
) -> GraphModuleDebug:
    """A GraphModuleDebug from a graph, the library it belongs to, and a device."""
    plain = create_graph(graph_json_str, libmod, device if isinstance(device, Device) else list(device))
    return GraphModuleDebug(plain.module, device, graph_json_str, dump_root)
