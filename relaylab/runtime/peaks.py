"""What this machine can do at most: multiply-adds in registers, and bytes from memory and from the second-level cache.

The loops are LLVM IR of our own, compiled for this processor at first use and run on as many threads as are asked for.
llvmlite is imported then.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from relaylab.runtime.memory import address, aligned
from relaylab.runtime.native import Library, linker

CHAINS, LOADS = 12, 8  # independent multiply-adds, and loads, per turn
TURNS, SAMPLES = 200_000, 12  # a sample takes about half a millisecond
CACHED_BYTES = 256 << 10  # per thread: more than the first level holds, less than the second
LEAST_BYTES, MOST_BYTES = 64 << 20, 512 << 20
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@dataclass(frozen=True, slots=True)
class MachinePeaks:
    """The peaks of some threads together: float32 FLOP/s, bytes/s from memory, bytes/s from the second-level cache."""

    threads: int
    flops: float
    memory: float
    cache: float

    def attainable(self, flops: float, nbytes: float) -> float:
        """The FLOP/s that code of this intensity can reach while its bytes come from memory (the roofline)."""
        return flops / max(self.seconds(flops, nbytes), 1e-30)

    def seconds(self, flops: float, nbytes: float) -> float:
        """The least time for so many operations and bytes from memory, as if both went on at the same time."""
        return max(flops / self.flops, nbytes / self.memory)

    def bound(self, flops: float, nbytes: float) -> str:
        """What that time is taken by: "compute" or "memory"."""
        return "compute" if flops / self.flops >= nbytes / self.memory else "memory"

    def roof(self, flops: float, nbytes: float, measured: float) -> tuple[str, float]:
        """What bounds code that took so long, and the least time under that: what beats memory reads a cache."""
        least = self.seconds(flops, nbytes)
        if measured >= least or self.bound(flops, nbytes) == "compute":
            return self.bound(flops, nbytes), least
        return "cache", max(flops / self.flops, nbytes / self.cache)

    def __str__(self) -> str:
        return (
            f"{self.flops / 1e9:.0f} GFLOP/s float32, {self.memory / 1e9:.1f} GB/s from memory, "
            f"{self.cache / 1e9:.0f} GB/s from the second-level cache ({self.threads} thread{'s' * (self.threads > 1)})"
        )


@cache
def machine_peaks(threads: int = 1) -> MachinePeaks:
    """The peaks of this machine on some threads, measured once per process: about a quarter of a second."""
    code, width, _ = _code()
    step = 4 * width * LOADS
    flops = _rate(
        threads, lambda data: code["flops"](address(data), TURNS, 1), CACHED_BYTES, 2 * CHAINS * width * TURNS
    )
    near = _rate(
        threads, lambda data: code["bytes"](address(data), CACHED_BYTES // step, 64), CACHED_BYTES, 64 * CACHED_BYTES
    )
    share = memory_bytes() // threads // step * step
    far = _rate(threads, lambda data: code["bytes"](address(data), share // step, 1), share, share, SAMPLES // 2)
    return MachinePeaks(threads, flops, far, near)


def peak_flops() -> float:
    """float32 operations per second of one thread."""
    return machine_peaks(1).flops


def memory_bytes() -> int:
    """Bytes that no cache holds: four times the largest one where the system tells its size."""
    sizes = Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
    found = [text[:-1] for path in sizes if (text := path.read_text(encoding="ascii").strip()).endswith("K")]
    largest = max((int(size) << 10 for size in found if size.isdigit()), default=0)
    return min(max(4 * largest, LEAST_BYTES), MOST_BYTES)


def _rate(
    threads: int, work: Callable[[np.ndarray], None], nbytes: int, amount: float, samples: int = SAMPLES
) -> float:
    """`amount` per second and thread, all threads together, at the best of some samples."""
    parts = [aligned(nbytes, "a measurement") for _ in range(threads)]
    for part in parts:
        part[:] = 0  # pages that were never written are one page of zeros, which stays in the caches
    return threads * amount / min(_together(work, parts) for _ in range(samples))


def _together(work: Callable[[np.ndarray], None], parts: list[np.ndarray]) -> float:
    """The seconds from the first start to the last end of the threads' work; native code runs without Python's lock."""
    times: list[tuple[float, float]] = []
    barrier = threading.Barrier(len(parts))

    def one(part: np.ndarray) -> None:
        barrier.wait()  # starting a thread takes longer than a sample
        start = time.perf_counter()
        work(part)
        times.append((start, time.perf_counter()))

    others = [threading.Thread(target=one, args=(part,)) for part in parts[1:]]
    for other in others:
        other.start()
    one(parts[0])
    for other in others:
        other.join()
    return max(end for _, end in times) - min(start for start, _ in times)


@cache
def _code() -> tuple[dict[str, Callable[[int, int, int], None]], int, Library]:
    """The two loops, how many float32 they take at once, and what keeps them loaded."""
    llvm = linker().llvm
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features()
    width = next((lanes for name, lanes in (("avx512f", 16), ("avx", 8)) if features.get(name, False)), 4)
    target = llvm.Target.from_triple(llvm.get_process_triple())
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=2, reloc="pic", codemodel="small", jit=True
    )
    module = llvm.parse_assembly(flops_text(width) + bytes_text(width) + attributes_text(width))
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    names = {name: f"relaylab_peak_{name}" for name in ("flops", "bytes")}
    library = linker().link((machine.emit_object(module),), set(names.values()))
    return {key: FUNCTION(library[name]) for key, name in names.items()}, width, library


def flops_text(width: int) -> str:
    """LLVM IR: chains of multiply-adds in registers; the results are stored so that they are wanted."""
    vec, type_ = range(CHAINS), f"<{width} x float>"
    lines = [
        f"declare {type_} @llvm.fmuladd.v{width}f32({type_}, {type_}, {type_})",
        "define void @relaylab_peak_flops(ptr %data, i64 %turns, i64 %repeats) #0 {",
        "entry:",
        f"  %c = load {type_}, ptr %data, align 64",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [0, %entry], [%next, %loop]",
    ]
    lines += [f"  %a{k} = phi {type_} [%c, %entry], [%b{k}, %loop]" for k in vec]
    lines += [f"  %b{k} = call {type_} @llvm.fmuladd.v{width}f32({type_} %a{k}, {type_} %c, {type_} %c)" for k in vec]
    lines += [*_latch("%turns"), "done:"]
    for k in vec:
        lines += [f"  %p{k} = getelementptr i8, ptr %data, i64 {64 * k}", f"  store {type_} %b{k}, ptr %p{k}, align 16"]
    return "\n".join([*lines, "  ret void", "}", ""])


def bytes_text(width: int) -> str:
    """LLVM IR: reads `turns` blocks of memory one after another, all of it `repeats` times."""
    vec, type_, size = range(LOADS), f"<{width} x float>", 4 * width
    lines = [
        "define void @relaylab_peak_bytes(ptr %data, i64 %turns, i64 %repeats) #0 {",
        "entry:",
        "  br label %again",
        "again:",
        "  %r = phi i64 [0, %entry], [%more, %read]",
    ]
    lines += [f"  %s{k} = phi {type_} [zeroinitializer, %entry], [%b{k}, %read]" for k in vec]
    lines += [
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [0, %again], [%next, %loop]",
        "  %p = phi ptr [%data, %again], [%q, %loop]",
    ]
    lines += [f"  %a{k} = phi {type_} [%s{k}, %again], [%b{k}, %loop]" for k in vec]
    for k in vec:
        lines += [
            f"  %p{k} = getelementptr i8, ptr %p, i64 {k * size}",
            f"  %x{k} = load {type_}, ptr %p{k}, align 16",
            f"  %b{k} = fadd {type_} %a{k}, %x{k}",
        ]
    lines += [
        f"  %q = getelementptr i8, ptr %p, i64 {LOADS * size}",
        *_latch("%turns", "read"),
        "read:",
        "  %more = add nsw i64 %r, 1",
        "  %again1 = icmp slt i64 %more, %repeats",
        "  br i1 %again1, label %again, label %done",
        "done:",
    ]
    for k in vec:
        lines += [f"  %o{k} = getelementptr i8, ptr %data, i64 {64 * k}", f"  store {type_} %b{k}, ptr %o{k}, align 16"]
    return "\n".join([*lines, "  ret void", "}", ""])


def attributes_text(width: int) -> str:
    """The attributes of both functions: vectors as wide as the registers."""
    return (
        f'attributes #0 = {{ nounwind "prefer-vector-width"="{32 * width}" "min-legal-vector-width"="{32 * width}" }}\n'
    )


def _latch(turns: str, done: str = "done") -> list[str]:
    return [
        "  %next = add nsw i64 %i, 1",
        f"  %on = icmp slt i64 %next, {turns}",
        f"  br i1 %on, label %loop, label %{done}",
    ]
