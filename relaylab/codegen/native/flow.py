"""The native entry of programs with control flow, as LLVM IR text: `relaylab_flow` walks instructions.

Those of `_FRAMES` are of programs with calls: registers in frames that point to objects.

Their layout is in `runtime/abi.py`; behind each label stand the operands, of which a, b and c are read for all. What
an instruction changes lies in memory, so that a run can pause at any of them, for the caller to make room, to look at
the clock, or to be interrupted.

Choices: docs/choices.md, Running.
"""

_WALKER = """
define i32 @relaylab_flow(ptr %ctx) {
entry:
  %mode = call i64 @standard_mode()
  %next.at = getelementptr i64, ptr %ctx, i64 {FLOW_NEXT}
  %fuel.at = getelementptr i64, ptr %ctx, i64 {FLOW_FUEL}
  %threads.at = getelementptr i64, ptr %ctx, i64 {FLOW_THREADS}
  %pool.at = getelementptr i64, ptr %ctx, i64 {FLOW_POOL}
  %frame.at = getelementptr i64, ptr %ctx, i64 {FLOW_FRAME}
  %stack.at = getelementptr i64, ptr %ctx, i64 {FLOW_STACK}
  %low.at = getelementptr i64, ptr %ctx, i64 {FLOW_LOW}
  %high.at = getelementptr i64, ptr %ctx, i64 {FLOW_HIGH}
  %first = load ptr, ptr %frame.at, align 8
  %stack = load i64, ptr %stack.at, align 8
  %code = load ptr, ptr %ctx, align 8
  %start = load i64, ptr %next.at, align 8
  %given = load i64, ptr %fuel.at, align 8
  %wanted = load i64, ptr %threads.at, align 8
  %pool = load ptr, ptr %pool.at, align 8
  %threads = call i64 @pool_enter(ptr %pool, i64 %wanted)
  br label %next
next:
  %pc = phi i64 [ %start, %entry ], [ %follows, %onwards ], [ %a, %jump ], [ %chosen, %unless ], [ %is.to, %on.is ],
    [ %test.to, %on.test ], [ %call.to, %on.call ], [ %tail.to, %on.tail ], [ %return.to, %on.return ]
  %frame = phi ptr [ %first, %entry ], [ %frame, %onwards ], [ %frame, %jump ], [ %frame, %unless ], [ %frame, %on.is ],
    [ %frame, %on.test ], [ %call.frame, %on.call ], [ %frame, %on.tail ], [ %return.frame, %on.return ]
  %fuel = phi i64 [ %given, %entry ], [ %left, %onwards ], [ %left, %jump ], [ %left, %unless ], [ %left, %on.is ],
    [ %left, %on.test ], [ %left, %on.call ], [ %left, %on.tail ], [ %left, %on.return ]
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
  %a = load i64, ptr %a.at, align 8
  %b = load i64, ptr %b.at, align 8
  %c = load i64, ptr %c.at, align 8
  %failed = icmp eq i64 %kind, {FAIL}
  %ended = select i1 %failed, i32 {FLOW_FAILED}, i32 {FLOW_DONE}
  switch i64 %kind, label %onwards [
    i64 {END}, label %leave
    i64 {STEP}, label %step
    i64 {JUMP}, label %jump
    i64 {UNLESS}, label %unless
    i64 {COPY}, label %copy
    i64 {APPEND}, label %append
    i64 {EXACT}, label %exact
    i64 {TENSOR}, label %on.tensor
    i64 {OBJECT}, label %on.object
    i64 {PUT}, label %on.put
    i64 {GET}, label %on.get
    i64 {PLACE}, label %on.place
    i64 {MOVE}, label %on.move
    i64 {BIND}, label %on.bind
    i64 {IS}, label %on.is
    i64 {TEST}, label %on.test
    i64 {ENTER}, label %on.enter
    i64 {CALL}, label %on.call
    i64 {INVOKE}, label %on.invoke
    i64 {TAIL}, label %on.tail
    i64 {REENTER}, label %on.reenter
    i64 {RETURN}, label %on.return
    i64 {FAIL}, label %leave
    i64 {FILL}, label %on.fill
  ]
step:  ; step
  %record = load ptr, ptr %a.at, align 8
  call void @run_step(ptr %record, ptr %pool, i64 %threads)
  br label %onwards
jump:  ; to
  br label %next
unless:  ; condition, to
  %condition.at = load ptr, ptr %a.at, align 8
  %condition = load i8, ptr %condition.at, align 1
  %holds = icmp ne i8 %condition, 0
  %chosen = select i1 %holds, i64 %follows, i64 %b
  br label %next
copy:  ; to, from, bytes
  %copy.to = load ptr, ptr %a.at, align 8
  %copy.from = load ptr, ptr %b.at, align 8
  call void @llvm.memmove.p0.p0.i64(ptr %copy.to, ptr %copy.from, i64 %c, i1 false)
  br label %onwards
append:  ; collector, from, bytes, before
  %collector = load ptr, ptr %a.at, align 8
  %source = load ptr, ptr %b.at, align 8
  %before = load i64, ptr %d.at, align 8
  %room.at = getelementptr i64, ptr %collector, i64 1
  %used.at = getelementptr i64, ptr %collector, i64 2
  %memory = load ptr, ptr %collector, align 8
  %room = load i64, ptr %room.at, align 8
  %used = load i64, ptr %used.at, align 8
  %after = add i64 %used, %c
  %full = icmp ugt i64 %after, %room
  br i1 %full, label %leave, label %write
write:
  %from.end = sub i64 %room, %after
  %backwards = icmp ne i64 %before, 0
  %offset = select i1 %backwards, i64 %from.end, i64 %used
  %place = getelementptr i8, ptr %memory, i64 %offset
  call void @llvm.memmove.p0.p0.i64(ptr %place, ptr %source, i64 %c, i1 false)
  store i64 %after, ptr %used.at, align 8
  br label %onwards
exact:  ; collector, bytes
  %exact.collector = load ptr, ptr %a.at, align 8
  %exact.used.at = getelementptr i64, ptr %exact.collector, i64 2
  %exact.used = load i64, ptr %exact.used.at, align 8
  %as.many = icmp eq i64 %exact.used, %b
  br i1 %as.many, label %onwards, label %leave
{FRAMES}onwards:
  br label %next
leave:
  %status = phi i32 [ {FLOW_PAUSED}, %next ], [ %ended, %decode ], [ %ended, %decode ], [ {FLOW_FULL}, %append ],
    [ {FLOW_SHORT}, %exact ], [ {FLOW_FULL}, %on.tensor ], [ {FLOW_FULL}, %on.object ], [ {FLOW_DEEP}, %on.enter ]
  store ptr %frame, ptr %frame.at, align 8
  store i64 %pc, ptr %next.at, align 8
  store i64 %fuel, ptr %fuel.at, align 8
  call void @pool_leave(ptr %pool, i64 %threads)
  call void @restore_mode(i64 %mode)
  ret i32 %status
}

declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
"""

