"""Where an accumulator vector goes, and what the caller does with it before it is stored.

A template computes vectors of results and hands each to the `Epilogue`, whose expression gives the vector to store.
`OutputSite.read` loads a side input at the same place (broadcasting where its strides are
zero); `OutputSite.index` gives the output coordinates when an expression needs them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.llvm.text import Index, IRFunction, Value, constant, lanes, tail_mask, vector
from relaylab.codegen.loops.contexts import LaneValue, Ramp, VectorContext, storage_type
from relaylab.codegen.loops.emit import Emitter
from relaylab.loop.expr import Axis, Local, ScalarExpr
from relaylab.loop.scalar import NARROW
from relaylab.loop.show import show


@dataclass(slots=True)
class OutputSite:
    """The output elements that the lanes of a vector stand for.

    `groups` cover the output's axes in order: each is the extents of the axes that it stands for (several when a
    template walks them as one) and the position of lane 0 in them. Lanes run along the last axis; the first
    `active` of `width` are real.
    """

    f: IRFunction
    groups: tuple[tuple[tuple[int, ...], Index], ...]
    width: int
    active: int
    pointers: Mapping[str, Value]

    @property
    def index(self) -> tuple[Index, ...]:
        """The output coordinates of lane 0, one per output axis."""
        found: list[Index] = []
        for extents, position in self.groups:
            found.extend(split_index(self.f, position, extents))
        return tuple(found)

    def address(self, view: MemoryView) -> Index:
        """The element offset of lane 0 in an operand that has the output's rank (stride 0: broadcast)."""
        total: Index = view.offset
        axis = 0
        for extents, position in self.groups:
            strides = view.strides[axis : axis + len(extents)]
            total = self.f.add(total, _group_address(self.f, position, extents, strides))
            axis += len(extents)
        return total

    def read(self, role: str, view: MemoryView) -> Value:
        """The side input `role` at this site as a vector of its own dtype (halves as their bits); its shape broadcasts
        to the output's.
        """
        fitted = broadcast_view(view, sum(len(extents) for extents, _ in self.groups))
        pointer = self.f.offset(self.pointers[role], self.f.mul(self.address(fitted), view.itemsize))
        return load_lanes(
            self.f,
            storage_type(view.dtype),
            pointer,
            self.width,
            self.active,
            fitted.strides[-1] * view.itemsize,
            view.itemsize,
        )


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What becomes of the accumulators: an optional bias they start from, then an expression.

    `value` is the result of the output's dtype, over the accumulator `start`, elements of side inputs, and `axes`, the
    coordinates of the output; None: the accumulator as it is. `reads` are (what stands for the element, role, view).
    `operands` are the roles of all side inputs, appended to the kernel's operands; `bias` names one of them that holds
    a dense vector along the output's last axis in the accumulators' dtype. `rolled` asks for a loop over the finished
    tile instead of code for every register. `bias_part` is the part of the kernel that the bias belongs to (see
    `IRFunction.at`).
    """

    value: ScalarExpr | None = None
    start: Local = Local("x", "float32")
    reads: tuple[tuple[Local, str, MemoryView], ...] = ()
    axes: tuple[Axis, ...] = ()
    operands: tuple[str, ...] = ()
    bias: str | None = None
    rolled: bool = False
    bias_part: int = 0

    @property
    def label(self) -> str:
        """The text of the expression."""
        return self.start.name if self.value is None else show(self.value)

    def shown(self, accumulator: str) -> str:
        """The label with the accumulator's name in the place of its own."""
        return re.sub(rf"\b{self.start.name}\b", accumulator, self.label)

    def apply(self, f: IRFunction, accumulator: Value, site: OutputSite, target: CpuTarget) -> Value:
        """The vector to store; storing it belongs to the last part, `f.at(0)` comes after that."""
        if self.value is None:
            return accumulator
        env: dict[ScalarExpr, LaneValue] = {self.start: accumulator}
        if self.axes:
            env |= {axis: Ramp(at, int(axis is self.axes[-1])) for axis, at in zip(self.axes, site.index)}
        emitter = Emitter(f, {}, target, lambda: f.value(0))
        for local, role, view in self.reads:
            side = site.read(role, view)
            env[local] = emitter.from_storage(side, view.dtype) if view.dtype in NARROW else side
        at = VectorContext(env, site.width)
        result = emitter.spread(emitter.value(self.value, at), site.width)
        return emitter.to_storage(result, self.value.dtype)


def split_index(f: IRFunction, position: Index, extents: Sequence[int]) -> list[Index]:
    """The coordinates of a row-major position in a box."""
    found: list[Index] = []
    for extent in reversed(extents[1:]):
        found.append(0 if extent == 1 else f.rem(position, extent))
        position = f.div(position, extent)
    return [position, *reversed(found)] if extents else []


def _group_address(f: IRFunction, position: Index, extents: Sequence[int], strides: Sequence[int]) -> Index:
    moving = [(extent, step) for extent, step in zip(extents, strides) if extent > 1]
    if not moving:
        return 0
    if all(outer == step * extent for (_, outer), (extent, step) in zip(moving, moving[1:])):
        return f.mul(position, moving[-1][1])
    return f.dot(split_index(f, position, [extent for extent, _ in moving]), [step for _, step in moving])


def broadcast_view(view: MemoryView, rank: int) -> MemoryView:
    """The view as one of `rank` axes: new leading axes and axes of extent 1 do not move."""
    strides = tuple(0 if extent == 1 else step for extent, step in zip(view.shape, view.strides))
    lead = rank - len(view.shape)
    return MemoryView(view.dtype, (1,) * lead + view.shape, (0,) * lead + strides, view.offset)


def load_lanes(f: IRFunction, type: str, pointer: Value, width: int, active: int, step: int, align: int) -> Value:
    """A vector from memory: lanes `step` bytes apart, those from `active` on are zero."""
    if step == 0:
        return f.splat(f.load(type, pointer, align), width)
    if step != align:
        return _gather_lanes(f, type, pointer, width, active, step, align)
    if active < width:
        return f.masked_load(vector(type, width), pointer, tail_mask(active, width), align)
    return f.load(vector(type, width), pointer, align)


def _gather_lanes(f: IRFunction, type: str, pointer: Value, width: int, active: int, step: int, align: int) -> Value:
    result = constant(vector(type, width), 0)
    for lane in range(active):
        result = f.insert(result, f.load(type, f.offset(pointer, lane * step), align), lane)
    return result


def store_lanes(f: IRFunction, x: Value, pointer: Value, active: int, step: int, align: int) -> None:
    """Store the first `active` lanes, `step` bytes apart."""
    width = lanes(x.type)
    if step != align:
        for lane in range(active):
            f.store(f.extract(x, lane), f.offset(pointer, lane * step), align)
    elif active == width:
        f.store(x, pointer, align)
    else:
        f.masked_store(x, pointer, tail_mask(active, width), align)
