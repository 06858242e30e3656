"""The native entries of all compiled programs, as LLVM IR text: `relaylab_run` and `relaylab_parts` of networks,
`relaylab_flow` of control flow, and the thread pool, which both share.

The text is the same for all networks of a machine (the step table is data, see `runtime/abi.py`), so it is
compiled once.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from functools import lru_cache

from relaylab.codegen.native.flow import FLOW
from relaylab.codegen.native.thread_pool import NO_POOL, NO_SPREAD, POOL, SPREAD
from relaylab.runtime import abi

# MXCSR: all exceptions masked, round to nearest, denormal numbers kept (docs/numbers.md).
MXCSR = 0x1F80
SPINS_BEFORE_YIELD = 5000  # looks, each with a pause, before the caller offers its processor to others
PATIENCE = 64  # looks before who is ready takes what others have not begun: they are mostly ready soon
CHUNKS = 4  # per share, so that a late thread delays the others by a quarter of its share; at most 255


@lru_cache(maxsize=8)
def entry_text(triple: str, flow: bool = False) -> str:
    """LLVM IR of the entries of networks, or of control `flow`, for a machine; without pthreads (Windows) steps run on
    the calling thread.
    """
    threaded = "windows" not in triple
    pool = [POOL, SPREAD if "linux" in triple else NO_SPREAD] if threaded else [NO_POOL]
    parts = [_RUN, FLOW if flow else _PARTS, _machine(triple), *pool]
    return _fill("\n".join(parts))


def _fill(text: str) -> str:
    """Replace `{NAME}` by the layout constant NAME."""
    names = {name: value for name, value in vars(abi).items() if name.isupper() and isinstance(value, int)}
    names |= {"SPINS_BEFORE_YIELD": SPINS_BEFORE_YIELD, "PATIENCE": PATIENCE, "CHUNKS": CHUNKS, "MXCSR": MXCSR}
    for name, value in names.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def _machine(triple: str) -> str:
    """Functions that set the mode of IEEE 754 and give back the one that was set before, and what a waiting thread does
    between two looks.
    """
    if triple.startswith(("x86_64", "i686", "i386")):
        return _X86
    return _ARM if triple.startswith(("aarch64", "arm64")) else _OTHER


_X86 = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)
declare void @llvm.x86.sse2.pause()

define internal i64 @standard_mode() {
  %at = alloca i32, align 4
  call void @llvm.x86.sse.stmxcsr(ptr %at)
  %old = load i32, ptr %at, align 4
  store i32 {MXCSR}, ptr %at, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  %wide = zext i32 %old to i64
  ret i64 %wide
}

define internal void @restore_mode(i64 %mode) {
  %at = alloca i32, align 4
  %narrow = trunc i64 %mode to i32
  store i32 %narrow, ptr %at, align 4
  call void @llvm.x86.sse.ldmxcsr(ptr %at)
  ret void
}

define internal void @pause() alwaysinline {
  call void @llvm.x86.sse2.pause()
  ret void
}
"""

_ARM = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
declare void @llvm.aarch64.hint(i32)

define internal i64 @standard_mode() {
  %old = call i64 @llvm.aarch64.get.fpcr()
  call void @llvm.aarch64.set.fpcr(i64 0)
  ret i64 %old
}

define internal void @restore_mode(i64 %mode) {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}

define internal void @pause() alwaysinline {
  call void @llvm.aarch64.hint(i32 1)
  ret void
}
"""

_OTHER = """
define internal i64 @standard_mode() {
  ret i64 0
}

define internal void @restore_mode(i64 %mode) {
  ret void
}

define internal void @pause() alwaysinline {
  fence syncscope("singlethread") seq_cst
  ret void
}
"""

_RUN = """
define i32 @relaylab_run(ptr %ctx) {
  %mode = call i64 @standard_mode()
  %first.at = getelementptr i64, ptr %ctx, i64 {CTX_FIRST}
  %last.at = getelementptr i64, ptr %ctx, i64 {CTX_LAST}
  %threads.at = getelementptr i64, ptr %ctx, i64 {CTX_THREADS}
  %pool.at = getelementptr i64, ptr %ctx, i64 {CTX_POOL}
  %steps = load ptr, ptr %ctx, align 8
  %first = load i64, ptr %first.at, align 8
  %last = load i64, ptr %last.at, align 8
  %wanted = load i64, ptr %threads.at, align 8
  %pool = load ptr, ptr %pool.at, align 8
  %threads = call i64 @pool_enter(ptr %pool, i64 %wanted)
  call void @run_steps(ptr %steps, i64 %first, i64 %last, ptr %pool, i64 %threads)
  call void @pool_leave(ptr %pool, i64 %threads)
  call void @restore_mode(i64 %mode)
  ret i32 0
}

define internal void @run_steps(ptr %steps, i64 %first, i64 %last, ptr %pool, i64 %threads) alwaysinline {
entry:
  br label %next
next:
  %index = phi i64 [ %first, %entry ], [ %index.next, %step ]
  %more = icmp slt i64 %index, %last
  br i1 %more, label %step, label %leave
step:
  %word = mul i64 %index, {STEP_WORDS}
  %at = getelementptr i64, ptr %steps, i64 %word
  call void @run_step(ptr %at, ptr %pool, i64 %threads)
  %index.next = add i64 %index, 1
  br label %next
leave:
  ret void
}

define internal void @run_step(ptr %step, ptr %pool, i64 %threads) alwaysinline {
entry:
  %operands.at = getelementptr i64, ptr %step, i64 {STEP_OPERANDS}
  %items.at = getelementptr i64, ptr %step, i64 {STEP_ITEMS}
  %shares.at = getelementptr i64, ptr %step, i64 {STEP_SHARES}
  %kernel = load ptr, ptr %step, align 8
  %operands = load ptr, ptr %operands.at, align 8
  %items = load i64, ptr %items.at, align 8
  %shares = load i64, ptr %shares.at, align 8
  %bound = call i64 @llvm.umin.i64(i64 %threads, i64 %shares)
  %n = call i64 @llvm.umin.i64(i64 %bound, i64 %items)
  %parallel = icmp ugt i64 %n, 1
  br i1 %parallel, label %many, label %one
one:
  call void %kernel(ptr %operands, i64 0, i64 %items, i64 0)
  ret void
many:
  call void @parallel_for(ptr %pool, ptr %kernel, ptr %operands, i64 %items, i64 %n)
  ret void
}

declare i64 @llvm.umin.i64(i64, i64)
"""

_PARTS = """
define void @relaylab_parts(ptr %operands, i64 %begin, i64 %end, i64 %thread) {
  %bounds.at = getelementptr i64, ptr %operands, i64 1
  %steps = load ptr, ptr %operands, align 8
  %bounds = load ptr, ptr %bounds.at, align 8
  %first.at = getelementptr i64, ptr %bounds, i64 %begin
  %last.at = getelementptr i64, ptr %bounds, i64 %end
  %first = load i64, ptr %first.at, align 8
  %last = load i64, ptr %last.at, align 8
  call void @run_steps(ptr %steps, i64 %first, i64 %last, ptr null, i64 1)
  ret void
}
"""
