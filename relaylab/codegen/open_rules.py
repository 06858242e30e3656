"""Which operators keep what the sizes of an open program promise: kernels read no element that is not there.

Two sizes with different names may be equal, or one of them 1, when a program runs. A kernel for all sizes may
rely on what holds always: dimensions that are compared have one normal form. What a procedure relies on is what its
type relation asks for, which is asked again with the numbers of a call.
Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from relaylab.codegen.network.open_sizes import evaluated
from relaylab.codegen.specialize import tensors_of
from relaylab.ir.dims import AnyDim, Dim, IntImm, SizeVar, SymbolicDim
from relaylab.ir.expr import Call, Function
from relaylab.ir.op import Op, facets
from relaylab.ir.types import TensorType, TupleType, Type, is_dynamic, type_text
from relaylab.ir.visit import walk
from relaylab.op.base import Known, OpPattern
from relaylab.op.shapes import product
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError

Shape = Sequence[Dim]
Rule = Callable[[Call, Sequence[Shape], Shape], bool]


def check_open(function: Function) -> None:
    """RelayTypeError `codegen.open-operator` for the first operator that has no kernel for these open shapes."""
    for node in walk((function.body,)):
        if isinstance(node, Call) and isinstance(node.op, Op) and _touches_open(node) and not _holds(node, node.op):
            raise RelayTypeError(
                f"`{node.op.name}` has no kernel for the open shape {node.checked_type}", code="codegen.open-operator"
            )


def _touches_open(call: Call) -> bool:
    return any(is_dynamic(t) for t in (call.checked_type, *(a.checked_type for a in call.args)))


def _holds(call: Call, op: Op) -> bool:
    ins = [t.shape for a in call.args for t in tensors_of(a.checked_type) or ()]
    outs = [t.shape for t in tensors_of(call.checked_type) or ()]
    if any(type(d) is AnyDim for shape in (*ins, *outs) for d in shape):
        return False
    if op.definition.is_procedure():
        return True  # `ProcedureTypes` asks its relation
    rule = RULES.get(op.name)
    if rule is not None:
        return all(rule(call, ins, out) for out in outs)
    if getattr(op.definition, "reshapes", False):
        return all(product(ins[0]) == product(out) for out in outs)
    if op.definition.pattern <= OpPattern.BROADCAST:
        return all(_stretched(call, ins, out) for out in outs)
    return len(ins) <= 1 and op.definition.pattern <= OpPattern.OUT_ELEMWISE_FUSABLE


class _Numbers(Known):
    """The solver of a relation whose types are numbers."""

    def unify(self, a: Type, b: Type) -> Type:
        return a if a == b else self.fail(f"{type_text(a)} is not {type_text(b)}")


class ProcedureTypes:
    """The procedures of an open program, once for equal types: whether their relations take the sizes of a call."""

    def __init__(self, function: Function):
        calls = (c for c in walk((function.body,)) if isinstance(c, Call) and isinstance(c.op, Op) and _touches_open(c))
        found = [(facets(c), tuple(a.checked_type for a in c.args), c.checked_type) for c in calls if _is_procedure(c)]
        self.found = list({(repr(record), *types, out): (record, types, out) for record, types, out in found}.values())

    def check(self, known: Mapping[SizeVar, int]) -> None:
        """RelayValueError `vm.size` for sizes that one of them does not take."""
        for record, types, out in self.found:
            name, ins = record.op_name, [_numbered(t, known) for t in types]
            try:
                given = record.relation(_Numbers(), *ins)
                refused = record.refusal(ins, [None] * len(ins))
            except RelayError as error:
                given, refused = None, error.message
            if refused or given != _numbered(out, known):
                reason = refused or f"it would give {given}"
                raise RelayValueError(
                    f"`{name}` does not take these sizes: {reason}",
                    code="vm.size",
                    help="give arrays of sizes that the operators take",
                )


def _numbered(t: Type | None, known: Mapping[SizeVar, int]) -> Type:
    """A type of tensors with the numbers that its sizes have."""
    if isinstance(t, TupleType):
        return TupleType([_numbered(part, known) for part in t.fields])
    tensor = cast(TensorType, t)
    return TensorType(
        [IntImm(evaluated(d, known)) if isinstance(d, SymbolicDim) else d for d in tensor.shape], tensor.dtype
    )


def _is_procedure(call: Call) -> bool:
    return isinstance(call.op, Op) and call.op.definition.is_procedure()


def _stretched(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    """Operands aligned right, each dimension that of the result or the number 1."""
    return all(x in (1, n) for shape in ins for x, n in zip(reversed(shape), reversed(out)))


def _joined(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    axis = cast(int, facets(call).axis) % len(out)
    rest = [(*shape[:axis], *shape[axis + 1 :]) for shape in (*ins, out)]
    return all(shape == rest[-1] for shape in rest)


def _matrices(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    record, (a, c) = facets(call), ins
    turned_a, turned_c = (bool(getattr(record, f"transpose_{side}", side == "b")) for side in "ab")
    inner = a[-2 if turned_a else -1], c[-1 if turned_c else -2]
    batches = zip(reversed(a[:-2]), reversed(c[:-2])) if len(c) > 2 else ()
    return inner[0] == inner[1] and all(x == y or 1 in (x, y) for x, y in batches)


def _reduced(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    """What has no result for nothing is taken over numbers only."""
    kept = [d for d in out if isinstance(d, SymbolicDim)]
    return len(kept) == sum(isinstance(d, SymbolicDim) for d in ins[0])


def _about_mean(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    data, mean = ins
    return len(mean) == len(data) and _stretched(call, [mean], data)


def _along_numbers(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    """Scale and shift have the numbers of the axes that they are along."""
    return not any(isinstance(d, SymbolicDim) for shape in ins[1:] for d in shape)


def _any(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    return True


RULES: Mapping[str, Rule] = {
    "concatenate": _joined,
    "stack": lambda call, ins, out: all(shape == ins[0] for shape in ins),
    "split": lambda call, ins, out: not isinstance(ins[0][cast(int, facets(call).axis) % len(out)], SymbolicDim),
    "take": lambda call, ins, out: not getattr(facets(call), "batch_dims", 0),
    "squeeze": lambda call, ins, out: product(ins[0]) == product(out),
    "nn.dense": _matrices, "nn.matmul": _matrices, "nn.batch_matmul": _matrices,
    "argmax": _reduced, "argmin": _reduced, "variance": _about_mean,
    "nn.layer_norm": _along_numbers, "nn.bias_add": _along_numbers,
    "arange": _any, "shape_of": _any, "ndarray_size": _any,
}  # fmt: skip
