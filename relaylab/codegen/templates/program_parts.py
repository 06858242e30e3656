"""What the nests of a loop program share: buffers by role, private buffers, names, places, what epilogues become."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from relaylab.codegen.kernels.kernel import MemoryView, dense_strides
from relaylab.codegen.kernels.views import Halo
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.problem import Problem, Split
from relaylab.loop.expr import Axis, Const, Load, Local, ScalarExpr, Tensor, apply, as_index
from relaylab.loop.program import Body, Define, For, IfThenElse, Statement, Store
from relaylab.loop.simplify import Simplifier

Place = ScalarExpr | int
Groups = Sequence[tuple[tuple[int, ...], ScalarExpr]]
"""Output axes that are walked as one, by their extents, and the position on them."""


@dataclass(slots=True)
class ProgramParts:
    """What the nests of one program share: buffers by role, private buffers, names of loops that are not taken."""

    buffers: dict[str, Tensor]
    scratch: list[Tensor] = field(default_factory=list)
    registers: list[Tensor] = field(default_factory=list)
    simplify: Simplifier = field(default_factory=Simplifier)
    taken: Counter[str] = field(default_factory=Counter)

    def axis(self, name: str, extent: int) -> Axis:
        """A new axis."""
        return Axis(self.name(name), extent)

    def name(self, wanted: str) -> str:
        """The wanted name, or that with a number."""
        self.taken[wanted] += 1
        return wanted if self.taken[wanted] == 1 else f"{wanted}_{self.taken[wanted]}"

    def private(self, kind: str, name: str, size: int, dtype: str) -> Tensor:
        """A new private buffer in "scratch" memory or "registers"."""
        tensor = Tensor(self.name(name), (size,), dtype)
        (self.scratch if kind == "scratch" else self.registers).append(tensor)
        return tensor

    def named(self, name: str, value: Place, into: list[Statement]) -> Place:
        """A place that is computed once, in a register, unless there is nothing to compute."""
        value = self.simplify(as_index(value))
        if isinstance(value, (Axis, Local, Const)):
            return value
        local = Local(self.name(name), value.dtype)
        into.append(Define(local, value))
        return local

    def place(self, terms: Sequence[tuple[Place, int]], start: int = 0) -> ScalarExpr:
        """start + the sum of index * step. A step between rows may be a size: it stands where a number stands."""
        known = [(as_index(at) * step, 1) if isinstance(step, ScalarExpr) else (at, step) for at, step in terms]
        if isinstance(start, ScalarExpr):
            return self.simplify.sum([*known, (start, 1)])
        return self.simplify.sum(known, start)

    def number(self, places: Sequence[Place], extents: Sequence[int]) -> ScalarExpr:
        """The row-major position in a box, whose coordinates `split_place` gives."""
        return self.place([*zip(places, dense_strides(tuple(extents)))])

    def start(self, split: Split, piece: Place) -> ScalarExpr:
        """Where a piece begins."""
        start = as_index(piece) * split.size
        extra = apply("min", as_index(piece), as_index(split.larger)) if split.larger else 0
        return self.simplify(start + extra)

    def stop(self, split: Split, piece: Place) -> ScalarExpr | None:
        """The size of a piece, if it is not that of all."""
        size = self.start(split, as_index(piece) + 1) - self.start(split, piece)
        return self.simplify(size) if split.larger else None

    def blocked(self, name: str, block: Place, size: int, total: int, body: Callable[[Place], Body]) -> Body:
        """A loop over a block of tiles or panels, of which the last one may have fewer."""
        if size == 1:
            return body(block)
        axis, start = self.axis(name, size), list[Statement]()
        at = as_index(self.named(name, as_index(block) * size + axis, start))
        inner = body(at) if total % size == 0 else (IfThenElse(at < total, body(at)),)
        return (For(axis, "serial", (*start, *inner)),)

    def choose(self, index: Place, limit: int, below: Callable[[], Body], other: Callable[[], Body]) -> Body:
        """`below()` where index < limit, else `other()`."""
        condition = self.simplify(as_index(index) < limit)
        if isinstance(condition, Const):
            return below() if condition.value else other()
        return (IfThenElse(condition, below(), other()),)

    def begin(self, epilogue: Epilogue, column: Place, dtype: str) -> ScalarExpr:
        """What the sum of a column begins with: the bias, or zero."""
        if epilogue.bias is None:
            return Const(0, dtype)
        return Load(self.buffers[epilogue.bias], (as_index(column),), epilogue.bias_part)

    def sent(
        self, problem: Problem, epilogue: Epilogue, position: Sequence[Place], column: Place, x: ScalarExpr
    ) -> Store:
        """The store of a finished sum, through the epilogue; `position` is that of the batch member and of the rows."""
        spots = [*zip((problem.batch, *problem.rows), position)]
        where = self.place([*((at, axis.out) for axis, at in spots), (column, problem.out_column)], problem.out_start)
        if epilogue.value is not None:
            groups = [(axis.covers, self.place([(at, axis.scale)], axis.shift)) for axis, at in spots if axis.covers]
            channels = problem.channels or problem.columns
            x = self.finished(epilogue, x, [*groups, ((channels,), as_index(column))])
        return Store(self.buffers["out"], where, x)

    def finished(self, epilogue: Epilogue, x: ScalarExpr, groups: Groups) -> ScalarExpr:
        """What `epilogue` makes of the result `x`; groups of output axes are walked as one, each is at a position."""
        if epilogue.value is None:
            return x
        known = {epilogue.start: x}
        if epilogue.axes:
            index = [i for extents, at in groups for i in split_place(at, extents)]
            known |= {axis: as_index(i) for axis, i in zip(epilogue.axes, index)}
        for local, role, view in epilogue.reads:
            # New leading axes and axes of extent 1 do not move.
            steps = [0] * (sum(len(extents) for extents, _ in groups) - len(view.shape))
            steps += (0 if extent == 1 else step for extent, step in zip(view.shape, view.strides))
            terms: list[tuple[Place, int]] = []
            for extents, at in groups:
                terms += _group_terms(at, extents, [steps.pop(0) for _ in extents])
            known[local] = Load(self.buffers[role], (self.place(terms, view.offset),))
        return self.simplify(epilogue.value, {k: self.simplify(v) for k, v in known.items()})


def epilogue_buffers(epilogue: Epilogue, channels: int, dtype: str) -> dict[str, Tensor]:
    """The side inputs of an epilogue by role, with as many elements as are read; a bias has `channels` of `dtype`."""
    views, bias = {role: view for _, role, view in epilogue.reads}, MemoryView.dense((channels,), dtype)
    return {role: operand(role, views.get(role, bias)) for role in epilogue.operands}


def operand(role: str, view: MemoryView, halo: Halo = ()) -> Tensor:
    """The memory of an operand up to the last element of its view, or of the zeros after it that are read."""
    more = [after for _, after in halo] or [0] * len(view.shape)
    last = sum((n + after - 1) * step for n, after, step in zip(view.shape, more, view.strides))
    return Tensor(role, (view.offset + last + 1,), view.dtype)


def _group_terms(at: ScalarExpr, extents: Sequence[int], steps: Sequence[int]) -> list[tuple[Place, int]]:
    """The address of a position in a box, as one product where the box lies evenly."""
    moving = [(extent, step) for extent, step in zip(extents, steps) if isinstance(extent, ScalarExpr) or extent > 1]
    if all(outer == step * extent for (_, outer), (extent, step) in zip(moving, moving[1:])):
        return [(at, moving[-1][1])] if moving else []
    return list(zip(split_place(at, extents), steps))


def around(body: Body, axes: Sequence[Axis], kind: str, stops: Sequence[ScalarExpr | None] = ()) -> Body:
    """Loops around a body, which end at `stops`; none of one turn, and nothing where one has no turn.

    What was simplified in the body knows no axis of one turn.
    """
    for axis, stop in reversed([*zip_longest(axes, stops)]):
        if axis.extent == 0:
            return ()
        if axis.extent > 1 or stop is not None:
            body = (For(axis, kind, body, stop=stop),)
    return body


def split_place(position: Place, extents: Sequence[int]) -> list[Place]:
    """The coordinates of a row-major position in a box."""
    found: list[Place] = []
    for k, extent in reversed([*enumerate(extents)]):
        outermost = math.prod(extents[:k]) == 1
        found.append(0 if extent == 1 else position if outermost else as_index(position) % extent)
        position = position if extent == 1 else as_index(position) // extent
    return found[::-1]
