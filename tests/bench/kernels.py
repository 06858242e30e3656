"""GFLOP/s of the contraction kernels on this machine, beside the peak of an in-register FMA loop.

    python tests/bench/kernels.py [name part ...] [--target "llvm -mattr=+avx2,+fma"] [--seconds 0.2]

Samples of kernel and peak loop are interleaved; the share is the median of their ratios, so a moving clock cancels.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent.parent
sys.path[:0] = [str(TESTS / "codegen"), str(TESTS)]
from kernel_runner import Runner, aligned, bias_relu_residual, framed, place  # noqa: E402

from relaylab.codegen import templates as T  # noqa: E402
from relaylab.codegen.llvm.text import IRFunction, vector  # noqa: E402
from relaylab.codegen.kernels.kernel import Kernel, MemoryView  # noqa: E402
from relaylab.codegen.isa.target import CpuTarget  # noqa: E402

CONVS = {  # height, in channels, out channels, kernel, stride
    "stem 7x7s2 3->64 @224": (224, 3, 64, 7, 2),
    "3x3 64 @56": (56, 64, 64, 3, 1),
    "3x3s2 128 @56": (56, 128, 128, 3, 2),
    "3x3 128 @28": (28, 128, 128, 3, 1),
    "3x3 256 @14": (14, 256, 256, 3, 1),
    "3x3s2 512 @14": (14, 512, 512, 3, 2),
    "3x3 512 @7": (7, 512, 512, 3, 1),
    "1x1 64->256 @56": (56, 64, 256, 1, 1),
    "1x1 256->64 @56": (56, 256, 64, 1, 1),
    "1x1 512->128 @28": (28, 512, 128, 1, 1),
    "1x1 1024->256 @14": (14, 1024, 256, 1, 1),
    "1x1 256->1024 @14": (14, 256, 1024, 1, 1),
    "1x1 2048->512 @7": (7, 2048, 512, 1, 1),
    "1x1s2 256->512 @56": (56, 256, 512, 1, 2),
    "1x1 32->64 @112": (112, 32, 64, 1, 1),
    "3x3 16->16 @32": (32, 16, 16, 3, 1),
    "3x3 48->48 @14": (14, 48, 48, 3, 1),
}
WINOGRAD = {  # height, channels, m
    f"wino F({m},3) {c} @{h}": (h, c, m)
    for h, c in ((56, 64), (28, 128), (14, 256), (7, 512), (112, 64), (32, 16))
    for m in (2, 4)
}
DEPTHWISE = {
    "dw 3x3 32 @112": (112, 32, 3, 1),
    "dw 3x3s2 96 @112": (112, 96, 3, 2),
    "dw 3x3 144 @56": (56, 144, 3, 1),
    "dw 3x3 512 @14": (14, 512, 3, 1),
    "dw 3x3 1024 @7": (7, 1024, 3, 1),
}
GEMMS = {
    "gemm 1024^3": (1024, 1024, 1024),
    "gemm 128x768x768": (128, 768, 768),
    "gemm 128x3072x768": (128, 3072, 768),
    "gemm 128x768x3072": (128, 768, 3072),
    "gemv 1x1000x2048": (1, 1000, 2048),
    "gemv 1x128x784": (1, 128, 784),
    "gemv 1x512x128": (1, 512, 128),
}


def peak_loop(target: CpuTarget) -> tuple[Callable[[], float], int]:
    """(a function that runs independent FMA chains in registers and gives its seconds, its flops)."""
    width, chains, turns = target.lanes("float32"), 12, 20000
    f = IRFunction("peak", 1)
    start = [f.load(vector("float", width), f.offset(f.pointers[0], 64 * k)) for k in range(chains)]
    factor = f.load(vector("float", width), f.offset(f.pointers[0], 64 * chains))
    out = f.loop(0, turns, lambda _, *acc: tuple(f.fma(a, factor, factor) for a in acc), start)
    for k, value in enumerate(out):
        f.store(value, f.offset(f.pointers[0], 64 * k))
    text, declares = f.finish()
    runner = Runner(Kernel("peak", text, declares, ("out0",), 1), target)
    data = aligned(64 * chains)
    return timer(runner, {"out0": data}), 2 * chains * width * turns


def timer(runner: Runner, buffers: dict[str, np.ndarray], least: float = 3e-4) -> Callable[[], float]:
    """A function that gives the seconds of one run, measured over enough runs to be seen."""
    scratch = aligned(max(1, runner.kernel.scratch), "uint8")
    pointers = {role: data.ctypes.data for role, data in {**buffers, "scratch": scratch}.items()}
    args = (ctypes.c_void_p * len(runner.kernel.operands))(*(pointers[r] for r in runner.kernel.operands))
    keep, call, items = (buffers, scratch, runner), runner.function, runner.kernel.items

    def measure(times: int) -> float:
        begin = time.perf_counter()
        for _ in range(times):
            call(args, 0, items, 0)
        return (time.perf_counter() - begin) / times

    times = max(1, int(least / max(measure(2), 1e-9)))
    return lambda: measure(times) if keep else 0.0


def conv_case(height: int, ic: int, oc: int, k: int, stride: int, target: CpuTarget, minimal: bool = False):
    out = MemoryView.dense((1, *((height - 1) // stride + 1,) * 2, oc))
    halo = ((0, 0), (k // 2, k // 2), (k // 2, k // 2), (0, 0))
    spec = T.ConvSpec(
        framed((1, height, height, ic), halo), out, (k, k), (stride, stride), (1, 1), (k // 2,) * 2, minimal=minimal
    )
    (kernel,) = T.DIRECT.build(spec, target, bias_relu_residual(out)).kernels
    weights = T.DIRECT.pack(spec, target, np.random.randn(oc, ic, k, k).astype("f")).array()
    return kernel, spec.data, weights, out


def winograd_case(height: int, channels: int, m: int, target: CpuTarget):
    out = MemoryView.dense((1, height, height, channels))
    arguments = out, (3, 3), (1, 1), (1, 1), (1, 1)
    halo = T.MINIMAL[m, 3].reads(T.ConvSpec(MemoryView.dense(out.shape), *arguments))
    spec = T.ConvSpec(framed(out.shape, halo), *arguments)
    weights = T.MINIMAL[m, 3].pack(spec, target, np.random.randn(channels, channels, 3, 3).astype("f")).array()
    return T.MINIMAL[m, 3].build(spec, target, bias_relu_residual(out)).kernels, spec.data, weights, out


def depthwise_case(height: int, channels: int, k: int, stride: int, target: CpuTarget):
    out = MemoryView.dense((1, *((height - 1) // stride + 1,) * 2, channels))
    halo = ((0, 0), (k // 2, k // 2), (k // 2, k // 2), (0, 0))
    spec = T.ConvSpec(
        framed((1, height, height, channels), halo), out, (k, k), (stride, stride), (1, 1), (k // 2,) * 2, channels
    )
    weights = T.DEPTHWISE.pack(spec, target, np.random.randn(channels, 1, k, k).astype("f")).array()
    return T.DEPTHWISE.build(spec, target).kernels, spec.data, weights, out


def gemm_case(m: int, n: int, k: int, target: CpuTarget, minimal: bool = False):
    out = MemoryView.dense((1, m, n))
    spec = T.GemmSpec(MemoryView.dense((1, m, k)), MemoryView.dense((1, k, n)), out, minimal=minimal)
    return T.gemm(spec, target), spec.a, T.pack_gemm(spec, target, np.random.randn(1, k, n).astype("f")).array(), out


def cases(target: CpuTarget) -> Iterator[tuple[str, Callable]]:
    for name, case in CONVS.items():
        yield name, lambda case=case: conv_case(*case, target)
    for name, case in CONVS.items():
        if case[3] == 1 and case[4] == 1:
            yield "minimal " + name, lambda case=case: conv_case(*case, target, True)
    for name, case in WINOGRAD.items():
        yield name, lambda case=case: winograd_case(*case, target)
    for name, case in DEPTHWISE.items():
        yield name, lambda case=case: depthwise_case(*case, target)
    for name, case in GEMMS.items():
        yield name, lambda case=case: gemm_case(*case, target)
        yield "minimal " + name, lambda case=case: gemm_case(*case, target, True)


def report(name: str, make: Callable, target: CpuTarget, peak: tuple[Callable[[], float], int], seconds: float) -> None:
    begin = time.perf_counter()
    kernels, data, weights, out = make()
    kernels = kernels if isinstance(kernels, tuple) else (kernels,)
    made = time.perf_counter()
    runners = [Runner(kernel, target, check=False) for kernel in kernels]
    compiled = time.perf_counter()
    work = aligned(64 << 20 if len(kernels) > 1 else 16, "uint8")
    buffers = {
        "in0": place(data, np.random.randn(*data.shape)),
        "weight0": place(MemoryView.dense(weights.shape), weights),
        "out0": place(out),
        "r0": place(out),
        "b0": aligned(out.shape[-1] + 64),
        "work0": work,
        "work1": work[len(work) // 2 :],
    }
    runs = [timer(runner, buffers) for runner in runners]
    flops, spent, shares = sum(kernel.flops for kernel in kernels), [], []
    while sum(spent) < seconds or len(spent) < 7:
        parts = [run() for run in runs]
        spent.append(sum(parts))
        shares.append(flops / spent[-1] / (peak[1] / peak[0]()))
        if len(spent) > 200:
            break
    usual = statistics.median(spent)
    steps = " + ".join(f"{1e6 * part:.0f}" for part in parts) if len(parts) > 1 else ""
    print(
        f"{name:24s} {usual * 1e6:9.1f} us {flops / usual / 1e9:7.1f} GF {100 * statistics.median(shares):5.0f} %"
        f"  {sum(k.bytes for k in kernels) / usual / 1e9:6.1f} GB/s  emit {1e3 * (made - begin):5.1f} ms  LLVM "
        f"{1e3 * (compiled - made):5.1f} ms  items {[k.items for k in kernels]} {steps}",
        flush=True,
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("names", nargs="*", help="parts of the names of the cases to run")
    options.add_argument("--target", default="llvm")
    options.add_argument("--seconds", type=float, default=0.02)
    chosen = options.parse_args()
    target = CpuTarget.parse(chosen.target)
    peak = peak_loop(target)
    print(f"{target.isa}: peak {peak[1] / min(peak[0]() for _ in range(20)) / 1e9:.1f} GF of one core")
    for name, make in cases(target):
        if not chosen.names or any(part in name for part in chosen.names):
            report(name, make, target, peak, chosen.seconds)


if __name__ == "__main__":
    main()
