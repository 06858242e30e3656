"""What a system does to a process: threads, forks, interrupts, limits, other processes, a full disk, files that change.

Every case runs in a child of its own. Afterwards the right numbers must come out, or a RelayError (MemoryError where
memory is limited); no signal may end the child, and nothing may hang.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import resource
import select
import signal
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from fuzz.choices import Choices
from fuzz.search import Finding, family

from relaylab import relay
from relaylab.runtime import load_module, set_num_threads
from relaylab.support.errors import RelayError

LIMIT = 40.0
"""Seconds after which a child hangs."""
X = np.linspace(-1, 1, 32, dtype="float32").reshape(2, 16)
W = np.linspace(0, 1, 1024, dtype="float32").reshape(64, 16)


@dataclass(frozen=True)
class Case:
    """What is done to the process, when or how much, and what it is doing."""

    fault: str
    amount: int
    doing: str


def built(scale: float = 1.0) -> Any:
    x, w = relay.var("x", shape=(2, 16)), relay.var("w", shape=(64, 16))
    body = relay.nn.softmax(relay.tanh(relay.nn.dense(x, w, units=None)) * relay.const(scale))
    return relay.build(relay.IRModule.from_expr(relay.Function([x, w], body)), "llvm", params={"w": W})


def right(lib: Any, scale: float = 1.0) -> None:
    y = np.tanh(X @ W.T) * scale
    want = np.exp(y) / np.exp(y).sum(1, keepdims=True)
    if not np.allclose(lib.run(x=X), want, rtol=1e-4, atol=1e-6):
        raise Finding("wrong numbers after a fault", f"{lib.run(x=X)} instead of {want}")


@cache
def ready() -> tuple[Any, Path]:
    """A module that was built, and its file; made before children are."""
    home = tempfile.TemporaryDirectory(prefix="relaylab-faults-")
    _kept.append(home)
    lib = built()
    right(lib)
    path = Path(home.name) / "net.so"
    lib.export_library(path)
    return lib, path


_kept: list[Any] = []


def work(doing: str, folder: Path) -> None:
    """One thing that users do, from the beginning to numbers."""
    lib, path = ready()
    if doing == "build":
        right(built(2.0), 2.0)
    elif doing == "run":
        for _ in range(30):
            right(lib)
    elif doing == "load":
        found = load_module(path)
        right(found)
        np.testing.assert_array_equal(next(iter(found.get_params().values())).numpy(), W)
    else:
        lib.export_library(folder / "other.so")
        right(load_module(folder / "other.so"))


# ---- faults; each runs in a child


def threads(case: Case, folder: Path) -> None:
    wrong: list[BaseException] = []

    def one() -> None:
        try:
            work(case.doing, folder)
        except BaseException as error:
            wrong.append(error)

    set_num_threads(1 + case.amount % 2)
    some = [threading.Thread(target=one) for _ in range(2 + case.amount % 6)]
    for thread in some:
        thread.start()
    for thread in some:
        thread.join()
    if wrong:
        raise wrong[0]


def fork(case: Case, folder: Path) -> None:
    """Children while other threads work."""
    busy = threading.Thread(target=work, args=(case.doing, folder))
    busy.start()
    time.sleep(case.amount / 20_000)
    in_child(lambda: (right(ready()[0]), right(built(3.0), 3.0)))
    busy.join()


def interrupt(case: Case, folder: Path) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, stop)
    with contextlib.suppress(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + case.amount / 5_000)
        work(case.doing, folder)
        signal.setitimer(signal.ITIMER_REAL, 0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    work(case.doing, folder)


def full_disk(case: Case, folder: Path) -> None:
    """Files may have so many bytes and no more."""
    _, path = ready()
    os.environ["RELAYLAB_CACHE_DIR"] = str(folder / "cache")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    size = case.amount * path.stat().st_size // 1000 + case.amount % 5
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        work(case.doing, folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        if (folder / "other.so").exists():
            right(load_module(folder / "other.so"))
        if case.doing == "export" and [p for p in folder.iterdir() if p.suffix == ".tmp"]:
            raise Finding("a half-written file is left", str(list(folder.iterdir())))


def few_files(case: Case, folder: Path) -> None:
    held = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (held + case.amount % 12, 4096))
    os.environ["RELAYLAB_CACHE_DIR"] = str(folder / "cache")
    work(case.doing, folder)


def little_memory(case: Case, folder: Path) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + (case.amount << 15)
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    with contextlib.suppress(MemoryError):
        work(case.doing, folder)


def raced(case: Case, folder: Path) -> None:
    """Processes that share a small cache, whose entries are damaged meanwhile."""
    os.environ["RELAYLAB_CACHE_DIR"], os.environ["RELAYLAB_CACHE_LIMIT"] = str(folder / "cache"), str(case.amount * 40)
    rng, children = random.Random(case.amount), []
    for _ in range(3):
        children.append(started(lambda: [right(built(s), s) for s in (1.0, 2.0, 1.0, 3.0)]))
    end = time.monotonic() + 1
    while time.monotonic() < end:
        for entry in (folder / "cache").glob("*.db"):
            with contextlib.suppress(OSError):
                data = bytearray(entry.read_bytes())
                data[rng.randrange(len(data) or 1) : rng.randrange(len(data) + 1)] = b"x"
                entry.write_bytes(data)
        time.sleep(0.01)
    for child in children:
        finished(*child)


def killed(case: Case, folder: Path) -> None:
    """A process that ends while it writes over a library leaves the old one or the new one."""
    _, path = ready()
    (folder / "other.so").write_bytes(path.read_bytes())
    process = os.fork()
    if process == 0:
        try:
            while True:
                work("export", folder)
        finally:
            os._exit(0)
    time.sleep(case.amount / 10_000)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    right(load_module(folder / "other.so"))


def rewritten(case: Case, folder: Path) -> None:
    """A library that is cut or written over while it is loaded."""
    path = folder / "own.so"
    path.write_bytes(ready()[1].read_bytes())
    lib, size = load_module(path), path.stat().st_size
    if case.doing in ("run", "build"):
        lib.get_params()
    if case.amount % 3 == 0:
        os.truncate(path, size * case.amount // 1000)
    else:
        with path.open("r+b") as file:
            file.seek(size * case.amount // 1000)
            file.write(b"other" * (case.amount % 50))
    right(lib)
    with contextlib.suppress(RelayError):
        np.testing.assert_array_equal(next(iter(lib.get_params().values())).numpy(), W)
    right(lib)


FAULTS: dict[str, Callable[[Case, Path], None]] = {
    f.__name__: f for f in (threads, fork, interrupt, full_disk, few_files, little_memory, raced, killed, rewritten)
}


# ---- children


def started(what: Callable[[], object]) -> tuple[int, int]:
    """A child that does something; its number, and where it says what came of it."""
    out, into = os.pipe()
    process = os.fork()
    if process:
        os.close(into)
        return process, out
    os.close(out)
    said: tuple[str, str] = ("ran", "")
    try:
        what()
    except Finding as found:
        said = found.kind, found.message
    except RelayError as error:
        said = f"refused {error.code}", ""
    except BaseException as error:
        said = f"foreign error: {type(error).__name__}", traceback.format_exc(limit=-6)
    finally:
        with contextlib.suppress(BaseException):
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        os.write(into, pickle.dumps(said)[:60_000])
        os._exit(0)


def finished(process: int, out: int) -> str:
    """What a child says in the end; a finding if it hangs, ends by a signal or has one."""
    try:
        if not select.select([out], [], [], LIMIT)[0]:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            raise Finding("a child hangs", f"no answer in {LIMIT:g} s")
        said = os.read(out, 1 << 16)
        _, status = os.waitpid(process, 0)
    finally:
        os.close(out)
    if os.WIFSIGNALED(status) or not said:
        raise Finding(
            f"a child ends by {signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else status}", ""
        )
    kind, message = pickle.loads(said)
    if kind != "ran" and not kind.startswith("refused "):
        raise Finding(kind, message)
    return kind


def in_child(what: Callable[[], object]) -> str:
    return finished(*started(what))


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="relaylab-fault-") as name:
        yield Path(name)


@family("faults", "threads, forks, interrupts, limits of files and memory, caches raced for, files that change")
class Faults:
    def case(self, draw: Choices) -> Case:
        return Case(draw.choice(sorted(FAULTS)), draw.randrange(1000), draw.choice(("run", "load", "build", "export")))

    def run(self, case: Case) -> str:
        ready()
        with own_folder() as folder:
            return f"{case.fault}, {in_child(lambda: FAULTS[case.fault](case, folder))}"
