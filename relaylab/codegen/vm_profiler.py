"""Measured time of the kernels that the virtual machine calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from relaylab.codegen.vm import VirtualMachine, VMExecutable, VMInterpreter
from relaylab.interp.values import Value
from relaylab.ir.expr import GlobalVar
from relaylab.runtime.device import Device
from relaylab.runtime.native import profiled
from relaylab.runtime.profiling import Count, Duration, Percent, Report
from relaylab.runtime.vm_library import VMLibrary
from relaylab.support.checked import checked

__all__ = ["VirtualMachineProfiler", "enabled"]


class _StepwiseInterpreter(VMInterpreter):
    """Runs what calls kernels one by one: native control flow calls them from within."""

    def main(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Value:
        forms = self.executable.specializations
        if forms is not None and forms.flows:
            return self.evaluate(self.mod.get_global_var("main"))(*args, **kwargs)
        return super().main(args, kwargs)

    def called(self, entry: GlobalVar, values: tuple[Value, ...]) -> Value:
        return self.evaluated(entry, values)


@checked
class VirtualMachineProfiler(VirtualMachine):
    """A virtual machine that measures: `profile(*args)` runs a function and gives a report."""

    def __init__(
        self,
        exe: VMExecutable | VMLibrary,
        device: Device | Sequence[Device] | None = None,
        memory_cfg: str | Mapping[Device, str] | None = None,
    ):
        super().__init__(exe, device, memory_cfg)
        self.interpreter = _StepwiseInterpreter(self.exe)
        self._times: list[tuple[str, int]] = []

    def profile(self, *args: object, func_name: str = "main", collectors: object = None, **kwargs: object) -> Report:
        """Call a function once to warm up and once measured; the time of each kernel.

        The kernels are those that `invoke` runs: of the form for all sizes or for these, if there is one; of programs
        whose control flow runs natively those that the machine calls.
        """
        self.invoke(func_name, *args, **kwargs)
        with profiled() as self._times:
            self.invoke(func_name, *args, **kwargs)
        return _report(self._times)

    def get_stat(self, sort_by_time: bool = True) -> str:
        """The report of the last profile as a table."""
        return _report(self._times).table(sort=sort_by_time)


def _report(calls: list[tuple[str, int]]) -> Report:
    total = sum(ns for _, ns in calls)
    rows = [
        {
            "Name": name,
            "Duration (us)": Duration(ns / 1e3),
            "Percent": Percent(100 * ns / total if total else 0.0),
            "Count": Count(1),
            "Device": "cpu0",
        }
        for name, ns in calls
    ]
    device: Mapping[str, Duration | Count] = {"Duration (us)": Duration(total / 1e3), "Count": Count(len(calls))}
    return Report(rows, {"cpu0": device})


def enabled() -> bool:
    """Whether the virtual machine can be measured: it can."""
    return True
