"""Measuring one function of a compiled module with collectors of metrics of one's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from relaylab.runtime.device import Device, require_present
from relaylab.runtime.module import Module
from relaylab.runtime.profiling import Duration, Metric
from relaylab.support.checked import checked

__all__ = ["DeviceWrapper", "MetricCollector", "profile_function"]


@checked
@dataclass(frozen=True)
class DeviceWrapper:
    """A device, as collectors get it."""

    device: Device


class MetricCollector:
    """The base of what measures something around a call: `start` gives any object, `stop` takes it back."""

    def init(self, devices: Sequence[DeviceWrapper]) -> None:
        """Called once before anything is measured."""

    def start(self, device: Device) -> object:
        """Called right before the call."""
        return None

    def stop(self, data: object) -> Mapping[str, Metric]:
        """Called right after it with what `start` gave: metrics by name."""
        return {}


def profile_function(
    mod: Module,
    dev: Device,
    collectors: Sequence[MetricCollector] = (),
    func_name: str | None = None,
    warmup_iters: int = 10,
) -> Callable[..., dict[str, Metric]]:
    """A callable that calls a function of a module (`run` without a name) and gives what the collectors measured.

    The time of the call is always among the metrics, as "Duration (us)". RelayAttributeError for an unknown function.
    """
    function = mod.get_function(func_name or "run")
    require_present(dev)

    def measure(*args: object) -> dict[str, Metric]:
        for collector in collectors:
            collector.init([DeviceWrapper(dev)])
        for _ in range(warmup_iters):
            function(*args)
        started = [(collector, collector.start(dev)) for collector in collectors]
        begin = time.perf_counter_ns()
        function(*args)
        found: dict[str, Metric] = {"Duration (us)": Duration((time.perf_counter_ns() - begin) / 1e3)}
        for collector, data in started:
            found.update(collector.stop(data))
        return found

    return measure
