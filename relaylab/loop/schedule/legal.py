"""Whether turns of loops may change places, run at the same time, or one part of a body before another.

What decides is which turns' accesses may meet (`directions`), and which sums may be added in another order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import numpy as np

from relaylab.loop.affine import Linear
from relaylab.loop.expr import Axis, Load, Local, ScalarExpr, Tensor, post_order
from relaylab.loop.listing import MOST_LISTED, axes_of, listed, only_axes
from relaylab.loop.program import Accumulate, Define, For, LoopNest, LoopProgram, Statement, inside, statements, values
from relaylab.loop.schedule.directions import Turns
from relaylab.loop.schedule.tree import BufferAccess, accesses, locals_of, own_accesses, with_values
from relaylab.loop.show import show
from relaylab.loop.simplify import Simplifier


def conflict(
    body: Sequence[Statement], moving: Sequence[Axis], without: Collection[Tensor] = (), sums: bool = False
) -> str:
    """Why the turns of `moving` axes around a body may not run at the same time; empty if they may.

    `sums`: additions to registers around the loops do not matter. Buffers in `without` do not either.
    """
    if reason := _order_of_sums(body, () if sums else moving):
        return reason
    found = [a for a in accesses(body) if a.buffer not in without]
    pairs = [(a, c) for k, a in enumerate(found) for c in found[: k + 1] if _matter(a, c)]
    return _first(pairs, body, moving, lambda signs: any(signs.values()))


def turned(body: Sequence[Statement], before: Sequence[Axis], after: Sequence[Axis]) -> str:
    """Why loops directly around a body, outermost first, may not be in another order; empty if they may.

    They may if no direction vector points backwards then. Sums, products, maxima and minima may change their order.
    """
    if reason := _order_of_sums(body, ()):
        return reason
    found = list(accesses(body))
    pairs = [(a, c) for k, a in enumerate(found) for c in found[: k + 1] if _matter(a, c)]
    pairs = [(a, c) for a, c in pairs if not a.kind or a.kind != c.kind]
    return _first(pairs, body, before, lambda signs: _leading(signs, before) != _leading(signs, after))


def _leading(signs: dict[Axis, int], order: Sequence[Axis]) -> int:
    """The first sign of a vector that is not 0."""
    return next((signs[a] for a in order if signs[a]), 0)


def parting(parts: Sequence[Sequence[Statement]], axis: Axis) -> str:
    """Why all turns of one part may not run before those of the next; empty if they may."""
    for k, part in enumerate(parts):
        defined, used = locals_of(part)
        for other in parts[:k]:
            shared = (used | defined) & set[Local]().union(*locals_of(other))
            changed = [s.local for s in statements((*part, *other)) if isinstance(s, (Accumulate, Define))]
            if shared & set(changed):
                return f"both parts use the register `{min(x.name for x in shared)}`"
    found = [list(accesses(part)) for part in parts]
    pairs = [(a, c) for k, own in enumerate(found) for other in found[:k] for a in own for c in other if _matter(a, c)]
    # An earlier part would come too early where it meets what a later part does a turn or more before it.
    return _first(pairs, [s for part in parts for s in part], [axis], lambda signs: signs[axis] > 0)


def sharing(first: LoopNest, second: LoopNest) -> str:
    """Why a thread may not do its share of one nest while others are at the nest before it; empty if it may."""
    one, other = first.loop, second.loop
    if one.axis.length == other.axis.length and first.grain == second.grain:  # the same turns of both
        body, moving = (*one.body, *with_values(other.body, {other.axis: one.axis})), [one.axis]
    else:
        body, moving = (one, other), []
    own = list(accesses(body))
    before = sum(1 for _ in accesses(body[: len(one.body)] if moving else (one,)))
    pairs = [(a, c) for a in own[before:] for c in own[:before] if _matter(a, c)]
    return _first(pairs, body, moving, lambda signs: not moving or signs[one.axis] != 0)


def _matter(one: BufferAccess, other: BufferAccess) -> bool:
    return one.buffer is other.buffer and (one.write or other.write)


def _order_of_sums(body: Sequence[Statement], moving: Collection[Axis]) -> str:
    """Why registers around a body do not allow its turns in any order; with `moving` turns they may not add at all."""
    defined, used = locals_of(body)
    adding = [s for s in statements(tuple(body)) if isinstance(s, Accumulate) and s.local in used - defined]
    changed = {s.local for s in adding}
    if changed and any(a.extent > 1 for a in moving):
        return f"every turn adds to `{min(x.name for x in changed)}`"
    for local in sorted(changed, key=lambda x: x.name):
        kinds = {s.kind for s in adding if s.local is local}
        if len(kinds) > 1 or "last" in kinds:
            return f"every turn sets `{local.name}` to another value"
    read = {n for s in statements(tuple(body)) for e in values(s) for n in post_order(e)} & changed
    if read:
        return f"every turn reads what the turns before it added to `{min(x.name for x in changed if x in read)}`"
    return ""


def _first(
    pairs: Sequence[tuple[BufferAccess, BufferAccess]],
    body: Sequence[Statement],
    moving: Sequence[Axis],
    wrong: Callable[[dict[Axis, int]], bool],
) -> str:
    """What hinders: the first pair of accesses that may meet in turns with `wrong` signs."""
    turns = Turns(body, moving)
    turns.look([access.address for pair in pairs for access in pair])
    for one, other in pairs:
        signs = next((s for s in turns.directions(one.address, other.address, moving) if wrong(s)), None)
        if signs is not None and (seen := turns.seen(one.address, other.address, moving)) is not None:
            signs = next((s for s in seen if wrong(s)), None)
        if signs is not None:
            return _words(one, other, [a for a in moving if signs[a]])
    return ""


def _words(one: BufferAccess, other: BufferAccess, moving: Collection[Axis]) -> str:
    names = " and ".join(f"`{a.name}`" for a in moving)
    place = f"`{one.buffer.name}[{show(one.address)}]`"
    if one is other:
        return f"several turns of {names} write {place}"
    what = "written" if one.write and other.write else "read and written"
    second = "" if one.address is other.address else f" and `{other.buffer.name}[{show(other.address)}]`"
    return f"{place}{second} may be one element, {what} in different {f'turns of {names}' if names else 'nests'}"


def shared_out(program: LoopProgram, loop: For) -> str:
    """Why threads may not share out the turns of an outermost loop; empty if they may."""
    own = private_to(program, loop)
    if reason := conflict(loop.body, [loop.axis], without=own):
        return reason
    handed = {a.buffer.name for a in accesses(loop.body) if a.buffer in program.private and a.buffer not in own}
    return f"`{min(handed)}` is private to a thread, but used outside of the loop too" if handed else ""


def private_to(program: LoopProgram, loop: For) -> set[Tensor]:
    """The private buffers that only a loop uses, each of whose turns fills what it reads of them."""
    inside = {a.buffer for a in accesses(loop.body)} & set(program.private)
    counts = [list(accesses([nest.loop for nest in program.nests])), list(accesses(loop.body))]
    total, own = ({t: sum(a.buffer is t for a in found) for t in inside} for found in counts)
    return {t for t in inside if total[t] == own[t] and (filled_first(t, loop.body) or _of_a_turn(t, loop))}


def _of_a_turn(buffer: Tensor, loop: For) -> bool:
    """Whether no turn sees what another one wrote."""
    others = {a.buffer for a in accesses(loop.body)} - {buffer}
    return not conflict(loop.body, [loop.axis], others, sums=True)


def filled_first(buffer: Tensor, body: Sequence[Statement]) -> bool:
    """Whether all places of a buffer that are read are filled before, by stores that are made in every turn."""
    simplify = Simplifier()
    filled: list[_Places] = []
    used: list[_Places] = []
    stack: list[tuple[Statement, tuple[Axis, ...], bool]] = [(s, (), True) for s in reversed(body)]
    while stack:
        statement, around, always = stack.pop()
        for access in own_accesses(statement):
            if access.buffer is buffer:
                places = _Places(simplify(access.address), around, simplify)
                if not access.write or access.kind:
                    used.append(places)
                elif always and not used:
                    filled.append(places)
        if isinstance(statement, For):
            around, always = (*around, statement.axis), always and statement.stop is statement.axis.size is None
        else:
            always = False
        stack += [(s, around, always) for s in reversed(inside(statement))]
    return all(_covered(places, filled, buffer.shape[0]) for places in used)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a buffer is accessed: an address, and the loops of a body around it."""

    address: ScalarExpr
    around: tuple[Axis, ...]
    simplify: Simplifier

    def own(self, beside: _Places) -> list[Axis]:
        """The loops that move it in one turn of those that are around both."""
        nodes = set(post_order(self.address))
        return [a for a in self.around if a not in beside.around and a in nodes]

    def box(self, beside: _Places) -> _Box | None:
        """What is reached in one turn of the loops that are around both."""
        own, total = self.own(beside), self.simplify.linear(self.address)
        staying = {a: f for a, f in total.terms.items() if not set(axes_of(a)) & set(own)}
        turning = Linear({a: f for a, f in total.terms.items() if a not in staying})
        if not all(map(only_axes, total.terms)) or not all(set(axes_of(a)) <= set(own) for a in turning.terms):
            return None
        return _Box(total.const, self.simplify.index(turning), own, staying, turning)

    def alike(self, beside: _Places) -> bool:
        """Whether all that is reached there is reached here, by the same address in other loops."""
        mine, theirs = self.own(beside), beside.own(self)
        if any(isinstance(n, (Load, Local)) for n in post_order(self.address)) or len(mine) != len(theirs):
            return False
        same = self.simplify(beside.address, dict(zip(theirs, mine))) is self.address
        return same and all(a.extent >= c.extent for a, c in zip(mine, theirs))


