"""A tiny compiled network, made by hand: y = relu(x * w + b), then z = sum of y, in two kernels."""

from __future__ import annotations

import json
from functools import cache

import llvmlite.binding as llvm
import numpy as np

from relaylab.codegen.native.entry import entry_text
from relaylab.runtime import abi
from relaylab.runtime.executable import Executable, ExecutionPlan, KernelCall, TargetInfo, TensorInfo, StoredTensor
from relaylab.runtime.module import GraphExecutorFactoryModule
from relaylab.runtime.native import RUN, linker
from relaylab.runtime.threads import pool_address

SIZE = 64 * 9
ITEM = 64

AFFINE = """
define void @affine(ptr %args, i64 %begin, i64 %end, i64 %thread) {
entry:
  %y = load ptr, ptr %args
  %x.at = getelementptr ptr, ptr %args, i64 1
  %w.at = getelementptr ptr, ptr %args, i64 2
  %b.at = getelementptr ptr, ptr %args, i64 3
  %x = load ptr, ptr %x.at
  %w = load ptr, ptr %w.at
  %b = load ptr, ptr %b.at
  %from = mul i64 %begin, 64
  %to = mul i64 %end, 64
  br label %next
next:
  %i = phi i64 [ %from, %entry ], [ %i2, %body ]
  %more = icmp slt i64 %i, %to
  br i1 %more, label %body, label %out
body:
  %xi = getelementptr float, ptr %x, i64 %i
  %wi = getelementptr float, ptr %w, i64 %i
  %yi = getelementptr float, ptr %y, i64 %i
  %xv = load float, ptr %xi
  %wv = load float, ptr %wi
  %bv = load float, ptr %b
  %m = fmul float %xv, %wv
  %s = fadd float %m, %bv
  %neg = fcmp olt float %s, 0.0
  %r = select i1 %neg, float 0.0, float %s
  store float %r, ptr %yi
  %i2 = add i64 %i, 1
  br label %next
out:
  ret void
}
"""

TOTAL = """
define void @total(ptr %args, i64 %begin, i64 %end, i64 %thread) {
entry:
  %z = load ptr, ptr %args
  %y.at = getelementptr ptr, ptr %args, i64 1
  %y = load ptr, ptr %y.at
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i2, %next ]
  %t = phi float [ 0.0, %entry ], [ %t2, %next ]
  %yi = getelementptr float, ptr %y, i64 %i
  %yv = load float, ptr %yi
  %t2 = fadd float %t, %yv
  %i2 = add i64 %i, 1
  %more = icmp slt i64 %i2, 576
  br i1 %more, label %next, label %out
out:
  store float %t2, ptr %z
  ret void
}
"""


@cache
def compiled(text: str) -> bytes:
    """Object code of LLVM IR for this machine's baseline."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    native = llvm.Target.from_triple(llvm.get_process_triple())
    machine = native.create_target_machine(opt=1, reloc="pic", codemodel="small", jit=True)
    module = llvm.parse_assembly(text)
    module.verify()
    return machine.emit_object(module)


def weights() -> tuple[np.ndarray, np.float32]:
    """The constants of the network."""
    return np.linspace(-1, 1, SIZE, dtype=np.float32), np.float32(0.25)


def executable(features: tuple[str, ...] = (), triple: str = "", bias: float = 0.25) -> Executable:
    """The network as plain data."""
    w, b = weights()[0], np.float32(bias)
    constants = np.zeros(SIZE * 4 + 64, np.uint8)
    constants[: SIZE * 4] = w.view(np.uint8)
    constants[SIZE * 4 : SIZE * 4 + 4] = np.array([b]).view(np.uint8)
    x, y, z = TensorInfo("x", (SIZE,), "float32"), TensorInfo("y", (SIZE,), "float32"), TensorInfo("z", (), "float32")
    arena, const = abi.BASE_ARENA, abi.BASE_CONSTANTS
    steps = (
        KernelCall(
            "affine",
            ((arena, 64, SIZE * 4), (3, 0, SIZE * 4), (const, 0, SIZE * 4), (const, SIZE * 4, 4)),
            SIZE // ITEM,
            node=2,
            flops=2 * SIZE,
        ),
        KernelCall("total", ((5, 0, 4), (arena, 64, SIZE * 4)), 1, shares=1, node=3),
    )
    value = StoredTensor((arena, 64), (SIZE,), (1,), "float32", 1)
    plan = ExecutionPlan((x,), (y, z), steps, 64 + SIZE * 4, 0, copies=((0, value),), values=((2, 0, value),))
    triple = triple or llvm.get_process_triple()
    return Executable(
        "default",
        TargetInfo(triple, features),
        plan,
        compiled(entry_text(triple)),
        (compiled(AFFINE), compiled(TOTAL)),
        constants,
        {"p0": w, "p1": np.array(b)},
        graph(),
        {"loop": {"affine": "for i", "total": "sum"}},
    )


def graph() -> str:
    """The graph of the network as JSON."""
    names = ["x", "p0", "tvmgen_default_fused_affine", "tvmgen_default_total"]
    nodes = [{"op": "null" if k < 2 else "tvm_op", "name": name, "inputs": []} for k, name in enumerate(names)]
    return json.dumps({"nodes": nodes, "arg_nodes": [0, 1], "heads": [[2, 0, 0], [3, 0, 0]]})


def factory() -> GraphExecutorFactoryModule:
    """The network as `relay.build` would return it."""
    return GraphExecutorFactoryModule(executable())


def expected(x: np.ndarray) -> np.ndarray:
    """What output 0 should be."""
    w, b = weights()
    return np.maximum(x * w + b, 0)


COUNT = """
define void @count(ptr %args, i64 %begin, i64 %end, i64 %thread) {
entry:
  %counts = load ptr, ptr %args
  %told.at = getelementptr ptr, ptr %args, i64 1
  %told = load ptr, ptr %told.at
  %until.at = getelementptr i64, ptr %told, i64 1
  %who.at = getelementptr i64, ptr %told, i64 2
  %until = load i64, ptr %until.at
  %who = load i64, ptr %who.at
  %waits = icmp eq i64 %thread, %who
  br label %next
next:
  %i = phi i64 [ %begin, %entry ], [ %i2, %add ]
  %more = icmp slt i64 %i, %end
  br i1 %more, label %wait, label %out
wait:
  %done = load atomic i64, ptr %told acquire, align 8
  %few = icmp slt i64 %done, %until
  %on = and i1 %few, %waits
  br i1 %on, label %wait, label %add
add:
  %at = getelementptr i64, ptr %counts, i64 %i
  %old = atomicrmw add ptr %at, i64 1 acq_rel, align 8
  %all = atomicrmw add ptr %told, i64 1 acq_rel, align 8
  %i2 = add i64 %i, 1
  br label %next
out:
  ret void
}
"""


def counts(items: int, threads: int, until: int = 0, waits: int = -1, runs: int = 1) -> list[int]:
    """How often each item is done in so many runs of a step; thread `waits` goes on when `until` items are done."""
    entry = linker().entry(compiled(entry_text(llvm.get_process_triple())))
    library = linker().link((compiled(COUNT),), {"count"})
    counted, told = np.zeros(items, np.int64), np.array([0, until, waits], np.int64)
    operands = np.array([counted.ctypes.data, told.ctypes.data], np.uint64)
    step = np.array([library["count"], operands.ctypes.data, items, abi.MAX_THREADS], np.uint64)
    context = np.array([step.ctypes.data, 0, 1, threads, pool_address()], np.uint64)
    for _ in range(runs):
        told[0] = 0
        RUN(entry)(context.ctypes.data)
    return counted.tolist()
