"""Whether turns of loops may change places: two accesses of a buffer that meet only within one turn do not hinder it.

An address is a sum of axes times strides. Two accesses meet where the difference of their addresses is 0; if the
stride of an axis is larger than all that smaller ones reach together, that is so only if the axis has one value in
both. What is not proven to be apart is taken to meet.

Source: the dependence tests of Allen and Kennedy, Optimizing Compilers for Modern Architectures, chapter 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from relaylab.loop.affine import Rect, add_intervals, scale_interval
from relaylab.loop.expr import Axis, Local, ScalarExpr, Tensor, post_order
from relaylab.loop.program import Accumulate, Define, LoopProgram, Statement, statements, values
from relaylab.loop.schedule.tree import BufferAccess, accesses, locals_of
from relaylab.loop.show import show
from relaylab.loop.simplify import Simplifier


def conflict(
    body: Sequence[Statement],
    moving: Collection[Axis],
    reductions: bool = False,
    without: Collection[Tensor] = (),
    sums: bool = False,
) -> str:
    """Why the turns of `moving` axes around a body may not run in another order; empty if they may.

    With `reductions`, updates by one associative function may change places. `sums`: so may additions to
    registers around the loops. Buffers in `without` do not matter.
    """
    moving = [a for a in moving if a.extent > 1]
    defined, used = locals_of(body)
    changed = {s.local for s in statements(tuple(body)) if isinstance(s, Accumulate)} & (used - defined)
    if changed and not (reductions or sums):
        return f"every turn adds to `{min(x.name for x in changed)}`"
    read = {n for s in statements(tuple(body)) for e in values(s) for n in post_order(e)} & changed
    if read:
        return f"every turn reads what the turns before it added to `{min(x.name for x in changed if x in read)}`"
    found = [a for a in accesses(body) if a.buffer not in without]
    return _first_meeting(((a, c) for k, a in enumerate(found) for c in found[: k + 1]), moving, reductions)


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
    pairs = ((a, c) for k, own in enumerate(found) for other in found[:k] for a in own for c in other)
    return _first_meeting(pairs, [axis] if axis.extent > 1 else [], False)


def _first_meeting(
    pairs: Iterable[tuple[BufferAccess, BufferAccess]], moving: Collection[Axis], reductions: bool
) -> str:
    simplify = Simplifier()
    for one, other in pairs:
        if one.buffer is not other.buffer or not (one.write or other.write):
            continue
        if reductions and one.kind and one.kind == other.kind:
            continue
        if moving and not apart(one, other, moving, simplify):
            return _words(one, other, moving)
    return ""


def apart(one: BufferAccess, other: BufferAccess, moving: Collection[Axis], simplify: Simplifier) -> bool:
    """Whether two accesses meet only in turns with equal values of all `moving` axes."""
    a, c = (simplify.linear(simplify(x.address)) for x in (one, other))
    terms: list[tuple[int, Rect, ScalarExpr | None]] = []  # stride, what the term adds to the difference, shared axis
    for atom in dict.fromkeys((*a.terms, *c.terms)):
        low, high = simplify.bounds(atom)
        factors = a.terms.get(atom, 0), c.terms.get(atom, 0)
        if isinstance(atom, Axis) and factors[0] == factors[1]:
            terms.append((abs(factors[0]), scale_interval((low - high, high - low), factors[0]), atom))
        else:
            terms += [(abs(f), scale_interval((low, high), f), None) for f in (factors[0], -factors[1]) if f]
    open_, terms = set[ScalarExpr](moving), sorted(terms, key=lambda t: -t[0])
    for k, (factor, _, axis) in enumerate(terms):
        rest = (a.const - c.const, a.const - c.const)
        for _, interval, _ in terms[k + 1 :]:
            rest = add_intervals(rest, interval)
        if not open_ or axis is None or factor <= max(-rest[0], rest[1]):  # the others may make up for a turn of it
            break
        open_.discard(axis)
    return not open_ or _far(one, other, simplify)


def _far(one: BufferAccess, other: BufferAccess, simplify: Simplifier) -> bool:
    """Whether two accesses never meet at all: their intervals do not touch."""
    (low, high), (first, last) = (simplify.bounds(simplify(x.address)) for x in (one, other))
    return high < first or last < low


def _words(one: BufferAccess, other: BufferAccess, moving: Collection[Axis]) -> str:
    names = " and ".join(f"`{a.name}`" for a in moving)
    place = f"`{one.buffer.name}[{show(one.address)}]`"
    if one is other:
        return f"several turns of {names} write {place}"
    what = "written" if one.write and other.write else "read and written"
    second = "" if one.address is other.address else f" and `{other.buffer.name}[{show(other.address)}]`"
    return f"{place}{second} may be one element, {what} in different turns of {names}"


def private_to(program: LoopProgram, loop_body: Sequence[Statement]) -> set[Tensor]:
    """The private buffers that only this body uses: every turn fills them before it reads them."""
    inside = {a.buffer for a in accesses(loop_body)} & set(program.private)
    counts = [list(accesses([nest.loop for nest in program.nests])), list(accesses(loop_body))]
    total, own = ({t: sum(a.buffer is t for a in found) for t in inside} for found in counts)
    return {t for t in inside if total[t] == own[t] and _filled_first(t, loop_body)}


def _filled_first(buffer: Tensor, body: Sequence[Statement]) -> bool:
    first = next(a for a in accesses(body) if a.buffer is buffer)
    return first.write and not first.kind
