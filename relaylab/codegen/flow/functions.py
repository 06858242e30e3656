"""Functions that call each other as instructions: registers in frames, which point to objects.

What is read are programs after the passes of the virtual machine: chains of lets over variables, arithmetic in kernels.
A value is a tensor or an object of fields: a tuple, what a constructor made, a cell, a function with what it holds.
A call that comes last keeps no frame.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylab.codegen.flow.frames import FIRST_ARGUMENT, OUTERMOST, OWN, RESULT, WORD, CalledKernel, Instructions
from relaylab.codegen.flow.items import DEEPEST, refused
from relaylab.codegen.flow.values import CELL, TUPLE, header_of
from relaylab.ir.adt import Constructor, Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from relaylab.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relaylab.ir.free import free_vars
from relaylab.ir.types import TensorType, TupleType, Type
from relaylab.runtime import abi

MOST_INSTRUCTIONS = 1 << abi.CLOSURES


def written(code: Instructions, entry: GlobalVar) -> np.ndarray:
    """The instructions of a function of the module and of all that it reaches. RelayTypeError `codegen.no-flow`."""
    main = code.mod[entry]
    code.jumps.append((code.add(abi.CALL, RESULT, 0, OUTERMOST), 2, main))
    code.add(abi.END)
    code.ask(main, entry.name_hint)
    while code.waiting:
        func, name, holds, own = code.waiting.pop()
        code.entries[func] = len(code.rows)
        writer = _FunctionWriter(code, func, name, holds, own)
        code.frames.append((code.entries[func], writer.write(), name))
        if len(code.rows) > MOST_INSTRUCTIONS:
            raise refused(f"a program of more than {MOST_INSTRUCTIONS} instructions")
    for row, operand, func in code.jumps:
        entry_of = code.entries[func]
        closure = code.rows[row][0] == abi.OBJECT
        code.rows[row][operand] += entry_of << abi.NUMBER_SHIFT if closure else entry_of
    return np.array(code.rows, np.uint64)


class _FunctionWriter:
    """Writes the instructions of one function; its first registers are the parameters."""

    def __init__(self, code: Instructions, func: Function, name: str, holds: Sequence[Var], own: Var | None):
        self.code, self.func, self.name, self.holds, self.add = code, func, name, holds, code.add
        self.registers: dict[Expr, int] = {p: FIRST_ARGUMENT + WORD * k for k, p in enumerate(func.params)}
        self.first = self.top = self.size = FIRST_ARGUMENT + WORD * len(func.params)
        if own is not None:
            self.registers[own] = OWN
        self.kernels: dict[Expr, Function] = {}
        """The variables that are kernels."""
        self.fields: dict[Expr, list[int]] = {}
        """The registers of the fields of tuples that are not made before they are needed whole."""
        self.depth = self.outgoing = 0
        self.of_frame: list[tuple[int, int]] = []

    def write(self) -> int:
        """The instructions; gives how many bytes a frame has."""
        enter = self.add(abi.ENTER, name=self.name)
        for k, var in enumerate(self.holds):
            self.registers[var] = self.new()
            self.add(abi.GET, self.registers[var], OWN, WORD * k, name=var.name_hint)
        kernel = self.code.kernel(self.func)
        if kernel is None:
            self.chain(self.func.body, None)
        else:
            to = self.new()
            self.give(kernel, self.func.params, self.func.body.inferred, to)
            self.add(abi.RETURN, to)
        self.code.rows[enter][1:4] = [self.size + self.outgoing, self.first, self.size - self.first]
        for row, operand in self.of_frame:
            self.code.rows[row][operand] += self.size
        return self.size

    # ---- chains of lets

    def chain(self, expr: Expr, to: int | None) -> None:
        """A chain of lets whose value goes to a register, or is that of the function."""
        bound: list[tuple[Var, Expr]] = []
        while isinstance(expr, Let):
            bound.append((expr.var, expr.value))
            expr = expr.body
        while bound and bound[-1][0] is expr:  # the last value is the chain's
            expr = bound.pop()[1]
        for var, value in bound:
            self.bind(var, value)
        self.value(expr, to)

    def bind(self, var: Var, value: Expr) -> None:
        """What a let binds."""
        if isinstance(value, Function) and value in self.code.natives:
            self.kernels[var] = value
        elif isinstance(value, Var) and value in self.kernels:
            self.kernels[var] = self.kernels[value]
        elif isinstance(value, Var) and value in self.fields:
            self.fields[var] = self.fields[value]
        elif isinstance(value, TupleGetItem) and value.tuple_value in self.fields:
            self.registers[var] = self.fields[value.tuple_value][value.index]
        elif isinstance(value, Tuple) and value.fields:
            self.fields[var] = [self.register(f) for f in value.fields]
        elif (kernel := self.kernel(value)) is not None and isinstance(value, Call):
            found = self.call_kernel(kernel, value.args)
            if isinstance(value.inferred, TensorType):
                self.registers[var] = found[0]
            else:
                self.fields[var] = found
        elif isinstance(value, Function):
            self.registers[var] = self.closure(value, var)
        elif isinstance(value, (Var, Constant, GlobalVar)):
            self.registers[var] = self.register(value)
        else:
            to = self.new()
            self.value(value, to)
            self.registers[var] = to

    def new(self) -> int:
        """A register."""
        self.top += WORD
        self.size = max(self.size, self.top)
        return self.top - WORD

    def register(self, expr: Expr) -> int:
        """The register that has a value; of what has none yet, a new one."""
        if expr in self.registers:
            return self.registers[expr]
        if expr in self.kernels:
            expr = self.kernels[expr]
        if isinstance(expr, GlobalVar):
            return self.closure(self.code.mod[expr], None, expr.name_hint)
        if isinstance(expr, Function):
            return self.closure(expr, None)
        if not isinstance(expr, (Var, Constant)):
            raise refused(f"a {type(expr).__name__} within an expression")
        to = self.new()
        self.made(expr, to)
        return to

    def closure(self, func: Function, own: Var | None, name: str = "") -> int:
        """A function that holds values."""
        if not isinstance(func, Function) or (func.is_primitive and func not in self.code.natives):
            raise refused("a function that has no kernel")
        held = {v: self.register(v) for v in free_vars(func) if v is not own}
        to, name = self.new(), name or func.attr("hash", f"a function in {self.name}")
        self.code.ask(func, name, list(held), own)
        row = self.object(to, 1 << abi.CLOSURES, list(held.values()), name)
        self.code.jumps.append((row, 2, func))
        return to

    def object(self, to: int, number: int, parts: Sequence[Expr | int], name: str) -> int:
        """Make an object of fields; the number of the instruction."""
        found = [p if isinstance(p, int) else self.register(p) for p in parts]
        row = self.add(abi.OBJECT, to, header_of(number, WORD * len(found)), WORD * len(found), name=name)
        for k, r in enumerate(found):
            self.add(abi.PUT, to, WORD * k, r)
        return row

    # ---- values

    def value(self, expr: Expr, to: int | None) -> None:
        """Compute a value into a register, or return it."""
        if isinstance(expr, If):
            return self.choice(expr, to)
        if isinstance(expr, Match):
            return self.match(expr, to)
        if isinstance(expr, Let):
            return self.chain(expr, to)
        if isinstance(expr, Call) and self.kernel(expr) is None and not isinstance(expr.op, Constructor):
            return self.call(expr, to)
        if to is None and isinstance(expr, Var) and expr not in self.fields:
            self.add(abi.RETURN, self.register(expr))
            return None
        target = self.new() if to is None else to
        self.made(expr, target)
        if to is None:
            self.add(abi.RETURN, target)
        return None

    def made(self, expr: Expr, to: int) -> None:
        """Compute what needs no choice and no call."""
        code = self.code
        match expr:
            case Var() if expr in self.fields:
                self.object(to, TUPLE, self.fields[expr], "tuple")
            case Var() if expr not in self.registers and expr not in self.kernels:
                raise refused(f"%{expr.name_hint} as a value")
            case Var() | GlobalVar() | Function():
                self.add(abi.MOVE, to, self.register(expr))
            case Constant():
                self.add(abi.PLACE, to, code.values.constant(expr.data.numpy()), name="constant")
            case Call(op=Constructor() as made):
                self.object(to, code.values.number(made), expr.args, made.name_hint)
            case Call() if (kernel := self.kernel(expr)) is not None:
                self.give(kernel, expr.args, expr.inferred, to)
            case Tuple():
                self.object(to, TUPLE, expr.fields, "tuple")
            case TupleGetItem():
                self.add(abi.GET, to, self.register(expr.tuple_value), WORD * expr.index)
            case RefCreate():
                self.object(to, CELL, [expr.value], "cell")
            case RefRead():
                self.add(abi.GET, to, self.register(expr.ref), 0)
            case RefWrite():
                self.add(abi.PUT, self.register(expr.ref), 0, self.register(expr.value))
                self.object(to, TUPLE, [], "tuple")
            case _:
                raise refused(f"a {type(expr).__name__} as a value")

    def call(self, expr: Call, to: int | None) -> None:
        """A call of a function; its frame is this one's if it comes last."""
        func, name = self.called(expr.op)
        callee = self.callee(expr.op) if func is None else 0
        args = [self.register(a) for a in expr.args]
        self.outgoing = max(self.outgoing, FIRST_ARGUMENT + WORD * len(args))
        for k, r in enumerate(args):
            self.of_frame.append((self.add(abi.MOVE, FIRST_ARGUMENT + WORD * k, r), 1))
        if to is not None:
            row = self.add(abi.INVOKE if func is None else abi.CALL, to, callee, name=name)
            self.of_frame.append((row, 3))
        else:
            row = self.add(abi.REENTER if func is None else abi.TAIL, callee, 0, WORD * len(args), name=name)
            self.of_frame.append((row, 2))
        if func is not None:
            self.code.jumps.append((row, 2 if to is not None else 1, func))

    def called(self, op: Expr) -> tuple[Function | None, str]:
        """The function of the module that is called, None if it is a value, and its name."""
        if isinstance(op, GlobalVar):
            func = self.code.mod[op]
            if not isinstance(func, Function) or func.is_primitive:
                raise refused("a function that has no kernel")
            self.code.ask(func, op.name_hint)
            return func, op.name_hint
        if not isinstance(op, (Var, Function, Call)):
            raise refused(f"a call of a {type(op).__name__}")
        return None, op.name_hint if isinstance(op, Var) else ""

    def callee(self, op: Expr) -> int:
        """The register of a function that is called."""
        if not isinstance(op, Call):
            return self.register(op)
        to = self.new()
        self.value(op, to)
        return to

    # ---- kernels

    def kernel(self, expr: Expr) -> CalledKernel | None:
        """The kernel that an expression calls, if it calls one."""
        if not isinstance(expr, Call):
            return None
        op = expr.op
        func = self.kernels.get(op, op)
        if isinstance(func, GlobalVar):
            func = self.code.mod[func]
        return self.code.kernel(func) if isinstance(func, Function) else None

    def give(self, kernel: CalledKernel, args: Sequence[Expr], t: Type | None, to: int) -> None:
        """Compute what a kernel gives, which is of this type, into a register."""
        if isinstance(t, TensorType):
            self.call_kernel(kernel, args, to)
        else:
            self.object(to, TUPLE, self.call_kernel(kernel, args), "tuple")

    def call_kernel(self, kernel: CalledKernel, args: Sequence[Expr], to: int | None = None) -> list[int]:
        """Make room for the results and run the steps; the registers of the results, that of one alone `to`."""
        inputs = [r for a in args for r in self.leaves(a.checked_type, self.register(a))]
        results: list[int] = []
        for k, (dtype, shape, _) in enumerate(kernel.outputs):
            copied = kernel.copies.get(k)
            target = self.new() if to is None else to
            results.append(target)
            if isinstance(copied, np.ndarray):
                self.add(abi.PLACE, target, self.code.values.constant(copied), name="constant")
            elif copied is not None and kernel.inputs[copied][:2] == (dtype, shape):
                self.add(abi.MOVE, target, inputs[copied])
            else:
                header, nbytes = self.code.values.tensor(dtype, shape)
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

    # ---- choices

    def branch(self, expr: Expr, to: int | None) -> None:
        """A chain that may not be run: its registers are free behind it."""
        top, self.depth = self.top, self.depth + 1
        if self.depth > DEEPEST:
            raise refused(f"control flow more than {DEEPEST} deep")
        self.chain(expr, to)
        self.top, self.depth = top, self.depth - 1

    def choice(self, expr: If, to: int | None) -> None:
        t = expr.cond.inferred
        if not isinstance(t, TensorType) or t.shape or t.dtype != "bool":
            raise refused(f"a condition of type {t}")
        test = self.add(abi.TEST, self.register(expr.cond))
        self.branch(expr.true_branch, to)
        end = self.add(abi.JUMP) if to is not None else None
        self.code.rows[test][2] = len(self.code.rows)
        self.branch(expr.false_branch, to)
        if end is not None:
            self.code.rows[end][1] = len(self.code.rows)

    def match(self, expr: Match, to: int | None) -> None:
        data = self.register(expr.data)
        ends: list[int] = []
        for clause in expr.clauses:
            top = self.top
            failing = self.pattern(clause.lhs, data)
            self.branch(clause.rhs, to)
            self.top = top
            if to is not None:
                ends.append(self.add(abi.JUMP))
            for row in failing:
                self.code.rows[row][3] = len(self.code.rows)
            if not failing:
                break
        else:
            self.add(abi.FAIL)
        for row in ends:
            self.code.rows[row][1] = len(self.code.rows)

    def pattern(self, pattern: Pattern, register: int) -> list[int]:
        """Bind what a pattern names; the instructions that go elsewhere if a value is not like it."""
        failing: list[int] = []
        stack = [(pattern, register)]
        while stack:
            p, r = stack.pop()
            if isinstance(p, PatternVar):
                self.registers[p.var] = r
            elif isinstance(p, (PatternConstructor, PatternTuple)):
                if isinstance(p, PatternConstructor):
                    made = p.constructor
                    head = header_of(self.code.values.number(made), WORD * len(made.inputs))
                    failing.append(self.add(abi.IS, r, head, name=made.name_hint))
                for k, part in enumerate(p.patterns or ()):
                    if isinstance(part, (PatternVar, PatternConstructor, PatternTuple)):
                        to = self.new()
                        self.add(abi.GET, to, r, WORD * k)
                        stack.append((part, to))
        return failing


__all__ = ["written"]
