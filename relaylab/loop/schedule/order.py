"""Steps that change which loops there are and in which order they run: split, fuse, peel, reorder, fission, join."""

from __future__ import annotations

import math
from dataclasses import replace

from relaylab.loop.expr import Axis, Load, Local, ScalarExpr, Tensor, apply, as_index, cast, post_order
from relaylab.loop.program import FUNCTION, Accumulate, Define, For, LoopProgram, Statement, Store, statements
from relaylab.loop.scalar import compute_dtype
from relaylab.loop.schedule.legal import parting, private_to, shared_out, turned
from relaylab.loop.schedule.step import named, number, primitive
from relaylab.loop.schedule.tree import (
    Body,
    accesses,
    around,
    copied,
    counted,
    edited,
    exchanged,
    fresh,
    illegal,
    locals_of,
    loop_named,
    mapped,
    moved,
    name_for,
    rebuilt,
    unique,
    whole,
    with_values,
)
from relaylab.loop.show import show
from relaylab.loop.simplify import Simplifier

Words = tuple[str, ...]
MOST_ELEMENTS = 1 << 24  # of a private buffer


@primitive("split LOOP FACTOR [as OUTER INNER]", "split(x, factor=f)", "split(x, [None, f])")
def split(program: LoopProgram, words: Words) -> LoopProgram:
    """A loop becomes two: blocks, and FACTOR turns in each. FACTOR divides the extent (`peel` cuts a rest off)."""
    (name, factor), names = named(words)
    loop, size = counted(_plain(loop_named(program, name))), number(factor, "a factor")
    extent = loop.axis.extent
    if extent % size:
        raise illegal(f"{size} does not divide the {extent} turns of `{name}`", f"peel {name} {extent // size * size}")
    outer = Axis(name_for(program, names, 0, f"{name}o", name), extent // size)
    inner = Axis(name_for(program, names, 1, f"{name}i", name), size)
    body = with_values(loop.body, {loop.axis: outer * size + inner})
    return exchanged(program, loop, lambda s: (For(outer, "serial", (For(inner, "serial", body),)),))


@primitive("fuse OUTER INNER [as NAME]", "fuse(a, b)", "fuse(a, b)")
def fuse(program: LoopProgram, words: Words) -> LoopProgram:
    """Two loops, one directly in the other, become one."""
    (first, second), names = named(words)
    outer, inner = (counted(_plain(loop_named(program, n))) for n in (first, second))
    if outer.body != (inner,):
        raise illegal(f"`{second}` is not all that `{first}` contains")
    axis = Axis(name_for(program, names, 0, first + second, first, second), outer.axis.extent * inner.axis.extent)
    size = inner.axis.extent
    body = with_values(inner.body, {outer.axis: axis // size, inner.axis: axis % size})
    return _shared(program, exchanged(program, outer, lambda s: (For(axis, "serial", body),)))


@primitive("peel LOOP COUNT [as NAME]", "split with a rest", "split with a predicate, loop_partition")
def peel(program: LoopProgram, words: Words) -> LoopProgram:
    """The first COUNT turns of a loop stay in it, the rest become a loop of their own after it."""
    (name, count), names = named(words)
    loop, turns = counted(_plain(loop_named(program, name))), number(count, "a count")
    if turns >= loop.axis.extent:
        raise illegal(f"`{name}` has only {loop.axis.extent} turns")
    first = Axis(name, turns)
    after = Axis(name_for(program, names, 0, f"{name}_rest"), loop.axis.extent - turns)
    rest = copied(program, with_values(loop.body, {loop.axis: after + turns}), "_rest")
    one = For(first, "serial", with_values(loop.body, {loop.axis: first}))
    return unique(exchanged(program, loop, lambda s: (one, For(after, "serial", rest))))


@primitive("reorder LOOP LOOP ...", "reorder(...)", "reorder(...)")
def reorder(program: LoopProgram, words: Words) -> LoopProgram:
    """Loops that stand directly in each other run in the named order, outermost first. Sums may change their order."""
    chosen = [_plain(loop_named(program, n)) for n in words]
    if len(set(words)) < len(words):
        raise illegal("a loop is named twice")
    top = min(chosen, key=lambda loop: len(around(program, loop)))
    nest = [top]
    while not all(loop in nest for loop in chosen):
        if len(nest[-1].body) != 1 or not isinstance(nest[-1].body[0], For):
            missing = next(loop for loop in chosen if loop not in nest)
            raise illegal(
                f"`{missing.axis.name}` does not stand directly in `{nest[-1].axis.name}`: there is more beside it",
                f"part them first: fission {nest[-1].axis.name}",
            )
        nest.append(nest[-1].body[0])
    inside = nest[-1].body
    between = [_plain(loop) for loop in nest]
    wanted = iter(chosen)
    order = [next(wanted) if loop in chosen else loop for loop in between]
    if reason := turned(inside, [loop.axis for loop in between], [loop.axis for loop in order]):
        raise illegal(reason)
    for loop in reversed(order):
        inside = (replace(loop, body=inside),)
    return _shared(program, exchanged(program, top, lambda s: inside))


@primitive("fission LOOP ...", "cache_write(T, scope)", "decompose_reduction(block, x), cache_write(block, ...)")
def fission(program: LoopProgram, words: Words) -> LoopProgram:
    """A loop runs once for each statement in it instead of once for all; the part with most loops keeps its name.
    What one part hands to the next is kept in a private buffer, an element for each turn."""
    for name in words:
        program = _parted(program, _plain(loop_named(program, name), program))
    return program


@primitive("join FIRST SECOND", "compute_at(s, x)", "compute_at(block, x), reverse_compute_at(block, x)")
def join(program: LoopProgram, words: Words) -> LoopProgram:
    """Two loops of equal extent, one after the other, become one: its turns do both."""
    first, second = (_plain(loop_named(program, n)) for n in words)
    above = around(program, first)
    body = above[-1].body if above else ()
    at = next((k for k, s in enumerate(body) if s is first), len(body))
    if body[at + 1 : at + 2] != (second,):
        raise illegal(f"`{words[1]}` does not follow `{words[0]}` directly")
    if first.axis.length != second.axis.length:
        turns = [show(as_index(loop.axis.length)) for loop in (first, second)]
        raise illegal(f"`{words[0]}` has {turns[0]} turns, `{words[1]}` {turns[1]}")
    added = with_values(second.body, {second.axis: first.axis})
    if reason := parting([first.body, added], first.axis):
        raise illegal(reason)
    both = (*first.body, *added)

    def rule(s: Statement) -> tuple[Statement, ...]:
        return () if s is second else (replace(first, body=both),) if s is first else (s,)

    return edited(program, rule)


# ---- parts of steps


def _shared(before: LoopProgram, after: LoopProgram) -> LoopProgram:
    """A program whose outermost loops may be others than before: the threads share these out now."""
    for old, new in zip(before.nests, after.nests):
        if old.loop.axis is not new.loop.axis and (reason := shared_out(after, new.loop)):
            raise illegal(reason)
    return after


def _plain(loop: For, program: LoopProgram | None = None) -> For:
    """A loop that no mark binds yet; in a program: nor one that is in it or around it."""
    marked = [s for s in statements((loop,)) if isinstance(s, For)] + around(program, loop) if program else [loop]
    for other in marked:
        if other.kind != "serial":
            raise illegal(f"`{other.axis.name}` is {other.kind} already", "change loops first, mark them last")
    return whole(loop)


def _parted(program: LoopProgram, loop: For) -> LoopProgram:
    """A program with one loop for each statement of a loop."""
    if len(loop.body) < 2:
        raise illegal(f"`{loop.axis.name}` has only one statement")
    program, loop = _with_arrays(program, loop)
    own = private_to(program, loop)
    program, loop = _with_rows(program, loop, own)
    if reason := parting([(s,) for s in loop.body], loop.axis):
        raise illegal(reason)
    sizes = [sum(isinstance(inner, For) for inner in statements((s,))) for s in loop.body]
    main = sizes.index(max(sizes))
    parts: list[Statement] = []
    for k, statement in enumerate(loop.body):
        axis = loop.axis
        if k != main:
            taken = {p.axis.name for p in parts if isinstance(p, For)}
            wanted = axis.name + ("_init" if k < main else "_out")
            while (name := fresh(program, wanted)) in taken:
                wanted += "_"
            axis = replace(axis, name=name)
        parts.append(For(axis, "serial", with_values((statement,), {loop.axis: axis})))
    return exchanged(program, loop, lambda s: tuple(parts))


def _with_arrays(program: LoopProgram, loop: For) -> tuple[LoopProgram, For]:
    """A loop whose statements hand values on by private buffers instead of registers."""
    defined, _ = locals_of([s for s in loop.body if isinstance(s, Define)])
    crossing = [x for x in defined if _crosses(x, loop.body)]
    extent = loop.axis.extent
    body = loop.body
    for local in sorted(crossing, key=lambda x: x.name):
        dtype = compute_dtype(local.dtype)  # halves are added up as floats
        buffer = Tensor(fresh(program, local.name), (extent,), dtype)
        program = replace(program, scratch=(*program.scratch, buffer))
        body = _in_memory(body, local, buffer, loop.axis)
    new = replace(loop, body=body)
    return exchanged(program, loop, lambda s: (new,)), new


def _crosses(local: Local, body: Body) -> bool:
    """Whether more than one statement of a body knows a register."""
    return sum(local in set().union(*locals_of([s])) for s in body) > 1


def _in_memory(body: Body, local: Local, buffer: Tensor, address: Axis) -> Body:
    """A body with a register as an element of a buffer."""
    simplify = Simplifier()
    element = Load(buffer, (address,))
    read = cast(element, local.dtype)

    def expression(e: ScalarExpr) -> ScalarExpr:
        return simplify(e, {local: simplify(read)}) if any(n is local for n in post_order(e)) else simplify(e)

    def rule(s: Statement) -> tuple[Statement, ...]:
        match s:
            case Define(x, value) if x is local:
                return (Store(buffer, simplify(address), simplify(cast(expression(value), buffer.dtype))),)
            case Accumulate(x, kind, value) if x is local:
                amount = simplify(cast(expression(value), buffer.dtype))
                total = amount if kind == "last" else simplify(apply(FUNCTION[kind], simplify(element), amount))
                return (Store(buffer, simplify(address), total),)
            case _:
                return (mapped(s, expression),)

    return rebuilt(body, rule)


def _with_rows(program: LoopProgram, loop: For, own: set[Tensor]) -> tuple[LoopProgram, For]:
    """A loop whose own private buffers have a row for each of its turns, where several statements use them."""
    for buffer in sorted(own, key=lambda t: t.name):
        users = [s for s in loop.body if any(a.buffer is buffer for a in accesses([s]))]
        if len(users) < 2 or any(loop.axis in post_order(a.address) for a in accesses(loop.body) if a.buffer is buffer):
            continue
        size = math.prod(buffer.shape)
        if size * loop.axis.extent > MOST_ELEMENTS:
            raise illegal(
                f"`{buffer.name}` would have {size * loop.axis.extent:,} elements",
                "split the loop and part its inner half",
            )
        wide = Tensor(buffer.name, (size * loop.axis.extent,), buffer.dtype)
        row = loop.axis * size
        new = replace(loop, body=rebuilt(loop.body, moved(buffer, wide, lambda place, row=row: row + place)))
        program = exchanged(program, loop, lambda s, new=new: (new,))
        program = replace(program, scratch=tuple(wide if t is buffer else t for t in program.scratch))
        loop = new
    return program, loop
