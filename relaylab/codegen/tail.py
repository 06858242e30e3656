"""The elementwise operators after a contraction, as the epilogue of its template.

A `Tail` is one scalar expression over the accumulator and elements of side inputs that lie at affine places of the
output index (the same place, a broadcast, a slice). What is not of this kind has no tail and is computed afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relaylab.codegen.contraction import Contraction
from relaylab.codegen.emit import Emitter, Lanes
from relaylab.codegen.inside import Inside, Views
from relaylab.codegen.irtext import IRFunction, Value
from relaylab.codegen.kernel import View
from relaylab.codegen.network import Tensor
from relaylab.codegen.network import Value as Operand
from relaylab.codegen.target import Target
from relaylab.codegen.templates import Epilogue, Site
from relaylab.ir import Call, Expr
from relaylab.loop import expr as loop
from relaylab.loop.affine import Linear
from relaylab.loop.group import Group
from relaylab.loop.show import show
from relaylab.loop.simplify import Simplifier
from relaylab.loop.weight import weight

HEAVY = 12   # from this cost on, the code is worth a loop of its own
PLAIN = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@dataclass(frozen=True, slots=True)
class Side:
    """One way in which the tail reads a side input: the step of each of its axes per axis of the output, and a start."""

    tensor: Tensor
    steps: tuple[tuple[int, ...], ...]
    starts: tuple[int, ...]
    local: loop.Local

    def view(self, views: Views, shape: tuple[int, ...]) -> View:
        """The side input as a view over the output's axes; axes along which it does not move have stride 0."""
        own = views(self.tensor)
        strides = tuple(sum(s * row[axis] for s, row in zip(own.strides, self.steps)) for axis in range(len(shape)))
        offset = own.offset + sum(s * start for s, start in zip(own.strides, self.starts))
        return View(own.dtype, shape, strides, offset)


@dataclass(frozen=True, slots=True)
class Tail:
    """The expression that becomes of the accumulator `start`, and the sides that it reads.

    `parts[k - 1]` is what part k of the expression comes from.
    """

    value: loop.Expr
    start: loop.Local
    sides: tuple[Side, ...]
    shape: tuple[int, ...]
    dtype: str
    parts: tuple[Expr, ...] = ()

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """What is read, one for every way in which it is read."""
        return tuple(side.tensor for side in self.sides)

    def fits(self, contraction: Contraction) -> bool:
        """Whether the template can read all sides where they are row-major."""
        dense = lambda tensor: View.dense(tensor.shape, tensor.dtype)
        return all(contraction.places(side.view(dense, self.shape)) for side in self.sides)

    def epilogue(self, views: Views, contraction: Contraction, target: Target) -> Epilogue:
        """The epilogue; its operands are "side0", "side1" … in the order of `tensors`."""
        roles = tuple(f"side{k}" for k in range(len(self.sides)))
        places = [contraction.out_view(side.view(views, self.shape)) for side in self.sides]
        bias, value, part = self._bias(places)
        role = None if bias is None else roles[bias]
        if value is self.start and self.dtype == self.start.dtype:
            return Epilogue(None, roles, role, bias_part=part)
        locals_ = [side.local for side in self.sides]
        used = set(loop.post_order(value))
        reads = [(local, role, view) for local, role, view in zip(locals_, roles, places) if local in used]
        emit = _Emit(value, self.start, tuple(reads), self.dtype, target.isa == "avx512")
        return Epilogue(emit, roles, role, show(value), weight(value) >= HEAVY, part)

    def _bias(self, places: Sequence[View]) -> tuple[int | None, loop.Expr, int]:
        """The side that the accumulators can start from, what is left of the expression without it, and its part."""
        nodes = list(loop.post_order(self.value))
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


