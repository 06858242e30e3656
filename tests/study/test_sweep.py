"""Sweeps: every combination once, rows kept, what crashes is a row, and nothing is lost with a worker or the client."""

from __future__ import annotations

import json
import math
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import astuple

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.codegen.operations.records import current_version
from relaylab.study.sweep import COLUMNS, MEASURES, SweepTable
from relaylab.study.sweep.worker import answer, machine, measured
from relaylab.support import cluster, line_process
from relaylab.support.errors import RelayError
from relaylab.viz.figures.chart import ChartBar, ChartPoint, bars, grid, points

X, W = relay.var("x", shape=(6, 20)), relay.const(np.ones((40, 20), "float32"))
SMALL = relay.IRModule.from_expr(relay.Function([X], relay.nn.relu(relay.nn.dense(X, W))))
COUNTS = {"measures": ("counts",)}


def cells(**settings):
    return study.cells([SMALL, "mlp"], ["default", "default-FuseOps"], **(COUNTS | settings))


def test_every_combination_is_a_cell_and_a_text():
    found = cells(options=[{}, {"relay.codegen.winograd": False}], threads=[1, 2])
    assert len(found) == len(set(found)) == 2 * 2 * 2 * 2 == len({c.key for c in found})
    assert [study.SweepCell.parse(c.json()) for c in found] == found
    assert found[0].text and not found[-1].text  # a network goes by its name
    assert "1, 1, 1" not in found[0].text and len(found[0].json()) < 2000  # numbers of constants are not sent
    assert found[-1].how == "default-FuseOps, relay.codegen.winograd=False"


@pytest.mark.parametrize(
    "settings",
    [{"measures": ("speed",)}, {"pipelines": ["default-FusOps"]}, {"pipelines": ["Fuse"]}, {"targets": ["cuda-"]},
     {"schedules": [{"dense": "splitt i 2"}]}, {"opt_levels": ["3"]}, {"threads": [0]}, {"threads": 1},
     {"options": [{"relay.x": 1}]}, {"options": [{"relay.codegen.schedules": {}}]}],
)  # fmt: skip
def test_wrong_lists_are_said_before_anything_runs(settings):
    with pytest.raises(RelayError):
        study.cells(["mlp"], **settings)


def test_what_is_measured():
    (cell,) = study.cells([SMALL], measures=tuple(MEASURES), threads=[1])
    found = measured(cell)
    assert found["kernels"] == 1 and found["operators"] == 2 and found["macs"] == 6 * 20 * 40
    assert 0 < found["time_low_us"] <= found["time_us"] <= found["time_high_us"]
    assert found["error"] < 1e-5 and found["code_bytes"] > 0 and found["constant_bytes"] >= 40 * 20 * 4
    assert found["passes_s"] > 0 and found["compile_s"] > 0 and "FuseOps" in found["passes"]
    json.dumps(found)


def test_columns_are_those_of_what_is_measured():
    assert COLUMNS.keys() == MEASURES.keys()
    for name, columns in COLUMNS.items():
        (cell,) = study.cells([SMALL], measures=[name])
        assert {k for k, v in measured(cell).items() if isinstance(v, (int, float))} == set(columns), name


def test_whole_numbers_are_written_out(inside):
    (line,) = str(study.sweep(study.cells(["mlp"], **COUNTS))).splitlines()[1:]
    assert "109,184" in line and "e+" not in line


def test_schedules_and_pipelines_reach_the_kernel():
    tiled, plain = study.cells([SMALL], schedules=[{"nn_dense_nn_relu": "unroll k"}, {}], **COUNTS)
    assert measured(plain)["kernels"] == 1 and measured(tiled)["kernels"] == 1
    (apart,) = study.cells([SMALL], ["default-FuseOps"], **COUNTS)
    assert measured(apart)["kernels"] == 2
    (wrong,) = study.cells([SMALL], schedules=[{"conv": "unroll k"}], **COUNTS)
    refused = answer({"cell": wrong.json()})
    assert refused["status"] == "refused" and "conv" in refused["why"]


@pytest.fixture
def inside(monkeypatch):
    """Cells are measured in this process; the list of those that were."""
    asked = []

    def ask(self, question, limit):
        asked.append(question["cell"])
        return answer(question)

    monkeypatch.setattr(line_process.LineProcess, "ask", ask)
    return asked


