"""Runs of the native entry `relaylab_flow`: in stretches, between which a run can be interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from relaylab.codegen.build import entry_target
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.cache import ObjectCache
from relaylab.codegen.llvm.jit import compile_objects
from relaylab.codegen.native.entry import entry_text
from relaylab.runtime import abi
from relaylab.runtime.executable import TargetInfo
from relaylab.runtime.memory import address, numbers_of
from relaylab.runtime.native import flow_entry
from relaylab.runtime.threads import pool_address
from relaylab.support.errors import RelayValueError
from relaylab.support.progress import part

FIRST_FUEL = 1 << 14
STRETCH = 0.05
"""Seconds after which a run comes back, about."""
FORMS = {
    abi.END: "ret", abi.STEP: "invoke", abi.JUMP: "goto -> {0}", abi.UNLESS: "unless {name} -> {1}", abi.COPY: "copy",
    abi.APPEND: "append", abi.EXACT: "exact", abi.TENSOR: "{a} = alloc_tensor", abi.OBJECT: "{a} = alloc_object {name}",
    abi.PUT: "set_field {a}[{b}] = {c}", abi.GET: "{a} = get_field {b}[{c}]", abi.PLACE: "{a} = load_const",
    abi.MOVE: "{a} = {b}", abi.BIND: "bind {b}", abi.IS: "match {a}: {name}, else -> {2}",
    abi.TEST: "if {a}, else -> {1}", abi.ENTER: "enter {name}", abi.CALL: "{a} = call {name} -> {1}",
    abi.INVOKE: "{a} = call {b}", abi.TAIL: "tail_call {name} -> {0}", abi.REENTER: "tail_call {a}",
    abi.RETURN: "return {a}", abi.FAIL: "fail", abi.FILL: "copy {a}, {b}",
}  # fmt: skip
"""How instructions are written, with operands as numbers or as registers (`{a}`); a name that is not there follows."""


class InstructionRows:
    """Instructions as they are written, and the names that stand in listings."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.names: list[str] = []

    def add(self, kind: int, *operands: int, name: str = "") -> int:
        """One instruction; its number."""
        self.rows.append([kind, *operands, *[0] * (abi.INSTRUCTION_WORDS - 1 - len(operands))])
        self.names.append(name)
        return len(self.rows) - 1


class RunsInTurn:
    """One run at a time in the same memory: other threads wait, and one within a run would lose its place."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.busy = False

    def __enter__(self) -> None:
        self.lock.acquire()
        if self.busy:
            self.lock.release()
            raise RelayValueError(
                "the program is called again while it runs, by what is told of its progress",
                code="vm.busy",
                help="call it when it is done, or use another machine: VirtualMachine(relay.vm.compile(mod))",
            )
        self.busy = True

    def __exit__(self, *_: object) -> None:
        self.busy = False
        self.lock.release()


class Stretches:
    """Instructions, and how far a run of them is."""

    def __init__(self, target: CpuTarget):
        text = entry_text(target.triple, flow=True)
        (entry,) = compile_objects([text], entry_target(target), cache=ObjectCache.default())
        info = TargetInfo(target.triple, target.needs, str(target))
        self.run_native = flow_entry(entry, info)
        self.collect = flow_entry(entry, info, abi.COLLECT)
        self.context = np.zeros(abi.FLOW_CONTEXT_WORDS, np.uint64)
        self.words, self.at = numbers_of(self.context), address(self.context)

    def start(self, code: np.ndarray, threads: int) -> None:
        """Get ready to run other instructions."""
        self.code = code
        self.context[[abi.FLOW_CODE, abi.FLOW_THREADS, abi.FLOW_POOL]] = (address(code), threads, pool_address())

    def run(self, handle: Callable[[int, np.ndarray], None]) -> int:
        """Run to the end; how many instructions that took. `handle` is told the status and instruction of a stop."""
        context, fuel, ran = self.words, FIRST_FUEL, 0
        context[abi.FLOW_NEXT], context[abi.FLOW_FUEL] = 0, fuel
        stretches = 0
        start = time.perf_counter()
        while True:
            status = self.run_native(self.at)
            if status == abi.FLOW_DONE:
                return ran + fuel - context[abi.FLOW_FUEL]
            if status != abi.FLOW_PAUSED:  # what is left of the stretch comes afterwards
                handle(status, self.code[context[abi.FLOW_NEXT]])
                continue
            ran += fuel
            took = time.perf_counter() - start
            if took < STRETCH:
                fuel = min(2 * fuel, 1 << 40)
            elif took > 4 * STRETCH:
                fuel = max(fuel // 2, 1)
            stretches += 1
            part("stretch of a loop", stretches, stretches + 1)
            context[abi.FLOW_FUEL] = fuel
            start = time.perf_counter()


def listing(name: str, code: np.ndarray, names: Sequence[str], when: str = "") -> str:
    """The instructions of a function, one on a line."""
    lines = [_line(k, row, names[k]) for k, row in enumerate(code.tolist())]
    return "\n".join([f"VM Function: {name}, native, {len(lines)} instructions{when}", *lines])


def _line(k: int, row: list[int], name: str) -> str:
    """An instruction as text."""
    form, operands = FORMS[row[0]], row[1:]
    registers = {letter: f"${n // 8}" for letter, n in zip("abc", operands)}
    if row[0] in (abi.PUT, abi.GET):
        at = "b" if row[0] == abi.PUT else "c"
        registers[at] = registers[at].removeprefix("$")
    text = form.format(*operands, **registers, name=name)
    return f"  {k}: {text}" if "{name}" in form or not name else f"  {k}: {text} {name}"


__all__ = ["InstructionRows", "RunsInTurn", "Stretches", "listing"]