@dataclass(frozen=True, slots=True)
class _Emit:
    """Emits the tail at a site of the template."""

    value: loop.Expr
    start: loop.Local
    reads: tuple[tuple[loop.Local, str, View], ...]
    dtype: str
    wide: bool

    def __call__(self, f: IRFunction, accumulator: Value, site: Site) -> Value:
        env: dict[loop.Expr, Value] = {self.start: accumulator}
        env |= {local: site.read(role, view) for local, role, view in self.reads}
        emitter = Emitter(f, {}, self.wide, lambda: f.value(0))
        at = Lanes(env, site.width)
        result = emitter.spread(emitter.value(self.value, at), site.width)
        return emitter.to_storage(result, self.dtype)


def tail_of(root: Expr, anchor: Call, known: Mapping[Expr, Operand]) -> Tail | None:
    """The tail from a contraction `anchor` to `root`; `known` are the values of what else it reads.

    None if an operator between reads anything but elements at affine places, or dtypes that vectors do not hold.
    """
    reader = _Tail(anchor, known)
    value = reader.expression(root)
    sides = reader.sides(value)
    if sides is None or root.checked_type.dtype not in (*PLAIN, "bool"):
        return None
    replaced = Simplifier()(value, {load: side.local for load, side in sides.items()} | reader.started)
    if any(isinstance(n, (loop.Load, loop.Reduce, loop.Axis, loop.Guard)) for n in loop.post_order(replaced)):
        return None
    distinct = tuple({side.local: side for side in sides.values()}.values())
    return Tail(replaced, reader.start, distinct, reader.shape, root.checked_type.dtype, tuple(reader.parts))


class _Tail:
    """The scalar expression of the tail, element reads found and named."""

    def __init__(self, anchor: Call, known: Mapping[Expr, Operand]):
        type_ = anchor.checked_type
        self.anchor, self.known, self.shape = anchor, known, type_.concrete_shape
        self.accumulator = loop.Tensor("x", self.shape, type_.dtype)
        self.start = loop.Local("x", type_.dtype)
        self.axes = tuple(loop.Axis(f"i{d}", n) for d, n in enumerate(self.shape))
        self.simplifier = Simplifier()
        self.tensors: dict[loop.Tensor, Tensor] = {}
        self.started: dict[loop.Expr, loop.Expr] = {}
        self.parts: list[Expr] = []

    def expression(self, root: Expr) -> loop.Expr:
        """The element of `root` at the axes."""
        inside = Inside(Group("tail"))
        inside.values = {expr: self._readable(value) for expr, value in self.known.items()}
        inside.values[self.anchor] = self.accumulator
        value = inside.value(root)
        self.parts = inside.parts
        return self.simplifier(inside.group.inlined(loop.Load(value, self.axes)))

    def _readable(self, value: Operand) -> loop.Tensor | tuple:
        if not isinstance(value, Tensor):
            return tuple(map(self._readable, value))
        for readable, tensor in self.tensors.items():
            if tensor is value:
                return readable
        readable = loop.Tensor(f"s{len(self.tensors)}", value.shape, value.dtype)
        self.tensors[readable] = value
        return readable

    def sides(self, value: loop.Expr) -> dict[loop.Expr, Side] | None:
        """The side that each element read stands for; None if one is not at an affine place."""
        found: dict[loop.Expr, Side] = {}
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

    def _side(self, load: loop.Load, found: Mapping[loop.Expr, Side]) -> Side | None:
        sums = [self.simplifier.linear(index) for index in load.indices]
        if load.dtype not in PLAIN or not all(self._affine(s) for s in sums):
            return None
        steps = tuple(tuple(s.terms.get(axis, 0) for axis in self.axes) for s in sums)
        starts = tuple(s.const for s in sums)
        tensor = self.tensors[load.tensor]
        for side in found.values():
            if (side.tensor, side.steps, side.starts) == (tensor, steps, starts):
                return side
        return Side(tensor, steps, starts, loop.Local(f"{load.tensor.name}_{len(found)}", load.dtype))

    def _affine(self, value: Linear) -> bool:
        return all(atom in self.axes for atom in value.terms)
