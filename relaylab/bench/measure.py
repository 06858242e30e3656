"""Measuring a row: builds cold and warm, interleaved medians of all engines, the machine's peak, memory at run."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relaylab.analysis import call_macs, infer_module
from relaylab.bench.onnx_model import to_onnx
from relaylab.bench.peak import peak_flops
from relaylab.bench.peers import Ready, built, cache_directory, inputs_of, installed, ours
from relaylab.bench.rows import ROWS, Row
from relaylab.codegen.first_order import first_order
from relaylab.ir import Call, IRModule, Op, walk

OURS = "relaylab"
PAUSE = 0.004       # seconds of rest before an engine's turn: other engines' idle threads stop spinning
SAMPLE = 0.01       # a sample repeats a run until it takes about so many seconds
TOLERANCE = 1e-3    # of the largest output


@dataclass(slots=True)
class Result:
    """What was measured of one row with one number of threads.

    `ms` are medians by engine; `gflops` is the useful work rate of ours (direct algorithms counted), `share` that over
    the peak of the threads used; `cold` and `warm` are seconds of `relay.build`; `mib` the peak memory of a process
    that loads the stored program and runs it, beyond what importing the engine takes; `error` is the largest
    difference to onnxruntime over the largest output.
    """

    row: str
    threads: int
    ms: dict[str, float] = field(default_factory=dict)
    gflops: float = 0.0
    share: float = 0.0
    cold: float = 0.0
    warm: float = 0.0
    mib: dict[str, float] = field(default_factory=dict)
    error: float = 0.0
    goal: float | None = None

    @property
    def ratios(self) -> dict[str, float]:
        """How many times faster than each peer we are."""
        return {name: ms / self.ms[OURS] for name, ms in self.ms.items() if name != OURS}


def measure(row: Row, threads: int, rounds: int, memory: bool) -> Result:
    """Measure a row in this process; engines take turns for `rounds` rounds."""
    mod, params = row.workload()
    result = Result(row.name, threads, goal=row.goals[threads > 1])
    with tempfile.TemporaryDirectory() as directory, cache_directory(directory):
        lib, result.cold = built(mod, params)
        lib, result.warm = built(mod, params)
    model = to_onnx(mod, params)
    feed, data = inputs_of(model), model.SerializeToString()
    engines = {OURS: ours(lib, feed, threads)} | {n: load(data, feed, threads) for n, load in installed().items()}
    result.ms = {name: 1e3 * seconds for name, seconds in interleaved(engines, rounds).items()}
    result.error = _error(engines)
    result.gflops = _flops(mod) / result.ms[OURS] / 1e6
    result.share = result.gflops * 1e9 / (peak_flops() * threads)
    if memory:
        result.mib = _memory(lib, data, feed, threads)
    return result


def _flops(mod: IRModule) -> int:
    """The floating-point operations of a program's contractions, as direct algorithms count them."""
    main = infer_module(first_order(mod))["main"]
    return sum(2 * call_macs(n) for n in walk((main,)) if isinstance(n, Call) and isinstance(n.op, Op))


def interleaved(engines: Mapping[str, Ready], rounds: int) -> dict[str, float]:
    """The median seconds of a run of each engine; the engines take turns, so that a moving clock hits all."""
    times = {name: _repeats(ready) for name, ready in engines.items()}
    samples: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, ready in engines.items():
            time.sleep(PAUSE)
            ready.run()
            samples[name].append(_sample(ready, times[name]))
    return {name: statistics.median(found) for name, found in samples.items()}


def _repeats(ready: Ready) -> int:
    for _ in range(2):
        ready.run()
    return max(1, round(SAMPLE / max(_sample(ready, 1), 1e-7)))


def _sample(ready: Ready, repeats: int) -> float:
    run, start = ready.run, time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def _error(engines: Mapping[str, Ready]) -> float:
    """The largest difference between our outputs and the first peer's, over the largest output."""
    peers = [ready for name, ready in engines.items() if name != OURS]
    pairs = zip(engines[OURS].outputs(), peers[0].outputs()) if peers else ()
    return max((float(np.abs(a - b).max() / max(np.abs(b).max(), 1e-30)) for a, b in pairs), default=0.0)


def _memory(lib: Any, data: bytes, feed: Mapping[str, np.ndarray], threads: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as directory:
        paths = {OURS: Path(directory) / "net.so", "onnxruntime": Path(directory) / "net.onnx"}
        lib.export_library(str(paths[OURS]))
        paths["onnxruntime"].write_bytes(data)
        np.savez(Path(directory) / "feed.npz", **feed)
        names = [OURS, *(n for n in installed() if n in paths)]
        return {n: float(_child("relaylab.bench.memory", n, str(paths[n]), f"{directory}/feed.npz", str(threads))) for n in names}


def measure_apart(row: Row, threads: int, rounds: int, memory: bool) -> Result:
    """`measure` in a process of its own, so that no row sees the memory and threads of another."""
    return Result(**json.loads(_child("relaylab.bench.measure", row.name, str(threads), str(rounds), str(int(memory)))))


def _child(module: str, *arguments: str) -> str:
    """The last line that a module of the project prints."""
    done = subprocess.run([sys.executable, "-m", module, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


if __name__ == "__main__":
    print(json.dumps(asdict(measure(ROWS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3]), bool(int(sys.argv[4]))))))