@dataclass(frozen=True, slots=True)
class _Box:
    """Places of a buffer: where they begin, what is added in the turns of `own` loops, and what else the beginning
    depends on."""

    first: int
    added: ScalarExpr
    own: Sequence[Axis]
    staying: dict[ScalarExpr, int]
    terms: Linear

    @property
    def turns(self) -> int:
        return math.prod(a.extent for a in self.own)

    def form(self) -> object:
        """What is equal where the places are, whatever the loops are called."""
        steps = [(f, a.extent) for a, f in self.terms.terms.items() if isinstance(a, Axis)]
        return (self.first, sorted(steps), self.staying) if len(steps) == len(self.terms.terms) else self

    def places(self, size: int) -> np.ndarray:
        """All that are in a buffer."""
        (found,) = listed([self.added], self.own) or [np.array([], "int64")]
        found = found + self.first
        return found[(found >= 0) & (found < size)]


def _covered(used: _Places, filled: Sequence[_Places], size: int) -> bool:
    """Whether places are among those that are filled."""
    left: dict[tuple[object, ...], np.ndarray] = {}  # for each number of turns around both: which are not filled yet
    for places in filled:
        mine, theirs = places.box(used), used.box(places)
        if mine is not None and theirs is not None and mine.form() == theirs.form() or places.alike(used):
            return True
        known = mine is not None and theirs is not None and mine.staying == theirs.staying
        if mine is None or not known and mine.staying or max(size, mine.turns) > MOST_LISTED:
            continue
        if known and theirs is not None and theirs.turns > MOST_LISTED:
            continue
        around = (*(a for a in places.around if a in used.around), known)
        if around not in left:
            left[around] = np.ones(size, bool)
            if known and theirs is not None:
                left[around][:] = False
                left[around][theirs.places(size)] = True
        left[around][mine.places(size)] = False
        if not left[around].any():
            return True
    return False
