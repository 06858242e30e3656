"""The native pool: any number of threads, fork, exit, float mode; each case in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny

from relaylab.runtime import threads
from relaylab.runtime.executor import GraphExecutor
from relaylab.runtime.native import Code
from relaylab.support.errors import RelayValueError

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
HEAD = """
import os, sys, threading, numpy as np
import tiny
from relaylab.runtime import cpu, threads
from relaylab.runtime.executor import GraphExecutor
lib = tiny.factory()
x = np.random.default_rng(0).normal(size=tiny.SIZE).astype("float32")
def check(executor, values=x):
    executor.set_input("x", values)
    executor.run()
    assert np.allclose(executor.get_output(0).numpy(), tiny.expected(values))
"""


def run(program: str, **environment: str) -> str:
    path = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("count", [1, 2, 3, 5, 9, 16, 64])
def test_results_do_not_depend_on_the_thread_count(count: int) -> None:
    x = np.random.default_rng(1).normal(size=tiny.SIZE).astype("float32")
    executor = GraphExecutor(tiny.factory().code, count)
    executor.set_input("x", x)
    for _ in range(50):
        executor.run()
        np.testing.assert_array_equal(executor.get_output(0).numpy(), tiny.expected(x))


@pytest.mark.parametrize("count", [2, 3, 5])
def test_every_item_is_done_once_by_whom_ever(count: int) -> None:
    for items in (*range(1, 12), 63, 64, 65, 1000):
        assert tiny.counts(items, count, runs=20) == [20] * items


@pytest.mark.parametrize("waits", [0, 1])
def test_who_is_ready_takes_what_another_has_not_begun(waits: int) -> None:
    # A thread waits in its first chunk until all others are done: also those of its own share.
    assert run(f"print(*tiny.counts(8, 2, until=7, waits={waits}))") == " ".join("1" * 8)


def test_workers_start_lazily_and_are_shared() -> None:
    out = run("""
print(threads.worker_count())
a, b = GraphExecutor(lib.code, 4), GraphExecutor(tiny.factory().code, 3)
print(threads.worker_count()); check(a); print(threads.worker_count()); check(b); print(threads.worker_count())
""")
    assert out.split() == ["0", "0", "3", "3"]


def test_fork_after_run() -> None:
    out = run("""
executor = GraphExecutor(lib.code, 3)
check(executor)
child = os.fork()
if child == 0:
    assert threads.worker_count() == 0
    check(executor, -x); check(GraphExecutor(lib.code, 2))
    assert threads.worker_count() == 2
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
check(executor); print("done")
""")
    assert out == "done"


def test_fork_while_another_thread_runs() -> None:
    out = run("""
executor = GraphExecutor(lib.code, 2)
stop = threading.Event()
def busy():
    while not stop.is_set():
        executor.run()
worker = threading.Thread(target=busy); worker.start()
for _ in range(20):
    child = os.fork()
    if child == 0:
        for _ in range(20): check(executor)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
stop.set(); worker.join(); print("done")
""")
    assert out == "done"


@pytest.mark.parametrize(
    "end",
    [
        "",
        "sys.exit(0)",
        "os._exit(0)",
        "import time; time.sleep(0.3)",
        "threading.Thread(target=lambda: [executor.run() for _ in range(10**9)], daemon=True).start()",
    ],
)
def test_exits_at_once(end: str) -> None:
    run(f"executor = GraphExecutor(lib.code, 4)\ncheck(executor)\n{end}\n")


def test_wakes_after_sleep() -> None:
    run("""
import time
executor = GraphExecutor(lib.code, 4)
for _ in range(20):
    check(executor); time.sleep(0.01)
""")


def test_environment_chooses_the_count() -> None:
    program = "e = GraphExecutor(lib.code); check(e); print(threads.num_threads(), threads.worker_count())"
    assert run(program, RELAYLAB_NUM_THREADS="3") == "3 2"
    assert run(program, RELAYLAB_NUM_THREADS="1") == "1 0"


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "65", "9" * 30])
def test_bad_counts(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.VARIABLE, text)
    monkeypatch.setattr(threads, "_chosen", None)  # whatever ran before
    with pytest.raises(RelayValueError, match=threads.VARIABLE):
        threads.num_threads()
    with pytest.raises(RelayValueError):
        threads.set_num_threads(text)


def test_chosen_count_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(threads.VARIABLE, "5")
    threads.set_num_threads(2)
    try:
        assert threads.num_threads() == 2
    finally:
        threads.set_num_threads(None)
    assert threads.num_threads() == 5


@pytest.mark.parametrize("count", [1, 4])
def test_denormals_are_kept(count: int) -> None:
    executor = GraphExecutor(Code(tiny.executable(bias=0.0)), count)
    executor.set_input("x", np.full(tiny.SIZE, 1e-38, np.float32))
    executor.run()
    products = np.float32(1e-38) * tiny.weights()[0]
    assert (np.abs(products[products != 0]) < np.finfo(np.float32).tiny).any()
    np.testing.assert_array_equal(executor.get_output(0).numpy(), np.maximum(products, 0))


WAKES = """
import time
def allowed():
    return sorted(tuple(sorted(os.sched_getaffinity(int(t)))) for t in os.listdir("/proc/self/task"))
executor = GraphExecutor(lib.code, 3)
check(executor)
time.sleep(0.1)
{between}
for _ in range(20):
    check(executor)
    time.sleep(0.005)
time.sleep(0.1)
mine = tuple(sorted(os.sched_getaffinity(0)))
"""


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be bound to processors here")
def test_a_worker_that_was_woken_may_use_all_processors_again() -> None:
    print_all = "print(all(mask == mine for mask in allowed()), len(allowed()) >= 3)"
    assert run(WAKES.format(between="") + print_all) == "True True"


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="threads cannot be bound to processors here")
def test_workers_wake_where_the_caller_has_one_processor() -> None:
    one = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})"
    assert run(WAKES.format(between=one) + "print(len(mine), len(allowed()) >= 3)") == "1 True"
