"""The body of a Primitive function within a loop group: what each expression is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from relaylab.codegen.generic import Operand, read
from relaylab.codegen.kernel import View
from relaylab.codegen.network import Tensor, Value, flatten
from relaylab.ir import Call, Constant, Expr, Tuple, TupleGetItem, TupleType, walk
from relaylab.loop.builder import OutSpec
from relaylab.loop.expr import Tensor as Readable
from relaylab.loop.group import Group

Views = Callable[[Tensor], View]


class Inside:
    """The values of expressions within a loop group: operands read, calls computed, tuples taken apart.

    `parts[k - 1]` is the expression that part k of the group computes.
    """

    def __init__(self, group: Group):
        self.group = group
        self.parts: list[Expr] = []
        self.tensors: dict[Tensor, Readable] = {}
        self.values: dict[Expr, Readable | tuple] = {}

    def read(self, tensors: Sequence[Tensor], views: Views, roles: Sequence[str] = ()) -> None:
        """Make external tensors readable, in order, as roles or "in0", "in1" …"""
        for k, tensor in enumerate(tensors):
            self.tensors[tensor] = read(self.group, Operand(roles[k] if roles else f"in{k}", views(tensor)))

    def know(self, known: Mapping[Expr, Value]) -> None:
        """Let expressions stand for external tensors."""
        for expr, value in known.items():
            self.values[expr] = self._readable(value)

    def _readable(self, value: Value) -> Readable | tuple:
        return self.tensors[value] if isinstance(value, Tensor) else tuple(map(self._readable, value))

    def value(self, root: Expr) -> Readable | tuple:
        """What `root` stands for in the group."""
        below = lambda e: () if e in self.values else operands_of(e)
        for expr in walk((root,), below):
            if expr not in self.values:
                self.values[expr] = self._compute(expr)
        return self.values[root]

    def _compute(self, expr: Expr) -> Readable | tuple:
        match expr:
            case Tuple():
                return tuple(self.values[f] for f in expr.fields)
            case TupleGetItem():
                return self.values[expr.tuple_value][expr.index]
            case Constant():
                return self._number(expr)
        return self._call(expr)

    def _number(self, expr: Constant) -> Readable:
        dtype, number = expr.data.dtype.name, np.asarray(expr.data).item()
        return self._part(expr, OutSpec((), dtype), lambda b, out, i: b.const(number, dtype), ())

    def _part(self, expr: Expr, out: OutSpec, lower: Callable, inputs: Sequence[Readable | tuple]) -> Readable:
        self.parts.append(expr)
        return self.group.compute(out, lower, inputs)

    def _call(self, call: Call) -> Readable | tuple:
        lower = call.op.facets(call.attrs).lower
        inputs = [self.values[arg] for arg in call.args]
        type_ = call.checked_type
        if isinstance(type_, TupleType):
            specs = [OutSpec(t.concrete_shape, t.dtype, k) for k, t in enumerate(type_.fields)]
            return tuple(self._part(call, spec, lower, inputs) for spec in specs)
        return self._part(call, OutSpec(type_.concrete_shape, type_.dtype), lower, inputs)


def operands_of(expr: Expr) -> tuple[Expr, ...]:
    """What an expression of a Primitive function's body is computed from."""
    match expr:
        case Call():
            return expr.args
        case Tuple():
            return expr.fields
        case TupleGetItem():
            return (expr.tuple_value,)
    return ()


def tensors_of(values: Sequence[Value]) -> tuple[Tensor, ...]:
    """The distinct tensors in values, in order."""
    return tuple(dict.fromkeys(t for value in values for t in flatten(value)))