def test_rows_are_kept_and_not_measured_again(inside, tmp_path):
    first = study.sweep(cells(), tmp_path / "runs")
    assert [r.status for r in first.rows] == ["ok"] * 4 == ["ok"] * len(inside)
    again = study.sweep([*cells(), *cells(threads=[2])], tmp_path / "runs", on_row=lambda r: None)
    assert len(inside) == 8 and len(again) == 8 and again.rows[:4] == first.rows
    assert first.values("kernels")["module", "default-FuseOps"] == 2.0
    assert {"program", "how", "kernels", "status"} <= set(first.records()[0]) and "default-FuseOps" in str(first)


@pytest.mark.parametrize(
    "change",
    ["spec = 'no text of a cell'", "spec = '[]'", "spec = '{}'", "spec = replace(spec, 'threads', 'threadz')",
     "measures = '{'", "measures = '3'"],
)  # fmt: skip
def test_rows_that_are_none_are_damage(inside, tmp_path, change):
    wanted = cells()[:1]
    table = study.sweep(wanted, tmp_path / "runs")
    with closing(sqlite3.connect(tmp_path / "runs")) as base, base:
        base.execute(f"UPDATE runs SET {change}")
    for call in (lambda: table.rows, lambda: study.sweep(wanted, tmp_path / "runs").rows):
        with pytest.raises(RelayError) as found:
            call()
        assert found.value.code == "runs.damaged" and "runs" in found.value.message


def test_rows_of_other_cpus_and_versions_stay_beside_those_that_are_measured(inside, tmp_path, monkeypatch):
    (cell,) = study.cells(["mlp"], **COUNTS)
    elsewhere = {"status": "ok", "measures": {"kernels": 99}}
    SweepTable(tmp_path / "runs", [cell]).keep(
        [
            (cell, {"cpu": "a|other|b", "version": current_version(), **elsewhere}),
            (cell, {"cpu": machine()["cpu"], "version": "old", **elsewhere}),
            (cell, {"cpu": "", "version": current_version(), "status": "crashed", "why": "then"}),
        ]
    )
    table = study.sweep([cell], tmp_path / "runs")
    assert len(inside) == 1 and sorted(r.measures["kernels"] for r in table.rows) == [4, 99]
    assert table.values("kernels")["mlp", "default, other"] == 99 and len(table.values("kernels")) == 2


def test_pictures_tell_threads_and_programs_of_one_name_apart(inside):
    other = relay.IRModule.from_expr(relay.Function([X], relay.exp(X)))
    table = study.sweep(study.cells([study.Program("n", m) for m in (SMALL, other)], threads=[1, 2], **COUNTS))
    names = {("n", "default, 1 thread"), ("n", "default, 2 threads")}
    assert set(table.values("operators")) == names | {("n-2", how) for _, how in names}
    assert table.values("operators")["n-2", "default, 1 thread"] == 1


def test_a_name_of_two_lines_is_one_row(inside):
    table = study.sweep(study.cells([study.Program("two\nlines", SMALL)], **COUNTS))
    assert len(str(table).splitlines()) == 2 and table.rows[0].cell.program == "two\nlines"


def test_an_interrupted_sweep_keeps_its_rows(inside, tmp_path):
    def stop(row):
        raise KeyboardInterrupt

    table = study.sweep(cells(), tmp_path / "runs", on_row=stop)
    assert table.stopped and len(table) == 1
    assert len(study.sweep(cells(), tmp_path / "runs")) == 4


def test_an_error_ends_a_sweep_even_where_its_traceback_is_kept(inside, monkeypatch):
    ended = []
    monkeypatch.setattr(line_process.LineProcess, "close", lambda self: ended.append(self))
    with pytest.raises(ZeroDivisionError) as found:
        study.sweep(cells(), on_row=lambda row: 1 / 0)
    assert found.tb is not None and len(ended) == 1


def test_processes_that_crash_or_hang_are_rows_and_are_tried_again(monkeypatch, tmp_path):
    start = subprocess.Popen
    dying = 'import sys\nprint(\'{"status": "ready"}\', flush=True)\nsys.stdin.readline()\nsys.stdin.readline()'
    hanging = 'import time\nprint(\'{"status": "ready"}\', flush=True)\ntime.sleep(60)'
    for code, status in ((dying, "crashed"), (hanging, "slow")):
        monkeypatch.setattr(
            line_process.subprocess, "Popen", lambda c, code=code, **k: start([sys.executable, "-c", code], **k)
        )
        table = study.sweep(cells()[:2], tmp_path / "runs", limit=0.5, processes=2)
        assert [r.status for r in table.rows] == [status, status]


