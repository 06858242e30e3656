"""The native entry of programs with control flow, as LLVM IR text: `relaylab_flow` walks instructions.

Their layout is in `runtime/abi.py`. Everything that an instruction changes lies in memory, so that a run can pause at
any of them, for the caller to make room, to look at the clock, or to be interrupted.

Choices: docs/choices.md, Running.
"""

FLOW = """
define i32 @relaylab_flow(ptr %ctx) {
entry:
  %mode = call i64 @standard_mode()
  %next.at = getelementptr i64, ptr %ctx, i64 {FLOW_NEXT}
  %fuel.at = getelementptr i64, ptr %ctx, i64 {FLOW_FUEL}
  %threads.at = getelementptr i64, ptr %ctx, i64 {FLOW_THREADS}
  %pool.at = getelementptr i64, ptr %ctx, i64 {FLOW_POOL}
  %code = load ptr, ptr %ctx, align 8
  %start = load i64, ptr %next.at, align 8
  %given = load i64, ptr %fuel.at, align 8
  %wanted = load i64, ptr %threads.at, align 8
  %pool = load ptr, ptr %pool.at, align 8
  %threads = call i64 @pool_enter(ptr %pool, i64 %wanted)
  br label %next
next:
  %pc = phi i64 [ %start, %entry ], [ %follows, %decode ], [ %follows, %step ], [ %follows, %copy ],
    [ %follows, %written ], [ %follows, %exact ], [ %target, %jump ], [ %chosen, %unless ]
  %fuel = phi i64 [ %given, %entry ], [ %left, %decode ], [ %left, %step ], [ %left, %copy ],
    [ %left, %written ], [ %left, %exact ], [ %left, %jump ], [ %left, %unless ]
  %empty = icmp eq i64 %fuel, 0
  br i1 %empty, label %leave, label %decode
decode:
  %left = sub i64 %fuel, 1
  %follows = add i64 %pc, 1
  %word = mul i64 %pc, {INSTRUCTION_WORDS}
  %at = getelementptr i64, ptr %code, i64 %word
  %a.at = getelementptr i64, ptr %at, i64 1
  %b.at = getelementptr i64, ptr %at, i64 2
  %c.at = getelementptr i64, ptr %at, i64 3
  %d.at = getelementptr i64, ptr %at, i64 4
  %kind = load i64, ptr %at, align 8
  switch i64 %kind, label %next [
    i64 {END}, label %leave
    i64 {STEP}, label %step
    i64 {JUMP}, label %jump
    i64 {UNLESS}, label %unless
    i64 {COPY}, label %copy
    i64 {APPEND}, label %append
    i64 {EXACT}, label %exact
  ]
step:
  %record = load ptr, ptr %a.at, align 8
  call void @run_step(ptr %record, ptr %pool, i64 %threads)
  br label %next
jump:
  %target = load i64, ptr %a.at, align 8
  br label %next
unless:
  %condition.at = load ptr, ptr %a.at, align 8
  %condition = load i8, ptr %condition.at, align 1
  %other = load i64, ptr %b.at, align 8
  %holds = icmp ne i8 %condition, 0
  %chosen = select i1 %holds, i64 %follows, i64 %other
  br label %next
copy:
  %copy.to = load ptr, ptr %a.at, align 8
  %copy.from = load ptr, ptr %b.at, align 8
  %copy.bytes = load i64, ptr %c.at, align 8
  call void @llvm.memmove.p0.p0.i64(ptr %copy.to, ptr %copy.from, i64 %copy.bytes, i1 false)
  br label %next
append:
  %collector = load ptr, ptr %a.at, align 8
  %source = load ptr, ptr %b.at, align 8
  %bytes = load i64, ptr %c.at, align 8
  %before = load i64, ptr %d.at, align 8
  %room.at = getelementptr i64, ptr %collector, i64 1
  %used.at = getelementptr i64, ptr %collector, i64 2
  %memory = load ptr, ptr %collector, align 8
  %room = load i64, ptr %room.at, align 8
  %used = load i64, ptr %used.at, align 8
  %after = add i64 %used, %bytes
  %full = icmp ugt i64 %after, %room
  br i1 %full, label %leave, label %write
write:
  %from.end = sub i64 %room, %after
  %backwards = icmp ne i64 %before, 0
  %offset = select i1 %backwards, i64 %from.end, i64 %used
  %place = getelementptr i8, ptr %memory, i64 %offset
  call void @llvm.memmove.p0.p0.i64(ptr %place, ptr %source, i64 %bytes, i1 false)
  store i64 %after, ptr %used.at, align 8
  br label %written
written:
  br label %next
exact:
  %exact.collector = load ptr, ptr %a.at, align 8
  %exact.bytes = load i64, ptr %b.at, align 8
  %exact.used.at = getelementptr i64, ptr %exact.collector, i64 2
  %exact.used = load i64, ptr %exact.used.at, align 8
  %as.many = icmp eq i64 %exact.used, %exact.bytes
  br i1 %as.many, label %next, label %leave
leave:
  %status = phi i32 [ {FLOW_PAUSED}, %next ], [ {FLOW_DONE}, %decode ], [ {FLOW_FULL}, %append ],
    [ {FLOW_SHORT}, %exact ]
  store i64 %pc, ptr %next.at, align 8
  store i64 %fuel, ptr %fuel.at, align 8
  call void @pool_leave(ptr %pool, i64 %threads)
  call void @restore_mode(i64 %mode)
  ret i32 %status
}

declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""
