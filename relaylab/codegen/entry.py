"""The native entry of every compiled network, as LLVM IR text: `relaylab_run` and the thread pool below it.

The text is the same for all networks of a machine (the step table is data, see `runtime/abi.py`), so it is
compiled once. The pool never blocks a run: a run that finds it busy, or the system without threads to
give, does all the work itself. In a parallel region every thread claims its own share of the items; the
calling thread then also takes the shares that nobody has claimed yet, so a sleeping or preempted worker
costs nothing but its help.
"""

from __future__ import annotations

from relaylab.runtime import abi

# MXCSR: all exceptions masked, round to nearest, denormal results and operands are zero (FTZ, DAZ).
MXCSR = 0x1F80 | 0x8040
FPCR_FLUSH_TO_ZERO = 1 << 24
SPINS_BEFORE_YIELD = 5000


def entry_text(triple: str) -> str:
    """LLVM IR of the entry for a machine; without pthreads (Windows) steps run on the calling thread."""
    threaded = "windows" not in triple
    parts = [_float_mode(triple), _RUN, _pause(triple), _POOL if threaded else _NO_POOL]
    return _fill("\n".join(parts))


def _fill(text: str) -> str:
    """Replace `{NAME}` by the layout constant NAME."""
    names = {name: value for name, value in vars(abi).items() if name.isupper() and isinstance(value, int)}
    names["SPINS_BEFORE_YIELD"] = SPINS_BEFORE_YIELD
    for name, value in names.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def _float_mode(triple: str) -> str:
    """Functions that flush denormals and give back the mode that was set before."""
    if triple.startswith(("x86_64", "i686", "i386")):
        return _X86_MODE.replace("{MXCSR}", str(MXCSR))
    if triple.startswith(("aarch64", "arm64")):
        return _ARM_MODE.replace("{FZ}", str(FPCR_FLUSH_TO_ZERO))
    return _NO_MODE


def _pause(triple: str) -> str:
    """What a waiting thread does between two looks."""
    if triple.startswith(("x86_64", "i686", "i386")):
        return "declare void @llvm.x86.sse2.pause()\n" + _PAUSE.replace("{HINT}", "call void @llvm.x86.sse2.pause()")
    if triple.startswith(("aarch64", "arm64")):
        hint = "call void @llvm.aarch64.hint(i32 1)"
        return "declare void @llvm.aarch64.hint(i32)\n" + _PAUSE.replace("{HINT}", hint)
    return _PAUSE.replace("{HINT}", "fence syncscope(\"singlethread\") seq_cst")


_PAUSE = """
define internal void @pause() alwaysinline {
  {HINT}
  ret void
}
"""

_X86_MODE = """
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)

define internal i64 @flush_denormals() {
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
"""

_ARM_MODE = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)

define internal i64 @flush_denormals() {
  %old = call i64 @llvm.aarch64.get.fpcr()
  call void @llvm.aarch64.set.fpcr(i64 {FZ})
  ret i64 %old
}

define internal void @restore_mode(i64 %mode) {
  call void @llvm.aarch64.set.fpcr(i64 %mode)
  ret void
}
"""

_NO_MODE = """
define internal i64 @flush_denormals() {
  ret i64 0
}

define internal void @restore_mode(i64 %mode) {
  ret void
}
"""

_RUN = """
define i32 @relaylab_run(ptr %ctx) {
entry:
  %mode = call i64 @flush_denormals()
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
  br label %next
next:
  %index = phi i64 [ %first, %entry ], [ %index.next, %done ]
  %more = icmp slt i64 %index, %last
  br i1 %more, label %step, label %leave
step:
  %word = mul i64 %index, {STEP_WORDS}
  %at = getelementptr i64, ptr %steps, i64 %word
  %operands.at = getelementptr i64, ptr %at, i64 {STEP_OPERANDS}
  %items.at = getelementptr i64, ptr %at, i64 {STEP_ITEMS}
  %shares.at = getelementptr i64, ptr %at, i64 {STEP_SHARES}
  %kernel = load ptr, ptr %at, align 8
  %operands = load ptr, ptr %operands.at, align 8
  %items = load i64, ptr %items.at, align 8
  %shares = load i64, ptr %shares.at, align 8
  %bound = call i64 @llvm.umin.i64(i64 %threads, i64 %shares)
  %n = call i64 @llvm.umin.i64(i64 %bound, i64 %items)
  %parallel = icmp ugt i64 %n, 1
  br i1 %parallel, label %many, label %one
one:
  call void %kernel(ptr %operands, i64 0, i64 %items, i64 0)
  br label %done
many:
  call void @parallel_for(ptr %pool, ptr %kernel, ptr %operands, i64 %items, i64 %n)
  br label %done
done:
  %index.next = add i64 %index, 1
  br label %next
leave:
  call void @pool_leave(ptr %pool, i64 %threads)
  call void @restore_mode(i64 %mode)
  ret i32 0
}