def test_wrong_settings_are_said(tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT", 0.5)
    wrong = [{"processes": 0}, {"processes": "2"}, {"limit": 0}, {"limit": "5"}, {"store": tmp_path}]
    for settings in (*wrong, {"client": "tcp://127.0.0.1:1"}, {"client": cluster}):
        if "client" in settings:
            pytest.importorskip("distributed")
        with pytest.raises(RelayError):
            study.sweep(cells()[:1], **settings)


def test_calls_and_clusters_that_are_given_up_are_told(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT", 0.5)
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as local:
        with pytest.raises(FileNotFoundError), cluster.cluster_at(local.scheduler_address):
            open("/no/such/file")
        with pytest.raises(RelayError, match="the cluster went away") as found:
            with cluster.cluster_at(local.scheduler_address) as work:
                work.submit("a", len, "abc")
                work.client.cancel([*work.open.values()])
                ((name, answer),) = work.finished()
                assert (name, answer.code) == ("a", "cluster.lost") and not work.open
                work.submit("b", len, "abcd")
                local.close()
                work.finished()
        assert found.value.code == "cluster.lost"


def test_pictures_and_measures(inside):
    table = study.sweep(study.cells(["mlp"], ["default", "default-FuseOps"], measures=("counts", "memory", "time")))
    assert len(table.bars().elements) == 4 and len(table.heat("kernels").elements) == 6
    dots = [e for e in table.pareto("mlp", "kernels", "arena_bytes").elements if e.id.startswith("point")]
    assert [len(e.shapes) for e in dots] == [2, 1]  # fused is better in both, and named
    for call in (lambda: table.bars("kernel"), lambda: table.pareto("mpl")):
        with pytest.raises(RelayError, match="did you mean|no"):
            call()


@pytest.mark.parametrize("odd", [math.inf, math.nan, -1.0])
def test_pictures_of_numbers_that_are_none(odd):
    """A result that differs beyond measure: its place is the end of the scale, and no picture breaks."""
    pictures = [
        bars([ChartBar("g", "a", odd, (odd, odd)), ChartBar("g", "b", 2.0)], "t"),
        grid({("a", "b"): odd, ("a", "c"): 1.0, ("a", "d"): 3.0}, "t"),
        points([ChartPoint(odd, odd, "a"), ChartPoint(1.0, 2.0, "b")], "x", "y"),
    ]
    for picture in pictures:
        stack = [picture.width, picture.height, *(astuple(x) for e in picture.elements for x in e.shapes)]
        while stack:
            value = stack.pop()
            stack += value if isinstance(value, tuple) else ()
            assert not isinstance(value, float) or math.isfinite(value)


def test_what_is_worse_than_nothing_is_not_the_best(inside):
    table = study.sweep(cells()[:2])
    found = {("net", "exact"): 0.0, ("net", "off"): 0.5}
    table.values = lambda measure: found
    words = [e.id for e in table.heat("error").elements if "heat-0" in str(e)]
    assert words == ["exact:net"]


@pytest.mark.slow
def test_a_cluster_loses_nothing_with_a_worker_or_a_client(tmp_path):
    """Two workers, of which one is killed while it measures; then another client goes on where the first one was."""
    distributed = pytest.importorskip("distributed")
    many = study.cells([SMALL, "mlp"], ["default", "default-FuseOps"], threads=[1, 2], **COUNTS)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = list(client.run(os.getpid).values())
        killed = []

        def first(row):
            if not killed:
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        table = study.sweep(many, tmp_path / "runs", client=client, on_row=first)
        assert [r.status for r in table.rows] == ["ok"] * len(many) and killed
        more = [*many, *study.cells([SMALL], ["default-FoldConstant"], **COUNTS)]
        rows = []
        again = study.sweep(more, tmp_path / "runs", client=cluster.scheduler_address, on_row=rows.append)
        assert len(rows) == 1 and len(again) == len(many) + 1  # the rest was there
