"""The body of a Primitive function within a loop group: what each expression is there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias, cast

import numpy as np

from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.network.network import NetworkTensor, NetworkValue, Operation, flatten, operator_of, tensor_type
from relaylab.codegen.operations.even_steps import Steps, computed
from relaylab.ir import Attrs, Call, Constant, Expr, TensorType, Tuple, TupleGetItem, TupleType, walk
from relaylab.ir.visit import operands_of
from relaylab.loop.builder import OutSpec
from relaylab.loop.evaluate import Readable
from relaylab.loop.expr import ScalarExpr
from relaylab.loop.expr import Tensor as LoopTensor
from relaylab.loop.program_builder import ProgramBuilder
from relaylab.support.errors import RelayTypeError, kind_of

BodyValue: TypeAlias = "LoopTensor | tuple[BodyValue, ...]"
Views = Callable[[NetworkTensor], MemoryView]


class FusedBody:
    """The values of expressions within a loop group: calls computed, tuples taken apart, `known` ones read.

    `tensors` are the readable ones for the tensors that these stand for, `steps` what others are computed of.
    `parts[k - 1]` is the expression that part k of the group computes.
    """

    def __init__(
        self,
        group: ProgramBuilder,
        operation: Operation,
        known: Mapping[Expr, NetworkValue],
        tensors: Mapping[NetworkTensor, LoopTensor],
        steps: Mapping[NetworkTensor, Steps] = MappingProxyType({}),
    ):
        self.group, self.operation = group, operation
        self.parts: list[Expr] = [next(e for e, v in known.items() if t in flatten(v)) for t in steps]
        self.tensors = {**tensors, **{t: computed(group, t, numbers) for t, numbers in steps.items()}}
        self.values = {expr: self._readable(value) for expr, value in known.items()}

    def _readable(self, value: NetworkValue) -> BodyValue:
        return self.tensors[value] if isinstance(value, NetworkTensor) else tuple(map(self._readable, value))

    def value(self, root: Expr) -> BodyValue:
        """What `root` stands for in the group."""
        below = lambda e: () if e in self.values else operands_of(e)
        for expr in walk((root,), below):
            if expr not in self.values:
                self.values[expr] = self._compute(expr)
        return self.values[root]

    def tensor(self, root: Expr, field: int | None = None) -> LoopTensor:
        """The tensor that `root` stands for, or one field of it."""
        found = self.value(root)
        found = found if field is None or isinstance(found, LoopTensor) else found[field]
        if not isinstance(found, LoopTensor):
            raise RelayTypeError("a tuple where one tensor is written", code="codegen.fused-body")
        return found

    def _compute(self, expr: Expr) -> BodyValue:
        match expr:
            case Tuple():
                return tuple(self.values[f] for f in expr.fields)
            case TupleGetItem():
                return cast("tuple[BodyValue, ...]", self.values[expr.tuple_value])[expr.index]
            case Constant():
                return self._number(expr)
            case Call():
                return self._call(expr)
        raise RelayTypeError(f"a fused function cannot hold {kind_of(expr)}", code="codegen.fused-body")

    def _number(self, expr: Constant) -> LoopTensor:
        dtype, number = expr.data.dtype.name, np.asarray(expr.data).item()
        return self._part(expr, OutSpec((), dtype), lambda b, out, i: b.const(number, dtype), ())

    def _part(
        self, expr: Expr, out: OutSpec, lower: Callable[..., ScalarExpr], inputs: Sequence[Readable]
    ) -> LoopTensor:
        self.parts.append(expr)
        return self.group.compute(out, lower, inputs)

    def _call(self, call: Call) -> BodyValue:
        lower = operator_of(call).facets(cast("Attrs | None", call.attrs)).lower
        inputs = [cast("Readable", self.values[arg]) for arg in call.args]  # operators take flat tuples
        if isinstance(call.checked_type, TupleType):
            fields = enumerate(cast("tuple[TensorType, ...]", call.checked_type.fields))
            specs = [OutSpec(self.operation.shape(t), t.dtype, k) for k, t in fields]
            return tuple(self._part(call, spec, lower, inputs) for spec in specs)
        type_ = tensor_type(call)
        return self._part(call, OutSpec(self.operation.shape(type_), type_.dtype), lower, inputs)


def tensors_of(values: Sequence[NetworkValue]) -> tuple[NetworkTensor, ...]:
    """The distinct tensors in values, in order."""
    return tuple(dict.fromkeys(t for value in values for t in flatten(value)))