_FRAMES = """
on.tensor:  ; to, header, bytes
  %tensor.low = load i64, ptr %low.at, align 8
  %tensor.high = load i64, ptr %high.at, align 8
  %tensor.room = sub i64 %tensor.high, %tensor.low
  %tensor.need = add i64 %c, {OBJECT_ROOM}
  %tensor.full = icmp ugt i64 %tensor.need, %tensor.room
  br i1 %tensor.full, label %leave, label %tensor.made
tensor.made:
  %tensor.begin = sub i64 %tensor.high, %c
  %tensor.data = and i64 %tensor.begin, -64
  %tensor.head = sub i64 %tensor.data, 8
  %tensor.at = inttoptr i64 %tensor.head to ptr
  store i64 %b, ptr %tensor.at, align 8
  store i64 %tensor.head, ptr %high.at, align 8
  %tensor.to = getelementptr i8, ptr %frame, i64 %a
  store i64 %tensor.data, ptr %tensor.to, align 8
  br label %onwards
on.object:  ; to, header, bytes
  %object.low = load i64, ptr %low.at, align 8
  %object.high = load i64, ptr %high.at, align 8
  %object.data = add i64 %object.low, 8
  %object.end = add i64 %object.data, %c
  %object.full = icmp ugt i64 %object.end, %object.high
  br i1 %object.full, label %leave, label %object.made
object.made:
  %object.at = inttoptr i64 %object.low to ptr
  store i64 %b, ptr %object.at, align 8
  store i64 %object.end, ptr %low.at, align 8
  %object.to = getelementptr i8, ptr %frame, i64 %a
  store i64 %object.data, ptr %object.to, align 8
  br label %onwards
on.put:  ; object, offset, from
  %put.value.at = getelementptr i8, ptr %frame, i64 %c
  %put.value = load i64, ptr %put.value.at, align 8
  %put.object.at = getelementptr i8, ptr %frame, i64 %a
  %put.object = load ptr, ptr %put.object.at, align 8
  %put.to = getelementptr i8, ptr %put.object, i64 %b
  store i64 %put.value, ptr %put.to, align 8
  br label %onwards
on.get:  ; to, object, offset
  %get.object.at = getelementptr i8, ptr %frame, i64 %b
  %get.object = load ptr, ptr %get.object.at, align 8
  %get.value.at = getelementptr i8, ptr %get.object, i64 %c
  %get.value = load i64, ptr %get.value.at, align 8
  %get.to = getelementptr i8, ptr %frame, i64 %a
  store i64 %get.value, ptr %get.to, align 8
  br label %onwards
on.place:  ; to, address
  %place.to = getelementptr i8, ptr %frame, i64 %a
  store i64 %b, ptr %place.to, align 8
  br label %onwards
on.move:  ; to, from
  %move.value.at = getelementptr i8, ptr %frame, i64 %b
  %move.value = load i64, ptr %move.value.at, align 8
  %move.to = getelementptr i8, ptr %frame, i64 %a
  store i64 %move.value, ptr %move.to, align 8
  br label %onwards
on.fill:  ; tensor, from, bytes
  %fill.to.at = getelementptr i8, ptr %frame, i64 %a
  %fill.to = load ptr, ptr %fill.to.at, align 8
  %fill.from.at = getelementptr i8, ptr %frame, i64 %b
  %fill.from = load ptr, ptr %fill.from.at, align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 64 %fill.to, ptr align 64 %fill.from, i64 %c, i1 false)
  br label %onwards
on.bind:  ; word, tensor, offset
  %bind.to = load ptr, ptr %a.at, align 8
  %bind.tensor.at = getelementptr i8, ptr %frame, i64 %b
  %bind.tensor = load i64, ptr %bind.tensor.at, align 8
  %bind.place = add i64 %bind.tensor, %c
  store i64 %bind.place, ptr %bind.to, align 8
  br label %onwards
on.is:  ; object, header, else
  %is.object.at = getelementptr i8, ptr %frame, i64 %a
  %is.object = load ptr, ptr %is.object.at, align 8
  %is.word.at = getelementptr i8, ptr %is.object, i64 -8
  %is.word = load i64, ptr %is.word.at, align 8
  %is.same = icmp eq i64 %is.word, %b
  %is.to = select i1 %is.same, i64 %follows, i64 %c
  br label %next
on.test:  ; condition, else
  %test.tensor.at = getelementptr i8, ptr %frame, i64 %a
  %test.tensor = load ptr, ptr %test.tensor.at, align 8
  %test.value = load i8, ptr %test.tensor, align 1
  %test.holds = icmp ne i8 %test.value, 0
  %test.to = select i1 %test.holds, i64 %follows, i64 %b
  br label %next
on.enter:  ; bytes needed, first byte zeroed, bytes zeroed
  %enter.begin = ptrtoint ptr %frame to i64
  %enter.end = add i64 %enter.begin, %a
  %enter.deep = icmp ugt i64 %enter.end, %stack
  br i1 %enter.deep, label %leave, label %entered
entered:
  %enter.at = getelementptr i8, ptr %frame, i64 %b
  call void @llvm.memset.p0.i64(ptr align 8 %enter.at, i8 0, i64 %c, i1 false)
  br label %onwards
on.invoke:  ; to, closure, bytes of frame
  %invoke.closure.at = getelementptr i8, ptr %frame, i64 %b
  %invoke.closure = load ptr, ptr %invoke.closure.at, align 8
  %invoke.word.at = getelementptr i8, ptr %invoke.closure, i64 -8
  %invoke.word = load i64, ptr %invoke.word.at, align 8
  %invoke.number = lshr i64 %invoke.word, {NUMBER_SHIFT}
  %invoke.to = and i64 %invoke.number, {FIRST_MASK}
  br label %on.call
on.call:  ; to, instruction, bytes of frame
  %call.to = phi i64 [ %b, %decode ], [ %invoke.to, %on.invoke ]
  %call.closure = phi ptr [ null, %decode ], [ %invoke.closure, %on.invoke ]
  %call.frame = getelementptr i8, ptr %frame, i64 %c
  store i64 %pc, ptr %call.frame, align 8
  %call.own.at = getelementptr i64, ptr %call.frame, i64 1
  store ptr %call.closure, ptr %call.own.at, align 8
  br label %next
on.reenter:  ; closure, bytes of frame, bytes of arguments
  %reenter.closure.at = getelementptr i8, ptr %frame, i64 %a
  %reenter.closure = load ptr, ptr %reenter.closure.at, align 8
  %reenter.word.at = getelementptr i8, ptr %reenter.closure, i64 -8
  %reenter.word = load i64, ptr %reenter.word.at, align 8
  %reenter.number = lshr i64 %reenter.word, {NUMBER_SHIFT}
  %reenter.to = and i64 %reenter.number, {FIRST_MASK}
  br label %on.tail
on.tail:  ; instruction, bytes of frame, bytes of arguments
  %tail.to = phi i64 [ %a, %decode ], [ %reenter.to, %on.reenter ]
  %tail.closure = phi ptr [ null, %decode ], [ %reenter.closure, %on.reenter ]
  %tail.own.at = getelementptr i64, ptr %frame, i64 1
  %tail.args.at = getelementptr i64, ptr %frame, i64 2
  %tail.args = getelementptr i8, ptr %tail.args.at, i64 %b
  call void @llvm.memmove.p0.p0.i64(ptr align 8 %tail.args.at, ptr align 8 %tail.args, i64 %c, i1 false)
  store ptr %tail.closure, ptr %tail.own.at, align 8
  br label %next
on.return:  ; from
  %return.value.at = getelementptr i8, ptr %frame, i64 %a
  %return.value = load i64, ptr %return.value.at, align 8
  %return.from = load i64, ptr %frame, align 8
  %return.to = add i64 %return.from, 1
  %return.first = mul i64 %return.from, {INSTRUCTION_WORDS}
  %return.call = getelementptr i64, ptr %code, i64 %return.first
  %return.target.at = getelementptr i64, ptr %return.call, i64 1
  %return.target = load i64, ptr %return.target.at, align 8
  %return.bytes.at = getelementptr i64, ptr %return.call, i64 3
  %return.bytes = load i64, ptr %return.bytes.at, align 8
  %return.back = sub i64 0, %return.bytes
  %return.frame = getelementptr i8, ptr %frame, i64 %return.back
  %return.result = getelementptr i8, ptr %return.frame, i64 %return.target
  store i64 %return.value, ptr %return.result, align 8
  br label %next
"""

