"""Measuring a row: builds cold and warm, interleaved medians of all engines, the machine's peak, memory at run.

Choices: docs/choices.md, Measuring.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from relaylab import relay
from relaylab.analysis import call_macs, infer_module
from relaylab.bench import open_decoder
from relaylab.bench.peers import OPEN, OURS, PEERS, TARGET, built_open, installed
from relaylab.bench.rows import ROWS, BenchmarkRow
from relaylab.bench.turns import Player, interleaved, players
from relaylab.frontend import to_onnx
from relaylab.interp.agreement import relative_error
from relaylab.ir import Call, IRModule, Op, walk
from relaylab.runtime import cpu
from relaylab.runtime.graph_executor import GraphModule
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.peaks import peak_flops
from relaylab.transform.normal_forms.first_order import first_order

Built = TypeVar("Built")


@dataclass(slots=True)
class Result:
    """What was measured of one row with one number of threads.

    `ms` are medians by engine; `gflops` is the useful work rate of ours (direct algorithms counted), `share` that over
    the peak of the threads used; `cold` and `warm` are seconds of `relay.build`, of open programs those to the first
    result; `mib` the peak memory of a process that loads the stored program and runs it, beyond what importing the
    engine takes; `error` is the largest difference to onnxruntime over the largest output; `missing` says why peers
    cannot run the program.
    """

    row: str
    threads: int
    target: str = "llvm"
    ms: dict[str, float] = field(default_factory=dict)
    gflops: float = 0.0
    share: float = 0.0
    cold: float = 0.0
    warm: float = 0.0
    mib: dict[str, float] = field(default_factory=dict)
    error: float = 0.0
    goal: float | None = None
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def ratios(self) -> dict[str, float]:
        """How many times faster than each peer we are."""
        return {name: ms / self.ms[OURS] for name, ms in self.ms.items() if name != OURS}


def measure(row: BenchmarkRow, threads: int, rounds: int, target: str = "llvm") -> Result:
    """Measure a row; engines take turns for `rounds` rounds. `target` is what relaylab builds for."""
    result = Result(row.name, threads, target, goal=row.goals[threads > 1])
    with tempfile.TemporaryDirectory() as directory:
        stored = Path(directory)
        if row.model is not None:
            (stored / "net.onnx").write_bytes(row.model().SerializeToString())
        if row.open:
            _measure_open(result, stored, row.past, rounds)
            return result
        mod, params = row.workload()
        result.cold, result.warm = _store(mod, params, stored, target)
        with players((OURS, *installed()), stored, threads) as (engines, result.missing):
            result.ms = {name: 1e3 * seconds for name, seconds in interleaved(engines, rounds).items()}
            result.mib = {name: player.mib for name, player in engines.items()}
            result.error = _error(engines, stored)
    result.gflops = _flops(mod) / result.ms[OURS] / 1e6
    result.share = result.gflops * 1e9 / (peak_flops() * threads)
    return result


def _measure_open(result: Result, stored: Path, past: int, rounds: int) -> None:
    """What is no static graph, beside onnxruntime only: a run, or a step of a decoder whose caches grow."""
    import onnx

    program = stored / "net.onnx"
    feed = open_decoder.feed(onnx.load(program), past)
    np.savez(stored / "feed.npz", allow_pickle=False, **feed)
    program.with_suffix(TARGET).write_text(result.target, encoding="utf-8")
    # A part is compiled when the sizes are known: at the first call.
    first = lambda: built_open(program, result.target).invoke("main", *feed.values())
    with cache_directory(str(stored / "cache")):
        result.cold, result.warm = (_timed(first)[1] for _ in range(2))
    kept = cache_directory(str(stored / "cache"))  # engines find the object code there
    with kept, players((OPEN, "onnxruntime"), stored, result.threads) as (engines, result.missing):
        ms = {name: 1e3 * seconds for name, seconds in interleaved(engines, rounds).items()}
        mib = {name: player.mib for name, player in engines.items()}
        result.ms, result.mib = ({OURS if k == OPEN else k: v for k, v in found.items()} for found in (ms, mib))
        result.error = _error({OURS if k == OPEN else k: v for k, v in engines.items()}, stored)


def _store(mod: IRModule, params: Mapping[str, Any], stored: Path, target: str) -> tuple[float, float]:
    """Write the program, in the forms that engines read, and its inputs; the seconds of a cold and a warm build."""
    with cache_directory(str(stored / "cache")):
        cold = built(mod, params, target)[1]
        lib, warm = built(mod, params, target)
    lib.export_library(str(stored / "net.so"))
    np.savez(stored / "feed.npz", allow_pickle=False, **inputs_of(lib))
    if installed() and not (stored / "net.onnx").exists():
        (stored / "net.onnx").write_bytes(to_onnx(mod, params).SerializeToString())
    return cold, warm


def built(mod: IRModule, params: Mapping[str, Any], target: str = "llvm") -> tuple[GraphExecutorFactoryModule, float]:
    """The library of a program at level 3, and the seconds that building took."""
    with relay.transform.PassContext(opt_level=3):
        return _timed(lambda: relay.build(mod, target=target, params=params))


def _timed(work: Callable[[], Built]) -> tuple[Built, float]:
    """What is made, and the seconds that it took."""
    start = time.perf_counter()
    made = work()
    return made, time.perf_counter() - start


@contextlib.contextmanager
def cache_directory(path: str) -> Iterator[None]:
    """Keep object code in `path` while the block runs; an empty one turns the cache off."""
    before = os.environ.get("RELAYLAB_CACHE_DIR")
    os.environ["RELAYLAB_CACHE_DIR"] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ["RELAYLAB_CACHE_DIR"]
        else:
            os.environ["RELAYLAB_CACHE_DIR"] = before


def inputs_of(lib: GraphExecutorFactoryModule) -> dict[str, np.ndarray]:
    """Seeded values for the inputs of a library, by name."""
    shapes, dtypes = GraphModule(lib["default"](cpu(0))).get_input_info()
    rng, bound = np.random.default_rng(0), set(lib.get_params())
    return {n: rng.uniform(-1, 1, shapes[n]).astype(dtypes[n]) for n in shapes if n not in bound}


def _flops(mod: IRModule) -> int:
    """The floating-point operations of a program's contractions, as direct algorithms count them."""
    main = infer_module(first_order(mod))["main"]
    return sum(2 * call_macs(n) for n in walk((main,)) if isinstance(n, Call) and isinstance(n.op, Op))


def _error(engines: Mapping[str, Player], stored: Path) -> float:
    """The largest difference between our outputs and the first peer's, over the largest output; infinite between
    shapes that differ."""
    peers = [name for name in PEERS if name in engines]
    if not peers:
        return 0.0
    ours, theirs = (engines[name].outputs(stored / f"{name}.npz") for name in (OURS, peers[0]))
    if any(a.shape != b.shape for a, b in zip(ours, theirs, strict=True)):
        return math.inf
    return max(map(relative_error, ours, theirs), default=0.0)


def measure_apart(row: BenchmarkRow, threads: int, rounds: int, target: str = "llvm") -> Result:
    """`measure` in a process of its own, so that no row sees the memory and threads of another."""
    return Result(**json.loads(_child("relaylab.bench.measure", row.name, str(threads), str(rounds), target)))


def _child(module: str, *arguments: str) -> str:
    """The last line that a module of the project prints."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    print(json.dumps(asdict(measure(ROWS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]))))
