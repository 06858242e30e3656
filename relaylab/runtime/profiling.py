"""Where the time goes: `profile` times every kernel call, `Report` shows it as table, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaylab.runtime.executor import GraphExecutor
from relaylab.support.errors import RelayValueError

__all__ = ["Count", "Duration", "Percent", "Ratio", "Report", "profile"]


@dataclass(frozen=True, slots=True)
class Count:
    """A number of times."""

    value: int

    def __str__(self) -> str:
        return f"{self.value:,}"


@dataclass(frozen=True, slots=True)
class Duration:
    """A time in microseconds."""

    microseconds: float

    @property
    def value(self) -> float:
        """The number alone."""
        return self.microseconds

    def __str__(self) -> str:
        return f"{self.microseconds:,.2f}"


@dataclass(frozen=True, slots=True)
class Percent:
    """A share in percent."""

    percent: float

    @property
    def value(self) -> float:
        """The number alone."""
        return self.percent

    def __str__(self) -> str:
        return f"{self.percent:.2f}"


@dataclass(frozen=True, slots=True)
class Ratio:
    """A plain number, such as a rate."""

    ratio: float

    @property
    def value(self) -> float:
        """The number alone."""
        return self.ratio

    def __str__(self) -> str:
        return f"{self.ratio:,.2f}"


Metric = Count | Duration | Percent | Ratio | str
TAGS = {Count: "count", Duration: "microseconds", Percent: "percent", Ratio: "ratio"}
KINDS = {tag: kind for kind, tag in TAGS.items()}
SUMMED = ("Duration (us)", "Percent", "Count")


class Report:
    """Measured calls: one mapping from column names to metrics per call, device totals, and the set-up."""

    def __init__(self, calls: Sequence[Mapping[str, Metric]], device_metrics: Mapping[str, Mapping[str, Metric]],
                 configuration: Mapping[str, Metric] | None = None):
        self.calls = [dict(call) for call in calls]
        self.device_metrics = {name: dict(metrics) for name, metrics in device_metrics.items()}
        self.configuration = dict(configuration or {})

    def columns(self) -> list[str]:
        """The names of the columns, in the order in which they first occur."""
        return list(dict.fromkeys(name for call in self.calls for name in call))

    def csv(self) -> str:
        """One line per call, numbers without units."""
        out = io.StringIO()
        columns = self.columns()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_plain(call.get(name, "")) for name in columns] for call in self.calls)
        return out.getvalue()

    def json(self) -> str:
        """Everything as JSON; `from_json` reads it."""
        return json.dumps({
            "calls": [_tagged(call) for call in self.calls],
            "device_metrics": {name: _tagged(metrics) for name, metrics in self.device_metrics.items()},
            "configuration": _tagged(self.configuration),
        })

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report whose `json` is `text`; RelayValueError for other text."""
        try:
            data = json.loads(text)
            calls = [_untagged(call) for call in data["calls"]]
            devices = {name: _untagged(metrics) for name, metrics in data["device_metrics"].items()}
            return cls(calls, devices, _untagged(data.get("configuration", {})))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise RelayValueError(f"this is not a saved report: {error}", code="runtime.report") from None

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """A table for people: slowest first, equal kernels as one row, sums below."""
        calls = _aggregated(self.calls) if aggregate else list(self.calls)
        if sort:
            calls.sort(key=lambda call: -_number(call.get("Duration (us)")))
        columns = list(dict.fromkeys(name for call in calls for name in call))
        rows = [[str(call.get(name, "")) for name in columns] for call in calls]
        if col_sums:
            rows += [[], *([_sum_row(columns, calls)])]
            rows += [_total_row(columns, name, metrics) for name, metrics in self.device_metrics.items()]
        lines = _aligned(columns, rows)
        return "\n".join([*lines, *self._configuration_lines()])

    def _configuration_lines(self) -> list[str]:
        if not self.configuration:
            return []
        return ["", "Configuration", "-------------", *(f"{name}: {v}" for name, v in self.configuration.items())]

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__


