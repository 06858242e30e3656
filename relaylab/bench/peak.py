"""The machine's peak: float32 fused multiply-adds of one core, measured in a loop that stays in registers."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import cache

import numpy as np

from relaylab.codegen.irtext import IRFunction, vector
from relaylab.codegen.jit import compile_objects, link
from relaylab.codegen.kernel import Kernel, module_text
from relaylab.codegen.target import Target

CHAINS, TURNS, SAMPLES = 12, 20000, 40


def _kernel(width: int) -> Kernel:
    f = IRFunction.kernel("peak", ("out0",))
    step = 4 * width
    start = [f.load(vector("float", width), f.offset(f.pointers[0], step * k)) for k in range(CHAINS)]
    factor = f.load(vector("float", width), f.offset(f.pointers[0], step * CHAINS))
    out = f.loop(0, TURNS, lambda _, *acc: tuple(f.fma(a, factor, factor) for a in acc), start)
    for k, value in enumerate(out):
        f.store(value, f.offset(f.pointers[0], step * k))
    text, declares = f.finish()
    return Kernel("peak", text, declares, ("out0",), 1)


@cache
def peak_flops() -> float:
    """Floating-point operations per second of one core at its best of some samples."""
    target = Target.parse(None)
    width = target.lanes("float32")
    kernel = _kernel(width)
    library = link(compile_objects([module_text([kernel], attributes=target.attributes)], target), [kernel.name])
    call = library.function(kernel.name, None, ctypes.c_void_p, *[ctypes.c_int64] * 3)
    data = np.zeros((CHAINS + 2) * width + 16, "float32")
    data = data[-data.ctypes.data % 64 // 4:]
    args = (ctypes.c_void_p * 1)(data.ctypes.data)
    best = min(_timed(lambda: call(args, 0, 1, 0)) for _ in range(SAMPLES))
    return 2 * CHAINS * width * TURNS / best


def _timed(what: Callable[[], object]) -> float:
    start = time.perf_counter()
    what()
    return time.perf_counter() - start
