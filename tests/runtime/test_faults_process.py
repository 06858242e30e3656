"""The process around compiled code: its float mode, forks, interrupts, threads that come and go, exit.

Each case runs in a process of its own with a time limit, so that a hang or a crash is a failure and no more."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
HEAD = """
import faulthandler, os, signal, sys, threading, time, numpy as np
faulthandler.enable()
import tiny
from relaylab.runtime import cpu, threads
from relaylab.runtime.executor import GraphExecutor
from relaylab.support.errors import RelayError
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


MODES = '''
import ctypes
import llvmlite.binding as llvm
TEXT = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
define i32 @mode() {
  %at = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %mode = load i32, ptr %at, align 4
  ret i32 %mode
}
define void @set(i32 %mode) {
  %at = alloca i32, align 4
  store i32 %mode, ptr %at, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}
"""
code = tiny.compiled(TEXT)
engine = llvm.create_lljit_compiler()
library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("mode").export_symbol("set").link(engine, "m")
mode = ctypes.CFUNCTYPE(ctypes.c_int32)(library["mode"])
set_mode = ctypes.CFUNCTYPE(None, ctypes.c_int32)(library["set"])
RESULT_FLAGS = 0x3F  # what has happened, set by any arithmetic
'''


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="MXCSR is a register of x86")
@pytest.mark.parametrize("count", [1, 3])
def test_the_float_mode_of_the_caller_comes_back_and_does_not_matter(count: int) -> None:
    """Rounding up, flushing denormals, unmasked division by zero: kept for the caller, no effect on the results."""
    out = run(
        MODES
        + f"""
executor = GraphExecutor(tiny.factory().code, {count})
plain = mode() & ~RESULT_FLAGS
check(executor)
assert mode() & ~RESULT_FLAGS == plain
normal = executor.get_output(0).numpy()
for wanted in (0x1F80 | 0x4000, 0x1F80 | 0x2000, 0x1F80 | 0x6000, 0x1F80 | 0x8040, 0x1F80 & ~0x200, 0x1F80 & ~0x400):
    executor.set_input("x", x)
    set_mode(wanted)
    executor._spare_outputs(), executor.instance.run()
    seen = mode()
    set_mode(plain)
    assert seen & ~RESULT_FLAGS == wanted, (hex(seen), hex(wanted))
    assert np.array_equal(executor.get_output(0).numpy(), normal), hex(wanted)
print("kept")
"""
    )
    assert out == "kept"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_modules_are_linked() -> None:
    out = run("""
stop = threading.Event()
def link():
    while not stop.is_set():
        check(GraphExecutor(tiny.factory().code, 1))
worker = threading.Thread(target=link); worker.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        check(GraphExecutor(tiny.factory().code, 2))
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
stop.set(); worker.join(); print("done")
""")
    assert out == "done"


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_workers_of_multiprocessing_run_networks(method: str, tmp_path: Path) -> None:
    (tmp_path / "work_of_children.py").write_text(
        HEAD
        + """
def work(seed):
    values = np.random.default_rng(seed).normal(size=tiny.SIZE).astype("float32")
    check(GraphExecutor(tiny.factory().code, 2), values)
    return seed
"""
    )
    out = run(
        f"""
import multiprocessing
sys.path.insert(0, {str(tmp_path)!r})
from work_of_children import work
if __name__ == "__main__":
    check(GraphExecutor(tiny.factory().code, 2))
    context = multiprocessing.get_context({method!r})
    with context.Pool(2) as pool:
        print(pool.map(work, range(4)))
""",
        PYTHONPATH=os.pathsep.join([str(HERE), str(tmp_path), *filter(None, sys.path)]),
    )
    assert out == "[0, 1, 2, 3]"


def test_an_interrupt_during_a_run_comes_afterwards_and_breaks_nothing() -> None:
    out = run("""
executor = GraphExecutor(tiny.factory().code, 2)
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.01)
signal.signal(signal.SIGALRM, signal.default_int_handler)
caught = 0
while caught < 15:
    try:
        while True:
            executor.run()
    except KeyboardInterrupt:
        caught += 1
signal.setitimer(signal.ITIMER_REAL, 0)
check(executor); check(executor, -x); print(caught)
""")
    assert out == "15"


def test_modules_come_and_go_in_threads() -> None:
    out = run("""
wrong = []
def work(seed):
    values = np.random.default_rng(seed).normal(size=tiny.SIZE).astype("float32")
    try:
        for turn in range(12):
            check(GraphExecutor(tiny.factory().code, 1 + turn % 4), values)
    except BaseException as error:
        wrong.append(error)
workers = [threading.Thread(target=work, args=(k,)) for k in range(6)]
for w in workers: w.start()
for w in workers: w.join()
print(wrong)
""")
    assert out == "[]"


FAR = """
import ctypes
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.jit import emit_object
from relaylab.runtime.native import linker
values = ", ".join(f"float {k % 777}.0" for k in range(100_000))
text = f'''
@table = internal constant [100000 x float] [{values}]
define float @get(i64 %i) {{
  %at = getelementptr [100000 x float], ptr @table, i64 0, i64 %i
  %value = load float, ptr %at
  ret float %value
}}'''
code, link = emit_object(text, CpuTarget.parse()), linker().link
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
hole = 40 * 4096  # room for the code and not for the table
holes = [libc.mmap(None, hole, 3, 0x22, -1, 0) for _ in range(20_000)]
libc.mmap(None, 64 << 30, 0, 0x4022, -1, 0)  # reserved, without memory
for at in holes[::2]:
    libc.munmap(at, hole)
library = link((code,), {"get"})
print(ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_int64)(library["get"])(5))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for addresses")
def test_code_and_constants_lie_close_however_much_is_mapped() -> None:
    assert run(FAR) == "5.0"


@pytest.mark.parametrize("text", ["0", "-2", "many", "9" * 6000, "2.0", "0x2"])
def test_a_number_of_threads_that_is_none(text: str) -> None:
    out = run(
        """
try:
    GraphExecutor(tiny.factory().code)
except RelayError as error:
    print(error.code, "RELAYLAB_NUM_THREADS" in error.message, bool(error.help), len(str(error)) < 300)
""",
        RELAYLAB_NUM_THREADS=text,
    )
    assert out == "runtime.num-threads True True True"


def test_more_threads_than_the_system_gives() -> None:
    """Where no further thread can be started, the ones that are there do the work."""
    out = (
        run("""
import resource
lib = tiny.factory()
executor = GraphExecutor(lib.code, 64)
count = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
check(executor)
print("done")
""")
        if sys.platform == "linux"
        else "done"
    )
    assert out == "done"


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise SystemExit(3)", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_the_process_ends_while_others_run(end: str) -> None:
    """Daemon threads in the middle of runs, workers that spin: the end does not wait for them."""
    path = os.pathsep.join([str(HERE), *filter(None, sys.path)])
    program = (
        HEAD
        + f"""
for k in range(3):
    executor = GraphExecutor(tiny.factory().code, 3)
    threading.Thread(target=lambda e=executor: [e.run() for _ in range(10**9)], daemon=True).start()
time.sleep(0.2)
{end}
"""
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert done.returncode == (0 if not end else -15 if "kill" in end else 3), done.stderr
