"""A cost model of scheduled loops: cycles of arithmetic, loads, waiting and caches, corrected by what was measured.

The cycles are those of a core that starts two vector operations and two loads each cycle. A load that stays the same
in unrolled loops is done once; a sum that is carried by a loop waits for itself. A cache keeps what a loop reads if all
that it reads fits (the reuse of Wolf and Lam, A Data Locality Optimizing Algorithm, PLDI 1991). What the model gets
wrong about a machine is learned from its records: a linear fit of the logarithms.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.operations.records import TuningRecord
from relaylab.loop.expr import INDEX, Axis, Guard, Load, ScalarExpr, Tensor, post_order
from relaylab.loop.program import TURN_BY_TURN, Accumulate, For, LoopProgram, Statement, Store, inside, values
from relaylab.loop.simplify import Simplifier
from relaylab.loop.weight import weight
from relaylab.support.errors import RelayTypeError, shown

LATENCY, PORTS = 4, 2  # cycles of a sum, vector operations and loads per cycle
CACHES = ((32 << 10, 32.0), (1 << 20, 8.0))  # bytes of a cache, and bytes per cycle from behind it
GIGAHERTZ = 2.5
GUARD = 2  # operations for a guard beside its value
OVERHEAD = 2.0  # microseconds of a call
RIDGE, ENOUGH = 1.0, 8  # of the fit, and how many records it needs


@dataclass(frozen=True, slots=True)
class Features:
    """Cycles of one run by what takes them, values beyond the registers, work items."""

    arithmetic: float
    loads: float
    waiting: float
    near: float
    far: float
    spilled: float
    items: int

    def microseconds(self, threads: int) -> float:
        """The time of a run on some threads, by the model alone."""
        busy = max(self.arithmetic, self.loads + self.spilled, self.waiting) + self.near + self.far
        turns = -(-self.items // max(1, min(threads, self.items))) / max(1, self.items)
        return OVERHEAD + busy * turns / GIGAHERTZ / 1e3

    def vector(self) -> list[float]:
        """What the correction is fitted to."""
        parts = (self.arithmetic, self.loads, self.waiting, self.near, self.far, self.spilled, self.items)
        return [1.0, *(math.log1p(x) for x in parts)]

    def text(self) -> str:
        """As a record keeps them."""
        parts = (self.arithmetic, self.loads, self.waiting, self.near, self.far, self.spilled, self.items)
        return json.dumps([round(x, 1) for x in parts])

    @staticmethod
    def parse(text: str) -> Features | None:
        """What `text` gave; None for anything else."""
        try:
            numbers = arithmetic, loads, waiting, near, far, spilled, items = [float(x) for x in json.loads(text)]
            whole = all(0 <= x < math.inf for x in numbers)
            return Features(arithmetic, loads, waiting, near, far, spilled, int(items)) if whole else None
        except (ValueError, TypeError, RecursionError):
            return None


class CostModel:
    """Predicts microseconds. `learn` fits the correction to records of the same CPU and number of threads.

    One of your own overrides `microseconds`, `learn` or both; `study.tune(..., model=Own)` ranks by it.
    """

    def __init__(self, target: CpuTarget, threads: int):
        self.target, self.threads = target, threads
        self.correction: np.ndarray | None = None

    def learn(self, records: Sequence[TuningRecord]) -> None:
        """Fit the correction; too few records leave the model as it is."""
        whole = (r for r in records if r.status == "ok" and 0 < r.us < math.inf)
        seen = [(f, r.us) for r in whole if (f := Features.parse(r.features))]
        if len(seen) < ENOUGH:
            return
        rows = np.array([f.vector() for f, _ in seen])
        wrong = np.array([math.log(us / f.microseconds(self.threads)) for f, us in seen])
        self.correction = np.linalg.solve(rows.T @ rows + RIDGE * np.eye(rows.shape[1]), rows.T @ wrong)

    def microseconds(self, features: Features) -> float:
        """The time of a run, corrected by what was learned."""
        plain = features.microseconds(self.threads)
        if self.correction is None:
            return plain
        return plain * math.exp(float(np.clip(np.array(features.vector()) @ self.correction, -5, 5)))

    def predicted(self, features: Features) -> float:
        """What `microseconds` says; `RelayTypeError` if that is no number, by which nothing can be ranked."""
        found: object = self.microseconds(features)
        if not isinstance(found, Real) or math.isnan(float(found)):
            message = f"the cost model {type(self).__name__} predicts {shown(found)}"
            raise RelayTypeError(message, code="tune.model", help="return a number of microseconds")
        return float(found)


def features_of(program: LoopProgram, target: CpuTarget) -> Features:
    """What the model sees of a program."""
    counter = _Counter(program, target)
    for nest in program.nests:
        counter.nest(nest.loop)
    return counter.features()


class _Counter:
    """Adds up the cycles of statements under the loops around them."""

    def __init__(self, program: LoopProgram, target: CpuTarget):
        self.program, self.target = program, target
        self.lanes = target.lanes("float32")
        self.registers = set(program.registers)
        self.simplify = Simplifier()
        self.arithmetic = self.loads = self.waiting = self.near = self.far = self.spilled = 0.0

    def features(self) -> Features:
        """All that was added up."""
        items = self.program.items if isinstance(self.program.items, int) else 1  # as many as a call says
        return Features(self.arithmetic, self.loads, self.waiting, self.near, self.far, self.spilled, items)

    def nest(self, loop: For) -> None:
        """Every statement of a nest, with the loops around it, outermost first."""
        stack: list[tuple[Statement, tuple[For, ...]]] = [(loop, ())]
        while stack:
            statement, above = stack.pop()
            around = (*above, statement) if isinstance(statement, For) else above
            stack.extend((s, around) for s in inside(statement))
            if not inside(statement):
                self.statement(statement, above)

    def statement(self, statement: Statement, above: tuple[For, ...]) -> None:
        """One statement's cycles."""
        turns = math.prod(self._turns(loop) for loop in above)
        nodes = list(post_order(*values(statement)))
        work = sum(weight(n, shallow=True) for n in nodes if n.dtype not in ("bool", INDEX))
        guards = sum(isinstance(n, Guard) for n in nodes)
        fused = 1 if work > 1 else 0  # a product and its sum are one operation
        self.arithmetic += turns * (max(1, work - fused) + GUARD * guards) / PORTS
        reads = [n for n in nodes if isinstance(n, Load)]
        places = [(n.tensor, self._strides(n.indices[0])) for n in reads]
        if isinstance(statement, Store):
            places.append((statement.buffer, self._strides(statement.address)))
            self._carried(statement.buffer, places[-1][1], above)
        elif isinstance(statement, Accumulate):
            self._carried(None, {}, above)
        outside = [p for p in places if p[0] not in self.registers]
        for _, strides in outside:
            self.loads += math.prod(self._reads(loop, strides) for loop in above) / PORTS
        self._caches(outside, above)
        held = sum(t.shape[0] for t in self.registers) / self.lanes
        if (over := held + 3 - self.target.registers) > 0 and any(t in self.registers for t, _ in places):
            self.spilled += turns * over / max(held, 1)

    def _strides(self, address: ScalarExpr) -> dict[Axis, int]:
        terms = self.simplify.linear(self.simplify(address)).terms
        found = {a: f for a, f in terms.items() if isinstance(a, Axis)}
        for other in terms.keys() - found.keys():  # behind a division: taken as its own axes' neighbours
            found |= {n: 1 for n in post_order(other) if isinstance(n, Axis)}
        return found

    def _turns(self, loop: For) -> float:
        return -(-loop.axis.extent // self.lanes) if loop.kind == "vectorized" else loop.axis.extent

    def _reads(self, loop: For, strides: dict[Axis, int]) -> float:
        """How often a loop repeats a load."""
        factor = strides.get(loop.axis, 0)
        if factor == 0:
            return 1 if loop.kind in ("vectorized", "unrolled") else loop.axis.extent
        if loop.kind == "vectorized":
            return self._turns(loop) if abs(factor) == 1 else loop.axis.extent
        return loop.axis.extent

    def _carried(self, buffer: Tensor | None, strides: dict[Axis, int], above: tuple[For, ...]) -> None:
        """A sum waits for itself where the innermost loop that turns carries it."""
        serial = [loop for loop in above if loop.kind in TURN_BY_TURN]
        if not serial or (buffer is not None and serial[-1].axis in strides):
            return
        beside = math.prod(self._turns(x) for x in above if x.kind not in TURN_BY_TURN and x.axis in strides)
        vectors = math.prod(self._turns(x) for x in above)
        self.waiting += vectors / max(1.0, beside) * LATENCY

    def _caches(self, places: list[tuple[Tensor, dict[Axis, int]]], above: tuple[For, ...]) -> None:
        """Bytes that come from behind each cache, as cycles."""
        near, far = (self._traffic(places, above, size) / speed for size, speed in CACHES)
        self.near += near
        self.far += far

    def _traffic(self, places: list[tuple[Tensor, dict[Axis, int]]], above: tuple[For, ...], size: int) -> float:
        """Bytes that a cache of a size has to be filled with."""
        moved, item = 0.0, 4
        for buffer, strides in places:
            bytes_ = float(item)
            inside = [float(item)] * len(places)
            for loop in reversed(above):
                stays = loop.axis not in strides
                if not stays or sum(inside) > size:
                    bytes_ *= loop.axis.extent
                inside = [n * (loop.axis.extent if loop.axis in s else 1) for n, (_, s) in zip(inside, places)]
            moved += max(bytes_, math.prod(buffer.shape) * item)
        return moved if moved > size else 0.0
