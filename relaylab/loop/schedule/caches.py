"""Steps for the sake of caches: prefetch, pad."""

from __future__ import annotations

import math
from dataclasses import replace

from relaylab.loop.expr import Axis, Load, Local, ScalarExpr, Tensor, post_order
from relaylab.loop.program import Body, Define, For, LoopProgram, Prefetch, Statement, statements, values
from relaylab.loop.region import substitute
from relaylab.loop.schedule.step import number, primitive
from relaylab.loop.schedule.tree import (
    around,
    buffer_named,
    edited,
    exchanged,
    fresh,
    illegal,
    loop_named,
    moved,
    unique,
)
from relaylab.loop.simplify import Simplifier

Words = tuple[str, ...]
LINE = 64  # bytes of a cache line
LETTERS = "abcdefghijklmnopqrstuvwxyz"  # a dtype's name ends with its bits
MOST_LINES = 64  # that one turn asks for
MOST_ELEMENTS = 1 << 24  # of a padded buffer


@primitive("prefetch BUFFER LOOP DISTANCE", "prefetch(T, x, offset)", "annotate(loop, ...)")
def prefetch(program: LoopProgram, words: Words) -> LoopProgram:
    """Each turn of LOOP asks for the cache lines of BUFFER that are read DISTANCE turns later."""
    buffer, loop = buffer_named(program, words[0]), loop_named(program, words[1])
    ahead = number(words[2], "a distance")
    if buffer in program.registers:
        raise illegal(f"`{buffer.name}` lives in registers")
    if lanes := [s.axis.name for s in (*around(program, loop), loop) if s.kind == "vectorized"]:
        raise illegal(f"`{words[1]}` runs in the lanes of `{lanes[0]}`")
    inner = [s for s in statements(loop.body) if isinstance(s, For)]
    simplify = Simplifier()
    read = [n for s in statements(loop.body) for e in values(s) for n in post_order(e) if isinstance(n, Load)]
    places = dict.fromkeys(simplify(n.indices[0]) for n in read if n.tensor is buffer)
    if not places:
        raise illegal(f"`{words[1]}` does not read `{words[0]}`")
    asked: list[Statement] = []
    for place in places:
        _check_place(place, loop, words[0])
        asked += _asking(program, buffer, simplify(substitute(place, {loop.axis: loop.axis + ahead})), inner)
    return unique(exchanged(program, loop, lambda s: (replace(s, body=(*asked, *loop.body)),)))


def _check_place(place: ScalarExpr, loop: For, name: str) -> None:
    """A place must be known a few turns before it is read."""
    nodes = list(post_order(place))
    own = {s.local for s in statements(loop.body) if isinstance(s, Define)}
    for node in nodes:
        if isinstance(node, Load) or isinstance(node, Local) and node in own:
            what = f"read from `{node.tensor.name}`" if isinstance(node, Load) else f"computed: `{node.name}`"
            raise illegal(f"where `{name}` is read is {what}", "inline it first" if isinstance(node, Local) else "")
    if loop.axis not in nodes:
        raise illegal(f"what is read of `{name}` does not change with `{loop.axis.name}`")


def _asking(program: LoopProgram, buffer: Tensor, place: ScalarExpr, inner: list[For]) -> Body:
    """Loops over the lines of one place, which moves with the loops that are in the one that asks."""
    simplify = Simplifier()
    place, per_line = simplify(place), max(1, 8 * LINE // int(buffer.dtype.lstrip(LETTERS) or 8))
    total = simplify.linear(place)
    moving = [s.axis for s in inner if any(n is s.axis for n in post_order(place))]
    new: dict[Axis, ScalarExpr] = {}
    found: list[Axis] = []
    for axis in moving:
        step = per_line // math.gcd(per_line, f) if 0 < (f := total.terms.get(axis, 0)) < per_line else 1
        own = Axis(fresh(program, f"{axis.name}_ahead"), -(-axis.extent // step))
        new[axis] = own * step
        found += [own]
    if (lines := math.prod(a.extent for a in found)) > MOST_LINES:
        raise illegal(f"each turn would ask for {lines:,} lines", f"at most {MOST_LINES}: prefetch further in")
    body: Body = (Prefetch(buffer, simplify(substitute(place, new))),)
    for axis in reversed(found):
        body = (For(axis, "unrolled", body),) if axis.extent > 1 else body
    return body


@primitive("pad BUFFER ROW PITCH", "storage_align(x, factor, offset)", "storage_align(block, ...)")
def pad(program: LoopProgram, words: Words) -> LoopProgram:
    """Rows of ROW elements of a private buffer begin PITCH elements apart, so that they do not share cache sets."""
    buffer = buffer_named(program, words[0])
    row, pitch = number(words[1], "a row"), number(words[2], "a pitch")
    if buffer not in program.scratch:
        raise illegal(f"`{words[0]}` is no private buffer in memory")
    size = math.prod(buffer.shape)
    if size % row or pitch <= row:
        what = f"{row} does not divide its {size} elements" if size % row else f"a pitch of {pitch} is no gap"
        raise illegal(f"the rows of `{words[0]}` cannot be padded: {what}")
    if (wanted := size // row * pitch) > MOST_ELEMENTS:
        raise illegal(f"`{words[0]}` would have {wanted:,} elements", f"at most {MOST_ELEMENTS:,}")
    wide = Tensor(buffer.name, (wanted,), buffer.dtype)
    program = edited(program, moved(buffer, wide, lambda place: place // row * pitch + place % row))
    return replace(program, scratch=tuple(wide if t is buffer else t for t in program.scratch))
