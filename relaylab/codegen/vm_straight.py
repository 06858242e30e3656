"""Functions of the virtual machine without control flow as lists of instructions, made once and run at each call.

The evaluator asks at every node what it is and where its value is kept; here that is known beforehand: values lie in
numbered registers, kernels are bound, and an operator that is evaluated has its attributes and its type at hand.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from operator import itemgetter
from typing import cast

import numpy as np

from relaylab.codegen.native_function import NativeFunction
from relaylab.interp.machine import LOWERED, EvaluationError, agrees, arrays_of, refusal
from relaylab.interp.sizes import NO_SIZES, named_sizes, with_known_sizes
from relaylab.interp.values import Value
from relaylab.ir.base import Expr
from relaylab.ir.dims import AnyDim
from relaylab.ir.expr import Call, Constant, Function, Let, Tuple, TupleGetItem, Var
from relaylab.ir.op import Op, facets
from relaylab.ir.types import TensorType, TupleType, Type
from relaylab.ir.visit import children, walk
from relaylab.op.base import Operator
from relaylab.op.rounding import evaluated
from relaylab.runtime.container import ADT
from relaylab.runtime.memory import aligned_copy
from relaylab.runtime.ndarray import NDArray
from relaylab.support.dtypes import BFLOAT16

Step = tuple[Callable[..., Value], tuple[int, ...], int, tuple[int, ...]]
"""What is called, the registers of its arguments, that of its result, and those that nobody reads any more."""
Dims = tuple[int | None, ...]


class _Branches(Exception):
    """The function has something in it that no list of instructions can say."""


class ArrayArguments:
    """What arrays a function takes: arguments that are such arrays are its values."""

    def __init__(self, func: Function):
        types = [p.inferred or p.type_annotation for p in func.params]
        plain = [t for t in types if isinstance(t, TensorType)]
        self.wanted = [(np.dtype(t.dtype), _dims(t)) for t in plain] if len(plain) == len(types) else None
        self.sizes = named_sizes(func)

    def taken(self, args: Sequence[object]) -> list[np.ndarray] | None:
        """The arguments as values if they are arrays of the parameters' types; None if more has to be looked at."""
        if self.wanted is None or len(args) != len(self.wanted):
            return None
        values: list[np.ndarray] = []
        for a, (dtype, dims) in zip(args, self.wanted):
            x = a.read() if type(a) is NDArray else a
            if type(x) is not np.ndarray or x.dtype != dtype or (x.shape != dims and not _fit(x.shape, dims)):
                return None
            values.append(x)
        found: dict[object, int] = {}
        for k, axis, size in self.sizes:
            if found.setdefault(size, n := values[k].shape[axis]) != n:
                return None
        return values


class Straight:
    """A function as instructions: `run(values)` gives its value."""

    def __init__(self, maker: _Maker):
        self.first, self.steps, self.result = maker.registers, maker.finished(), maker.result
        self.flat, self.own = maker.leaves()
        """Whether the result is an array or a tuple of arrays, and which of them nobody else has."""
        self.evaluates = maker.evaluates

    @staticmethod
    def of(
        func: Function, natives: Mapping[Function, NativeFunction], constant: Callable[[Constant], Value]
    ) -> Straight | None:
        """The instructions of a typed function; None if it has control flow, cells, data types or calls of others."""
        try:
            maker = _Maker(natives, constant)
            maker.result = maker.body(func, [maker.register() for _ in func.params])
            return Straight(maker)
        except _Branches:
            return None

    def run(self, values: Sequence[Value]) -> Value:
        """The value for these arguments."""
        registers = self.first.copy()
        registers[: len(values)] = values
        with np.errstate(all="ignore") if self.evaluates else nullcontext():
            for function, ins, out, done in self.steps:
                registers[out] = function(*[registers[k] for k in ins])
                for k in done:
                    registers[k] = None
        return registers[self.result]

    def given(self, value: Value) -> Value:
        """A result that is `flat` as programs get it."""
        if isinstance(value, tuple):
            fields = cast("tuple[np.ndarray, ...]", value)
            return ADT(0, [NDArray(x if own else aligned_copy(x, x.dtype)) for x, own in zip(fields, self.own)])
        return NDArray(value if self.own[0] else aligned_copy(value, value.dtype))