def _plain(metric: Metric) -> Any:
    return metric if isinstance(metric, str) else metric.value


def _number(metric: Metric | None) -> float:
    return 0.0 if metric is None or isinstance(metric, str) else metric.value


def _tagged(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    return {name: m if isinstance(m, str) else {TAGS[type(m)]: m.value} for name, m in metrics.items()}


def _untagged(data: Mapping[str, Any]) -> dict[str, Metric]:
    return {name: v if isinstance(v, str) else KINDS[next(iter(v))](next(iter(v.values()))) for name, v in data.items()}


def _aggregated(calls: Iterable[Mapping[str, Metric]]) -> list[dict[str, Metric]]:
    """Calls with equal text columns as one: times, shares and counts added, rates of the whole."""
    groups: dict[tuple[tuple[str, str], ...], list[Mapping[str, Metric]]] = {}
    for call in calls:
        groups.setdefault(tuple((k, v) for k, v in call.items() if isinstance(v, str)), []).append(call)
    return [_merged(group) for group in groups.values()]


def _merged(group: Sequence[Mapping[str, Metric]]) -> dict[str, Metric]:
    total = sum(_number(call.get("Duration (us)")) for call in group)
    merged = dict(group[0])
    for name, metric in group[0].items():
        if name in SUMMED:
            merged[name] = type(metric)(sum(_number(call.get(name)) for call in group))
        elif isinstance(metric, Ratio) and total:
            work = sum(_number(call.get(name)) * _number(call.get("Duration (us)")) for call in group)
            merged[name] = Ratio(work / total)
    return merged


def _sum_row(columns: Sequence[str], calls: Sequence[Mapping[str, Metric]]) -> list[str]:
    row = ["Sum"]
    for name in columns[1:]:
        metrics = [call[name] for call in calls if name in call]
        summed = name in SUMMED and metrics and not isinstance(metrics[0], str)
        row.append(str(type(metrics[0])(sum(map(_number, metrics)))) if summed else "")
    return row


def _total_row(columns: Sequence[str], name: str, metrics: Mapping[str, Metric]) -> list[str]:
    return ["Total", *(str(metrics.get(c, name if c == "Device" else "")) for c in columns[1:])]


def _aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [list(columns), *([*row, *[""] * (len(columns) - len(row))] for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(columns))]
    text = [_line(line, widths) for line in lines]
    return [text[0], "-" * max(map(len, text)), *text[1:]]


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The name to the left, everything else to the right."""
    rest = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:]))
    return "  ".join([cells[0].ljust(widths[0]), *rest]).rstrip()


def profile(executor: GraphExecutor, repeat: int = 5) -> Report:
    """Time every step of a network: the fastest of `repeat` runs (µs), its rates, and the time of a whole run."""
    executor.run()
    runs = [executor.timed_steps(time.perf_counter_ns) for _ in range(max(1, repeat))]
    times = [min(step) / 1e3 for step in zip(*runs)]
    total = sum(times) or 1.0
    calls = [_call(step, spent, total) for step, spent in zip(executor.plan.steps, times)]
    whole = min(_timed_run(executor) for _ in range(max(1, repeat)))
    configuration = {"Executor": "Graph", "Number of threads": Count(executor.instance.threads)}
    return Report(calls, {"cpu0": {"Duration (us)": Duration(whole), "Device": "cpu0"}}, configuration)


def _timed_run(executor: GraphExecutor) -> float:
    start = time.perf_counter_ns()
    executor.run()
    return (time.perf_counter_ns() - start) / 1e3


def _call(step: Any, spent: float, total: float) -> dict[str, Metric]:
    seconds = max(spent, 1e-3) * 1e3
    return {
        "Name": step.label, "Duration (us)": Duration(spent), "Percent": Percent(100 * spent / total),
        "Device": "cpu0", "Count": Count(1), "GFLOP/s": Ratio(step.flops / seconds),
        "GB/s": Ratio(step.bytes / seconds),
    }
