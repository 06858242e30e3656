"""Profiles against the machine's peaks: rooflines, totals, the hot kernels in words."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import tiny

from relaylab.runtime.device import cpu
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.peaks import MachinePeaks, bytes_text, flops_text, machine_peaks, memory_bytes
from relaylab.support.errors import RelayValueError
from relaylab.runtime.profiling import Count, Duration, Percent, Ratio, Report
from relaylab.runtime.roofline import threads_of

PEAKS = MachinePeaks(1, 100e9, 20e9, 80e9)


@pytest.mark.parametrize(
    ("flops", "nbytes", "bound", "attainable"),
    [(1e9, 1e6, "compute", 100e9), (1e9, 1e9, "memory", 20e9), (5e9, 1e9, "compute", 100e9), (0, 1e6, "memory", 0)],
)
def test_roofline(flops: float, nbytes: float, bound: str, attainable: float) -> None:
    assert PEAKS.bound(flops, nbytes) == bound
    assert PEAKS.attainable(flops, nbytes) == pytest.approx(attainable)
    assert PEAKS.seconds(flops, nbytes) == max(flops / 100e9, nbytes / 20e9)


@pytest.mark.parametrize(
    ("nbytes", "measured", "roof"),
    [(1e9, 0.1, ("memory", 0.05)), (1e9, 0.02, ("cache", 0.0125)), (1e6, 0.02, ("compute", 0.01))],
)
def test_what_is_faster_than_memory_is_under_the_roof_of_the_cache(
    nbytes: float, measured: float, roof: tuple[str, float]
) -> None:
    assert PEAKS.roof(1e9, nbytes, measured) == roof


def test_the_peaks_are_measured_once() -> None:
    first = machine_peaks(1)
    assert machine_peaks(1) is first and first.threads == 1
    assert min(first.flops, first.memory, first.cache) > 1e8
    assert memory_bytes() >= 64 << 20 and "GFLOP/s" in str(first)


@pytest.mark.parametrize("width", [4, 8, 16])
def test_the_measuring_loops_are_valid(width: int) -> None:
    import llvmlite.binding as llvm

    llvm.parse_assembly(flops_text(width) + bytes_text(width) + "attributes #0 = { nounwind }\n").verify()


@pytest.mark.parametrize(
    ("shares", "items", "threads", "expected"), [(64, 100, 4, 4), (1, 100, 4, 1), (64, 3, 4, 3), (64, 0, 4, 1)]
)
def test_a_step_is_held_against_the_threads_that_work_on_it(
    shares: int, items: int, threads: int, expected: int
) -> None:
    assert threads_of(SimpleNamespace(shares=shares, items=items), threads) == expected


def test_columns_and_configuration() -> None:
    module = GraphModule(tiny.factory()["default"](cpu(0)))
    report = module.profile(repeat=2)
    assert {"Peak %", "Roof %", "Bound", "Threads", "Kernel"} <= set(report.columns())
    assert "GB/s from memory" in str(report.configuration["Peak"]) and "Roof %:" in report.table()
    plain = module.profile(repeat=2, roofline=False)
    assert "Roof %" not in plain.columns() and "Roof" not in plain.table()


def call(name: str, spent: float, rate: float, share: float, bound: str = "compute") -> dict:
    return {
        "Name": name,
        "Duration (us)": Duration(spent),
        "Percent": Percent(spent),
        "Device": "cpu0",
        "Count": Count(1),
        "GFLOP/s": Ratio(rate),
        "Peak %": Percent(share),
        "Bound": bound,
    }


REPORT = Report(
    [call("a", 10, 30, 30), call("b", 60, 90, 90), call("a", 30, 50, 50)],
    {},
    relay={"b": "fn (%x) {\n  nn.relu(%x)\n}\n"},
)


def test_equal_kernels_are_one_row_and_rates_are_those_of_the_whole() -> None:
    first, second = REPORT.rows()
    assert first["Name"] == "b" and second["Count"].value == 2
    assert second["GFLOP/s"].value == pytest.approx((10 * 30 + 30 * 50) / 40) == second["Peak %"].value
    total = next(line for line in REPORT.table().splitlines() if line.startswith("Sum"))
    assert total.split()[1:] == ["100.00", "100.00", "3", "72.00", "72.00"]


def test_the_hot_kernels_in_words() -> None:
    text = REPORT.hot(1)
    assert text.startswith("1. b: 60.00 % in 1 call") and "90.00 % of peak" in text and "compute-bound" in text
    assert "   nn.relu(%x)" in text and "2. a" in REPORT.hot(2)
    assert Report.from_json(REPORT.json()).hot(2) == REPORT.hot(2)


@pytest.mark.parametrize(
    "call", ['{"a": {}}', '{"a": {"count": "x"}}', '{"a": {"count": 1, "ratio": 2}}', "[" * 100_000]
)
def test_damaged_reports_are_refused(call: str) -> None:
    with pytest.raises(RelayValueError, match="not a saved report"):
        Report.from_json(f'{{"device_metrics": {{}}, "calls": [{call}]}}')
