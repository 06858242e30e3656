"""What the instructions of functions are written with: the places of a frame, the kernels that are called, all rows.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from relaylab.codegen.flow.items import refused
from relaylab.codegen.flow.stretches import InstructionRows
from relaylab.codegen.flow.values import Values
from relaylab.codegen.native_function import NativeFunction
from relaylab.ir.expr import Function, Var
from relaylab.ir.module import IRModule
from relaylab.runtime import abi
from relaylab.runtime.memory import address
from relaylab.runtime.native import Instance

WORD = 8
OWN = WORD
"""Where in a frame the closure is that was called."""
FIRST_ARGUMENT = 2 * WORD
RESULT = WORD
"""The register of a run's result, in the outermost frame, which has no other."""
OUTERMOST = 2 * WORD
Placed = tuple[np.dtype, tuple[int, ...], list[tuple[int, int]]]
"""The data type and shape of a kernel's tensor, and the addresses of the operands that lie in it, and where."""


class CalledKernel:
    """A compiled function with memory of its own, which functions call."""

    def __init__(self, native: NativeFunction):
        own = native.executor.instance
        self.instance = Instance(own.code, own.threads)
        plan, code = self.instance.plan, own.code
        steps, operands = address(self.instance.steps), address(self.instance.operands)
        self.steps = [(steps + 8 * abi.STEP_WORDS * k, step.name) for k, step in enumerate(plan.steps)]
        """The addresses of its steps, and their names."""
        slots: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        for k, (base, offset) in enumerate(zip(code.base_of.tolist(), code.offset_of.tolist())):
            slots[base].append((operands + 8 * k, offset))
        tensors = enumerate((*plan.inputs, *plan.outputs), abi.FIRST_IO_BASE)
        places: list[Placed] = [(np.dtype(t.dtype), tuple(t.shape), slots[base]) for base, t in tensors]
        count = len(plan.inputs)
        self.inputs, self.outputs = places[:count], places[count:]
        self.copies: dict[int, int | np.ndarray] = {}
        """The outputs that no step writes: the input whose elements each has, or its value."""
        for index, stored in plan.copies:
            base, offset = stored.place
            source = base - abi.FIRST_IO_BASE
            if 0 <= source < count and offset == 0 and self.instance.read(stored).flags.c_contiguous:
                self.copies[index] = source
            elif base == abi.BASE_CONSTANTS:
                self.copies[index] = self.instance.read(stored)
            else:
                raise refused("a result that is a view of another")


class Instructions(InstructionRows):
    """The instructions of functions, one behind the other, and what they call."""

    def __init__(self, mod: IRModule, natives: Mapping[Function, NativeFunction], values: Values):
        super().__init__()
        self.mod, self.natives, self.values = mod, natives, values
        self.kernels: dict[NativeFunction, CalledKernel] = {}
        self.entries: dict[Function, int] = {}
        self.frames: list[tuple[int, int, str]] = []
        """The first instruction of each function, the bytes of its frame, and its name."""
        self.waiting: list[tuple[Function, str, list[Var], Var | None]] = []
        self.asked: set[Function] = set()
        self.jumps: list[tuple[int, int, Function]] = []

    def ask(self, func: Function, name: str, holds: Sequence[Var] = (), own: Var | None = None) -> None:
        """Have the instructions of a function written, once."""
        if func not in self.asked:
            self.asked.add(func)
            self.waiting.append((func, name, list(holds), own))

    def kernel(self, func: Function) -> CalledKernel | None:
        """The kernel that a function is; None if it is none."""
        native = self.natives.get(func)
        if native is not None and native not in self.kernels:
            self.kernels[native] = CalledKernel(native)
        return None if native is None else self.kernels[native]


__all__ = ["FIRST_ARGUMENT", "OUTERMOST", "OWN", "RESULT", "WORD", "CalledKernel", "Instructions"]
