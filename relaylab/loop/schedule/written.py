"""Loops that are written out, in place of those of a kernel: a schedule whose text begins with `kernel`.

The text is that of a loop program (`relaylab.loop.parse`), as it is printed or edited by hand. Nothing says that it
computes what the kernel computes: `study.schedule` tells how far the results differ.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from relaylab.loop.expr import Axis, Load, Local, Tensor, post_order
from relaylab.loop.parse import parse
from relaylab.loop.program import TURN_BY_TURN, Body, For, LoopProgram, statements
from relaylab.loop.schedule.legal import conflict, filled_first, sharing
from relaylab.loop.schedule.marks import differing, many_copies
from relaylab.loop.schedule.tree import accesses, illegal


def loops_in_place(program: LoopProgram, text: str) -> LoopProgram:
    """The loops of a text for the operands of a program.

    Raises DiagnosticError `loop.parse`, and RelayValueError `schedule.illegal` where the operands are others, or where
    turns that threads or lanes do at the same time are not proven to keep out of each other's way.
    """
    written = parse(text)
    given, wanted = (
        {role: f"{t.dtype}[{t.shape[0]}]" for role, t in p.buffers} for p in (written, program)
    )  # fmt: skip
    if given != wanted:
        listed = ", ".join(f"{role} {form}" for role, form in wanted.items())
        raise illegal("the operands of these loops are not those of the kernel", f"they are: {listed}")
    roles = {t: role for role, t in program.buffers}
    constants = {roles[t] for t in program.known}
    for role, tensor in written.buffers:
        if tensor in written.known and role not in constants:
            raise illegal(f"`{tensor.name}` is not known when the program is built", "leave `known` out")
    own = None
    for reason in hindrances(written):
        own = set(hindrances(program)) if own is None else own
        if reason not in own:  # what is not proven of the kernel's own loops need not be proven here
            raise illegal(reason)
    by_role = dict(written.buffers)
    return replace(written, buffers=tuple((role, by_role[role]) for role in wanted))


def hindrances(program: LoopProgram) -> Iterator[str]:
    """Why loops cannot run as they are: shared out, as lanes, with buffers of their own and some in registers."""
    for nest in program.nests:
        if reason := conflict(nest.loop.body, [nest.loop.axis], without=program.private):
            yield reason
    for first, second in combinations(program.nests, 2):
        if reason := sharing(first, second):
            yield reason
    for loop in statements(program.loops):
        if isinstance(loop, For) and loop.kind == "vectorized":
            if reason := conflict(loop.body, [loop.axis], sums=True) or differing(loop):
                yield reason
    if reason := many_copies(program.loops):
        yield reason
    nests = [nest.loop for nest in program.nests]
    yield from (f"`{t.name}` is read where it may not be filled" for t in program.private if not filled_first(t, nests))
    held = frozenset(program.registers)
    if held:
        yield from _unknown_places(program.loops, held)


def _unknown_places(body: Body, held: frozenset[Tensor]) -> Iterator[str]:
    """Accesses to registers whose places are not known when code is written."""
    turning = {s.axis for s in statements(body) if isinstance(s, For) and s.kind in TURN_BY_TURN}
    for access in accesses(body):
        if access.buffer not in held:
            continue
        for node in post_order(access.address):
            if isinstance(node, (Load, Local)) or isinstance(node, Axis) and node in turning:
                name = node.tensor.name if isinstance(node, Load) else node.name
                yield f"`{access.buffer.name}` lives in registers, at places that `{name}` gives"
