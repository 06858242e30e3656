"""Steps that say how a loop runs: vectorize, unroll, matrix, parallel."""

from __future__ import annotations

import math
from dataclasses import replace

from relaylab.loop.dependence import Dependence
from relaylab.loop.expr import Axis, post_order
from relaylab.loop.matrix import FORM, matrix_product
from relaylab.loop.program import Accumulate, Body, Define, For, IfThenElse, LoopNest, LoopProgram, inside, statements
from relaylab.loop.schedule.legal import conflict, shared_out
from relaylab.loop.schedule.step import primitive
from relaylab.loop.schedule.tree import accesses, around, counted, exchanged, fresh, illegal, loop_named, whole
from relaylab.loop.show import show

Words = tuple[str, ...]
MOST_COPIES = 4096
LANES = 64  # turns of a vectorized loop that one thread does at least


@primitive("vectorize LOOP ...", "vectorize(x)", "vectorize(x)")
def vectorize(program: LoopProgram, words: Words) -> LoopProgram:
    """The turns of a loop are the lanes of vectors. A sum over the loop stays one: its lanes are added at the end."""
    for name in words:
        loop = _serial(program, name)
        inside = [s for s in statements(loop.body) if isinstance(s, For) and s.kind == "vectorized"]
        outside = [s for s in around(program, loop) if s.kind == "vectorized"]
        if inside or outside:
            raise illegal(f"`{name}` and `{(inside or outside)[0].axis.name}` cannot both be lanes")
        if reason := conflict(loop.body, [loop.axis], sums=True) or differing(loop):
            raise illegal(reason)
        program = exchanged(program, loop, lambda s: (replace(s, kind="vectorized"),))
    return program


@primitive("unroll LOOP ...", "unroll(x)", "unroll(x)")
def unroll(program: LoopProgram, words: Words) -> LoopProgram:
    """The turns of a loop are written out one after another. A vectorized loop becomes as many vectors side by side."""
    for name in words:
        loop = counted(whole(loop_named(program, name)))
        if loop.kind == "unrolled":
            raise illegal(f"`{name}` is unrolled already")
        if loop.kind == "vectorized":
            raise illegal(f"`{name}` is vectorized: its vectors stand side by side where registers need it")
        unrolled = replace(loop, kind="unrolled")
        outside = math.prod(s.axis.extent for s in around(program, loop) if s.kind == "unrolled")
        if too_many := many_copies((unrolled,), outside):
            raise illegal(too_many, "split the loop and unroll its inner half")
        program = exchanged(program, loop, lambda s, unrolled=unrolled: (unrolled,))
    return program


@primitive("matrix LOOP", "tensorize(x, …)", "tensorize(x, …)")
def matrix(program: LoopProgram, words: Words) -> LoopProgram:
    """A loop is the rows of a product of bytes, which a machine with tiles of bytes does by these."""
    (name,) = words
    marked = replace(_serial(program, name), kind="matrix")
    if matrix_product(marked) is None:
        raise illegal(f"the loops in `{name}` are no product of bytes", f"such are {FORM}")
    return exchanged(program, loop_named(program, name), lambda s: (marked,))


@primitive("serial LOOP ...")
def serial(program: LoopProgram, words: Words) -> LoopProgram:
    """What was vectorized, unrolled, outlined or a product of bytes runs turn by turn again; the loop that the threads
    share runs in each of them."""
    for name in words:
        loop = loop_named(program, name)
        at = next((k for k, nest in enumerate(program.nests) if nest.loop is loop), None)
        if at is None and loop.kind == "serial":
            raise illegal(f"`{name}` runs turn by turn")
        private = {a.buffer for a in accesses(loop.body) if any(n is loop.axis for n in post_order(a.address))}
        if held := private & set(program.registers):
            raise illegal(f"`{min(t.name for t in held)}` lives in registers, at places that `{name}` gives")
        if loop.kind == "vectorized" and (reason := conflict(loop.body, [loop.axis], sums=True)):
            raise illegal(reason)
        plain = replace(loop, kind="serial", unroll=1)
        if at is None:
            program = exchanged(program, loop, lambda s, plain=plain: (plain,))
            continue
        once = For(Axis(fresh(program, "once"), 1), "serial", (plain,))
        nests = (*program.nests[:at], LoopNest(once), *program.nests[at + 1 :])
        program = replace(program, nests=nests)
    return program


@primitive("parallel LOOP", "parallel(x)", "parallel(x)")
def parallel(program: LoopProgram, words: Words) -> LoopProgram:
    """The turns of an outermost loop are shared out among the threads."""
    (name,) = words
    loop = whole(loop_named(program, name))
    at = next((k for k, nest in enumerate(program.nests) if loop in nest.loop.body), None)
    if at is None or program.nests[at].loop.axis.extent != 1:
        raise illegal(f"`{name}` is not an outermost loop of one thread", "reorder it to the outside first")
    if len(program.nests[at].loop.body) > 1:
        raise illegal(f"beside `{name}` stand other statements, which belong to all threads", "join them first")
    if loop.kind == "unrolled" or loop.kind == "vectorized" and program.registers:
        raise illegal(f"`{name}` is {loop.kind}: its turns are written out")
    if reason := shared_out(program, loop):
        raise illegal(reason)
    nests = list(program.nests)
    nests[at] = LoopNest(loop, LANES if loop.kind == "vectorized" else 1)
    return replace(program, nests=tuple(nests))


def _serial(program: LoopProgram, name: str) -> For:
    loop = loop_named(program, name)
    if loop.kind != "serial":
        raise illegal(f"`{name}` is {loop.kind} already")
    return whole(loop)


def many_copies(body: Body, outside: int = 1) -> str:
    """That too many copies of a statement would be written out, with those that loops outside make; empty if not."""
    stack = [(s, outside) for s in body]
    while stack:
        statement, count = stack.pop()
        if isinstance(statement, For) and statement.kind != "serial":
            count *= (
                statement.axis.extent if statement.kind == "unrolled" else min(statement.unroll, statement.axis.extent)
            )
        if count > MOST_COPIES:
            return f"more than {MOST_COPIES} copies of a statement"
        stack += [(s, count) for s in inside(statement)]
    return ""


def differing(loop: For) -> str:
    """What the lanes of a loop would do at different times: sides of conditions, ends of loops; empty if nothing."""
    depends = Dependence()
    for statement in statements(loop.body):
        if isinstance(statement, Define):
            depends.stands_for(statement.local, statement.value)
        elif isinstance(statement, Accumulate):
            depends.stands_for(statement.local, loop.axis)
        elif isinstance(statement, IfThenElse) and loop.axis in depends(statement.condition):
            return f"the lanes of `{loop.axis.name}` may take different sides of `if {show(statement.condition)}`"
        elif isinstance(statement, For) and statement.stop is not None and loop.axis in depends(statement.stop):
            return f"`{statement.axis.name}` may end elsewhere in each lane of `{loop.axis.name}`"
    return ""
