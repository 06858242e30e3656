"""The elementwise operators after a contraction, as the epilogue of its template.

An `EpilogueExpr` is one scalar expression over the accumulator and elements of side inputs that lie at affine places of
the output index (the same place, a broadcast, a slice). What is not of this kind is computed afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.network.network import NetworkTensor, NetworkValue, Operation, tensor_type
from relaylab.codegen.operations.contraction import Contraction
from relaylab.codegen.operations.fused_body import FusedBody, Views, tensors_of
from relaylab.codegen.templates import Epilogue
from relaylab.ir import Call, Expr
from relaylab.loop import expr as loop
from relaylab.loop.affine import Linear
from relaylab.loop.program_builder import ProgramBuilder
from relaylab.loop.scalar import FLOATS, SIGNED, UNSIGNED
from relaylab.loop.simplify import Simplifier
from relaylab.loop.weight import weight

ROLLED_FROM = 12  # from this cost on, the code is worth a loop of its own
PLAIN = (*FLOATS, *SIGNED, *UNSIGNED)


@dataclass(frozen=True, slots=True)
class SideInput:
    """One way in which an epilogue reads a side input: the step of each of its axes per output axis, and a start."""

    tensor: NetworkTensor
    steps: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    local: loop.Local

    def view(self, views: Views, shape: tuple[int, ...]) -> MemoryView:
        """The side input as a view over the output's axes; axes along which it does not move have stride 0."""
        own = views(self.tensor)
        strides = tuple(sum(s * row[axis] for s, row in zip(own.strides, self.steps)) for axis in range(len(shape)))
        offset = own.offset + sum(s * start for s, start in zip(own.strides, self.starts))
        return MemoryView(own.dtype, shape, strides, offset)


@dataclass(frozen=True, slots=True)
class EpilogueExpr:
    """The expression that becomes of the accumulator `start`, and the sides that it reads.

    `parts[k - 1]` is what part k of the expression comes from.
    """

    value: loop.ScalarExpr
    start: loop.Local
    sides: tuple[SideInput, ...]
    shape: tuple[int, ...]
    dtype: str
    parts: tuple[Expr, ...] = ()

    @property
    def tensors(self) -> tuple[NetworkTensor, ...]:
        """What is read, one for every way in which it is read."""
        return tuple(side.tensor for side in self.sides)

    def views(self, views: Views) -> tuple[MemoryView, ...]:
        """All that is read, over the axes of the result."""
        return tuple(side.view(views, self.shape) for side in self.sides)

    def fits(self, contraction: Contraction) -> bool:
        """Can the template read all side inputs where they are row-major."""
        dense = lambda tensor: MemoryView.dense(tensor.shape, tensor.dtype)
        return all(map(contraction.places, self.views(dense)))

    def bind(self, views: Views, contraction: Contraction) -> Epilogue:
        """The epilogue; its operands are "side0", "side1" … in the order of `tensors`."""
        roles = tuple(f"side{k}" for k in range(len(self.sides)))
        places = [contraction.out_view(view) for view in self.views(views)]
        bias, value, part = self._bias(places)
        role = None if bias is None else roles[bias]
        if value is self.start and self.dtype == self.start.dtype:
            return Epilogue(operands=roles, bias=role, bias_part=part)
        used = set(loop.post_order(value))
        reads = [(s.local, role, view) for s, role, view in zip(self.sides, roles, places) if s.local in used]
        return Epilogue(value, self.start, tuple(reads), (), roles, role, weight(value) >= ROLLED_FROM, part)

    def _bias(self, places: Sequence[MemoryView]) -> tuple[int | None, loop.ScalarExpr, int]:
        """The side that the accumulators can start from, what is left of the expression without it, and its part."""
        nodes = list(loop.post_order(self.value))
        # Accumulators that start from the bias save one addition per vector, and the load of the bias once per tile
        # instead of row.
        users = [n for n in nodes if self.start in loop.children(n)]
        if len(users) != 1 or not isinstance(users[0], loop.Apply) or users[0].op != "add":
            return None, self.value, 0
        other = next((a for a in users[0].args if a is not self.start), None)
        for k, (side, view) in enumerate(zip(self.sides, places)):
            vector = view.strides[-1] == 1 and not any(view.strides[:-1]) and view.offset == 0
            alone = sum(side.local in loop.children(n) for n in nodes) == 1
            if side.local is other and vector and alone and view.dtype == self.start.dtype:
                return k, Simplifier()(self.value, {users[0]: self.start}), users[0].part
        return None, self.value, 0


