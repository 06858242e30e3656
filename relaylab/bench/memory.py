"""The peak memory of a process that loads a stored program and runs it: `python -m relaylab.bench.memory`.

Nothing but the engine is imported; what it takes itself (for us LLVM's linker, for others their library) is not
counted: it does not grow with programs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np


def _status(field: str) -> float:
    """A line of the process's own status in MiB (VmHWM: peak of resident memory, VmRSS: now)."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(rf"{field}:\s+(\d+) kB", text)[1]) / 1024


def _ours(path: str, feed: dict[str, np.ndarray], threads: int) -> Callable[[], None]:
    from relaylab.runtime import cpu, load_module
    from relaylab.runtime.graph_executor import GraphModule
    from relaylab.runtime.native import linker
    from relaylab.runtime.threads import set_num_threads

    linker()

    def run() -> None:
        set_num_threads(threads)
        module = GraphModule(load_module(path)["default"](cpu(0)))
        for _ in range(3):
            module.run(**feed)
    return run


def _onnxruntime(path: str, feed: dict[str, np.ndarray], threads: int) -> Callable[[], None]:
    import onnxruntime as ort

    def run() -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        for _ in range(3):
            session.run(None, feed)
    return run


if __name__ == "__main__":
    values = dict(np.load(sys.argv[3]))
    run = {"relaylab": _ours, "onnxruntime": _onnxruntime}[sys.argv[1]](sys.argv[2], values, int(sys.argv[4]))
    before = _status("VmRSS")
    run()
    print(_status("VmHWM") - before)
