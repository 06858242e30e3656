"""Measured times and rates: `Report` shows them as table, CSV, JSON or in words."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.schema import read_json

__all__ = ["Count", "Duration", "Percent", "Ratio", "Report"]


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
RATES = (("GFLOP/s", "GFLOP/s"), ("Peak %", "% of peak"), ("Roof %", "% of the roof"))
LEGEND = """\
Peak %: of the float32 peak of the threads that work on the kernel.
        Algorithms with fewer products can exceed 100.
Roof %: the least time for its operations and bytes at those peaks, over the
        measured one.
Bound:  which of both takes longer there; `cache` where it took less than memory
        needs for the bytes: the second-level cache is its roof.
Kernel: the code that does it; some functions take several.
Durations are without the cost of the call from Python."""


@checked
class Report:
    """Measured calls: one mapping from column names to metrics per call, device totals, and the set-up.

    `relay` has the text of the fused Relay functions of the kernels that took longest.
    """

    def __init__(
        self,
        calls: Sequence[Mapping[str, Metric]],
        device_metrics: Mapping[str, Mapping[str, Metric]],
        configuration: Mapping[str, Metric] | None = None,
        relay: Mapping[str, str] | None = None,
    ):
        self.calls = [dict(call) for call in calls]
        self.device_metrics = {name: dict(metrics) for name, metrics in device_metrics.items()}
        self.configuration = dict(configuration or {})
        self.relay = dict(relay or {})

    def rows(self) -> list[dict[str, Metric]]:
        """One mapping per kernel, its calls together, slowest first: text, or metrics with a plain `.value`."""
        return _sorted(_aggregated(self.calls))

    def hot(self, count: int = 3) -> str:
        """The slowest kernels in words, with the Relay functions that they came from."""
        found: list[str] = []
        for place, row in enumerate(self.rows()[:count], 1):
            head = f"{place}. {row['Name']}: {row['Percent']} % in {_times(row['Count'])}, {row['Duration (us)']} us"
            rates = [f"{row[name]} {unit}" for name, unit in RATES if name in row]
            bound = f"{row['Bound']}-bound" if "Bound" in row else ""
            text = "\n".join(f"   {line}" for line in self.relay.get(str(row["Name"]), "").rstrip().split("\n"))
            found.append(
                "\n".join(
                    [f"{', '.join([head, *rates, *([bound] if bound else [])])}", *([text] if text.strip() else [])]
                )
            )
        return "\n\n".join(found)

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
        return json.dumps(
            {
                "calls": [_tagged(call) for call in self.calls],
                "device_metrics": {name: _tagged(metrics) for name, metrics in self.device_metrics.items()},
                "configuration": _tagged(self.configuration),
                "relay": self.relay,
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report whose `json` is `text`; RelayValueError for other text."""
        try:
            data: Any = read_json(text)
            calls = [_untagged(call) for call in data["calls"]]
            devices = {name: _untagged(metrics) for name, metrics in data["device_metrics"].items()}
            return cls(calls, devices, _untagged(data.get("configuration", {})), data.get("relay"))
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise RelayValueError(f"this is not a saved report: {error}", code="runtime.report") from None

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """A table for people: slowest first, equal kernels as one row, sums below."""
        calls = _aggregated(self.calls) if aggregate else list(self.calls)
        if sort:
            calls = _sorted(calls)
        columns = list(dict.fromkeys(name for call in calls for name in call)) or ["Name", "Duration (us)"]
        rows = [[str(call.get(name, "")) for name in columns] for call in calls]
        if col_sums:
            rows += [[], *([_sum_row(columns, calls)])]
            rows += [_total_row(columns, name, metrics) for name, metrics in self.device_metrics.items()]
        lines = _aligned(columns, rows)
        legend = ["", LEGEND] if "Roof %" in columns else []
        return "\n".join([*lines, *self._configuration_lines(), *legend])

    def _configuration_lines(self) -> list[str]:
        if not self.configuration:
            return []
        return ["", "Configuration", "-------------", *(f"{name}: {v}" for name, v in self.configuration.items())]

    def __str__(self) -> str:
        return self.table()

    __repr__ = __str__


def _sorted(calls: Iterable[dict[str, Metric]]) -> list[dict[str, Metric]]:
    return sorted(calls, key=lambda call: -_number(call.get("Duration (us)")))


def _times(count: Metric) -> str:
    return f"{count} call{'s' * (str(count) != '1')}"


def _plain(metric: Metric) -> str | float:
    return metric if isinstance(metric, str) else metric.value


def _number(metric: Metric | None) -> float:
    return 0.0 if metric is None or isinstance(metric, str) else metric.value


def _tagged(metrics: Mapping[str, Metric]) -> dict[str, Any]:
    return {name: m if isinstance(m, str) else {TAGS[type(m)]: m.value} for name, m in metrics.items()}


def _untagged(data: Mapping[str, Any]) -> dict[str, Metric]:
    return {name: v if isinstance(v, str) else _metric(v) for name, v in data.items()}


def _metric(data: Mapping[str, Any]) -> Metric:
    ((tag, value),) = data.items()
    return KINDS[tag](value + 0)  # a number


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
            merged[name] = _of_kind(metric, sum(_number(call.get(name)) for call in group))
        elif isinstance(metric, (Ratio, Percent)) and total:
            work = sum(_number(call.get(name)) * _number(call.get("Duration (us)")) for call in group)
            merged[name] = type(metric)(work / total)
    return merged


def _of_kind(metric: Metric, value: float) -> Metric:
    if isinstance(metric, str):
        return str(value)
    return Count(round(value)) if isinstance(metric, Count) else type(metric)(value)


def _sum_row(columns: Sequence[str], calls: Sequence[Mapping[str, Metric]]) -> list[str]:
    """All calls as one: sums, and the rates of the whole."""
    whole = _merged(calls) if calls else {}
    plain = {name for name in columns if isinstance(whole.get(name, ""), str)}
    return [
        "Sum",
        *(
            "" if name in plain or (name not in SUMMED and isinstance(whole[name], Count)) else str(whole[name])
            for name in columns[1:]
        ),
    ]


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
