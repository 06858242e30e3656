"""The search: processes that die are replaced, what is measured is kept, nothing is measured twice, gains are real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.operations.records import RecordStore
from relaylab.support import line_process
from relaylab.support.errors import RelayError
from relaylab.tune import CostModel, fleet, process, search, tasks_of
from relaylab.tune.worker import Bench, agree, difference

X, W = relay.var("x", shape=(6, 20)), relay.const(np.ones((40, 20), "float32"))
BODY = relay.nn.softmax(relay.nn.relu(relay.nn.dense(X, W)) + relay.nn.dense(X, W))
PROGRAM = study.Program("small", relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([X], BODY))))
HOST = CpuTarget.parse("llvm")


def fused():
    with relay.transform.PassContext(opt_level=3):
        return relay.optimize(PROGRAM.mod, "llvm")[0]


class Fake:
    """A worker that knows times by heart: a schedule with `parallel` is fast, one with `pack` ends the process."""

    asked: list[str] = []

    def __init__(self, *_):
        pass

    def measure(self, schedule):
        Fake.asked.append(schedule)
        if "pack" in schedule:
            return {"status": "crashed"}
        return {"status": "ok", "us": 5.0 if "parallel" in schedule else 9.0, "picked_us": 10.0, "error": 0.0}

    def close(self):
        pass


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(fleet, "Worker", Fake)
    Fake.asked = []
    return Fake


def test_tasks_are_programs_of_their_own():
    for task in tasks_of(fused(), HOST):
        bench = Bench(task.text, str(HOST))
        assert task.key and task.uses == 1 and str(task.plain).startswith("kernel ")
        found = bench.measure("")
        assert found["status"] == "ok" and found["error"] == 0 and found["us"] > 0


def test_the_kernels_of_a_large_batch_are_those_of_a_part():
    mod = relay.transform.MicroBatch(2)(fused())
    assert mod["main"].attr("MicroBatch") == 2
    assert all("Tensor[(2, " in task.text and "Tensor[(6, " not in task.text for task in tasks_of(mod, HOST))


def test_a_search_keeps_every_measurement_and_goes_on_where_it_stopped(fake, tmp_path):
    store = RecordStore(tmp_path / "r.sqlite", create=True)
    steps = list(search.Tuner(fused(), HOST, store, 1).run(30))
    kept = store.find()
    assert len(kept) == len(steps) > 6 and {r.status for r in kept} == {"ok", "crashed"}
    assert any(s.best.us == 5.0 and "parallel" in s.best.schedule for s in steps)
    gains = [a for a in fake.asked if "parallel" in a and "pack" not in a]
    assert gains and all(fake.asked.count(a) == 2 for a in gains)  # confirmed
    before = len(fake.asked)
    again = list(search.Tuner(fused(), HOST, store, 1).run(30))
    known = {(r.kernel, r.schedule) for r in kept}
    fresh = [s for s in again if s.record.schedule and (s.record.kernel, s.record.schedule) in known]
    assert not fresh and len(fake.asked) - before <= 2 * len(again)


class FewestFirst(CostModel):
    """Sees work items only, the fewest first."""

    def learn(self, records):
        pass

    def microseconds(self, features):
        return float(features.items)


def test_a_cost_model_of_ones_own_decides_what_is_measured_first(fake, tmp_path):
    def order(name, **options):
        store = RecordStore(tmp_path / name, create=True)
        steps = search.Tuner(fused(), HOST, store, 1, **options).run(30)
        return [json.loads(s.record.features)[-1] for s in steps if s.record.features][:8]

    fewest = order("fewest.sqlite", model=FewestFirst)
    assert fewest == sorted(fewest) and fewest != order("usual.sqlite")


@pytest.mark.parametrize("value", [None, "fast", float("nan")])
def test_a_cost_model_that_predicts_no_number_is_told(fake, tmp_path, value):
    class Broken(CostModel):
        def microseconds(self, features):
            return value

    with pytest.raises(RelayError, match="the cost model Broken predicts"):
        study.tune(PROGRAM, 30, tmp_path / "r.sqlite", 1, model=Broken)
    with pytest.raises(RelayError, match="a cost model is made by a class"):
        study.tune(PROGRAM, 30, tmp_path / "s.sqlite", 1, model=lambda target, threads: value)


def test_a_kernel_that_computes_nothing_has_no_schedules(fake, tmp_path):
    x = relay.var("x", shape=(0, 5))
    program = study.load(relay.Function([x], relay.Tuple([relay.nn.softmax(x), relay.exp(x)])))
    found = study.tune(program, 30, tmp_path / "r.sqlite", threads=1)
    assert found.measured == len(found.best) == 2 and not found.gains and set(fake.asked) == {""}


def test_picked_loops_that_were_slow_once_are_measured_again(monkeypatch, fake, tmp_path):
    """A machine that was busy then says nothing of the kernel."""
    monkeypatch.setattr(Fake, "measure", lambda self, schedule: {"status": "slow"})
    store = RecordStore(tmp_path / "r.sqlite", create=True)
    assert {s.record.status for s in search.Tuner(fused(), HOST, store, 1).run(30)} == {"slow"}
    monkeypatch.undo()
    monkeypatch.setattr(fleet, "Worker", Fake)
    assert len(list(search.Tuner(fused(), HOST, store, 1).run(30))) > 6
    assert {r.status for r in store.find() if not r.schedule} == {"ok"}


def test_an_interrupted_search_says_so_and_keeps_what_it_has(fake, tmp_path):
    seen = []

    def stop(step):
        seen.append(step)
        if len(seen) == 3:
            raise KeyboardInterrupt

    found = study.tune(PROGRAM, 30, tmp_path / "r.sqlite", threads=1, on_step=stop)
    assert found.stopped and found.measured == 3 == len(found.store.find())


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "5", None])
def test_budgets_that_are_none(seconds, tmp_path):
    with pytest.raises(RelayError, match="budget|`seconds` must be a number"):
        study.tune(PROGRAM, seconds, tmp_path / "r.sqlite")


def script(body: str) -> list[str]:
    return [sys.executable, "-c", "import sys, time\n" + textwrap.dedent(body)]


@pytest.mark.parametrize(
    "body, status",
    [
        ('print(\'{"status": "ready"}\', flush=True); sys.stdin.readline(); sys.stdin.readline()', "crashed"),
        ('print(\'{"status": "ready"}\', flush=True); time.sleep(60)', "slow"),
    ],
)
def test_a_process_that_dies_or_hangs_is_replaced(body, status, monkeypatch):
    start = subprocess.Popen
    started = []

    def instead(command, **settings):
        started.append(command)
        return start(script(body), **settings)

    monkeypatch.setattr(line_process.subprocess, "Popen", instead)
    worker = process.Worker("text", "llvm", 1, limit=0.5)
    assert [worker.measure("a")["status"], worker.measure("b")["status"]] == [status, status]
    assert len(started) == 2 and worker.process.process is None


def test_a_process_is_ended_while_it_talks(monkeypatch):
    """What reads its lines ends with it, without a word."""
    start, raised, before = subprocess.Popen, [], set(threading.enumerate())
    monkeypatch.setattr(threading, "excepthook", raised.append)
    talk = 'print(\'{"status": "ready"}\', flush=True)\nwhile True: print("x" * 5000, flush=True)'
    monkeypatch.setattr(line_process.subprocess, "Popen", lambda command, **settings: start(script(talk), **settings))
    for _ in range(16):
        worker = process.Worker("text", "llvm", 1)
        worker.process._start()
        worker.process.lines.get()
        worker.close()
    for thread in set(threading.enumerate()) - before:
        thread.join()
    assert not raised


def test_a_worker_that_cannot_start_is_an_error(monkeypatch):
    start = subprocess.Popen
    monkeypatch.setattr(line_process.subprocess, "Popen", lambda command, **settings: start(script(""), **settings))
    with pytest.raises(RelayError) as found:
        process.Worker("text", "llvm", 1).measure("")
    assert found.value.code == "process.start"


def test_results_are_compared_to_the_last():
    a = np.array([1.0, np.nan, np.inf, -2.0], "float32")
    assert difference([a], [a.copy()]) == 0
    assert difference([a], [np.array([1, np.nan, np.inf, -2.5], "float32")]) == 0.25
    assert difference([a], [np.array([1, 0, np.inf, -2], "float32")]) == float("inf")
    assert difference([np.array([3])], [np.array([4])]) == float("inf")
    assert difference([], []) == 0 == difference([np.array([], "int64")], [np.array([], "int64")])
    narrow = np.array([1.0, np.nan, -2.0], "bfloat16")  # numbers as any other floats
    assert difference([narrow], [narrow.copy()]) == 0
    assert difference([narrow], [np.array([1.0, np.nan, -2.5], "bfloat16")]) == 0.25


@pytest.mark.slow
def test_halves_whose_last_place_differs_are_not_wrong():
    """Legal schedules of a softmax in float16 were recorded as wrong: one unit in the last place is 1e-3."""
    one = np.array([1.0, -0.5, 0.25], "float16")
    assert agree([one], [np.nextafter(one, np.float16(9))]) and not agree([one], [one * np.float16(1.01)])
    wide = one.astype("float32")
    assert agree([wide], [np.nextafter(wide, np.float32(9))]) and not agree([wide], [wide * np.float32(1.001)])
    assert not agree([one], [np.array([1.0, np.nan, 0.25], "float16")])
    x = relay.var("x", shape=(8, 256), dtype="float16")
    mod, _ = relay.optimize(relay.IRModule.from_expr(relay.Function([x], relay.nn.softmax(x))), "llvm")
    (task,) = tasks_of(mod, CpuTarget.host())
    assert Bench(task.text, "llvm").measure("vectorize k k2 i1")["status"] == "ok"


def test_the_command_tunes_lists_and_goes_on(tmp_path):
    """In processes of their own, as a user runs it."""
    (tmp_path / "p.relay").write_text(PROGRAM.mod.astext())
    records = str(tmp_path / "r.sqlite")
    command = [sys.executable, "-m", "relaylab", "tune", str(tmp_path / "p.relay"), "--records", records]
    run = lambda *more: subprocess.run([*command, *more], capture_output=True, text=True, timeout=55)
    first = run("--budget", "2", "--threads", "1", "--json")
    assert first.returncode == 0, first.stderr
    found = json.loads(first.stdout)
    assert found["measured"] >= 1 and found["tuned_ms"] > 0 and {k["status"] for k in found["kernels"]} == {"ok"}
    listed = json.loads(run("--table", "--json").stdout)
    assert len(listed) == found["measured"] and all(r["threads"] == 1 for r in listed)
    command.insert(-2, "nat")  # a program of functions: the other one is tuned
    several = run("--budget", "2", "--threads", "1")
    assert several.returncode == 1 and "nat is left out: error[build.not-static]" in several.stderr
    assert records in several.stdout and "geometric mean of 1" in several.stdout
    wrong = run("--budget", "soon")
    assert wrong.returncode == 1 and "tune.budget" in wrong.stderr


@pytest.mark.slow
def test_a_cluster_tunes_and_a_lost_worker_costs_nothing(tmp_path):
    """Two workers, of which one is killed at the first measurement; a second search measures nothing twice."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = list(client.run(os.getpid).values())[0]

        def until(count):
            def watch(step):
                if not steps:
                    os.kill(victim, signal.SIGKILL)
                steps.append(step)
                if len(steps) >= count:
                    raise KeyboardInterrupt

            return watch

        steps = []
        found = study.tune(PROGRAM, 300, tmp_path / "r.sqlite", threads=1, on_step=until(6), client=client)
        kept = found.store.find()
        assert len(steps) == 6 <= len(kept) and {r.cpu for r in kept} == {HOST.key} and found.stopped
        steps = steps[:1]
        study.tune(PROGRAM, 300, tmp_path / "r.sqlite", threads=1, on_step=until(5), client=cluster.scheduler_address)
        fresh = [s.record for s in steps[1:] if s.record.schedule]
        assert fresh and not {(r.kernel, r.schedule) for r in fresh} & {(r.kernel, r.schedule) for r in kept}
