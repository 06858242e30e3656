"""Scalar expressions of the loop level as LLVM values, for one lane or a vector of lanes.

An expression that does not change along the vectorised axis stays a scalar and is spread over the lanes only where
it meets a vector. Index arithmetic stays symbolic as long as it is a sum (`Ramp`); lanes that need it as numbers get
i32 vectors where its bounds allow. Guards do not branch: loads below a guard are masked, and those that are not
needed at all read a dummy.

Choices: docs/choices.md, Numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.codegen.llvm.text import (
    Index,
    IRFunction,
    Value,
    constant,
    element,
    lanes,
    literal_vector,
    spelled,
    tail_mask,
    vector,
)
from relaylab.codegen.llvm.types import affine, parts
from relaylab.codegen.loops import scalars
from relaylab.codegen.loops.byte_products import dot4
from relaylab.codegen.loops.contexts import (
    LaneValue,
    Mask,
    Ramp,
    VectorContext,
    as_lane,
    foreign,
    from_storage,
    storage_type,
    to_storage,
    zero,
)
from relaylab.codegen.loops.order import Done, EmissionStep, Way, steps_of
from relaylab.codegen.loops.register_cells import RegisterCells
from relaylab.codegen.loops.streams import AxisSum, Place, Stream, axes_of, place_of
from relaylab.codegen.loops.strided import FARTHEST, strided
from relaylab.loop.expr import INDEX, Apply, Cast, Const, Guard, Load, Local, ScalarExpr, Size, Tensor, children
from relaylab.loop.simplify import Simplifier

# 64 lanes of 8 bytes: the widest vector that a masked load may read there.
DUMMY_BYTES = 512
INT32 = (-(2**31), 2**31 - 1)
LINE = 64


@dataclass(slots=True)
class Emitter:
    """Emits expressions into a function; `pointers` hold the base of every buffer."""

    f: IRFunction
    pointers: Mapping[Tensor, Value]
    target: CpuTarget
    dummy: Value | None  # what loads read that are not wanted
    registers: frozenset[Tensor]  # buffers that live there
    shared: frozenset[Tensor]  # buffers of which an element need not be loaded twice
    aligned: frozenset[Tensor]  # buffers that begin with a cache line
    varying: frozenset[Local]  # registers of indices that may differ between lanes
    fuses: bool  # is a product that is added one instruction?
    sizes: Mapping[int, Ramp]
    fresh: bool = False  # is an element to be loaded even if it was before?
    halves: bool = field(init=False)  # has the target conversions of float16?
    cells: RegisterCells = field(init=False)
    facts: Simplifier = field(default_factory=Simplifier)
    streams: dict[Place, tuple[Stream, AxisSum, Value]] = field(default_factory=dict)
    _steps: dict[ScalarExpr, list[tuple[Way, EmissionStep]]] = field(default_factory=dict)
    _sums: dict[ScalarExpr, AxisSum | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.cells = RegisterCells(self.f, self.registers)
        self.halves = self.target.converts_halves

    def value(self, root: ScalarExpr, at: VectorContext) -> Value:
        """The value of `root`: a scalar when all lanes agree, else a vector."""
        return self.number(root, self.lane(root, at), at)

    def lane(self, root: ScalarExpr, at: VectorContext) -> LaneValue:
        """The value of `root`, an index possibly as a symbolic sum."""
        found = self.axis_sum(root) if root.dtype == INDEX else None
        if found is not None:
            return self.total(found, at)
        done: Done = []
        for way, step in self.steps(root):
            done.append(way(self, step, done, at))
        return done[-1]

    def steps(self, root: ScalarExpr) -> list[tuple[Way, EmissionStep]]:
        """What emits an expression, step by step."""
        found = self._steps.get(root)
        if found is None:
            found = self._steps[root] = [(self._way(step), step) for step in steps_of(root, self._operands)]
        return found

    def _operands(self, node: ScalarExpr) -> Sequence[ScalarExpr]:
        """What is emitted before a node."""
        if self.axis_sum(node) is not None or isinstance(node, Load) and place_of(node) in self.streams:
            return ()
        return self.fused(node) or children(node)

    def _way(self, step: EmissionStep) -> Way:
        """What emits a step: no bound method, so that an emitter goes when it is done, without a search for cycles."""
        node = step.node
        match node:
            case Const(value, dtype):
                x = Ramp(int(value)) if dtype == INDEX else constant(scalars.register_type(dtype), value)
                return lambda *_: x
            case Size(_, slot):
                return lambda emitter, *_: emitter.sizes[slot]
            case Load(tensor) if tensor in self.cells.tensors and tensor.shape[0]:
                return Emitter._register
            case Load():
                return Emitter._streamed_load if place_of(node) in self.streams else Emitter._load
            case Guard():
                return Emitter._limit if step.limits else Emitter._guard
            case Cast():
                return Emitter._cast
            case Apply():
                summed = self.axis_sum(node)
                if summed is not None:
                    return lambda emitter, step, done, at: emitter.total(summed, at)
                return Emitter._apply if self.fused(node) is None else Emitter._product
        return Emitter._known

    def fused(self, node: ScalarExpr) -> tuple[ScalarExpr, ScalarExpr, ScalarExpr] | None:
        """(a, x, y) of dot4(a, x, y), and of a float sum a + x * y if that is to be one instruction."""
        match node:
            case Apply("dot4", (total, x, y)):
                return total, x, y
            case Apply("add", (total, Apply("mul", (x, y))), "float32" | "float64") if self.fuses:
                return total, x, y
        return None

    def axis_sum(self, node: ScalarExpr) -> AxisSum | None:
        """An index that is a sum of axes, without a look at what it is made of; None for any other."""
        if node.dtype != INDEX or not isinstance(node, Apply):
            return None
        if node not in self._sums:
            found = axes_of(node)
            plain = found is not None and self.varying.isdisjoint(atom for atom, _ in found[0])
            self._sums[node] = found if plain else None
        return self._sums[node]

    def total(self, found: AxisSum, at: VectorContext) -> Ramp:
        """The value of a sum of axes."""
        fixed, step, env = found[1], 0, at.env
        terms: dict[Value, int] = {}
        for axis, factor in found[0]:
            x = env.get(axis)
            if not isinstance(x, Ramp):
                raise foreign(axis)
            base, own_step = x
            if not isinstance(factor, int):  # of an axis that no lane moves along
                base, factor = self.f.mul(base, factor), 1
            step += own_step * factor
            if isinstance(base, int):
                fixed += base * factor
            elif isinstance(base, Value):
                terms[base] = terms.get(base, 0) + factor
            else:
                fixed += base.const * factor
                for term, times in base.terms.items():
                    terms[term] = terms.get(term, 0) + times * factor
        if 0 in terms.values():
            terms = {term: times for term, times in terms.items() if times}
        return Ramp(affine(terms, fixed), step)

    # ---- one node

    def _known(self, step: EmissionStep, done: Done, at: VectorContext) -> LaneValue:
        found = at.env.get(step.node)
        if found is None:
            raise foreign(step.node)
        return found

    def _mask(self, step: EmissionStep, done: Done, at: VectorContext) -> Mask:
        return at.mask if step.mask < 0 else done[step.mask]

    def _limit(self, step: EmissionStep, done: Done, at: VectorContext) -> Mask:
        """The mask under a guard."""
        mask = self._mask(step, done, at)
        condition = self.number(step.node.condition, done[step.operands[0]], at)
        if lanes(condition.type) == 1:
            return Mask(self._both(mask.scalar, condition), mask.lanes)
        return Mask(mask.scalar, self._both(mask.lanes, condition))

    def _both(self, around: Value | None, condition: Value) -> Value:
        return condition if around is None else self.f.binary("and", around, condition)

    def _guard(self, step: EmissionStep, done: Done, at: VectorContext) -> LaneValue:
        node, below = step.node, self._mask(step, done, at)
        x = done[step.operands[1]]
        masked = isinstance(x, Value) and lanes(x.type) > 1 and below.scalar is None
        bare = isinstance(node.value, Load) and node.value.tensor not in self.cells.tensors
        if masked and bare and zero(node.otherwise):
            return x  # lanes that are not loaded are 0
        return self._function("select", node, children(node), [done[k] for k in step.operands], at)

    def _product(self, step: EmissionStep, done: Done, at: VectorContext) -> LaneValue:
        """A total and a product as one instruction."""
        if step.node.part:
            self.f.at(step.node.part)
        total, x, y = self._alike([done[k] for k in step.operands])
        if step.node.dtype == "int32":  # of bytes in words
            return dot4(self.f, total, x, y, self.target.byte_products.name)
        return self.f.fma(x, y, total)

    def _apply(self, step: EmissionStep, done: Done, at: VectorContext) -> LaneValue:
        node: Apply = step.node
        if node.part:
            self.f.at(node.part)
        return self._function(node.op, node, node.args, [done[k] for k in step.operands], at)

    def _function(
        self, op: str, node: ScalarExpr, args: Sequence[ScalarExpr], given: list[Any], at: VectorContext
    ) -> LaneValue:
        """A function of arguments whose lane values are given."""
        if args[-1].dtype != INDEX:
            return scalars.apply(self.f, op, args[-1].dtype, self._alike(given), self.target.facts)
        if node.dtype == INDEX and len(args) == 2:
            exact = self._linear(op, args, given)
            if exact is not None:
                return exact
        match op, given:
            case "lt", [Ramp(int(first), 1), Ramp(int(stop), 0)]:  # the first lanes
                return tail_mask(stop - first, at.width)
        values = [self.number(e, v, at) for e, v in zip(args, given)]
        width = max(lanes(v.type) for v in values)
        spread = [self.spread(self._slim(e, v, width), width) for e, v in zip(args, values)]
        return self._index_function(op, node, spread)

    def _alike(self, values: list[Value]) -> list[Value]:
        """Values of as many lanes as any of them has."""
        types = [v.type for v in values]
        if types.count(types[0]) == len(types):
            return values
        width = max(map(lanes, types))
        return [self.spread(v, width) for v in values]

    def _linear(self, op: str, args: Sequence[ScalarExpr], given: list[Any]) -> Ramp | None:
        """Sums and products of symbolic indices; None if the function is no such thing."""
        a, c = given
        if not isinstance(a, Ramp) or not isinstance(c, Ramp):
            return None
        if op == "add":
            return Ramp(self.f.add(a.base, c.base), a.step + c.step)
        if op == "sub":
            return Ramp(self.f.sub(a.base, c.base), a.step - c.step)
        if op == "mul" and isinstance(a.base, int) and a.step == 0:
            a, c = c, a
        if op == "mul" and isinstance(c.base, int) and c.step == 0:
            return Ramp(self.f.mul(a.base, c.base), a.step * c.base)
        if op == "mul" and a.step == 0 and c.step == 0:
            return Ramp(self.f.mul(a.base, c.base))
        divides = op in ("floordiv", "floormod", "truncdiv", "truncmod", "div") and self.facts.bounds(args[0])[0] >= 0
        if divides and a.step == 0 and c.step == 0 and isinstance(c.base, int) and c.base > 0:
            return Ramp(self.f.rem(a.base, c.base) if op.endswith("mod") else self.f.div(a.base, c.base))
        return None

    def _index_function(self, op: str, node: ScalarExpr, args: list[Value]) -> LaneValue:
        """A function of int64 numbers, done in 32 bits where operands and result fit."""
        narrow = all(element(a.type) != "i64" for a in args) and self._narrow(node)
        wide = lanes(args[-1].type) > 1 and node.dtype == INDEX and not narrow
        if wide or len({element(a.type) for a in args[-2:]}) > 1:
            args = [a if element(a.type) == "i1" else scalars.resize(self.f, a, "i64", True) for a in args]
        result = scalars.apply(self.f, op, INDEX, args)
        if node.dtype != INDEX:
            return result
        if lanes(result.type) == 1:
            return Ramp(result)
        return scalars.resize(self.f, result, "i32", True) if self._narrow(node) else result

    def _narrow(self, node: ScalarExpr) -> bool:
        low, high = self.facts.bounds(node)
        return node.dtype == INDEX and INT32[0] <= low and high <= INT32[1]

    def _slim(self, node: ScalarExpr, x: Value, width: int) -> Value:
        """An index that meets a vector, in 32 bits if it fits them."""
        return scalars.resize(self.f, x, "i32", True) if width > 1 and x.type == "i64" and self._narrow(node) else x

    def _cast(self, step: EmissionStep, done: Done, at: VectorContext) -> LaneValue:
        node: Cast = step.node
        if node.part:
            self.f.at(node.part)
        number, source, dtype = self.number(node.value, done[step.operands[0]], at), node.value.dtype, node.dtype
        if source == INDEX and element(number.type) == "i32":
            source = "int32"
        result = scalars.cast(self.f, number, source, dtype, self.halves)
        return as_lane(result, dtype)

    # ---- numbers and lanes

    def number(self, node: ScalarExpr, x: LaneValue, at: VectorContext) -> Value:
        """A lane value as an LLVM value; an index that differs between lanes as an i32 or i64 vector."""
        if isinstance(x, Value):
            return x
        if x.step == 0:
            return self.f.value(x.base)
        type = "i32" if self._narrow(node) else "i64"
        base = scalars.resize(self.f, self.f.value(x.base), type, True)
        # 32-bit indices where bounds allow: twice as many in a register, and gathers take them as they are.
        ramp = literal_vector(type, (k * x.step for k in range(at.width)))
        return self.f.binary("add", self.f.splat(base, at.width), ramp)

    def spread(self, x: Value, width: int) -> Value:
        """A scalar in all of `width` lanes; constants without instructions."""
        if lanes(x.type) == width:
            return x
        if x.ref[0] != "%":
            return spelled(vector(x.type, width), x.ref)
        return self.f.splat(x, width)

    # ---- memory

    def _load(self, step: EmissionStep, done: Done, at: VectorContext) -> LaneValue:
        known = at.env.get(step.node)
        return self.load(step, done[step.operands[0]], done, at) if known is None else known

    def _streamed_load(self, step: EmissionStep, done: Done, at: VectorContext) -> LaneValue:
        return self.load(step, self.total(self.streams[place_of(step.node)][1], at), done, at)

    def load(self, step: EmissionStep, where: LaneValue, done: Done, at: VectorContext) -> LaneValue:
        """Elements at an address, or so far from the pointer that moves to it."""
        node: Load = step.node
        if node.part:
            self.f.at(node.part)
        place, mask, storage = place_of(node), self._mask(step, done, at), storage_type(node.dtype)
        if node.tensor.shape[0] == 0:
            x = constant(storage, 0)
        elif isinstance(where, Ramp) and where.step in (0, 1):
            x = self._near(place, where, mask, at)
        elif isinstance(where, Ramp) and where.step == -1 and at.width > 1:
            first, back = Ramp(self.f.sub(where.base, at.width - 1), 1), range(at.width)[::-1]
            turned = mask.lanes and self.f.shuffle(mask.lanes, mask.lanes, back)
            x = self._near(place, first, Mask(mask.scalar, turned), at)
            x = self.f.shuffle(x, x, back)
        elif isinstance(where, Ramp) and 1 < where.step <= min(FARTHEST, at.width):
            part = lambda first, lanes: self._near(
                place, Ramp(self.f.add(where.base, first), 1), Mask(mask.scalar, lanes), at
            )
            x = strided(self.f, where.step, at.width, mask.lanes, part)
        else:
            pointer, positions = self._positions(place, where, at)
            wanted = mask.lanes
            if mask.scalar is not None:
                every = self.f.splat(mask.scalar, at.width)
                wanted = every if mask.lanes is None else self.f.binary("and", every, mask.lanes)
            x = self.f.gather(vector(storage, at.width), pointer, positions, item_bytes(node.dtype), wanted)
        return from_storage(self.f, x, node.dtype, self.halves)

    def _register(self, step: EmissionStep, done: Done, at: VectorContext) -> LaneValue:
        """Elements of a buffer that lives in registers."""
        tensor, where = step.node.tensor, done[step.operands[0]]
        if step.node.part:
            self.f.at(step.node.part)
        assert isinstance(where, Ramp) and isinstance(where.base, int), "the schedule made sure of it"
        wide = where.step == 1 and at.width > 1
        count, width = (at.real or at.width, at.width) if wide else (1, 1)
        x = self.cells.read(tensor, where.base, count, width)
        return as_lane(x, tensor.dtype)

    def _rest(self, place: Place, at: VectorContext) -> LaneValue:
        """An address, or its distance from the pointer that moves to it."""
        return self.total(self.streams[place][1], at) if place in self.streams else self.lane(place[1], at)

    def _pointer(self, place: Place, where: Ramp) -> Value:
        """The pointer to an address, which `_rest` gave."""
        near = self.streams[place][2] if place in self.streams else self.pointers[place[0]]
        return self.f.offset(near, where.base, item_bytes(place[0].dtype))

    def _alignment(self, place: Place, base: Index, size: int) -> int:
        """What divides an address in bytes, which `_rest` gave."""
        if place[0] not in self.aligned:
            return size
        terms, const = parts(base)
        begin = self.streams[place][0].divisor if place in self.streams else 0
        return math.gcd(LINE, size * math.gcd(begin, const, *terms.values()))

    def _near(self, place: Place, where: Ramp, mask: Mask, at: VectorContext) -> Value:
        """One element, or consecutive elements."""
        tensor, step = place[0], where.step
        storage, size = storage_type(tensor.dtype), item_bytes(tensor.dtype)
        pointer, align = self._pointer(place, where), self._alignment(place, where.base, size)
        scalar = mask.scalar
        if step == 0 and mask.lanes is not None and mask.lanes is not at.mask.lanes:
            scalar = self._both(scalar, self.f.any(mask.lanes))
        if scalar is not None:
            # A branch would end the vector code: a load that is not wanted reads the dummy instead, and its value is
            # dropped.
            assert self.dummy is not None, "a program with guards has one"
            pointer = self.f.select(scalar, pointer, self.dummy)
        type = storage if step == 0 else vector(storage, at.width)
        shared = tensor in self.shared and scalar is None and not self.fresh
        if step == 0 or mask.lanes is None:
            return self.f.load(type, pointer, align, once=shared)
        return self.f.load(type, pointer, size, mask.lanes, once=shared)

    def _positions(self, place: Place, where: LaneValue, at: VectorContext) -> tuple[Value, Value]:
        """A pointer and the positions of the lanes relative to it."""
        tensor = place[0]
        if isinstance(where, Ramp):
            return self._pointer(place, where), literal_vector("i64", (k * where.step for k in range(at.width)))
        if element(where.type) == "i32" and tensor.shape[0] * item_bytes(tensor.dtype) > INT32[1]:
            where = scalars.resize(self.f, where, "i64", True)
        return self.pointers[tensor], where

    def store(self, tensor: Tensor, address: ScalarExpr, value: ScalarExpr, at: VectorContext) -> None:
        """`tensor[address] = value` in all real lanes."""
        where = self._rest((tensor, address), at)
        self.fresh = self.brings(tensor, value)
        x = self.value(value, at)
        self.fresh = False
        self.put((tensor, address), where, x, at)

    def brings(self, tensor: Tensor, value: ScalarExpr) -> bool:
        """Is it what a program brings into registers, and so to be loaded there?"""
        return isinstance(value, Load) and tensor in self.cells.tensors

    def put(self, place: Place, where: LaneValue, x: Value, at: VectorContext) -> None:
        """A value into all real lanes of a place: `where` in its buffer, or from the pointer that moves to it on."""
        x, tensor = self.spread(x, at.width), place[0]
        if tensor in self.cells.tensors:
            assert isinstance(where, Ramp) and isinstance(where.base, int), "the schedule made sure of it"
            x = scalars.resize(self.f, x, "i64", True) if tensor.dtype == INDEX else x
            self.cells.write(tensor, where.base, (at.real or at.width) if at.width > 1 else 1, x)
            return
        x, size = to_storage(self.f, x, tensor.dtype, self.halves), item_bytes(tensor.dtype)
        if isinstance(where, Ramp) and (where.step == 1 or at.width == 1):
            return self.f.store(x, self._pointer(place, where), size, at.mask.lanes)
        pointer, positions = self._positions(place, where, at)
        self.f.scatter(x, pointer, positions, size, at.mask.lanes)

    def prefetch(self, tensor: Tensor, address: ScalarExpr, at: VectorContext, near: bool) -> None:
        """Ask for the line of `tensor[address]`."""
        where = self._rest((tensor, address), at)
        if isinstance(where, Ramp) and tensor in self.pointers:
            self.f.prefetch(self._pointer((tensor, address), where), near)
