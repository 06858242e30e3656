"""A sweep on a thousand machines, simulated: no cell is lost or done twice, and the client keeps up with them."""

from __future__ import annotations

import random
from contextlib import contextmanager

import pytest
from support.simulated_cluster import SimulatedCluster

from relaylab import study
from relaylab.study.sweep import run

CELLS = {10: 300, 1000: 6000}


def seconds(draw: random.Random) -> float:
    return draw.lognormvariate(1.6, 0.2)  # about 5 s: passes, compiling, measuring


@pytest.fixture
def on(monkeypatch):
    """Sweeps go to a simulated cluster; each call is answered at once, as if its seconds had gone by."""

    def answer(text, limit):
        return {"cpu": "machine", "version": run.current_version(), "status": "ok", "measures": {"kernels": 3}}

    monkeypatch.setattr(run, "run_cell", answer)

    def use(cluster):
        @contextmanager
        def at(client):
            yield cluster

        monkeypatch.setattr(run, "cluster_at", at)
        return cluster

    return use


def cells(count: int):
    return [study.SweepCell("mlp", options=(("seed", k),)) for k in range(count)]


@pytest.mark.parametrize("workers", [10, pytest.param(1000, marks=pytest.mark.slow)])
def test_a_thousand_workers_that_fail_lose_nothing_and_are_used(on, tmp_path, workers):
    wanted = cells(CELLS[workers])
    cluster = on(SimulatedCluster(workers, seconds, share=0.02))
    table = study.sweep(wanted, tmp_path / "runs", client="simulated")
    assert {r.status for r in table.rows} == {"ok"} and len(table) == len(wanted)
    assert cluster.lost > len(wanted) // 100 and cluster.calls == len(wanted) + cluster.lost
    last = 30  # seconds in which the last cells may be lost, missed, and run again
    assert cluster.now < 1.15 * cluster.used / workers + last, cluster.now


def test_a_client_that_dies_goes_on(on, tmp_path):
    wanted = cells(400)

    def stop(row):
        if len(seen) == 100:
            raise KeyboardInterrupt
        seen.append(row)

    seen = []
    on(SimulatedCluster(50, seconds, share=0.05))
    first = study.sweep(wanted, tmp_path / "runs", client="simulated", on_row=stop)
    kept = len(first)
    assert first.stopped and 100 <= kept < 200
    cluster = on(SimulatedCluster(50, seconds, seed=1))
    assert len(study.sweep(wanted, tmp_path / "runs", client="simulated")) == 400
    assert cluster.calls == 400 - kept
