"""Which operators keep what the sizes of an open program promise: kernels read no element that is not there.

Two sizes with different names may be equal, or one of them 1, when a program runs. A kernel for all sizes may
rely on what holds always: dimensions that are compared have one normal form. Where they have two, the kernel is made
for numbers that make them equal, and whether they do is asked at each call (`equalities`). What else an operator relies
on its type relation says, which is asked again with numbers (`types.py`).
Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import cast

from relaylab.codegen.specialize import tensors_of
from relaylab.ir.dims import AnyDim, Dim, SymbolicDim, differ
from relaylab.ir.expr import Call, Function
from relaylab.ir.op import Op, facets
from relaylab.ir.types import is_dynamic
from relaylab.ir.visit import walk
from relaylab.op.base import OpPattern
from relaylab.op.shapes import product
from relaylab.op.tensor.einsum import terms
from relaylab.support.errors import RelayTypeError

Shape = Sequence[Dim]
Equal = tuple[Dim, Dim]
"""Two dimensions that a kernel takes for equal."""
Rule = Callable[[Call, Sequence[Shape], Shape], "Iterable[Equal] | None"]
"""What a kernel of a call takes for equal; None if there is no kernel."""


def check_open(function: Function) -> None:
    """RelayTypeError `codegen.open-operator` for the first operator that has no kernel for these open shapes."""
    for node in walk((function.body,)):
        if isinstance(node, Call) and isinstance(node.op, Op) and touches_open(node) and equalities(node) is None:
            raise RelayTypeError(
                f"`{node.op.name}` has no kernel for the open shape {node.checked_type}", code="codegen.open-operator"
            )


def check_known(function: Function) -> None:
    """RelayTypeError `codegen.open-operator` for the first operator of whose shape a size has no name."""
    for node in walk((function.body,)):
        if isinstance(node, Call) and isinstance(node.op, Op):
            shapes = [t.shape for t in tensors_of(node.checked_type) or ()]
            if any(type(d) is AnyDim for shape in shapes for d in shape):
                raise RelayTypeError(
                    f"`{node.op.name}` gives the unknown shape {node.checked_type}", code="codegen.open-operator"
                )


def touches_open(call: Call) -> bool:
    """Whether a size is in the types of a call's arguments or result."""
    return any(is_dynamic(t) for t in (call.checked_type, *(a.checked_type for a in call.args)))


def has_rule(call: Call) -> bool:
    """Whether a rule here says all that a kernel of the call relies on, whatever numbers the sizes have."""
    name, definition = cast(Op, call.op).name, cast(Op, call.op).definition
    by_shape = getattr(definition, "reshapes", False) or definition.pattern <= OpPattern.BROADCAST
    return not definition.is_procedure() and name not in ASKED and (name in RULES or by_shape)


def is_exact(call: Call) -> bool:
    """Whether what a type relation gives for numbers has to be what it gave for sizes: kernels rely on it."""
    name, definition = cast(Op, call.op).name, cast(Op, call.op).definition
    alone = len(call.args) <= 1 and definition.pattern <= OpPattern.OUT_ELEMWISE_FUSABLE
    fewer = name == "strided_slice" and facets(call).fewer
    return definition.is_procedure() or name in EXACT or fewer or not (alone or name in ASKED or has_rule(call))


def equalities(call: Call) -> list[Equal] | None:
    """What a kernel of an operator's call takes for equal and is not so for all sizes; None if there is no kernel."""
    ins = [t.shape for a in call.args for t in tensors_of(a.checked_type) or ()]
    outs = [t.shape for t in tensors_of(call.checked_type) or ()]
    if any(type(d) is AnyDim for shape in (*ins, *outs) for d in shape):
        return None
    found: dict[Equal, None] = {}
    for out in outs:
        pairs = _relied_on(call, cast(Op, call.op), ins, out)
        if pairs is None:
            return None
        found |= dict.fromkeys((a, c) for a, c in pairs if a != c)
    return None if any(differ(a, c) for a, c in found) else [*found]


def _relied_on(call: Call, op: Op, ins: Sequence[Shape], out: Shape) -> Iterable[Equal] | None:
    if op.definition.is_procedure() or op.name in EXACT:
        return ()  # its relation is asked at each call
    rule = RULES.get(op.name)
    if rule is not None:
        return rule(call, ins, out)
    if getattr(op.definition, "reshapes", False):
        return [(product(ins[0]), product(out))]
    if op.definition.pattern <= OpPattern.BROADCAST:
        return _stretched(ins, out)
    return ()