def epilogue_of(
    root: Expr, anchor: Call, known: Mapping[Expr, NetworkValue], operation: Operation
) -> EpilogueExpr | None:
    """The epilogue from a contraction `anchor` to `root`; `known` are the values of what else it reads.

    None if an operator between reads anything but elements at affine places, or dtypes that vectors do not hold.
    """
    reader = _EpilogueReader(anchor, known, operation)
    value = reader.expression(root)
    sides = reader.sides(value)
    if sides is None or tensor_type(root).dtype not in (*PLAIN, "bool"):
        return None
    replaced = Simplifier()(value, {load: side.local for load, side in sides.items()} | reader.started)
    if any(isinstance(n, (loop.Load, loop.Reduce, loop.Axis, loop.Guard)) for n in loop.post_order(replaced)):
        return None
    distinct = tuple({side.local: side for side in sides.values()}.values())
    return EpilogueExpr(replaced, reader.start, distinct, reader.shape, tensor_type(root).dtype, tuple(reader.parts))


class _EpilogueReader:
    """The scalar expression of an epilogue, element reads found and named."""

    def __init__(self, anchor: Call, known: Mapping[Expr, NetworkValue], operation: Operation):
        type_ = tensor_type(anchor)
        self.anchor, self.known, self.operation = anchor, known, operation
        self.shape = operation.shape(type_)
        self.accumulator = loop.Tensor("x", self.shape, type_.dtype)
        self.start = loop.Local("x", type_.dtype)
        self.axes = tuple(loop.axis_over(f"i{d}", n) for d, n in enumerate(self.shape))
        self.simplifier = Simplifier()
        found = enumerate(tensors_of(tuple(known.values())))
        self.readable = {t: loop.Tensor(f"s{k}", t.shape, t.dtype) for k, t in found}
        self.tensors = {readable: tensor for tensor, readable in self.readable.items()}
        self.started: dict[loop.ScalarExpr, loop.ScalarExpr] = {}
        self.parts: list[Expr] = []

    def expression(self, root: Expr) -> loop.ScalarExpr:
        """The element of `root` at the axes."""
        body = FusedBody(ProgramBuilder("epilogue"), self.operation, self.known, self.readable)
        body.values[self.anchor] = self.accumulator
        value = body.tensor(root)
        self.parts = body.parts
        return self.simplifier(body.group.inlined(loop.Load(value, self.axes)))

    def sides(self, value: loop.ScalarExpr) -> dict[loop.ScalarExpr, SideInput] | None:
        """The side that each element read stands for; None if one is not at an affine place."""
        found: dict[loop.ScalarExpr, SideInput] = {}
        for node in loop.post_order(value):
            if not isinstance(node, loop.Load):
                continue
            if node.tensor is self.accumulator:
                if any(i is not self.simplifier(a) for i, a in zip(node.indices, self.axes)):
                    return None
                self.started[node] = self.start
                continue
            side = self._side(node, found)
            if side is None:
                return None
            found[node] = side
        return found

    def _side(self, load: loop.Load, found: Mapping[loop.ScalarExpr, SideInput]) -> SideInput | None:
        sums = [self.simplifier.linear(index) for index in load.indices]
        if load.dtype not in PLAIN or not all(self._affine(s) for s in sums):
            return None
        steps = tuple(tuple(s.terms.get(axis, 0) for axis in self.axes) for s in sums)
        starts = tuple(s.const for s in sums)
        tensor = self.tensors[load.tensor]
        for side in found.values():
            if (side.tensor, side.steps, side.starts) == (tensor, steps, starts):
                return side
        return SideInput(tensor, steps, starts, loop.Local(f"{load.tensor.name}_{len(found)}", load.dtype))

    def _affine(self, value: Linear) -> bool:
        return all(atom in self.axes for atom in value.terms)
