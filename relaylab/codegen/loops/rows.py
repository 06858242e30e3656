"""Loops that are written out around a loop of lanes: what all turns have in common is found before the first.

Much of the code of a product is such: it clears a tile of registers, adds `x * w[c]` to its rows, stores them.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from relaylab.codegen.llvm.text import Value
from relaylab.codegen.llvm.types import affine, parts
from relaylab.codegen.loops.contexts import LaneValue, Ramp, VectorContext, first_lanes
from relaylab.codegen.loops.emit import Emitter
from relaylab.codegen.loops.order import Done, EmissionStep, Way
from relaylab.codegen.loops.streams import AxisSum, place_of
from relaylab.loop.expr import Axis, Load, ScalarExpr
from relaylab.loop.program import Define, For, Statement, Store, values


@dataclass(slots=True)
class MovingSum:
    """A sum of axes: its part that the loops do not change, where each turn of theirs is, and how far a lane is."""

    terms: dict[Value, int]
    places: list[int]
    lane: int
    apart: Value | None = None  # of rows whose distance is an argument: how far, and which row a turn is
    rows: Sequence[int] = ()

    def at(self, turn: int, first: int) -> Ramp:
        """The lanes from `first` on, in a turn of the loops."""
        here = self.places[turn] + first * self.lane
        if self.apart is not None and self.rows[turn]:
            return Ramp(affine(self.terms | {self.apart: self.rows[turn]}, here), self.lane)
        return Ramp(affine(self.terms, here), self.lane) if self.terms else _ramp(here, self.lane)


_ramp = lru_cache(maxsize=4096)(Ramp)  # places in registers are read and written again and again

Plan = list[tuple[MovingSum | None, Way, EmissionStep]]
"""Steps with what moves: a sum of axes, or the rest of an address that moves with an outer loop."""


def write_rows(emitter: Emitter, loop: For, at: VectorContext, width_of: Callable[[For], int]) -> bool:
    """Emit a loop of lanes that defines and stores, or loops written out around one; False if it is no such loop.

    Registers may be defined before the loop of lanes. `width_of` gives the lanes of a loop that is written out, 0 for
    any other.
    """
    around, before = list[Axis](), list[Define]()
    while loop.kind == "unrolled" and loop.body and not before and isinstance(loop.body[-1], For):
        before = [s for s in loop.body if isinstance(s, Define)]
        if len(before) + 1 < len(loop.body):
            return False
        around.append(loop.axis)
        loop = loop.body[-1]
    axis, width = loop.axis, 0
    if loop.kind == "vectorized" and all(isinstance(s, (Define, Store)) for s in loop.body):
        width = width_of(loop)
    if not width:
        return False
    plan = lambda s: (s, [_plan(emitter, root, [*around, axis], at, s) for root in values(s)])
    scalars, vectors = [plan(s) for s in before], [plan(s) for s in loop.body]
    lanes: list[tuple[int, VectorContext]] = []
    for first in range(0, axis.extent, width):
        count = min(width, axis.extent - first)
        lanes.append((first, VectorContext(dict(at.env), width, first_lanes(count, width), count)))
    alone = VectorContext(dict(at.env), at.width, at.mask, at.real)
    for turn in range(math.prod(a.extent for a in around)):
        for define, plans in scalars:
            emitter.f.at(0)
            x = alone.env[define.local] = _value(emitter, plans[0], turn, 0, alone)
            for _, here in lanes:
                here.env[define.local] = x
        for statement, plans in vectors:
            emitter.f.at(0)
            for first, here in lanes:
                _write(emitter, statement, plans, turn, first, here)
    return True


def _write(
    emitter: Emitter, statement: Statement, plans: Sequence[Plan], turn: int, first: int, at: VectorContext
) -> None:
    """A statement for the lanes from `first` on."""
    if isinstance(statement, Define):
        at.env[statement.local] = _value(emitter, plans[0], turn, first, at)
    elif isinstance(statement, Store):
        assert statement.value.dtype == statement.buffer.dtype, f"{statement.value.dtype} is stored as another dtype"
        place = (statement.buffer, statement.address)
        (moving, _, step), *more = plans[0]
        if more or moving is None or isinstance(step.node, Load):
            where = _value(emitter, plans[0], turn, first, at)
        else:  # as nearly all are
            where = moving.at(turn, first)
        emitter.fresh = emitter.brings(statement.buffer, statement.value)
        x = _value(emitter, plans[1], turn, first, at)
        emitter.fresh = False
        emitter.put(place, where, x if isinstance(x, Value) else emitter.number(statement.value, x, at), at)


def _plan(
    emitter: Emitter, root: ScalarExpr, axes: Sequence[Axis], at: VectorContext, statement: Define | Store
) -> Plan:
    plan: Plan = []
    if isinstance(statement, Store) and root is statement.address and (statement.buffer, root) in emitter.streams:
        return [(_moving(emitter, emitter.streams[statement.buffer, root][1], axes, at), *emitter.steps(root)[-1])]
    for way, step in emitter.steps(root):
        node = step.node
        if isinstance(node, Load) and place_of(node) in emitter.streams:
            plan.append((_moving(emitter, emitter.streams[place_of(node)][1], axes, at), way, step))
            continue
        found = (((node, 1),), 0) if isinstance(node, Axis) else emitter.axis_sum(node)
        plan.append((None if found is None else _moving(emitter, found, axes, at), way, step))
    return plan


def _moving(emitter: Emitter, found: AxisSum, axes: Sequence[Axis], at: VectorContext) -> MovingSum:
    inside = {axis: factor for axis, factor in found[0] if axis in axes}
    outside = emitter.total((tuple((a, f) for a, f in found[0] if a not in inside), found[1]), at)
    *around, lane = axes
    terms, start = parts(outside.base)
    places, rows, apart = [start], [0], None
    for axis in around:
        step, extent = inside.get(axis, 0), range(axis.extent)
        if isinstance(step, Value):
            step, apart = 0, step
            rows = [k for _ in rows for k in extent]
        else:
            rows = [row for row in rows for _ in extent]
        places = [place + k * step for place in places for k in extent]
    lane_step = inside.get(lane, 0)
    assert isinstance(lane_step, int), "lanes are as far apart as the code says"
    return MovingSum(terms, places, lane_step, apart, rows)


def _value(emitter: Emitter, plan: Plan, turn: int, first: int, at: VectorContext) -> LaneValue:
    done: Done = []
    for moving, way, step in plan:
        if moving is None:
            x = way(emitter, step, done, at)
        elif isinstance(step.node, Load):
            x = emitter.load(step, moving.at(turn, first), done, at)
        else:
            x = moving.at(turn, first)
        done.append(x)
    return done[-1]
