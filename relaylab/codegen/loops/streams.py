"""Pointers that move with a loop: addresses in a loop around lanes that are written out, a step further at each turn.

An address in the loop is a part that the loop does not change, a step for each turn, and numbers that are known while
code is written. Accesses that differ in the last part only share a pointer, and their code has constants in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from relaylab.codegen.llvm.text import Value
from relaylab.loop.expr import INDEX, Apply, Axis, Const, Load, Local, ScalarExpr, Tensor, post_order
from relaylab.loop.program import TURN_BY_TURN, Define, For, IfThenElse, Prefetch, Statement, Store, statements, values

Terms = dict[ScalarExpr, int]
Step = int | Value
"""How far a turn of a loop moves an address; a value where it is the argument of a function."""
AxisSum = tuple[tuple[tuple[Axis | Local, Step], ...], int]
"""A sum of axes and registers times steps, and a number."""
Place = tuple[Tensor, ScalarExpr]
"""A buffer and an address in it: several buffers may be read at one."""
Spot = tuple[Tensor, frozenset[tuple[ScalarExpr, int]]]
"""A buffer and a sum of atoms times numbers: where pointers begin."""


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A buffer, the part of the addresses that the loop does not change, the step of a turn, in elements (0: none)."""

    buffer: Tensor
    start: tuple[tuple[ScalarExpr, int], ...]
    step: Step

    @property
    def spot(self) -> Spot:
        """Where it begins."""
        return self.buffer, frozenset(self.start)

    @property
    def divisor(self) -> int:
        """What divides all places where the stream may be."""
        return math.gcd(self.step if isinstance(self.step, int) else 1, *(factor for _, factor in self.start))


def streams_of(
    loop: For, private: frozenset[Tensor], written_out: Callable[[For], bool]
) -> dict[Place, tuple[Stream, AxisSum]]:
    """The streams of a loop by what is read or written, each with the rest of the address; none around other loops."""
    body = list(statements(loop.body))
    if any(isinstance(s, IfThenElse) or isinstance(s, For) and s.kind in TURN_BY_TURN for s in body):
        return {}
    inner = {s.axis for s in body if isinstance(s, For)}
    defined = {s.local for s in body if isinstance(s, Define)}
    side_by_side = [s.axis for s in body if isinstance(s, For) and s.kind == "vectorized"]
    # Lanes that are not in registers are those of a loop, whose index is no number.
    turning = {s.axis for s in body if isinstance(s, For) and s.kind == "vectorized" and not written_out(s)}
    found: dict[tuple[Spot, int], Stream] = {}
    streams: dict[Place, tuple[Stream, AxisSum]] = {}
    for buffer, address in (access for s in body for access in _accesses(s)):
        if buffer in private or (buffer, address) in streams:
            continue
        terms, const = terms_of(address)
        outside = tuple((a, f) for a, f in terms.items() if a is not loop.axis and a not in inner)
        step = terms.get(loop.axis, 0)
        # An address without an axis of this loop may be that of another loop, too.
        own = step or outside and not inner.isdisjoint(terms)
        if not own or turning & set(terms) or any(moves(a, {loop.axis, *inner, *defined}) for a, _ in outside):
            continue
        if any(terms.get(lane, 0) not in (0, 1) for lane in side_by_side):
            continue  # lanes that lie apart are gathered
        stream = Stream(buffer, outside, step)
        stream = found.setdefault((stream.spot, step), stream)
        streams[buffer, address] = (
            stream,
            (tuple((a, f) for a, f in terms.items() if isinstance(a, Axis) and a in inner), const),
        )
    return streams


def place_of(load: Load) -> Place:
    """What a load of a flat buffer reads."""
    return load.tensor, load.indices[0]


def _accesses(statement: Statement) -> list[Place]:
    if isinstance(statement, Prefetch):
        return [(statement.buffer, statement.address)]
    written = isinstance(statement, Store)
    roots = (statement.value,) if written else values(statement)
    found = [place_of(n) for n in post_order(*roots) if isinstance(n, Load)]
    return [*found, (statement.buffer, statement.address)] if written else found


def moves(atom: ScalarExpr, axes: set[Axis | Local]) -> bool:
    """Does it change with some axes and registers, or with what memory holds?"""
    return any(isinstance(n, Load) or n in axes for n in post_order(atom))


def terms_of(node: ScalarExpr) -> tuple[Terms, int]:
    """An index as a sum of atoms times numbers, and a number."""
    terms: Terms = {}
    total, stack = 0, [(node, 1)]
    while stack:
        atom, factor = stack.pop()
        if isinstance(atom, Const):
            total += int(atom.value) * factor
        elif isinstance(atom, Apply) and atom.dtype == INDEX and atom.op in ("add", "sub"):
            stack += [(atom.args[0], factor), (atom.args[1], factor if atom.op == "add" else -factor)]
        elif (
            isinstance(atom, Apply) and atom.op == "mul" and isinstance(by := atom.args[1], Const) and by.dtype == INDEX
        ):
            stack.append((atom.args[0], factor * int(by.value)))
        else:
            terms[atom] = terms.get(atom, 0) + factor
    return terms, total


def axes_of(node: ScalarExpr) -> AxisSum | None:
    """An index as a sum of axes and registers; None if it is no such sum."""
    terms, total = terms_of(node)
    axes = tuple((a, f) for a, f in terms.items() if isinstance(a, (Axis, Local)))
    return (axes, total) if len(axes) == len(terms) else None