_COLLECTOR = """
define i32 @relaylab_collect(ptr %c) {
entry:
  %to.at = getelementptr i64, ptr %c, i64 1
  %low.at = getelementptr i64, ptr %c, i64 4
  %from = load ptr, ptr %c, align 8
  %to = load ptr, ptr %to.at, align 8
  %low = load ptr, ptr %low.at, align 8
  br label %roots
roots:
  %root = phi ptr [ %from, %entry ], [ %root.next, %forward.root ]
  %roots.done = icmp uge ptr %root, %to
  br i1 %roots.done, label %objects, label %forward.root
forward.root:
  call void @forward(ptr %root, ptr %c)
  %root.next = getelementptr i64, ptr %root, i64 1
  br label %roots
objects:
  %object = phi ptr [ %low, %roots ], [ %field, %fields ]
  %end = load ptr, ptr %low.at, align 8
  %done = icmp uge ptr %object, %end
  br i1 %done, label %leave, label %fields.of
fields.of:
  %word = load i64, ptr %object, align 8
  %bytes = call i64 @object_bytes(i64 %word)
  %first = getelementptr i64, ptr %object, i64 1
  %last = getelementptr i8, ptr %first, i64 %bytes
  br label %fields
fields:
  %field = phi ptr [ %first, %fields.of ], [ %field.next, %forward.field ]
  %fields.done = icmp uge ptr %field, %last
  br i1 %fields.done, label %objects, label %forward.field
forward.field:
  call void @forward(ptr %field, ptr %c)
  %field.next = getelementptr i64, ptr %field, i64 1
  br label %fields
leave:
  ret i32 0
}

define internal i64 @object_bytes(i64 %word) {
  %wide = and i64 %word, {BYTES_MASK}
  %bytes = lshr i64 %wide, 2
  ret i64 %bytes
}

define internal void @forward(ptr %slot, ptr %c) {
entry:
  %from.at = getelementptr i64, ptr %c, i64 2
  %to.at = getelementptr i64, ptr %c, i64 3
  %low.at = getelementptr i64, ptr %c, i64 4
  %high.at = getelementptr i64, ptr %c, i64 5
  %from = load i64, ptr %from.at, align 8
  %to = load i64, ptr %to.at, align 8
  %place = load i64, ptr %slot, align 8
  %begins = icmp uge i64 %place, %from
  %ends = icmp ult i64 %place, %to
  %inside = and i1 %begins, %ends
  br i1 %inside, label %look, label %leave
look:
  %old = inttoptr i64 %place to ptr
  %head = getelementptr i64, ptr %old, i64 -1
  %word = load i64, ptr %head, align 8
  %unmoved = and i64 %word, 1
  %is.unmoved = icmp ne i64 %unmoved, 0
  br i1 %is.unmoved, label %size, label %moved
moved:
  store i64 %word, ptr %slot, align 8
  ret void
size:
  %bytes = call i64 @object_bytes(i64 %word)
  %whole = add i64 %bytes, 8
  %kind = and i64 %word, 2
  %is.tensor = icmp ne i64 %kind, 0
  br i1 %is.tensor, label %tensor, label %object
tensor:
  %high = load i64, ptr %high.at, align 8
  %begin = sub i64 %high, %bytes
  %data = and i64 %begin, -64
  %new.high = sub i64 %data, 8
  store i64 %new.high, ptr %high.at, align 8
  br label %move
object:
  %low = load i64, ptr %low.at, align 8
  %new.low = add i64 %low, %whole
  store i64 %new.low, ptr %low.at, align 8
  br label %move
move:
  %new.head = phi i64 [ %new.high, %tensor ], [ %low, %object ]
  %new.at = inttoptr i64 %new.head to ptr
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %new.at, ptr align 8 %head, i64 %whole, i1 false)
  %new = add i64 %new.head, 8
  store i64 %new, ptr %head, align 8
  store i64 %new, ptr %slot, align 8
  br label %leave
leave:
  ret void
}

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""

FLOW = _WALKER.replace("{FRAMES}", _FRAMES.lstrip()) + _COLLECTOR
