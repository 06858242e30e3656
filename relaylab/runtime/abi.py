"""The records that compiled code and the runtime share: their layouts, in one place.

A *step* is one kernel call of a network; the entry `i32 @relaylab_run(ptr ctx)` runs the steps
[first, last) of a step table in order. The code knows no addresses: the runtime fills in the tables.

    context   steps*, first, last, threads, pool*               (8 bytes each)
    step      kernel*, operands*, items, shares                 (8 bytes each)
    pool      see the offsets below; zeroed memory is a pool that has not been started

`relaylab_parts` is a kernel whose operands are steps* and bounds*: item n is the steps [bounds[n], bounds[n + 1]),
each run whole by the thread that has the item.

`shares` bounds how many threads work on a step; 1 runs it on the calling thread.

`i32 @relaylab_flow(ptr ctx)` runs instructions, which call steps and say what comes next:

    flow          instructions*, next, fuel, threads, pool*, frame*, stack end*, low*, high*    (8 bytes each)
    instruction   kind, four operands                           (8 bytes each)
    collector     memory*, bytes of room, bytes used
    frame         number of the CALL, closure or 0, arguments, registers   (8 bytes each; registers point to objects)
    object        one word, then what is pointed to: number << 40 | bytes << 2 | 3 of a tensor, | 1 of fields

It returns FLOW_DONE, FLOW_PAUSED when `fuel` instructions were run, FLOW_FULL at an instruction that needs room,
FLOW_DEEP at an ENTER that does, FLOW_SHORT at an EXACT of a collector with other bytes, or FLOW_FAILED at a FAIL;
called again it goes on at `next`. `fuel` is what is left. Objects of fields lie from below up to `low`, tensors from
`high` on; `i32 @relaylab_collect(ptr)` moves those that the frames reach to other memory:

    collection    frames from*, to*, objects from*, to*, low*, high*      (8 bytes each; the last two in the new memory)
"""

from __future__ import annotations

VERSION = 3
ENTRY = "relaylab_run"
PARTS = "relaylab_parts"

CONTEXT_WORDS = 5
CTX_STEPS, CTX_FIRST, CTX_LAST, CTX_THREADS, CTX_POOL = range(CONTEXT_WORDS)

STEP_WORDS = 4
STEP_KERNEL, STEP_OPERANDS, STEP_ITEMS, STEP_SHARES = range(STEP_WORDS)

FLOW = "relaylab_flow"
COLLECT = "relaylab_collect"
FLOW_CONTEXT_WORDS = 9
FLOW_CODE, FLOW_NEXT, FLOW_FUEL, FLOW_THREADS, FLOW_POOL, FLOW_FRAME, FLOW_STACK, FLOW_LOW, FLOW_HIGH = range(
    FLOW_CONTEXT_WORDS
)
FLOW_DONE, FLOW_PAUSED, FLOW_FULL, FLOW_SHORT, FLOW_DEEP, FLOW_FAILED = range(6)
INSTRUCTION_WORDS = 5
# END; STEP step*; JUMP to; UNLESS condition*, to; COPY to*, from*, bytes; APPEND collector*, from*, bytes, before;
# EXACT collector*, bytes
END, STEP, JUMP, UNLESS, COPY, APPEND, EXACT = range(7)
# In frames a register is its offset, in bytes: TENSOR to, header, bytes; OBJECT to, header, bytes; PUT object, offset,
# from; GET to, object, offset; PLACE to, address; MOVE to, from; BIND word*, tensor, offset; IS object, header, else;
# TEST condition, else; ENTER bytes needed, first byte zeroed, bytes zeroed; CALL to, instruction, bytes of frame;
# INVOKE to, closure, bytes of frame; TAIL instruction, bytes of frame, bytes of arguments; REENTER closure, bytes of
# frame, bytes of arguments; RETURN from; FAIL; FILL tensor, from, bytes
TENSOR, OBJECT, PUT, GET, PLACE, MOVE, BIND, IS, TEST, ENTER, CALL, INVOKE, TAIL, REENTER, RETURN, FAIL = range(7, 23)
FILL = 23
NUMBER_SHIFT = 40  # of an object's first word
BYTES_MASK = (1 << NUMBER_SHIFT) - 4
CLOSURES = 20  # the number of a closure is 1 << CLOSURES | its first instruction
FIRST_MASK = (1 << CLOSURES) - 1
OBJECT_ROOM = 72  # bytes that a tensor may take besides its own

# The pool, in bytes. Every field that several threads write has two cache lines to itself; a region and its job share
# one, so that a worker that sees it has what it needs.
MAX_THREADS = 64
POOL_EPOCH = 0  # i64: number of the region << 16 | chunks of a share << 8 | threads that take part
POOL_JOB = 8  # kernel*, operands*, items
POOL_DONE = 128  # i64: chunks that workers have finished, in all regions
POOL_SLEEPERS = 256  # i64: workers that sleep or are about to
POOL_BUSY = 384  # i64: 1 while a run owns the pool
POOL_PATIENCE = 392  # i64: how often a caller that is ready looks before it does what workers have not begun
POOL_WORKERS = 512  # i64: workers that exist
POOL_SPIN = 520  # i64: how often a worker looks before it sleeps
POOL_MUTEX = 640
POOL_COND = 768
POOL_MASK = 896  # the processors that the last caller may use, as the system writes them
MASK_BYTES = 128
POOL_SLOTS = 1024  # one per thread: i64 region << 8 | chunks claimed, i64 thread, pool*, i64 handle
SLOT_BYTES = 128
POOL_BYTES = POOL_SLOTS + SLOT_BYTES * MAX_THREADS

# Where an operand of a kernel lies: a base and a byte offset.
BASE_ARENA, BASE_CONSTANTS, BASE_SCRATCH = range(3)
FIRST_IO_BASE = 3  # then the inputs, then the outputs
