"""Proofs that a loop program stays inside its buffers: intervals of every address, under the guards above it.

An access is a load or a store. Its address is a sum of axes, quotients and remainders; the conditions of the guards
that it lies under are inequalities between such sums. `0 <= address < extent` is proven by the intervals of the
atoms, tightened by the inequalities, and by taking multiples of up to `DEPTH` inequalities out of the sum. What is
not proven is not known to be wrong.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from relaylab.loop.affine import (
    INTERVAL_RULES,
    UNBOUNDED,
    Linear,
    Rect,
    divided_interval,
    inequalities,
    join_intervals,
    meet_intervals,
    total_interval,
)
from relaylab.loop.expr import (
    INDEX,
    Apply,
    Axis,
    Cast,
    Const,
    Guard,
    Load,
    Local,
    ScalarExpr,
    Tensor,
    apply,
    children,
    post_order,
)
from relaylab.loop.listing import axes_of, bounds_seen, only_axes
from relaylab.loop.program import (
    Accumulate,
    Body,
    Define,
    For,
    IfThenElse,
    LoopProgram,
    Statement,
    Store,
    inside,
    statements,
    values,
)
from relaylab.loop.region import by_data
from relaylab.loop.scalar import is_integer
from relaylab.loop.show import show
from relaylab.loop.simplify import Simplifier

DEPTH = 4  # inequalities that one proof may combine
ROUNDS = 3  # of tightening the intervals of atoms by each other
NESTED = 6  # selections inside each other whose conditions are used
Conditions = tuple[ScalarExpr, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """One load or store: `index` into `extent` elements of an axis of `tensor`; `bounds` are what is known of it.

    `by_data`: the index depends on loaded numbers or on floats. `part` is that of the expression.
    """

    tensor: Tensor
    index: ScalarExpr
    extent: int
    bounds: Rect
    proven: bool
    by_data: bool
    part: int

    def __str__(self) -> str:
        known = "anything" if self.bounds == UNBOUNDED else f"{self.bounds[0]} .. {self.bounds[1]}"
        return f"`{self.tensor.name}` of extent {self.extent} at {show(self.index)} ({known})"


def program_accesses(program: LoopProgram) -> Iterator[Access]:
    """Every access of a loop program, each under every set of guards that it lies under."""
    return (access for _, access in accesses_by_statement(program))


def accesses_by_statement(program: LoopProgram) -> Iterator[tuple[Statement, Access]]:
    """Every access of a loop program with the statement that makes it."""
    compared = frozenset(
        n for s in statements(program.loops) if isinstance(s, IfThenElse) for n in _compared(s.condition)
    )
    provers = [_Prover(program)]
    for statement, above in _conditional(program.loops):
        made = [(load.tensor, load.indices, under, load.part) for load, under in loads_of(values(statement))]
        if isinstance(statement, Store):
            made.append((statement.buffer, (statement.address,), (), 0))
        for tensor, indices, under, part in made:
            for k, access in enumerate(provers[0].accesses(tensor, indices, above, under, part)):
                if not access.proven and compared:
                    provers += [_Prover(program, compared)] if len(provers) == 1 else []
                    other = [*provers[1].accesses(tensor, indices, above, under, part)][k]
                    access = other if other.proven else access
                yield statement, access


def _compared(condition: ScalarExpr) -> Iterator[ScalarExpr]:
    """The registers that a condition compares with numbers."""
    for node in post_order(condition):
        if isinstance(node, Apply) and node.op in ("lt", "le", "gt", "ge") and isinstance(node.args[1], Const):
            yield from (a for a in node.args if isinstance(a, Local) and a.dtype == INDEX)


def _conditional(body: Body) -> Iterator[tuple[Statement, Conditions]]:
    """Every statement with the conditions that it stands under."""
    stack: list[tuple[Statement, Conditions]] = [(s, ()) for s in reversed(body)]
    while stack:
        statement, above = stack.pop()
        yield statement, above
        if isinstance(statement, IfThenElse):
            stack += [(s, (*above, apply("lnot", statement.condition))) for s in reversed(statement.otherwise)]
            above = (*above, statement.condition)
            stack += [(s, above) for s in reversed(statement.body)]
        elif isinstance(statement, For) and statement.stop is not None:
            above = (*above, *(Apply("lt", (statement.axis, stop), "bool") for stop in _least(statement.stop)))
            stack += [(s, above) for s in reversed(statement.body)]
        else:
            stack += [(s, above) for s in reversed(inside(statement))]


def _least(stop: ScalarExpr) -> tuple[ScalarExpr, ...]:
    """The numbers of which an index is the least."""
    return stop.args if isinstance(stop, Apply) and stop.op == "min" else (stop,)


def unproven(program: LoopProgram) -> Access | None:
    """The first access of a loop program that is not proven to lie in its buffer."""
    return next((access for access in program_accesses(program) if not access.proven), None)


def loads_of(roots: Sequence[ScalarExpr]) -> Iterator[tuple[Load, Conditions]]:
    """The loads under some expressions, each with the conditions of the guards above it."""
    seen: set[tuple[int, tuple[int, ...]]] = set()
    loads = {id(n): isinstance(n, Load) for n in post_order(*roots)}
    for node in post_order(*roots):
        loads[id(node)] |= any(loads[id(c)] for c in children(node))
    stack: list[tuple[ScalarExpr, Conditions]] = [(r, ()) for r in roots]
    while stack:
        node, under = stack.pop()
        key = (id(node), tuple(map(id, under)))
        if key in seen or not loads[id(node)]:
            continue
        seen.add(key)
        if isinstance(node, Load):
            yield node, under
        if isinstance(node, Guard):
            # What is read for the other side is read in every lane: the condition's opposite is no promise.
            stack += [(node.condition, under), (node.otherwise, under), (node.value, (*under, node.condition))]
        else:
            stack += [(c, under) for c in children(node)]


class _Prover:
    """What is known of the axes and registers of one program.

    Registers of indices stand for their expressions. Those in `apart` are numbers of their own, as axes are: what
    `t < 90` says of `t // 15` is lost where both are written as sums of the loops around them.
    """

    def __init__(self, program: LoopProgram, apart: frozenset[ScalarExpr] = frozenset()):
        self.simplify = Simplifier()
        self.meaning: dict[ScalarExpr, ScalarExpr] = {}
        self.known: dict[ScalarExpr | Tensor, Rect] = {}  # of registers, and of all that is stored in own buffers
        self.rows: dict[Tensor, list[Store]] = {}  # the stores into a private buffer of conditions
        self.places: dict[tuple[ScalarExpr, ...], _Place] = {}
        own = [p.buffer for p in program.prepared]
        self.known |= {t: (0, 0) for t in own if is_integer(t.dtype)}  # where nothing is filled
        self._registers([*statements(program.loops)], {*own, *program.private}, apart)

    def _registers(self, body: Sequence[Statement], scratch: Container[Tensor], apart: frozenset[ScalarExpr]) -> None:
        """Registers of indices and conditions stand for their expressions, or for the interval of their values."""
        changed = {s.local for s in body if isinstance(s, Accumulate)}
        maybe = [s for s in body if isinstance(s, IfThenElse) or (isinstance(s, For) and s.stop is not None)]
        perhaps = {inner for s in maybe for inner in statements(inside(s))}
        stored: dict[Tensor, list[Store]] = {}
        numbers: list[tuple[Tensor | Local, ScalarExpr]] = []
        for statement in body:
            if isinstance(statement, Store) and statement.buffer in scratch:
                stored.setdefault(statement.buffer, []).append(statement)
                numbers += [(statement.buffer, statement.value)] * is_integer(statement.value.dtype)
            if not isinstance(statement, Define) or statement.local in changed:
                continue
            local, value = statement.local, self.expression(statement.value)
            if not any(isinstance(n, (Load, Local)) for n in post_order(value)):
                low, high = self.place(()).bounds(value) if local in apart else (-1, -1)
                self.meaning[local] = value if low < 0 else Axis(local.name, high + 1)
            elif is_integer(local.dtype):
                # Two loads that look alike may lie on two sides of a store: the register is a number of its own.
                numbers.append((local, value))
        self._intervals(numbers)
        self.rows = {t: found for t, found in stored.items() if t.dtype == "bool" and not perhaps & {*found}}
        for statement in body if self.rows else ():  # conditions of stored conditions
            if isinstance(statement, Define) and statement.local.dtype == "bool" and statement.local not in changed:
                value = self.expression(statement.value)
                if not any(
                    isinstance(n, Local) or isinstance(n, Load) and n.tensor not in self.rows for n in post_order(value)
                ):
                    self.meaning[statement.local] = value

    def _intervals(self, numbers: Sequence[tuple[Tensor | Local, ScalarExpr]]) -> None:
        """The intervals of registers and of all that is stored in own buffers, widened until what is stored keeps to
        what is read."""
        values = [(key, self.expression(value)) for key, value in numbers]
        grown = dict.fromkeys((key for key, _ in values if isinstance(key, Tensor)), 0)
        before: dict[ScalarExpr | Tensor, Rect] | None = None
        while self.known != before:
            before, self.places = dict(self.known), {}
            for key, value in values:
                bounds = self.place(()).bounds(value)
                if isinstance(key, Tensor):
                    bounds = join_intervals(self.known.get(key, bounds), bounds)
                    grown[key] += self.known.get(key, bounds) != bounds
                    bounds = UNBOUNDED if grown[key] > ROUNDS else bounds
                self.known[key] = bounds
            if not grown:
                break

    def row_element(self, buffer: Tensor, address: ScalarExpr) -> Iterator[ScalarExpr]:
        """What was stored where a private buffer of conditions is read, if each element is stored by one turn of every
        loop that fills it, and all of them store the same."""
        found = {e for store in self.rows[buffer] for e in [self._stored(store, address)]}
        yield from (e for e in found if e is not None and len(found) == 1)

    def _stored(self, store: Store, address: ScalarExpr) -> ScalarExpr | None:
        mine, theirs = (self.simplify.linear(self.expression(a)) for a in (address, store.address))
        axes, reach = {f: a for a, f in mine.terms.items()}, 0
        if mine.const != theirs.const or len(mine.terms) != len(theirs.terms):
            return None
        turns: dict[ScalarExpr, ScalarExpr] = {}
        for axis, factor in sorted(theirs.terms.items(), key=lambda term: term[1]):
            other = axes.get(factor)
            if not isinstance(axis, Axis) or factor <= reach or other is None or other.dtype != INDEX:
                return None
            turns[axis], reach = other, reach + factor * (axis.extent - 1)
        value = self.expression(store.value)
        return None if any(isinstance(n, (Load, Local)) for n in post_order(value)) else self.simplify(value, turns)

    def expression(self, root: ScalarExpr) -> ScalarExpr:
        """An expression in normal form, registers replaced by what they hold."""
        used = {n: self.meaning[n] for n in post_order(root) if n in self.meaning} if self.meaning else {}
        return self.simplify(root, used) if used else self.simplify(root)

    def lasts(self, condition: ScalarExpr) -> bool:
        """Whether a condition holds as long as its body runs: nothing in it is computed from data."""
        return not by_data(self.expression(condition))

    def place(self, under: Conditions) -> _Place:
        """What is known where these conditions hold."""
        conditions = tuple(dict.fromkeys(self.expression(c) for c in under))
        if conditions not in self.places:
            self.places[conditions] = _Place(self, conditions)
        return self.places[conditions]

    def accesses(
        self, tensor: Tensor, indices: Sequence[ScalarExpr], above: Conditions, under: Conditions, part: int
    ) -> Iterator[Access]:
        """The proofs of one access in statements under the conditions `above`, behind the guards `under`, axis by axis.

        An empty tensor is never read: its loads are zero.
        """
        if 0 in tensor.shape:
            return
        place = self.place((*(c for c in above if self.lasts(c)), *under))
        for index, extent in zip(indices, tensor.shape):
            node = self.expression(index)
            proven = place.within(node, extent)
            yield Access(tensor, node, extent, place.bounds(node), proven, by_data(node), part)


class _Place:
    """The intervals of integer expressions where some conditions hold."""

    def __init__(self, prover: _Prover, conditions: Conditions):
        self.prover, self.simplify, self.conditions = prover, prover.simplify, conditions
        self.facts = [f for c in conditions for f in self._facts(c) if self._is_known(f)]
        self.asked = set[ScalarExpr]()  # atoms whose own facts are among these
        self.facts += [f for atom in [a for f in self.facts for a in f.terms] for f in self._whole(atom)]
        self.dead = any(isinstance(c, Const) and not c.value for c in conditions)
        self.tight: dict[ScalarExpr, Rect] = {}
        self.found: dict[ScalarExpr, Rect] = {}
        self.settled = False
        self._tighten()
        self.settled = True

    def within(self, node: ScalarExpr, extent: int) -> bool:
        """Whether 0 <= node < extent is proven."""
        low, high = self.bounds(node)
        if self.dead or (low >= 0 and high < extent):
            return True
        value = self.simplify.linear(node)
        self.facts += [f for atom in value.terms for f in self._whole(atom)]
        by_facts = self._at_least(value, DEPTH) and self._at_least(Linear({}, extent - 1) - value, DEPTH)
        return by_facts or self._seen(value, extent)

    def _seen(self, value: Linear, extent: int) -> bool:
        """Whether 0 <= value < extent in all turns in which the conditions hold, looked at one by one: quotients and
        remainders of sums, as loops that were fused and split leave them."""
        holding = [(node, holds) for c in self.conditions for node, holds in self._single(c) if only_axes(node)]
        about = set(axes_of(*(node for node, _ in holding)))
        turning = Linear(
            {a: f for a, f in value.terms.items() if only_axes(a) and (a in about or not isinstance(a, Axis))}
        )
        seen = bounds_seen(self.simplify.index(turning), holding)
        low, high = self._interval(value - turning)
        return seen is not None and (seen[0] > seen[1] or low + seen[0] >= 0 and high + seen[1] < extent)

    def bounds(self, node: ScalarExpr) -> Rect:
        """An interval that holds an interned integer expression."""
        for n in post_order(node, known=self.found):
            if n not in self.found and is_integer(n.dtype):
                self.found[n] = meet_intervals(self._structure(n), self.tight.get(n, UNBOUNDED))
        return self.found[node]

    # ---- conditions

    def _facts(self, condition: ScalarExpr) -> Iterator[Linear]:
        """Sums that are at least 0 where a condition holds."""
        for node, holds in self._single(condition):
            if isinstance(node, Apply) and node.args[0].dtype == INDEX:
                a, c = node.args
                yield from inequalities(node.op, self.simplify.linear(a) - self.simplify.linear(c), holds)

    def _single(self, condition: ScalarExpr) -> Iterator[tuple[ScalarExpr, bool]]:
        """What holds, or does not, where a condition holds."""
        stack = [(condition, True)]
        while stack:
            node, holds = stack.pop()
            match node:
                case Apply("land", args) if holds:
                    stack += [(a, True) for a in args]
                case Apply("lor", args) if not holds:
                    stack += [(a, False) for a in args]
                case Apply("select", (c, a, Const(False))) | Guard(c, a, Const(False)) if holds:
                    stack += [(c, True), (a, True)]
                case Load(tensor, (address,)) if holds and tensor in self.prover.rows:
                    stack += [(c, True) for c in self.prover.row_element(tensor, address)]
                case Apply("lnot", (inner,)):
                    stack.append((inner, not holds))
                case _:
                    yield node, holds

    def _is_known(self, fact: Linear) -> bool:
        """A sum with a number that may be anything may have wrapped around before it was compared."""
        return all(self.simplify.bounds(a) != UNBOUNDED for a in fact.terms)

    def _whole(self, atom: ScalarExpr) -> Iterator[Linear]:
        """A quotient, or a remainder, belongs to the other one: x is x // d * d + x % d. An extreme is none of less."""
        linear = self.simplify.linear
        if not isinstance(atom, Apply) or atom in self.asked:
            return
        self.asked.add(atom)
        if atom.op in ("max", "min"):
            sums = (linear(atom) - linear(x) for x in atom.args)
            yield from (f if atom.op == "max" else f * -1 for f in sums if self._is_known(f))
        elif atom.op in ("floordiv", "floormod") and isinstance(d := atom.args[1], Const) and d.value > 0:
            quotient, rest = (self.simplify(Apply(op, (atom.args[0], d), INDEX)) for op in ("floordiv", "floormod"))
            zero = linear(atom.args[0]) - linear(quotient) * int(d.value) - linear(rest)
            yield from (zero, zero * -1)

    def _tighten(self) -> None:
        for _ in range(ROUNDS if self.facts else 0):
            before = dict(self.tight)
            for fact in self.facts:
                for atom, factor in fact.terms.items():
                    rest = self._interval(Linear({a: f for a, f in fact.terms.items() if a is not atom}, fact.const))[1]
                    if rest == UNBOUNDED[1]:
                        continue
                    limit = (-(rest // factor), UNBOUNDED[1]) if factor > 0 else (UNBOUNDED[0], rest // -factor)
                    self.tight[atom] = meet_intervals(self.tight.get(atom, UNBOUNDED), limit)
            self.found.clear()
            if self.tight == before:
                break
        self.dead |= any(low > high for low, high in (self.bounds(a) for a in self.tight))
        self.found.clear()

    # ---- intervals

    def _interval(self, value: Linear) -> Rect:
        return total_interval(value, self.bounds)

    def _at_least(self, value: Linear, depth: int) -> bool:
        """Whether a sum is proven to be at least 0: it is, less a multiple of something that is."""
        if self._interval(value)[0] >= 0:
            return True
        tried: set[tuple[int, int]] = set()
        for k, fact in enumerate(self.facts if depth else ()):
            for atom, factor in fact.terms.items():
                times = value.terms.get(atom, 0) // factor
                if times > 0 and (k, times) not in tried:
                    tried.add((k, times))
                    if self._at_least(value - fact * times, depth - 1):
                        return True
        return False

    def _structure(self, node: ScalarExpr) -> Rect:
        whole = self.simplify.bounds(node)
        match node:
            case Local():
                return self.prover.known.get(node, whole)
            case Load(tensor):
                return self.prover.known.get(tensor, whole)
            case Axis() | Const():
                return whole
            case Apply("select", (condition, a, c)):
                return meet_intervals(whole, self._select(condition, a, c))
            case Apply("floordiv" | "floormod" as op, (a, Const(divisor))) if divisor > 0:
                return meet_intervals(whole, divided_interval(op, self.found[a], int(divisor)))
            case Apply("min" | "max" as op, (a, c)):
                return meet_intervals(whole, INTERVAL_RULES[op](self.found[a], self.found[c]))
            case Cast(value) if is_integer(value.dtype):
                low, high = self.found[value]
                return (low, high) if whole[0] <= low and high <= whole[1] else whole
            case _:
                pass
        value = self.simplify.linear(node) if node.dtype == INDEX else None
        return whole if value is None or value.atom is node else meet_intervals(whole, self._sum(value))

    def _sum(self, value: Linear) -> Rect:
        low, high = self._interval(value)
        for fact in self.facts:  # a sum is at least what it is without one that is at least 0
            low, high = max(low, self._rough(value - fact)[0]), min(high, self._rough(value + fact)[1])
        return low, high

    def _rough(self, value: Linear) -> Rect:
        """The interval of a sum by what is known already: conditions do not ask for each other in a circle."""
        return total_interval(value, lambda atom: self.found.get(atom) or self.simplify.bounds(atom))

    def _select(self, condition: ScalarExpr, a: ScalarExpr, c: ScalarExpr) -> Rect:
        sides = [self.found[a], self.found[c]]
        for k, (side, here) in enumerate(((a, condition), (c, self.simplify(apply("lnot", condition))))):
            if here in self.conditions:
                return sides[k]
            if self.settled and len(self.conditions) < NESTED:
                place = self.prover.place((*self.conditions, here))
                if place.dead:
                    return sides[1 - k]
                sides[k] = place.bounds(side)
        return join_intervals(*sides)
