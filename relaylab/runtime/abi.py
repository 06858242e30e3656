"""The records that compiled code and the runtime share: their layouts, in one place.

A *step* is one kernel call of a network; the entry `i32 @relaylab_run(ptr ctx)` runs the steps
[first, last) of a step table in order. The code knows no addresses: the runtime fills in the tables.

    context   steps*, first, last, threads, pool*               (8 bytes each)
    step      kernel*, operands*, items, shares                 (8 bytes each)
    pool      see the offsets below; zeroed memory is a pool that has not been started

`shares` bounds how many threads work on a step; 1 runs it on the calling thread.

`i32 @relaylab_flow(ptr ctx)` runs instructions, which call steps and say what comes next:

    flow          instructions*, next, fuel, threads, pool*     (8 bytes each)
    instruction   kind, four operands                           (8 bytes each)
    collector     memory*, bytes of room, bytes used

It returns FLOW_DONE, FLOW_PAUSED when `fuel` instructions were run, FLOW_FULL at an APPEND that needs room, or
FLOW_SHORT at an EXACT of a collector with other bytes; called again it goes on at `next`. `fuel` is what is left.
"""

from __future__ import annotations

VERSION = 2
ENTRY = "relaylab_run"

CONTEXT_WORDS = 5
CTX_STEPS, CTX_FIRST, CTX_LAST, CTX_THREADS, CTX_POOL = range(CONTEXT_WORDS)

STEP_WORDS = 4
STEP_KERNEL, STEP_OPERANDS, STEP_ITEMS, STEP_SHARES = range(STEP_WORDS)

FLOW = "relaylab_flow"
FLOW_CONTEXT_WORDS = 5
FLOW_CODE, FLOW_NEXT, FLOW_FUEL, FLOW_THREADS, FLOW_POOL = range(FLOW_CONTEXT_WORDS)
FLOW_DONE, FLOW_PAUSED, FLOW_FULL, FLOW_SHORT = range(4)
INSTRUCTION_WORDS = 5
# END; STEP step*; JUMP to; UNLESS condition*, to; COPY to*, from*, bytes; APPEND collector*, from*, bytes, before;
# EXACT collector*, bytes
END, STEP, JUMP, UNLESS, COPY, APPEND, EXACT = range(7)
COLLECTOR_WORDS = 3

# The pool, in bytes. Every field that several threads write has two cache lines to itself.
MAX_THREADS = 64
POOL_EPOCH = 0  # i64: number of the region << 16 | threads that take part
POOL_DONE = 128  # i64: chunks that workers have finished in this region
POOL_SLEEPERS = 256  # i64: workers that sleep or are about to
POOL_BUSY = 384  # i64: 1 while a run owns the pool
POOL_WORKERS = 512  # i64: workers that exist
POOL_SPIN = 520  # i64: how often a worker looks before it sleeps
POOL_JOB = 640  # kernel*, operands*, items
POOL_MUTEX = 768
POOL_COND = 896
POOL_MASK = 1024  # the processors that the last caller may use, as the system writes them
MASK_BYTES = 128
POOL_SLOTS = 1152  # one per thread: i64 region << 8 | chunks claimed, i64 thread, pool*, i64 handle
SLOT_BYTES = 128
POOL_BYTES = POOL_SLOTS + SLOT_BYTES * MAX_THREADS

# Where an operand of a kernel lies: a base and a byte offset.
BASE_ARENA, BASE_CONSTANTS, BASE_SCRATCH = range(3)
FIRST_IO_BASE = 3  # then the inputs, then the outputs
