"""One engine in a process of its own, told by lines what to do: `python -m relaylab.bench.engine`.

It loads a stored program, runs it, and answers with one line of JSON: its peak memory in MiB beyond what importing
the engine takes (for us that includes LLVM's linker, for others their library: it does not grow with programs).
After that a number N asks for the seconds of one run, measured over N, and a path for the outputs in that file.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import numpy as np

from relaylab.bench.peers import ENGINES, Ready

WARM_UP = 3


def seconds(ready: Ready, repeats: int) -> float:
    """The mean time of a run, after one that is not counted (it fills the caches and wakes the threads)."""
    run = ready.run
    run()
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def _status(field: str) -> float:
    """A line of the process's own status in MiB (VmHWM: peak of resident memory, VmRSS: now); 0 where there is none."""
    path = Path("/proc/self/status")
    found = re.search(rf"{field}:\s+(\d+) kB", path.read_text(encoding="ascii")) if path.exists() else None
    return int(found[1]) / 1024 if found else 0.0


def serve(name: str, program: str, feed: str, threads: int) -> None:
    """Load a program into an engine, run it, and answer questions until there are no more."""
    engine = ENGINES[name]
    values = dict(np.load(feed))
    engine.prepare()
    before = _status("VmRSS")
    try:
        ready = engine.load(program, values, threads)
        for _ in range(WARM_UP):
            ready.run()
    except Exception as error:  # whatever an engine raises, the others go on
        first = next(iter(str(error).strip().splitlines()), "")
        return _answer({"error": f"{type(error).__name__}: {first}"})
    _answer({"mib": _status("VmHWM") - before})
    for line in map(str.strip, sys.stdin):
        if line.isdigit():
            _answer({"seconds": seconds(ready, int(line))})
        else:
            np.savez(line, *ready.outputs())
            _answer({"outputs": line})


def _answer(what: dict[str, object]) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
