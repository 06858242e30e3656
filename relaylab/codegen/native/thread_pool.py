"""The thread pool below `relaylab_run`, as LLVM IR text; `{NAME}` stands for a layout constant of `runtime/abi.py`.

The pool never blocks a run: a run that finds it busy, or the system without threads to give, does all the work itself.
In a parallel region every thread works on its own share of the items, chunk by chunk, and a little later takes the
chunks that others have not claimed yet: shares stay with their threads (and caches) from run to run, but a worker that
sleeps or is preempted delays nobody by more than one chunk.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

NO_POOL = """
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

POOL = """
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
  %owned = icmp ugt i64 %threads, 1
  br i1 %owned, label %release, label %out
release:
  %busy = getelementptr i8, ptr %pool, i64 {POOL_BUSY}
  store atomic i64 0, ptr %busy release, align 8
  ret void
out:
  ret void
}

define internal i1 @start_worker(ptr %pool, i64 %thread) {
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
  %kept.at = getelementptr i64, ptr %slot, i64 3
  store i64 %handle, ptr %kept.at, align 8
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

; Claim the next of so many chunks of a share in a region: its number, or -1 when none is left. A slot holds
; region << 8 | chunks claimed; what it holds of an earlier region counts as none claimed.
define internal i64 @claim(ptr %slot, i64 %region, i64 %chunks) {
entry:
  %fresh = shl i64 %region, 8
  %all = or i64 %fresh, %chunks
  br label %look
look:
  %old = load atomic i64, ptr %slot monotonic, align 8
  %behind = icmp slt i64 %old, %fresh
  %start = select i1 %behind, i64 %fresh, i64 %old
  %open = icmp slt i64 %start, %all
  br i1 %open, label %try, label %none
try:
  %next = add i64 %start, 1
  %swap = cmpxchg ptr %slot, i64 %old, i64 %next acq_rel monotonic, align 8
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %got, label %look
got:
  %chunk = and i64 %start, 255
  ret i64 %chunk
none:
  ret i64 -1
}

; Run what is left of share `share` of the job's items, with the scratch memory of `thread`.
; Gives the number of chunks that it ran. The job is read after a claim: from then on the region cannot end.
define internal i64 @run_share(ptr %pool, i64 %epoch, i64 %share, i64 %thread) {
entry:
  %region = lshr i64 %epoch, 16
  %chunks.high = lshr i64 %epoch, 8
  %chunks = and i64 %chunks.high, 255
  %n = and i64 %epoch, 255
  %slot = call ptr @slot_of(ptr %pool, i64 %share)
  %job = getelementptr i8, ptr %pool, i64 {POOL_JOB}
  %job.operands = getelementptr i64, ptr %job, i64 1
  %job.items = getelementptr i64, ptr %job, i64 2
  br label %next
next:
  %count = phi i64 [ 0, %entry ], [ %count.next, %done ]
  %chunk = call i64 @claim(ptr %slot, i64 %region, i64 %chunks)
  %some = icmp sge i64 %chunk, 0
  br i1 %some, label %bounds, label %out
bounds:
  %kernel = load ptr, ptr %job, align 8
  %operands = load ptr, ptr %job.operands, align 8
  %items = load i64, ptr %job.items, align 8
  %share.next = add i64 %share, 1
  %low.n = mul i64 %items, %share
  %high.n = mul i64 %items, %share.next
  %low = udiv i64 %low.n, %n
  %high = udiv i64 %high.n, %n
  %size = sub i64 %high, %low
  %chunk.next = add i64 %chunk, 1
  %from.c = mul i64 %size, %chunk
  %to.c = mul i64 %size, %chunk.next
  %from = udiv i64 %from.c, %chunks
  %to = udiv i64 %to.c, %chunks
  %begin = add i64 %low, %from
  %end = add i64 %low, %to
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %run, label %done
run:
  call void %kernel(ptr %operands, i64 %begin, i64 %end, i64 %thread)
  br label %done
done:
  %count.next = add i64 %count, 1
  br label %next
out:
  ret i64 %count
}

; Run what others (there is one at least) have not claimed of their shares. Gives the number of chunks run.
define internal i64 @run_others(ptr %pool, i64 %epoch, i64 %thread) {
entry:
  %n = and i64 %epoch, 255
  br label %next
next:
  %step = phi i64 [ 1, %entry ], [ %step.next, %next ]
  %total = phi i64 [ 0, %entry ], [ %total.next, %next ]
  %place = add i64 %thread, %step
  %share = urem i64 %place, %n
  %count = call i64 @run_share(ptr %pool, i64 %epoch, i64 %share, i64 %thread)
  %total.next = add i64 %total, %count
  %step.next = add i64 %step, 1
  %more = icmp ult i64 %step.next, %n
  br i1 %more, label %next, label %out
out:
  ret i64 %total.next
}

; What is done only grows: it is known when a region begins, for the one before has ended. Workers that had no part in
; that are not waited for.
define internal void @parallel_for(ptr %pool, ptr %kernel, ptr %operands, i64 %items, i64 %n) {
entry:
  %done.at = getelementptr i8, ptr %pool, i64 {POOL_DONE}
  %job = getelementptr i8, ptr %pool, i64 {POOL_JOB}
  %job.operands = getelementptr i64, ptr %job, i64 1
  %job.items = getelementptr i64, ptr %job, i64 2
  %patience.at = getelementptr i8, ptr %pool, i64 {POOL_PATIENCE}
  %patience = load i64, ptr %patience.at, align 8
  %before = load atomic i64, ptr %done.at monotonic, align 8
  %epoch.old = load atomic i64, ptr %pool monotonic, align 8
  %region.old = lshr i64 %epoch.old, 16
  %region = add i64 %region.old, 1
  %region.high = shl i64 %region, 16
  %most = sub i64 %n, 1
  %items.up = add i64 %items, %most
  %each = udiv i64 %items.up, %n
  %chunks = call i64 @llvm.umin.i64(i64 %each, i64 {CHUNKS})
  %chunks.high = shl i64 %chunks, 8
  %shape = or i64 %chunks.high, %n
  %epoch = or i64 %region.high, %shape
  store ptr %kernel, ptr %job, align 8
  store ptr %operands, ptr %job.operands, align 8
  store i64 %items, ptr %job.items, align 8
  store atomic i64 %epoch, ptr %pool seq_cst, align 8
  call void @wake(ptr %pool)
  %all = mul i64 %n, %chunks
  %end = add i64 %before, %all
  %own = call i64 @run_share(ptr %pool, i64 %epoch, i64 0, i64 0)
  %first = sub i64 %end, %own
  br label %spin
spin:
  %looks = phi i64 [ 0, %entry ], [ %looks.next, %again ], [ 0, %help ], [ %looks, %yield ]
  %helped = phi i1 [ false, %entry ], [ %helped, %again ], [ true, %help ], [ true, %yield ]
  %expected = phi i64 [ %first, %entry ], [ %expected, %again ], [ %rest, %help ], [ %expected, %yield ]
  %done = load atomic i64, ptr %done.at acquire, align 8
  %finished = icmp eq i64 %done, %expected
  br i1 %finished, label %out, label %idle
idle:
  %limit = select i1 %helped, i64 {SPINS_BEFORE_YIELD}, i64 %patience
  %patient = icmp ult i64 %looks, %limit
  br i1 %patient, label %again, label %late
again:
  call void @pause()
  %looks.next = add i64 %looks, 1
  br label %spin
late:
  br i1 %helped, label %yield, label %help
help:
  %more = call i64 @run_others(ptr %pool, i64 %epoch, i64 0)
  %rest = sub i64 %expected, %more
  br label %spin
yield:
  %ignored = call i32 @sched_yield()
  br label %spin
out:
  %alone = icmp eq i64 %expected, %before
  %next = select i1 %alone, i64 0, i64 {PATIENCE}
  store i64 %next, ptr %patience.at, align 8
  ret void
}

define internal void @wake(ptr %pool) {
  %sleepers.at = getelementptr i8, ptr %pool, i64 {POOL_SLEEPERS}
  %sleepers = load atomic i64, ptr %sleepers.at seq_cst, align 8
  %any = icmp sgt i64 %sleepers, 0
  br i1 %any, label %call, label %out
call:
  call void @send_away(ptr %pool)
  %mutex = getelementptr i8, ptr %pool, i64 {POOL_MUTEX}
  %cond = getelementptr i8, ptr %pool, i64 {POOL_COND}
  %lock.rc = call i32 @pthread_mutex_lock(ptr %mutex)
  %cast.rc = call i32 @pthread_cond_broadcast(ptr %cond)
  %unlock.rc = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
out:
  ret void
}

; A worker: wait for a new region; if it takes part, run its share, then what others leave, and say how much that was.
define internal ptr @worker(ptr %slot) {
entry:
  %mode = call i64 @standard_mode()
  %thread.at = getelementptr i64, ptr %slot, i64 1
  %pool.at = getelementptr i64, ptr %slot, i64 2
  %thread = load i64, ptr %thread.at, align 8
  %pool = load ptr, ptr %pool.at, align 8
  br label %wait
wait:
  %seen = phi i64 [ 0, %entry ], [ %epoch, %wait ], [ %epoch, %rest ], [ %epoch, %help ]
  %epoch = call i64 @next_epoch(ptr %pool, i64 %seen)
  %n = and i64 %epoch, 255
  %part = icmp ult i64 %thread, %n
  br i1 %part, label %work, label %wait
work:
  %own = call i64 @run_share(ptr %pool, i64 %epoch, i64 %thread, i64 %thread)
  call void @report(ptr %pool, i64 %own)
  br label %rest
rest:
  %looks = phi i64 [ 0, %work ], [ %looks.next, %look ]
  %now = load atomic i64, ptr %pool monotonic, align 8
  %over = icmp ne i64 %now, %epoch
  br i1 %over, label %wait, label %idle
idle:
  %patient = icmp ult i64 %looks, {PATIENCE}
  br i1 %patient, label %look, label %help
look:
  call void @pause()
  %looks.next = add i64 %looks, 1
  br label %rest
help:
  %more = call i64 @run_others(ptr %pool, i64 %epoch, i64 %thread)
  call void @report(ptr %pool, i64 %more)
  br label %wait
}

; Say that so many chunks are done.
define internal void @report(ptr %pool, i64 %count) {
  %some = icmp ugt i64 %count, 0
  br i1 %some, label %add, label %out
add:
  %done.at = getelementptr i8, ptr %pool, i64 {POOL_DONE}
  %before = atomicrmw add ptr %done.at, i64 %count acq_rel, align 8
  ret void
out:
  ret void
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
  call void @come_back(ptr %pool)
  ret i64 %late
out:
  ret i64 %epoch
}
"""

