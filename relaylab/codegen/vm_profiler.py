"""Measured time of the kernels that the virtual machine calls."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from relaylab.codegen.vm import NativeMachine, VirtualMachine, VMExecutable, VMInterpreter
from relaylab.interp.machine import Frame, Machine
from relaylab.interp.values import Closure, Value
from relaylab.ir.expr import Call, GlobalVar
from relaylab.runtime.device import Device
from relaylab.runtime.profiling import Count, Duration, Percent, Report
from relaylab.support.checked import checked

__all__ = ["VirtualMachineProfiler", "enabled"]


class _TimedMachine(NativeMachine):
    """Measures each kernel."""

    def __init__(self, executable: VMExecutable, calls: list[tuple[str, float]]):
        super().__init__(executable)
        self.calls = calls

    def enter(self, call: Call, frame: Frame, closure: Closure, args: list[Value]) -> None:
        native = self.natives.get(closure.function)
        if native is None:
            super().enter(call, frame, closure, args)
            return
        frame.values[call], times = native.timed(args, time.perf_counter_ns)
        frame.release(call)
        self.calls += [(name, ns / 1e3) for name, ns in times]


class _TimedInterpreter(VMInterpreter):
    def __init__(self, executable: VMExecutable):
        super().__init__(executable)
        self.calls: list[tuple[str, float]] = []

    def machine(self) -> Machine:
        return _TimedMachine(self.executable, self.calls)

    def main(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Value:
        return self.evaluate(self.mod.get_global_var("main"))(*args, **kwargs)  # what is measured is the machine

    def called(self, entry: GlobalVar, values: tuple[Value, ...]) -> Value:
        return self.evaluated(entry, values)


@checked
class VirtualMachineProfiler(VirtualMachine):
    """A virtual machine that measures: `profile(*args)` runs a function and gives a report."""

    def __init__(self, exe: VMExecutable, device: Device | None = None, memory_cfg: object = None):
        super().__init__(exe, device, memory_cfg)
        self._timed = self.interpreter = _TimedInterpreter(exe)

    def profile(self, *args: object, func_name: str = "main", collectors: object = None, **kwargs: object) -> Report:
        """Call a function once to warm up and once measured; the time of each kernel."""
        self.invoke(func_name, *args, **kwargs)
        self._timed.calls.clear()
        self.invoke(func_name, *args, **kwargs)
        return _report(self._timed.calls)

    def get_stat(self, sort_by_time: bool = True) -> str:
        """The report of the last profile as a table."""
        return _report(self._timed.calls).table(sort=sort_by_time)


def _report(calls: list[tuple[str, float]]) -> Report:
    total = sum(us for _, us in calls)
    rows = [
        {
            "Name": name,
            "Duration (us)": Duration(us),
            "Percent": Percent(100 * us / total if total else 0.0),
            "Count": Count(1),
            "Device": "cpu0",
        }
        for name, us in calls
    ]
    device: Mapping[str, Duration | Count] = {"Duration (us)": Duration(total), "Count": Count(len(calls))}
    return Report(rows, {"cpu0": device})


def enabled() -> bool:
    """Whether the virtual machine can be measured: it can."""
    return True
