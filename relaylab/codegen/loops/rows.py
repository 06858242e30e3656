"""Loops that are written out around a loop of lanes: what all turns have in common is found before the first.

Much of the code of a product is such: it clears a tile of registers, adds `x * w[c]` to its rows, stores them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaylab.codegen.llvm.text import Value, tail_mask
from relaylab.codegen.llvm.types import affine, parts
from relaylab.codegen.loops.contexts import EVERYWHERE, LaneValue, Mask, Ramp, VectorContext
from relaylab.codegen.loops.emit import Done, Emitter, Way
from relaylab.codegen.loops.order import Step
from relaylab.codegen.loops.streams import AxisSum
from relaylab.loop.expr import Axis, Load, ScalarExpr
from relaylab.loop.program import Define, For, Store, values


@dataclass(frozen=True, slots=True)
class MovingSum:
    """A sum of axes: its part that the loops do not change, and how far each loop and a lane moves it."""

    terms: dict[Value, int]
    start: int
    steps: tuple[int, ...]
    lane: int

    def at(self, turn: Sequence[int], first: int) -> Ramp:
        """The lanes from `first` on, in a turn of the loops."""
        here = self.start + first * self.lane
        for k, step in zip(turn, self.steps):
            here += k * step
        return Ramp(affine(self.terms, here), self.lane)


Plan = list[tuple[MovingSum | None, Way, Step]]


def write_rows(emitter: Emitter, loop: For, at: VectorContext, width_of: Callable[[For], int]) -> bool:
    """Emit a loop of lanes that defines and stores, or loops written out around one; False if it is no such loop.

    `width_of` gives the lanes of a loop that is written out, 0 for any other.
    """
    around: list[Axis] = []
    while loop.kind == "unrolled" and len(loop.body) == 1 and isinstance(loop.body[0], For):
        around.append(loop.axis)
        loop = loop.body[0]
    axis, width = loop.axis, 0
    if loop.kind == "vectorized" and all(isinstance(s, (Define, Store)) for s in loop.body):
        width = width_of(loop)
    if not width:
        return False
    plans: list[tuple[Define | Store, list[Plan]]] = []
    for statement in loop.body:
        assert isinstance(statement, (Define, Store))
        found = [_plan(emitter, root, [*around, axis], at) for root in values(statement)]
        if None in found:
            return False
        plans.append((statement, [plan for plan in found if plan is not None]))
    lanes = [(first, _lanes(at, min(width, axis.extent - first), width)) for first in range(0, axis.extent, width)]
    for turn in itertools.product(*(range(a.extent) for a in around)):
        for statement, plan in plans:
            emitter.f.at(0)
            for first, here in lanes:
                if isinstance(statement, Define):
                    here.env[statement.local] = _value(plan[0], turn, first, here)
                    continue
                where = _value(plan[0], turn, first, here)
                emitter.fresh = emitter.brings(statement.buffer, statement.value)
                x = _value(plan[1], turn, first, here)
                emitter.fresh = False
                emitter.put(statement.buffer, where, emitter.number(statement.value, x, here), here)
    return True


def _lanes(at: VectorContext, count: int, width: int) -> VectorContext:
    """The first `count` of `width` lanes."""
    mask = Mask(None, tail_mask(count, width)) if count < width else EVERYWHERE
    return VectorContext(dict(at.env), width, mask, count)


def _plan(emitter: Emitter, root: ScalarExpr, axes: Sequence[Axis], at: VectorContext) -> Plan | None:
    """The steps of an expression, with the sums of axes among them; None where an address moves with an outer loop."""
    plan: Plan = []
    for way, step in emitter.steps(root):
        node = step.node
        if isinstance(node, Load) and node.indices[0] in emitter.streams:
            return None
        found = (((node, 1),), 0) if isinstance(node, Axis) else emitter.axis_sum(node)
        plan.append((None if found is None else _moving(emitter, found, axes, at), way, step))
    return plan


def _moving(emitter: Emitter, found: AxisSum, axes: Sequence[Axis], at: VectorContext) -> MovingSum:
    inside = {axis: factor for axis, factor in found[0] if axis in axes}
    outside = emitter.total((tuple((a, f) for a, f in found[0] if a not in inside), found[1]), at)
    *steps, lane = (inside.get(axis, 0) for axis in axes)
    return MovingSum(*parts(outside.base), tuple(steps), lane)


def _value(plan: Plan, turn: Sequence[int], first: int, at: VectorContext) -> LaneValue:
    done: Done = []
    for moving, way, step in plan:
        done.append(way(step, done, at) if moving is None else moving.at(turn, first))
    return done[-1]