# Linux likes to wake a thread on the processor of the one that wakes it, which here goes on working: the two would
# share it for milliseconds. So sleepers may use every processor but the caller's until they are awake.
SPREAD = """
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i64 @llvm.vector.reduce.or.v16i64(<16 x i64>)

define internal void @send_away(ptr %pool) {
entry:
  %others = alloca <16 x i64>, align 8
  %mask = getelementptr i8, ptr %pool, i64 {POOL_MASK}
  %got = call i32 @sched_getaffinity(i32 0, i64 {MASK_BYTES}, ptr %mask)
  %cpu = call i32 @sched_getcpu()
  %word = lshr i32 %cpu, 6
  %known = icmp ult i32 %word, 16
  %read = icmp sge i32 %got, 0
  %fine = and i1 %known, %read
  br i1 %fine, label %without, label %out
without:
  %all = load <16 x i64>, ptr %mask, align 8
  store <16 x i64> %all, ptr %others, align 8
  %at = getelementptr i64, ptr %others, i32 %word
  %in = and i32 %cpu, 63
  %shift = zext i32 %in to i64
  %bit = shl i64 1, %shift
  %keep = xor i64 %bit, -1
  %old = load i64, ptr %at, align 8
  %less = and i64 %old, %keep
  store i64 %less, ptr %at, align 8
  %rest = load <16 x i64>, ptr %others, align 8
  %left = call i64 @llvm.vector.reduce.or.v16i64(<16 x i64> %rest)
  %none = icmp eq i64 %left, 0
  %workers.at = getelementptr i8, ptr %pool, i64 {POOL_WORKERS}
  %workers = load i64, ptr %workers.at, align 8
  br i1 %none, label %out, label %next
next:
  %thread = phi i64 [ 1, %without ], [ %thread.next, %send ]
  %more = icmp ule i64 %thread, %workers
  br i1 %more, label %send, label %out
send:
  %slot = call ptr @slot_of(ptr %pool, i64 %thread)
  %handle.at = getelementptr i64, ptr %slot, i64 3
  %handle = load i64, ptr %handle.at, align 8
  %rc = call i32 @pthread_setaffinity_np(i64 %handle, i64 {MASK_BYTES}, ptr %others)
  %thread.next = add i64 %thread, 1
  br label %next
out:
  ret void
}

define internal void @come_back(ptr %pool) {
  %mask = getelementptr i8, ptr %pool, i64 {POOL_MASK}
  %rc = call i32 @sched_setaffinity(i32 0, i64 {MASK_BYTES}, ptr %mask)
  ret void
}
"""

NO_SPREAD = """
define internal void @send_away(ptr %pool) {
  ret void
}

define internal void @come_back(ptr %pool) {
  ret void
}
"""