declare i64 @llvm.umin.i64(i64, i64)
"""

_NO_POOL = """
define internal i64 @pool_enter(ptr %pool, i64 %wanted) {
  ret i64 1
}

define internal void @pool_leave(ptr %pool, i64 %threads) {
  ret void
}

define internal void @parallel_for(ptr %pool, ptr %kernel, ptr %operands, i64 %items, i64 %n) {
  call void %kernel(ptr %operands, i64 0, i64 %items, i64 0)
  ret void
}
"""

_POOL = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()

; Own the pool for one run and start missing workers. Gives the threads that may be used: 1 if it is busy.
define internal i64 @pool_enter(ptr %pool, i64 %wanted) {
entry:
  %several = icmp ugt i64 %wanted, 1
  br i1 %several, label %try, label %alone
try:
  %busy = getelementptr i8, ptr %pool, i64 {POOL_BUSY}
  %taken = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic, align 8
  %free = extractvalue { i64, i1 } %taken, 1
  br i1 %free, label %count, label %alone
count:
  %workers.at = getelementptr i8, ptr %pool, i64 {POOL_WORKERS}
  %workers = load i64, ptr %workers.at, align 8
  %target = call i64 @llvm.umin.i64(i64 %wanted, i64 {MAX_THREADS})
  %fresh = icmp eq i64 %workers, 0
  br i1 %fresh, label %initialise, label %grow
initialise:
  %mutex = getelementptr i8, ptr %pool, i64 {POOL_MUTEX}
  %cond = getelementptr i8, ptr %pool, i64 {POOL_COND}
  %mutex.rc = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %cond.rc = call i32 @pthread_cond_init(ptr %cond, ptr null)
  br label %grow
grow:
  %have = phi i64 [ %workers, %count ], [ 0, %initialise ], [ %thread, %started ]
  %thread = add i64 %have, 1
  %short = icmp ult i64 %thread, %target
  br i1 %short, label %start, label %enough
start:
  %ok = call i1 @start_worker(ptr %pool, i64 %thread)
  br i1 %ok, label %started, label %enough
started:
  store i64 %thread, ptr %workers.at, align 8
  br label %grow
enough:
  %usable = call i64 @llvm.umin.i64(i64 %thread, i64 %target)
  %helped = icmp ugt i64 %usable, 1
  br i1 %helped, label %enter, label %give.up
enter:
  ret i64 %usable
give.up:
  store atomic i64 0, ptr %busy release, align 8
  br label %alone
alone:
  ret i64 1
}

define internal void @pool_leave(ptr %pool, i64 %threads) {
entry:
  %owned = icmp ugt i64 %threads, 1
  br i1 %owned, label %release, label %out
release:
  %busy = getelementptr i8, ptr %pool, i64 {POOL_BUSY}
  store atomic i64 0, ptr %busy release, align 8
  br label %out
out:
  ret void
}

define internal i1 @start_worker(ptr %pool, i64 %thread) {
entry:
  %handle.at = alloca i64, align 8
  %slot = call ptr @slot_of(ptr %pool, i64 %thread)
  %thread.at = getelementptr i64, ptr %slot, i64 1
  %pool.at = getelementptr i64, ptr %slot, i64 2
  store i64 %thread, ptr %thread.at, align 8
  store ptr %pool, ptr %pool.at, align 8
  %rc = call i32 @pthread_create(ptr %handle.at, ptr null, ptr @worker, ptr %slot)
  %ok = icmp eq i32 %rc, 0
  br i1 %ok, label %detach, label %out
detach:
  %handle = load i64, ptr %handle.at, align 8
  %ignored = call i32 @pthread_detach(i64 %handle)
  br label %out
out:
  ret i1 %ok
}

define internal ptr @slot_of(ptr %pool, i64 %thread) alwaysinline {
  %bytes = mul i64 %thread, {SLOT_BYTES}
  %offset = add i64 %bytes, {POOL_SLOTS}
  %slot = getelementptr i8, ptr %pool, i64 %offset
  ret ptr %slot
}

; Claim a share of a region, for its own thread or for the caller; each share is claimed once.
define internal i1 @claim(ptr %slot, i64 %region) alwaysinline {
entry:
  %old = load atomic i64, ptr %slot monotonic, align 8
  %open = icmp slt i64 %old, %region
  br i1 %open, label %try, label %late
try:
  %swap = cmpxchg ptr %slot, i64 %old, i64 %region acq_rel monotonic, align 8
  %mine = extractvalue { i64, i1 } %swap, 1
  ret i1 %mine
late:
  ret i1 false
}

; Run share `share` of `n` equal shares of the items, with the scratch memory of `thread`.
define internal void @run_share(ptr %kernel, ptr %operands, i64 %items, i64 %n, i64 %share, i64 %thread) alwaysinline {
  %next = add i64 %share, 1
  %low = mul i64 %items, %share
  %high = mul i64 %items, %next
  %begin = udiv i64 %low, %n
  %end = udiv i64 %high, %n
  call void %kernel(ptr %operands, i64 %begin, i64 %end, i64 %thread)
  ret void
}

define internal void @parallel_for(ptr %pool, ptr %kernel, ptr %operands, i64 %items, i64 %n) {
entry:
  %done.at = getelementptr i8, ptr %pool, i64 {POOL_DONE}
  %job = getelementptr i8, ptr %pool, i64 {POOL_JOB}
  %job.operands = getelementptr i64, ptr %job, i64 1
  %job.items = getelementptr i64, ptr %job, i64 2
  store ptr %kernel, ptr %job, align 8
  store ptr %operands, ptr %job.operands, align 8
  store i64 %items, ptr %job.items, align 8
  store atomic i64 0, ptr %done.at monotonic, align 8
  %epoch = load atomic i64, ptr %pool monotonic, align 8
  %region.old = lshr i64 %epoch, 16
  %region = add i64 %region.old, 1
  %region.high = shl i64 %region, 16
  %epoch.new = or i64 %region.high, %n
  store atomic i64 %epoch.new, ptr %pool seq_cst, align 8
  call void @wake(ptr %pool)
  call void @run_share(ptr %kernel, ptr %operands, i64 %items, i64 %n, i64 0, i64 0)
  br label %help
help:
  %share = phi i64 [ 1, %entry ], [ %share.next, %help.next ]
  %helped = phi i64 [ 0, %entry ], [ %helped.next, %help.next ]
  %left = icmp ult i64 %share, %n
  br i1 %left, label %look, label %wait
look:
  %slot = call ptr @slot_of(ptr %pool, i64 %share)
  %mine = call i1 @claim(ptr %slot, i64 %region)
  br i1 %mine, label %take, label %help.next
take:
  call void @run_share(ptr %kernel, ptr %operands, i64 %items, i64 %n, i64 %share, i64 0)
  br label %help.next
help.next:
  %one = zext i1 %mine to i64
  %helped.next = add i64 %helped, %one
  %share.next = add i64 %share, 1
  br label %help
wait:
  %others = sub i64 %n, 1
  %expected = sub i64 %others, %helped
  br label %spin
spin:
  %looks = phi i64 [ 0, %wait ], [ %looks.next, %again ], [ %looks, %yield ]
  %done = load atomic i64, ptr %done.at acquire, align 8
  %finished = icmp eq i64 %done, %expected
  br i1 %finished, label %out, label %idle
idle:
  %patient = icmp ult i64 %looks, {SPINS_BEFORE_YIELD}
  br i1 %patient, label %again, label %yield
again:
  call void @pause()
  %looks.next = add i64 %looks, 1
  br label %spin
yield:
  %ignored = call i32 @sched_yield()
  br label %spin
out:
  ret void
}

define internal void @wake(ptr %pool) {
entry:
  %sleepers.at = getelementptr i8, ptr %pool, i64 {POOL_SLEEPERS}
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %any = icmp sgt i64 %sleepers, 0
  br i1 %any, label %call, label %out
call:
  %mutex = getelementptr i8, ptr %pool, i64 {POOL_MUTEX}
  %cond = getelementptr i8, ptr %pool, i64 {POOL_COND}
  %lock.rc = call i32 @pthread_mutex_lock(ptr %mutex)
  %cast.rc = call i32 @pthread_cond_broadcast(ptr %cond)
  %unlock.rc = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %out
out:
  ret void
}

; A worker: wait for a new region, claim the own share if the region has one, run it, say so.
define internal ptr @worker(ptr %slot) {
entry:
  %mode = call i64 @flush_denormals()
  %thread.at = getelementptr i64, ptr %slot, i64 1
  %pool.at = getelementptr i64, ptr %slot, i64 2
  %thread = load i64, ptr %thread.at, align 8
  %pool = load ptr, ptr %pool.at, align 8
  %done.at = getelementptr i8, ptr %pool, i64 {POOL_DONE}
  %job = getelementptr i8, ptr %pool, i64 {POOL_JOB}
  %job.operands = getelementptr i64, ptr %job, i64 1
  %job.items = getelementptr i64, ptr %job, i64 2
  br label %wait
wait:
  %seen = phi i64 [ 0, %entry ], [ %epoch, %check ], [ %epoch, %try ], [ %epoch, %work ]
  %epoch = call i64 @next_epoch(ptr %pool, i64 %seen)
  br label %check
check:
  %n = and i64 %epoch, 65535
  %part = icmp ult i64 %thread, %n
  br i1 %part, label %try, label %wait
try:
  %region = lshr i64 %epoch, 16
  %mine = call i1 @claim(ptr %slot, i64 %region)
  br i1 %mine, label %work, label %wait
work:
  %kernel = load ptr, ptr %job, align 8
  %operands = load ptr, ptr %job.operands, align 8
  %items = load i64, ptr %job.items, align 8
  call void @run_share(ptr %kernel, ptr %operands, i64 %items, i64 %n, i64 %thread, i64 %thread)
  %count = atomicrmw add ptr %done.at, i64 1 acq_rel, align 8
  br label %wait
}

; The first epoch other than `seen`: look often, then sleep until somebody starts a region.
define internal i64 @next_epoch(ptr %pool, i64 %seen) {
entry:
  %spin.at = getelementptr i8, ptr %pool, i64 {POOL_SPIN}
  %limit = load i64, ptr %spin.at, align 8
  br label %look
look:
  %looks = phi i64 [ 0, %entry ], [ %looks.next, %idle ]
  %epoch = load atomic i64, ptr %pool acquire, align 8
  %new = icmp ne i64 %epoch, %seen
  br i1 %new, label %out, label %idle
idle:
  call void @pause()
  %looks.next = add i64 %looks, 1
  %patient = icmp ult i64 %looks.next, %limit
  br i1 %patient, label %look, label %sleep
sleep:
  %mutex = getelementptr i8, ptr %pool, i64 {POOL_MUTEX}
  %cond = getelementptr i8, ptr %pool, i64 {POOL_COND}
  %sleepers.at = getelementptr i8, ptr %pool, i64 {POOL_SLEEPERS}
  %lock.rc = call i32 @pthread_mutex_lock(ptr %mutex)
  %in = atomicrmw add ptr %sleepers.at, i64 1 seq_cst, align 8
  br label %check
check:
  %late = load atomic i64, ptr %pool seq_cst, align 8
  %changed = icmp ne i64 %late, %seen
  br i1 %changed, label %awake, label %doze
doze:
  %wait.rc = call i32 @pthread_cond_wait(ptr %cond, ptr %mutex)
  br label %check
awake:
  %left = atomicrmw sub ptr %sleepers.at, i64 1 seq_cst, align 8
  %unlock.rc = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret i64 %late
out:
  ret i64 %epoch
}
"""
