"""Which operators keep what the sizes of an open program promise: kernels read no element that is not there.

Two sizes with different names may be equal, or one of them 1, when a program runs. A kernel for all sizes may
rely on what holds always: dimensions that are compared have one normal form. What else an operator relies on its type
relation says, which is asked again with numbers (`types.py`).
Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from relaylab.codegen.specialize import tensors_of
from relaylab.ir.dims import AnyDim, Dim, SymbolicDim
from relaylab.ir.expr import Call, Function
from relaylab.ir.op import Op, facets
from relaylab.ir.types import is_dynamic
from relaylab.ir.visit import walk
from relaylab.op.base import OpPattern
from relaylab.op.shapes import product
from relaylab.support.errors import RelayTypeError

Shape = Sequence[Dim]
Rule = Callable[[Call, Sequence[Shape], Shape], bool]


def check_open(function: Function) -> None:
    """RelayTypeError `codegen.open-operator` for the first operator that has no kernel for these open shapes."""
    for node in walk((function.body,)):
        if isinstance(node, Call) and isinstance(node.op, Op) and touches_open(node) and not _holds(node, node.op):
            raise RelayTypeError(
                f"`{node.op.name}` has no kernel for the open shape {node.checked_type}", code="codegen.open-operator"
            )


def touches_open(call: Call) -> bool:
    """Whether a size is in the types of a call's arguments or result."""
    return any(is_dynamic(t) for t in (call.checked_type, *(a.checked_type for a in call.args)))


def has_rule(call: Call) -> bool:
    """Whether a rule here says all that a kernel of the call relies on, for all numbers that its sizes may have."""
    definition = cast(Op, call.op).definition
    by_shape = getattr(definition, "reshapes", False) or definition.pattern <= OpPattern.BROADCAST
    rule = RULES.get(cast(Op, call.op).name)
    # a window has to fit, a mirror to have enough before it, parts to be alike: their relations say so
    fits = rule is not None and rule is not _windows and cast(Op, call.op).name != "nn.pad"
    fits = fits and (rule is not _joined or _even(call))
    return not definition.is_procedure() and (fits or by_shape)


def _holds(call: Call, op: Op) -> bool:
    ins = [t.shape for a in call.args for t in tensors_of(a.checked_type) or ()]
    outs = [t.shape for t in tensors_of(call.checked_type) or ()]
    if any(type(d) is AnyDim for shape in (*ins, *outs) for d in shape):
        return False
    if op.definition.is_procedure():
        return True  # its relation is asked at each call
    rule = RULES.get(op.name)
    if rule is not None:
        return all(rule(call, ins, out) for out in outs)
    if getattr(op.definition, "reshapes", False):
        return all(product(ins[0]) == product(out) for out in outs)
    if op.definition.pattern <= OpPattern.BROADCAST:
        return all(_stretched(call, ins, out) for out in outs)
    return len(ins) <= 1 and op.definition.pattern <= OpPattern.OUT_ELEMWISE_FUSABLE


def _stretched(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    """Operands aligned right, each dimension that of the result or the number 1."""
    return all(x in (1, n) for shape in ins for x, n in zip(reversed(shape), reversed(out)))


def _joined(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    """Parts may have different expressions of sizes beside the axis: whether these are equal is asked with numbers."""
    return all(len(shape) == len(out) for shape in ins)


def _even(call: Call) -> bool:
    """Whether parts are as large beside the axis for all numbers."""
    axis = cast(int, facets(call).axis)
    shapes = [t.shape for a in (*call.args, call) for t in tensors_of(a.checked_type) or ()]
    axis %= len(shapes[-1])
    rest = [(*shape[:axis], *shape[axis + 1 :]) for shape in shapes]
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


def _gathered(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    """Places along one axis; along the others each is where it is."""
    data, places = ins
    axis = (cast("int | None", facets(call).axis) or 0) % len(data)
    return all(a == c for k, (a, c) in enumerate(zip(data, places)) if k != axis)


def _places(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    """As many coordinates as are known, for members of one batch."""
    (data, places), batch = ins, int(getattr(facets(call), "batch_dims", 0) or 0)
    return not isinstance(places[0], SymbolicDim) and [*data[:batch]] == [*places[1 : 1 + batch]]


def _windows(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    """Windows of known size over images of any; as many channels as are known."""
    layouts = facets(call).layouts
    whole = layouts[0].whole(ins[0])
    return not any(isinstance(d, SymbolicDim) for d in (whole["C"], *ins[1]))


def _any(call: Call, ins: Sequence[Shape], out: Shape) -> bool:
    return True


RULES: Mapping[str, Rule] = {
    "concatenate": _joined,
    "stack": lambda call, ins, out: all(shape == ins[0] for shape in ins),
    "split": lambda call, ins, out: not isinstance(ins[0][cast(int, facets(call).axis) % len(out)], SymbolicDim),
    "take": lambda call, ins, out: not getattr(facets(call), "batch_dims", 0),
    "gather": _gathered, "gather_nd": _places,
    "squeeze": lambda call, ins, out: product(ins[0]) == product(out),
    **{f"nn.conv{n}d{kind}": _windows for n in (1, 2, 3) for kind in ("", "_transpose")},
    "nn.dense": _matrices, "nn.matmul": _matrices, "nn.batch_matmul": _matrices,
    "nn.pad": _any, "nn.lrn": _any, "nn.prelu": _along_numbers,
    "argmax": _reduced, "argmin": _reduced, "variance": _about_mean,
    "nn.layer_norm": _along_numbers, "nn.bias_add": _along_numbers,
    "searchsorted": lambda call, ins, out: not any(isinstance(d, SymbolicDim) for d in ins[0]),
    "arange": _any, "shape_of": _any, "ndarray_size": _any,
}  # fmt: skip