def _stretched(ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    """Operands aligned right, each dimension that of the result or the number 1."""
    return ((x, n) for shape in ins for x, n in zip(reversed(shape), reversed(out)) if x != 1)


def _joined(call: Call, ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    """Parts are as large beside the axis."""
    axis = cast(int, facets(call).axis) % len(out)
    return (pair for shape in ins for k, pair in enumerate(zip(shape, out)) if k != axis)


def _stacked(call: Call, ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    return (pair for shape in ins for pair in zip(shape, ins[0]))


def _matrices(call: Call, ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    record, (a, c) = facets(call), ins
    turned_a, turned_c = (bool(getattr(record, f"transpose_{side}", side == "b")) for side in "ab")
    yield a[-2 if turned_a else -1], c[-1 if turned_c else -2]
    if len(c) > 2:
        yield from ((x, y) for x, y in zip(reversed(a[:-2]), reversed(c[:-2])) if x != 1 and y != 1)


def _products(call: Call, ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    """A letter is one dimension wherever it stands, or the number 1."""
    letters, _ = terms(cast(str, facets(call).equation), list(map(len, ins)))
    found: dict[str, Dim] = {}
    for term, shape in zip(letters, ins):
        for x, n in zip(term, shape):
            if n != 1:
                yield found.setdefault(x, n), n


def _about_mean(call: Call, ins: Sequence[Shape], out: Shape) -> Iterable[Equal]:
    return _stretched(ins[1:], ins[0])


def _along_axis(call: Call, ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    """Vectors that lie along an axis of the data."""
    axis = cast(int, facets(call).axis)
    return ((vector[0], ins[0][axis]) for vector in ins[1:])


def _gathered(call: Call, ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    """Places along one axis; along the others each is where it is."""
    data, places = ins
    axis = (cast("int | None", facets(call).axis) or 0) % len(data)
    return (pair for k, pair in enumerate(zip(data, places)) if k != axis)


def _taken(call: Call, ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    data, places = ins
    batch = cast(int, facets(call).batch_dims)
    return zip(data, places[: batch + len(places) if batch < 0 else batch])


def _places(call: Call, ins: Sequence[Shape], out: Shape) -> Iterable[Equal] | None:
    """As many coordinates as are known, for members of one batch."""
    (data, places), batch = ins, int(getattr(facets(call), "batch_dims", 0) or 0)
    return None if isinstance(places[0], SymbolicDim) else zip(data[:batch], places[1 : 1 + batch])


def _indexed(call: Call, ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    """Places that are spread over those of the result."""
    data, *places = ins
    return _stretched(places, out[: len(out) - (len(data) - len(places))])


def _like_first(call: Call, ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    """Of the second argument only the type is read."""
    return _stretched(ins[:1], out)


def _collapsed(call: Call, ins: Sequence[Shape], out: Shape) -> Iterator[Equal]:
    """What is no number 1 in the result is not summed."""
    return ((x, n) for x, n in zip(reversed(ins[0]), reversed(out)) if n != 1)


def _rows(call: Call, ins: Sequence[Shape], out: Shape) -> Iterable[Equal]:
    """A sorted row for each row of values, or one for all."""
    return zip(ins[0][:-1], ins[1])


def _any(call: Call, ins: Sequence[Shape], out: Shape) -> Iterable[Equal]:
    return ()


ALONG_AXIS = (
    "nn.prelu", "nn.bias_add", "nn.batch_norm", "nn.layer_norm", "nn.instance_norm", "nn.group_norm",
)  # fmt: skip
RULES: Mapping[str, Rule] = {
    "concatenate": _joined, "stack": _stacked, "take": _taken, "gather": _gathered, "gather_nd": _places,
    "adv_index": _indexed, "einsum": _products, "searchsorted": _rows,
    **dict.fromkeys(("squeeze", "reshape_like"), lambda call, ins, out: [(product(ins[0]), product(out))]),
    "nn.dense": _matrices, "nn.matmul": _matrices, "nn.batch_matmul": _matrices,
    "nn.pad": _any, "nn.lrn": _any, "tile": _any, "repeat": _any,
    "argmax": _any, "argmin": _any, "variance": _about_mean,
    **dict.fromkeys(ALONG_AXIS, _along_axis),
    "cast_like": _like_first, "broadcast_to_like": _like_first,
    "collapse_sum_like": _collapsed, "collapse_sum_to": _collapsed,
    "arange": _any, "shape_of": _any, "ndarray_size": _any,
}  # fmt: skip
"""What kernels take for equal."""
EXACT = frozenset({"split", "meshgrid", "sliding_window"})
"""Operators of one argument whose kernels rely on their relations alone, which give for numbers what they gave for
sizes. Those of several without a rule do too."""
ASKED = EXACT | {"nn.pad", "argmax", "argmin", "take", "gather", "gather_nd", "adv_index"}
"""Operators of which the relation is asked with numbers: a window has to fit, a mirror to have enough before it, what
is chosen from to have elements."""
