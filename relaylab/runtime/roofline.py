"""`profile`: the time of every kernel call, held against the machine's roofline (Williams, Waterman, Patterson, 2009).

The roof of a kernel is what its operations and its bytes would take at least, at the measured peaks of as many threads
as work on it.

Choices: docs/choices.md, Measuring.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from relaylab.runtime.executable import KernelCall
from relaylab.runtime.executor import GraphExecutor
from relaylab.runtime.peaks import MachinePeaks, machine_peaks
from relaylab.runtime.profiling import Count, Duration, Metric, Percent, Ratio, Report
from relaylab.support.checked import checked

HOT = 10
HASH = re.compile(r"_[0-9a-f]{12}$")  # kernels are named by their content
CALLS, LEAST = 50, 1e-3  # calls of nothing that are timed; the least time of a step in microseconds


@checked
def profile(
    executor: GraphExecutor, repeat: int = 5, source: Callable[[str], str] | None = None, roofline: bool = True
) -> Report:
    """Time every step of a network: the fastest of `repeat` runs (µs), its rates, and the time of a whole run.

    `source` gives the Relay text of a kernel. With `roofline` the peaks of the machine are measured at first use.
    """
    executor.run()
    runs = [executor.timed_steps(time.perf_counter_ns) for _ in range(max(1, repeat))]
    empty = min(executor.timed_call(time.perf_counter_ns) for _ in range(CALLS)) / 1e3
    times = [max(min(step) / 1e3 - empty, LEAST) for step in zip(*runs)]
    plan, total, threads = executor.plan, sum(times) or 1.0, executor.instance.threads
    calls = [_call(s, spent, total, threads, roofline, plan.parts) for s, spent in zip(plan.steps, times)]
    whole = min(_timed_run(executor) for _ in range(max(1, repeat)))
    configuration: dict[str, Metric] = {"Executor": "Graph", "Number of threads": Count(threads)}
    if roofline:
        configuration["Peak"] = str(machine_peaks(threads))
    report = Report(calls, {"cpu0": {"Duration (us)": Duration(whole), "Device": "cpu0"}}, configuration)
    if source is not None:
        report.relay = {str(row["Name"]): source(str(row["Name"])) for row in report.rows()[:HOT]}
    return report


def _timed_run(executor: GraphExecutor) -> float:
    start = time.perf_counter_ns()
    executor.run()
    return (time.perf_counter_ns() - start) / 1e3


def _call(step: KernelCall, spent: float, total: float, threads: int, roofline: bool, times: int) -> dict[str, Metric]:
    nanoseconds = spent * 1e3
    found: dict[str, Metric] = {
        "Name": step.label,
        "Duration (us)": Duration(spent),
        "Percent": Percent(100 * spent / total),
        "Device": "cpu0",
        "Count": Count(times),
        "GFLOP/s": Ratio(step.flops / nanoseconds),
        "GB/s": Ratio(step.bytes / nanoseconds),
    }
    return found | (_roof(step, spent / 1e6, machine_peaks(threads_of(step, threads))) if roofline else {})


def threads_of(step: KernelCall, threads: int) -> int:
    """The threads that work on a step of a network that has `threads`."""
    return max(1, min(threads, step.shares, step.items))


def _roof(step: KernelCall, seconds: float, peaks: MachinePeaks) -> dict[str, Metric]:
    """A step against the roofline of the threads that work on it."""
    bound, least = peaks.roof(step.flops, step.bytes, seconds)
    return {
        "Threads": str(peaks.threads),
        "Peak %": Percent(100 * step.flops / seconds / peaks.flops),
        "Roof %": Percent(100 * least / seconds),
        "Bound": bound,
        "Kernel": HASH.sub("", step.kernel),
    }
