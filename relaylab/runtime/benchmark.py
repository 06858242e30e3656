"""Timing as Relay programs do it: `time_evaluator` and the `BenchmarkResult` it gives."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError, shown

GROWTH = 1.618  # how fast the number of runs grows until a measurement takes `min_repeat_ms`


@checked
class BenchmarkResult:
    """The measured times of one run each, in seconds: `results`, and their `mean median min max std`."""

    def __init__(self, results: Sequence[float]):
        self.results = tuple(map(float, results))
        if not self.results:
            raise RelayValueError("a result of nothing measured", code="runtime.benchmark")
        self.mean = statistics.fmean(self.results)
        self.median = statistics.median(self.results)
        self.min, self.max = min(self.results), max(self.results)
        self.std = statistics.pstdev(self.results)

    def __repr__(self) -> str:
        parts = (f"{name}={getattr(self, name)}" for name in ("min", "mean", "median", "max", "std", "results"))
        return f"BenchmarkResult({', '.join(parts)})"

    def __str__(self) -> str:
        columns = ("mean", "median", "max", "min", "std")
        head = " ".join(f"{f'{name} (ms)':^12}" for name in columns)
        row = " ".join(f"{getattr(self, name) * 1e3:^12.4f}" for name in columns)
        return f"Execution time summary:\n{head}\n{row}\n"


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Times a function: `repeat` measurements of `number` calls each, after one call that is not measured."""

    function: Callable[..., object]
    number: int = 10
    repeat: int = 1
    min_repeat_ms: float = 0
    limit_zero_time_iterations: int = 100
    cooldown_interval_ms: float = 0
    repeats_to_cooldown: int = 1

    def __post_init__(self) -> None:
        for name in ("number", "repeat", "repeats_to_cooldown"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
                said = f"`{name}` must be a whole number ≥ 1 of 31 bits, got {shown(value)}"
                raise RelayValueError(said, code="runtime.benchmark")
        for name in ("min_repeat_ms", "cooldown_interval_ms"):
            if not 0 <= (value := getattr(self, name)) < 2**31:
                said = f"`{name}` must be milliseconds from 0 to 24 days, got {shown(value)}"
                raise RelayValueError(said, code="runtime.benchmark")

    def __call__(self, *args: object) -> BenchmarkResult:
        self.function(*args)
        results: list[float] = []
        number = self.number
        for index in range(self.repeat):
            if self.cooldown_interval_ms and index and index % self.repeats_to_cooldown == 0:
                time.sleep(self.cooldown_interval_ms / 1e3)
            seconds, number = self._measure(args, number)
            results.append(seconds)
        return BenchmarkResult(results)

    def _measure(self, args: tuple[object, ...], number: int) -> tuple[float, int]:
        """Seconds per call and the number of calls used, grown until they take `min_repeat_ms`."""
        function, zeros = self.function, 0
        while True:
            start = time.perf_counter_ns()
            for _ in range(number):
                function(*args)
            elapsed = time.perf_counter_ns() - start
            zeros += elapsed == 0
            if elapsed >= self.min_repeat_ms * 1e6 or zeros >= self.limit_zero_time_iterations:
                return elapsed / number * 1e-9, number
            needed = self.min_repeat_ms * 1e6 / max(elapsed / number, 1.0) + 1
            number = int(max(needed, number * GROWTH + 1))
