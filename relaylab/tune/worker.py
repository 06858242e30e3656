"""A process that builds and times schedules of one kernel: lines of JSON in, lines of JSON out.

First `{"text", "target", "threads"}`, then for each schedule `{"schedule"}`; each answer is a part of a
`TuningRecord`. What runs here is Relay text and steps of schedules, nothing else; a schedule that crashes, hangs or
eats memory takes this process with it and nobody else.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
import warnings

import numpy as np

from relaylab.codegen.build import compile_main
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.operations.records import RECORDS
from relaylab.codegen.operations.schedules import SCHEDULES
from relaylab.interp import random_inputs
from relaylab.interp.agreement import relative_error
from relaylab.ir import IRModule
from relaylab.runtime.device import cpu
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.threads import set_num_threads
from relaylab.support.errors import RelayError
from relaylab.support.line_process import Answer, serve
from relaylab.text import parse
from relaylab.transform import InferType, PassContext

SAMPLES, SAMPLE = 9, 0.004  # samples of both, and seconds that a sample takes at least
HOPELESS = 3.0  # times the picked loops' time: not measured further
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2}  # of the largest result: four units in the last place of it
USUAL_TOLERANCE = 1e-4


class Bench:
    """One kernel with its picked loops, and the same with schedules."""

    def __init__(self, text: str, target: str | CpuTarget):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that constants are drawn from a seed
            self.mod: IRModule = InferType()(parse(text, "kernel", fill=0))
        self.target = CpuTarget.parse(target)
        self.inputs = random_inputs(self.mod["main"], 0)
        self.picked = self.module("")
        self.picked.run()
        self.wanted = results(self.picked)

    def module(self, schedule: str) -> GraphModule:
        """The kernel with a schedule, its inputs set."""
        with PassContext(opt_level=3, config={RECORDS: "", SCHEDULES: {}}):
            lib = compile_main(self.mod, self.target)
            if schedule:
                (name,) = lib.kernels()
                with PassContext(opt_level=3, config={RECORDS: "", SCHEDULES: {name: schedule}}):
                    lib = compile_main(self.mod, self.target)
        module = GraphModule(lib["default"](cpu(0)))
        for param, value in zip(self.mod["main"].params, self.inputs):
            module.set_input(param.name_hint, value)
        return module

    def measure(self, schedule: str) -> Answer:
        """Status, times and error of a schedule."""
        try:
            module = self.module(schedule)
        except RelayError as error:
            return {"status": "refused", "why": str(error)}
        module.run()
        found = results(module)
        error = difference(self.wanted, found)
        if not agree(self.wanted, found):
            return {"status": "wrong", "error": min(error, 1e30)}
        once = [seconds(m, 1) for m in (self.picked, module)]
        runs = [max(1, round(SAMPLE / max(s, 1e-7))) for s in once]
        samples: list[list[float]] = [[], []]
        for turn in range(SAMPLES):
            for k, m in enumerate((self.picked, module)):
                samples[k].append(seconds(m, runs[k]))
            if turn == 1 and min(samples[1]) > HOPELESS * min(samples[0]):
                break
        picked, own = (1e6 * statistics.median(s) for s in samples)
        return {"status": "ok", "us": own, "picked_us": picked, "error": error}


def seconds(module: GraphModule, runs: int) -> float:
    """The time of one run, of some in a row."""
    start = time.perf_counter()
    for _ in range(runs):
        module.run()
    return (time.perf_counter() - start) / runs


def results(module: GraphModule) -> list[np.ndarray]:
    """Copies of all results."""
    return [np.array(module.get_output(k).numpy()) for k in range(module.get_num_outputs())]


def difference(wanted: list[np.ndarray], got: list[np.ndarray]) -> float:
    """The largest relative error; integers and truth values must be equal."""
    return max((_apart(a, c) for a, c in zip(wanted, got)), default=0.0)


def agree(wanted: list[np.ndarray], got: list[np.ndarray]) -> bool:
    """Whether results are the same but for the order in which sums were added up and rounded."""
    return all(_apart(a, c) <= TOLERANCE.get(a.dtype.name, USUAL_TOLERANCE) for a, c in zip(wanted, got))


def _apart(wanted: np.ndarray, got: np.ndarray) -> float:
    if "float" in wanted.dtype.name:  # bfloat16 too, whose kind is not "f"
        return relative_error(got, wanted)
    return 0.0 if np.array_equal(wanted, got) else float("inf")


def pin(threads: int) -> None:
    """Stay on the last processors that this process may use, where the system can say so."""
    if hasattr(os, "sched_setaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, set(allowed[-threads:]))


class _Answers:
    """What the process is told, line by line: a kernel first, then its schedules."""

    def __init__(self) -> None:
        self.bench: Bench | None = None

    def __call__(self, asked: Answer) -> Answer:
        if self.bench is None:
            target = CpuTarget.parse(asked["target"])  # before fewer processors are seen
            set_num_threads(asked["threads"])
            pin(asked["threads"])
            self.bench = Bench(asked["text"], target)
            return {"status": "ready"}
        return self.bench.measure(asked["schedule"])


if __name__ == "__main__":
    serve(_Answers())
