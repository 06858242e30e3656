"""A function's frame as its instructions are written: registers, objects, kernels that are called.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from relaylab.codegen.flow.values import Values, header_of
from relaylab.ir.expr import Call, Expr, Function, GlobalVar, Var
from relaylab.ir.module import IRModule
from relaylab.ir.types import TupleType, Type
from relaylab.runtime import abi

WORD = 8
OWN = WORD
"""Where in a frame the closure is that was called."""
FIRST_ARGUMENT = 2 * WORD
RESULT = WORD
"""The register of a run's result, in the outermost frame, which has no other."""
OUTERMOST = 2 * WORD


class CalledKernel(Protocol):
    """Compiled code that a function calls."""

    name: str
    steps: list[tuple[int, str]]
    """The addresses of its steps, and their names."""
    inputs: list[tuple[np.dtype, tuple[int, ...], list[tuple[int, int]]]]
    """For each input its data type and shape, and the addresses of the operands that lie in it, and where."""
    outputs: list[tuple[np.dtype, tuple[int, ...], list[tuple[int, int]]]]
    """For each output its data type and shape, and its operands."""
    copies: dict[int, int | np.ndarray]
    """The outputs that no step writes: the input whose elements each has, or its value."""


class Written(Protocol):
    """Where instructions are written."""

    mod: IRModule
    kernels: Mapping[Function, CalledKernel]
    values: Values
    rows: list[list[int]]

    def add(self, kind: int, *operands: int, name: str = "") -> int:
        """One instruction; its number."""
        ...


class FrameWriter:
    """The registers of one function; the first are its parameters."""

    def __init__(self, code: Written, params: Sequence[Var]):
        self.out = code
        self.registers: dict[Expr, int] = {p: FIRST_ARGUMENT + WORD * k for k, p in enumerate(params)}
        self.kernels: dict[Expr, Function] = {}
        """The variables that are kernels."""
        self.first = self.top = self.size = FIRST_ARGUMENT + WORD * len(params)

    def add(self, kind: int, *operands: int, name: str = "") -> int:
        """One instruction; its number."""
        return self.out.add(kind, *operands, name=name)

    def new(self) -> int:
        """A register."""
        self.top += WORD
        self.size = max(self.size, self.top)
        return self.top - WORD

    def register(self, expr: Expr) -> int:
        """The register that has a value; of what has none yet, a new one."""
        raise NotImplementedError

    def put(self, to: int, found: Sequence[int]) -> None:
        """Fill in the fields of an object."""
        for k, r in enumerate(found):
            self.add(abi.PUT, to, WORD * k, r)

    def object(self, to: int, number: int, parts: Sequence[Expr | int], name: str) -> None:
        """Make an object of fields."""
        found = [p if isinstance(p, int) else self.register(p) for p in parts]
        self.add(abi.OBJECT, to, header_of(number, WORD * len(found)), WORD * len(found), name=name)
        self.put(to, found)

    # ---- kernels

    def kernel(self, expr: Expr) -> CalledKernel | None:
        """The kernel that an expression calls, if it calls one."""
        if not isinstance(expr, Call):
            return None
        op = expr.op
        func = self.kernels.get(op, op)
        if isinstance(func, GlobalVar):
            func = self.out.mod[func]
        return self.out.kernels.get(func) if isinstance(func, Function) else None

    def call_kernel(self, kernel: CalledKernel, args: Sequence[Expr], to: int | None = None) -> list[int]:
        """Make room for the results and run the steps; the registers of the results."""
        inputs = [r for a in args for r in self.leaves(a.checked_type, self.register(a))]
        results: list[int] = []
        for k, (dtype, shape, _) in enumerate(kernel.outputs):
            copied = kernel.copies.get(k)
            target = to if to is not None and len(kernel.outputs) == 1 else self.new()
            results.append(target)
            if isinstance(copied, np.ndarray):
                self.add(abi.PLACE, target, self.out.values.constant(copied), name="constant")
            elif copied is not None and kernel.inputs[copied][:2] == (dtype, shape):
                self.add(abi.MOVE, target, inputs[copied])
            else:
                header, nbytes = self.out.values.tensor(dtype, shape)
                self.add(abi.TENSOR, target, header, nbytes)
                if copied is not None:
                    self.add(abi.FILL, target, inputs[copied], nbytes)
        written = [(r, o) for k, (r, (_, _, o)) in enumerate(zip(results, kernel.outputs)) if k not in kernel.copies]
        for register, operands in [*zip(inputs, [o for _, _, o in kernel.inputs]), *written]:
            for slot, offset in operands:
                self.add(abi.BIND, slot, register, offset)
        for step, name in kernel.steps:
            self.add(abi.STEP, step, name=name)
        return results

    def leaves(self, t: Type, register: int) -> list[int]:
        """The registers of the tensors of which a value is made."""
        if not isinstance(t, TupleType):
            return [register]
        found: list[int] = []
        for k, f in enumerate(t.fields):
            part = self.new()
            self.add(abi.GET, part, register, WORD * k)
            found += self.leaves(f, part)
        return found


__all__ = ["FIRST_ARGUMENT", "OUTERMOST", "OWN", "RESULT", "WORD", "CalledKernel", "FrameWriter"]
