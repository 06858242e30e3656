"""Runs of the native entry `relaylab_flow`: in stretches, between which a run can be interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from relaylab.codegen.build import entry_target
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.cache import ObjectCache
from relaylab.codegen.llvm.jit import compile_objects
from relaylab.codegen.native.entry import entry_text
from relaylab.runtime import abi
from relaylab.runtime.executable import TargetInfo
from relaylab.runtime.memory import address
from relaylab.runtime.native import flow_entry
from relaylab.runtime.threads import pool_address
from relaylab.support.progress import part

FIRST_FUEL = 1 << 14
STRETCH = 0.05
"""Seconds after which a run comes back, about."""
KINDS = {abi.END: "ret", abi.STEP: "invoke", abi.JUMP: "goto", abi.UNLESS: "unless", abi.COPY: "copy",
         abi.APPEND: "append", abi.EXACT: "exact", abi.TENSOR: "alloc_tensor", abi.OBJECT: "alloc_object",
         abi.PUT: "set_field", abi.GET: "get_field", abi.PLACE: "load_const", abi.MOVE: "move", abi.BIND: "bind",
         abi.IS: "match", abi.TEST: "if", abi.ENTER: "enter", abi.CALL: "call", abi.INVOKE: "call_closure",
         abi.TAIL: "tail_call", abi.REENTER: "tail_call_closure", abi.RETURN: "return", abi.FAIL: "fail"}  # fmt: skip
TARGETS = {abi.JUMP: 1, abi.UNLESS: 2, abi.IS: 3, abi.TEST: 2, abi.CALL: 2, abi.TAIL: 1}
"""Which operand says where an instruction may lead."""


class Stretches:
    """Instructions, and how far a run of them is."""

    def __init__(self, target: CpuTarget):
        (entry,) = compile_objects([entry_text(target.triple)], entry_target(target), cache=ObjectCache.default())
        info = TargetInfo(target.triple, target.needs, str(target))
        self.run_native = flow_entry(entry, info)
        self.collect = flow_entry(entry, info, abi.COLLECT)
        self.context = np.zeros(abi.FLOW_CONTEXT_WORDS, np.uint64)
        self.at = address(self.context)

    def start(self, code: np.ndarray, threads: int) -> None:
        """Get ready to run other instructions."""
        self.code = code
        self.context[[abi.FLOW_CODE, abi.FLOW_THREADS, abi.FLOW_POOL]] = (address(code), threads, pool_address())

    def run(self, handle: Callable[[int, np.ndarray], None]) -> int:
        """Run to the end; how many instructions that took. `handle` is told the status and instruction of a stop."""
        context, fuel, ran = self.context, FIRST_FUEL, 0
        context[abi.FLOW_NEXT] = 0
        stretches = 0
        while True:
            context[abi.FLOW_FUEL] = fuel
            start = time.perf_counter()
            status = self.run_native(self.at)
            ran += fuel - int(context[abi.FLOW_FUEL])
            if status == abi.FLOW_DONE:
                return ran
            took = time.perf_counter() - start
            if status != abi.FLOW_PAUSED:
                handle(status, self.code[int(context[abi.FLOW_NEXT])])
                continue
            if took < STRETCH:
                fuel = min(2 * fuel, 1 << 40)
            elif took > 4 * STRETCH:
                fuel = max(fuel // 2, 1)
            stretches += 1
            part("stretch of a loop", stretches, stretches + 1)


def line(k: int, row: list[int], name: str) -> str:
    """An instruction as text."""
    to = f" -> {row[TARGETS[row[0]]]}" if row[0] in TARGETS else ""
    return f"  {k}: {KINDS[row[0]]} {name}{to}".rstrip()


__all__ = ["Stretches", "line"]