class _Maker:
    """Makes the instructions of one function."""

    def __init__(self, natives: Mapping[Function, NativeFunction], constant: Callable[[Constant], Value]):
        self.natives, self.constant = natives, constant
        self.registers: list[Value] = []
        self.steps: list[tuple[Callable[..., Value], tuple[int, ...], int]] = []
        self.made: dict[int, tuple[Callable[..., Value], tuple[int, ...], Type | None]] = {}
        self.fields: dict[int, tuple[int, int]] = {}
        self.result = 0
        self.evaluates = False

    def register(self, value: Value = None) -> int:
        self.registers.append(value)
        return len(self.registers) - 1

    def step(self, function: Callable[..., Value], ins: tuple[int, ...], node: Expr) -> int:
        out = self.register()
        self.steps.append((function, ins, out))
        self.made[out] = function, ins, node.inferred
        return out

    def body(self, func: Function, params: Sequence[int], within: bool = False) -> int:
        """The instructions of a function whose parameters lie in registers; the register of its value."""
        at: dict[Expr, int] = dict(zip(func.params, params, strict=True))
        lets = [n for n in walk((func.body,), _below) if isinstance(n, Let)]
        bound: dict[Expr, Expr] = {n.var: n.value for n in lets}
        functions: dict[Expr, Function] = {}

        def found(node: Expr) -> int:
            if node not in at:
                raise _Branches
            return at[node]

        for node in walk((func.body,), _below):
            match node:
                case Function():
                    functions[node] = node
                case Var() if node in at:
                    pass
                case Var() if bound.get(node) in functions:
                    functions[node] = functions[bound[node]]
                case Var() if node in bound:
                    at[node] = found(bound[node])
                case Let():
                    at[node] = found(node.body)
                case Constant():
                    at[node] = self.register(self.constant(node))
                case Tuple():
                    at[node] = self.step(_tuple, tuple(map(found, node.fields)), node)
                case TupleGetItem():
                    whole = found(node.tuple_value)
                    at[node] = self.step(itemgetter(node.index), (whole,), node)
                    self.fields[at[node]] = whole, node.index
                case Call():
                    callee = functions.get(node.op, node.op)
                    at[node] = self.call(node, callee, tuple(map(found, node.args)), within)
                case _:
                    raise _Branches
        return found(func.body)

    def call(self, call: Call, callee: Expr, ins: tuple[int, ...], within: bool) -> int:
        if isinstance(callee, Op):
            record = facets(call)
            asks_for_sizes = with_known_sizes(record, NO_SIZES) is not record
            if callee.name in LOWERED or callee.definition.stateful or asks_for_sizes:
                raise _Branches
            self.evaluates = True
            return self.step(evaluation(call), ins, call)
        if not isinstance(callee, Function) or len(callee.params) != len(ins):
            raise _Branches
        native = self.natives.get(callee)
        if native is not None:
            return self.step(native, ins, call)
        if within or not callee.is_primitive:
            raise _Branches
        return self.body(callee, ins, True)

    def finished(self) -> list[Step]:
        """The instructions, each with the registers that nobody reads after it."""
        last: dict[int, int] = {k: number for number, (_, ins, out) in enumerate(self.steps) for k in (out, *ins)}
        dead: dict[int, list[int]] = {}
        for k, number in last.items():
            if k in self.made and k != self.result:
                dead.setdefault(number, []).append(k)
        return [(f, ins, out, tuple(dead.get(n, ()))) for n, (f, ins, out) in enumerate(self.steps)]

    def leaves(self) -> tuple[bool, list[bool]]:
        """Whether the result is an array or a tuple of arrays, and which are a kernel's that nobody else sees."""
        function, ins, whole = self.made.get(self.result, (None, (), None))
        parts = whole.fields if isinstance(whole, TupleType) else (whole,)
        flat = all(isinstance(t, TensorType) for t in parts)
        if isinstance(function, NativeFunction):
            return flat, [True] * len(parts)
        sources = [self.source(k) for k in (ins if function is _tuple else (self.result,))]
        own = [source is not None and sources.count(source) == 1 for source in sources]
        return flat, own if len(own) == len(parts) else [False] * len(parts)

    def source(self, register: int) -> tuple[int, int] | None:
        """Which result of which kernel's call a value is."""
        whole, number = self.fields.get(register, (register, 0))
        return (whole, number) if whole in self.made and isinstance(self.made[whole][0], NativeFunction) else None


def _below(node: Expr) -> tuple[Expr, ...]:
    """What is computed before a node; functions are not entered, operators are no values."""
    if isinstance(node, Let):
        return node.value, node.var, node.body
    if isinstance(node, Call):
        return node.args if isinstance(node.op, Op) else (node.op, *node.args)
    return () if isinstance(node, Function) else children(node)


def _tuple(*values: Value) -> Value:
    return values


def evaluation(call: Call) -> Callable[..., Value]:
    """The reference semantics of the operator that is called, with its attributes, held against the call's type."""
    name, record, t = cast(Op, call.op).name, facets(call), call.inferred
    if not isinstance(t, TensorType) or any(_is_bfloat(x) for x in (t, *(a.inferred for a in call.args))):
        return lambda *args: _of_type(arrays_of(cast("Value", evaluated(record, args, t))), name, t)
    reference, dtype, dims = record.reference, np.dtype(t.dtype), _dims(t)
    if name == "reshape" and (shape := _plain_shape(record)) is not None:
        return lambda data, *_: cast(np.ndarray, data).reshape(shape)

    def run(*args: Value) -> Value:
        value = reference(*args)
        if type(value) is not np.ndarray:
            value = arrays_of(value)
        shape = value.shape
        if 0 in shape and (why := refusal(record, args)):
            raise EvaluationError(f"{name} failed: {why}", code="interp.failed")
        if value.dtype != dtype or (shape != dims and not _fit(shape, dims)):
            return _of_type(value, name, t)
        return value

    return run


def _plain_shape(record: Operator) -> tuple[int, ...] | None:
    """The shape that a reshape gives, if it says all extents but one: it need not be derived from the data's."""
    shape = cast("Sequence[object]", getattr(record, "newshape", ()))
    plain = tuple([n for n in shape if isinstance(n, int) and (n > 0 or n == -1)])
    return plain if len(plain) == len(shape) and plain.count(-1) < 2 else None


def _of_type(value: Value, name: str, t: Type | None) -> Value:
    if t is not None and not agrees(value, t):
        raise EvaluationError(f"{name} gave what is no {t}", code="interp.failed")
    return value


def _is_bfloat(t: Type | None) -> bool:
    parts = t.fields if isinstance(t, TupleType) else (t,)
    return any(not isinstance(p, TensorType) or p.dtype == BFLOAT16.name for p in parts)


def _dims(t: TensorType) -> Dims:
    return tuple([None if isinstance(d, AnyDim) else int(d) for d in t.shape])


def _fit(shape: tuple[int, ...], dims: Dims) -> bool:
    if len(shape) != len(dims):
        return False
    for n, d in zip(shape, dims):
        if d is not None and n != d:
            return False
    return True
