"""Functions of a program for the virtual machine as native runs: recursion, data types, closures, cells.

`relaylab_flow` walks the instructions of `functions.py`. Frames and objects lie in memory of the run: a call that finds
no room for its frame, or an object for itself, pauses; there is more then. What no frame reaches any more is left
behind where objects are moved to other memory.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from relaylab.codegen.flow.frames import FIRST_ARGUMENT, OUTERMOST, RESULT, Instructions
from relaylab.codegen.flow.functions import written
from relaylab.codegen.flow.items import refused
from relaylab.codegen.flow.stretches import RunsInTurn, Stretches, listing
from relaylab.codegen.flow.values import PlainArguments, Values
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.cache import Entries
from relaylab.codegen.native_function import NativeFunction
from relaylab.interp.values import Value
from relaylab.ir.expr import Function, GlobalVar
from relaylab.ir.module import IRModule
from relaylab.ir.types import FuncType, GlobalTypeVar, RefType, Type, type_leaves, type_parts
from relaylab.runtime import abi
from relaylab.runtime.memory import address, aligned
from relaylab.support.errors import RelayError, RelayValueError

FIRST_STACK = 1 << 16
MOST_STACK = 1 << 30
"""Bytes that the frames of a run may take."""
FIRST_HEAP = 1 << 20
KEPT = 1 << 24
"""Bytes of frames, and of objects, that are kept for the next run."""
END_ROOM = 72
"""What no object takes at the end of the heap: none begins there, and all tensors take as much as where they were."""
CONTROL = (abi.TEST, abi.IS, abi.INVOKE, abi.REENTER, abi.CALL, abi.TAIL)


class FailedRun(Exception):
    """A run that came to a `match` without a clause for its value: the evaluator says where, and for which."""


class FlowFunction:
    """One function of a module with all that it calls. Calls from several threads take turns."""

    def __init__(self, mod: IRModule, entry: GlobalVar, natives: Mapping[Function, NativeFunction], target: CpuTarget):
        """Raises RelayTypeError `codegen.no-flow` for a function that the evaluator has to run."""
        func = mod[entry]
        self.types: list[Type] = [p.checked_type for p in func.params]
        if func.type_params:
            raise refused("a function for any type")
        for t in (*self.types, func.body.checked_type):
            _check_plain(t, mod)
        self.turns = RunsInTurn()
        self.values = Values(mod)
        self.plain = PlainArguments.of(self.values, self.types)
        self.instructions = Instructions(mod, natives, self.values)
        self.code = written(self.instructions, entry)
        if not np.isin(self.code[1:, 0], CONTROL).any():
            raise refused("a program without control flow")
        self.starts = [first for first, _, _ in self.instructions.frames]
        threads = min([k.instance.threads for k in self.instructions.kernels.values()], default=1)
        self.stretches = Stretches(target)
        self.stretches.start(self.code, threads)
        self.collections = 0
        """How often the objects of the last call were moved."""
        self.stack = self.heap = self.spare = np.empty(0, np.uint8)

    def run(self, args: Sequence[Value]) -> Value | None:
        """The value for arguments, as programs get it; None if others are needed.

        FailedRun for a value that no clause matches, RelayValueError `vm.busy` within a run.
        """
        with self.turns:
            given = self.plain.given(args) if self.plain is not None else None
            if given is None and (given := self.values.given(args, self.types)) is None:
                return None
            places, held = given
            self._begin()
            frame = self.stack.data.cast("Q")
            for k in range(OUTERMOST // 8):
                frame[k] = 0
            for k, place in enumerate(places, (OUTERMOST + FIRST_ARGUMENT) // 8):
                frame[k] = place
            self.stretches.words[abi.FLOW_FRAME] = address(self.stack)
            self.collections = 0
            try:
                self.stretches.run(self._handle)
                result = self.stack.data.cast("Q")[RESULT // 8]
                return self.values.taken(result, self.heap, held)
            finally:
                self._let_go()

    def _let_go(self) -> None:
        """Give back what the next run need not have."""
        nothing = np.empty(0, np.uint8)
        self.stack, self.heap, self.spare = (
            m if m.nbytes <= KEPT else nothing for m in (self.stack, self.heap, self.spare)
        )

    def _begin(self) -> None:
        """Memory for a run: what is left of the last."""
        need = OUTERMOST + FIRST_ARGUMENT + 8 * len(self.types)
        if self.stack.nbytes < need:
            self.stack = aligned(max(FIRST_STACK, need), "frames")
        if self.heap.nbytes < FIRST_HEAP:
            self.heap = aligned(FIRST_HEAP, "objects")
        self.stretches.words[abi.FLOW_STACK] = address(self.stack) + self.stack.nbytes
        self._bounds(self.heap)
        self.wanted = self.heap.nbytes

    def _bounds(self, heap: np.ndarray) -> None:
        begin, words = address(heap), self.stretches.words
        words[abi.FLOW_LOW], words[abi.FLOW_HIGH] = begin, begin + heap.nbytes - END_ROOM

    def _handle(self, status: int, row: np.ndarray) -> None:
        if status == abi.FLOW_FAILED:
            raise FailedRun
        if status == abi.FLOW_DEEP:
            self._deeper(int(row[1]))
        else:
            self._collect(int(row[3]))

    def _deeper(self, need: int) -> None:
        """More room for frames."""
        least = self.stack.nbytes + need
        if least > MOST_STACK:
            raise RelayValueError(
                f"the frames of a recursion take more than {MOST_STACK:,} bytes",
                code="vm.depth",
                help="does it end? A call that comes last takes no frame",
            )
        context, old = self.stretches.context, self.stack
        self.stack = aligned(-(-min(2 * least, MOST_STACK) // 8) * 8, "frames")
        self.stack[: old.nbytes] = old
        context[abi.FLOW_FRAME] = int(context[abi.FLOW_FRAME]) - address(old) + address(self.stack)
        context[abi.FLOW_STACK] = address(self.stack) + self.stack.nbytes

    def _collect(self, need: int) -> None:
        """Move what the frames reach to other memory, in which there is room."""
        context, old = self.stretches.context, self.heap
        size = max(self.wanted, old.nbytes)
        new = self.spare if self.spare.nbytes >= size else aligned(size, "objects")
        frame = int(context[abi.FLOW_FRAME])
        of = bisect.bisect_right(self.starts, int(context[abi.FLOW_NEXT])) - 1
        top = frame + self.instructions.frames[of][1]
        self._bounds(new)
        low, high = int(context[abi.FLOW_LOW]), int(context[abi.FLOW_HIGH])
        words = (address(self.stack), top, address(old), address(old) + old.nbytes, low, high)
        collection = np.array(words, np.uint64)
        self.stretches.collect(address(collection))
        context[[abi.FLOW_LOW, abi.FLOW_HIGH]] = collection[4:]
        alive = int(collection[4]) - low + high - int(collection[5])
        self.heap, self.spare = new, old
        frames = top - address(self.stack)  # looking through them again has to be worth it
        self.wanted = -(-max(FIRST_HEAP, 4 * alive + frames, alive + need + 2 * END_ROOM) // 64) * 64
        self.collections += 1

    def listing(self) -> str:
        """The instructions, one on a line, function by function."""
        return listing(self.instructions.frames[0][2], self.code, self.instructions.names)


class FlowFunctions:
    """The functions of a module that run natively, each made when it is first called."""

    def __init__(self, mod: IRModule, natives: Mapping[Function, NativeFunction], target: CpuTarget, objects: Entries):
        self.mod, self.natives, self.target, self.objects = mod, natives, target, objects
        self.made: dict[GlobalVar, FlowFunction | str] = {}
        """The functions that were called; of those that the evaluator runs, why."""

    def at(self, entry: GlobalVar) -> FlowFunction | None:
        """A function; None if the evaluator has to run it."""
        if entry not in self.made:
            try:
                with self.objects:
                    self.made[entry] = FlowFunction(self.mod, entry, self.natives, self.target)
            except RelayError as error:
                if error.code != "codegen.no-flow":
                    raise
                self.made[entry] = error.message
        found = self.made[entry]
        return found if isinstance(found, FlowFunction) else None

    def run(self, entry: GlobalVar, args: Sequence[Value]) -> Value | None:
        """What a function gives; None if the evaluator has to say it."""
        found = self.at(entry)
        try:
            return None if found is None else found.run(args)
        except FailedRun:
            return None

    def listings(self) -> list[str]:
        """The instructions of each."""
        return [f.listing() for f in self.made.values() if isinstance(f, FlowFunction)]

    def summary(self) -> list[str]:
        """Why functions that were called are evaluated, in words."""
        return [f"@{gv.name_hint} is evaluated: {why}" for gv, why in self.made.items() if isinstance(why, str)]


def _check_plain(t: Type, mod: IRModule) -> None:
    """RelayTypeError for a type whose values hold functions or cells: these are the evaluator's."""

    def below(part: Type) -> Iterable[Type]:
        if isinstance(part, GlobalTypeVar):
            return [i for c in mod.type_definitions[part].constructors for i in c.inputs]
        return type_parts(part)

    for part in type_leaves(t, below):
        if isinstance(part, (FuncType, RefType)):
            raise refused(f"a value of type {part}")


__all__ = ["FlowFunction", "FlowFunctions"]
