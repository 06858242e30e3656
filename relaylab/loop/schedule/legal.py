"""Whether turns of loops may change places, run at the same time, or one part of a body before another.

What decides is which turns' accesses may meet (`directions`), and which sums may be added in another order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from relaylab.loop.affine import Linear
from relaylab.loop.expr import Axis, Local, Tensor, post_order
from relaylab.loop.program import Accumulate, Define, For, LoopProgram, Statement, Store, statements, values
from relaylab.loop.schedule.directions import Turns
from relaylab.loop.schedule.tree import BufferAccess, accesses, locals_of
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
    return f"{place}{second} may be one element, {what} in different turns of {names}"


def private_to(program: LoopProgram, loop: For) -> set[Tensor]:
    """The private buffers that only a loop uses, each of whose turns fills what it reads of them."""
    inside = {a.buffer for a in accesses(loop.body)} & set(program.private)
    counts = [list(accesses([nest.loop for nest in program.nests])), list(accesses(loop.body))]
    total, own = ({t: sum(a.buffer is t for a in found) for t in inside} for found in counts)
    return {t for t in inside if total[t] == own[t] and (_filled_first(t, loop.body) or _of_a_turn(t, loop))}


def _of_a_turn(buffer: Tensor, loop: For) -> bool:
    """Whether no turn sees what another one wrote."""
    others = {a.buffer for a in accesses(loop.body)} - {buffer}
    return not conflict(loop.body, [loop.axis], others, sums=True)


def _filled_first(buffer: Tensor, body: Sequence[Statement]) -> bool:
    """Whether stores that are made in every turn fill a buffer, or all places that are read, before it is read."""
    simplify, axes = Simplifier(), {s.axis for s in statements(tuple(body)) if isinstance(s, For)}
    filled: list[Linear] = []
    stack = [*reversed(body)]
    while stack:
        statement = stack.pop()
        if isinstance(statement, For) and statement.stop is None:
            stack += reversed(statement.body)
        elif any(a.buffer is buffer and not (a.write and not a.kind) for a in accesses([statement])):
            break
        elif isinstance(statement, Store) and statement.buffer is buffer:
            filled.append(simplify.linear(simplify(statement.address)))
    reach = 0
    for first, last in sorted(run for total in filled for run in _run(total, axes)):
        reach = max(reach, last) if first <= reach else reach
    used = (simplify.linear(simplify(a.address)) for a in accesses(body) if a.buffer is buffer)
    boxes = [_box(total, axes) for total in filled]
    return reach >= buffer.shape[0] or all((box := _box(t, axes)) is not None and box in boxes for t in used)


def _box(total: Linear, axes: Collection[Axis]) -> tuple[int, list[tuple[int, int]]] | None:
    """The places that an address reaches while `axes` turn: where they begin, steps and extents."""
    terms = [(factor, a.extent) for a, factor in total.terms.items() if isinstance(a, Axis) and a in axes]
    return (total.const, sorted(terms)) if len(terms) == len(total.terms) else None


def _run(total: Linear, axes: Collection[Axis]) -> list[tuple[int, int]]:
    """The first of the neighbouring addresses that loops over `axes` reach, and what comes after the last."""
    box, reach = _box(total, axes), 1
    for factor, extent in box[1] if box else ():
        if not 0 < factor <= reach:
            return []
        reach += factor * (extent - 1)
    return [(total.const, total.const + reach)] if box else []
