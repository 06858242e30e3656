"""Loop programs as trees that steps rewrite: loops by their names, statements rebuilt from the inside out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from relaylab.loop.expr import Apply, Axis, Load, Local, ScalarExpr, Tensor, post_order
from relaylab.loop.program import (
    FUNCTION,
    Accumulate,
    Body,
    Define,
    For,
    IfThenElse,
    LoopNest,
    LoopProgram,
    Prefetch,
    Statement,
    Store,
    bodies,
    free_name,
    statements,
    values,
)
from relaylab.loop.region import Leaf, substitute
from relaylab.loop.rewriting import rewrite
from relaylab.loop.show import show
from relaylab.loop.simplify import Simplifier
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean


def illegal(message: str, help: str = "") -> RelayValueError:
    """The error of a step that must not be taken here."""
    return RelayValueError(message, code="schedule.illegal", help=help)


def loops(program: LoopProgram) -> list[For]:
    """Every loop, outer ones first, in the order of the text."""
    return [s for nest in program.nests for s in statements((nest.loop,)) if isinstance(s, For)]


def loop_named(program: LoopProgram, name: str) -> For:
    """The loop of a name; RelayValueError `schedule.unknown-loop` if there is none."""
    found = {loop.axis.name: loop for loop in loops(program)}
    if name not in found:
        known = ", ".join(found)
        help = did_you_mean(name, found) or (f"the loops are {known}" if known else "these loops have no turns")
        raise RelayValueError(f"there is no loop `{name}`", code="schedule.unknown-loop", help=help)
    return found[name]


def whole(loop: For) -> For:
    """A loop all of whose turns are made."""
    if loop.stop is not None:
        raise illegal(f"`{loop.axis.name}` ends where `{show(loop.stop)}` says")
    return loop


def counted(loop: For) -> For:
    """A loop whose turns are a number."""
    if loop.axis.size is not None:
        raise illegal(f"how many turns `{loop.axis.name}` has, `{show(loop.axis.size)}`, is known when the kernel runs")
    return loop


Place = tuple[For | IfThenElse, int]
"""A loop or a condition around a statement, and in which of its bodies that stands."""


def path(program: LoopProgram, inner: Statement) -> list[Place]:
    """The loops and conditions around a statement, outermost first."""
    for nest in program.nests:
        stack: list[tuple[Statement, list[Place]]] = [(nest.loop, [])]
        while stack:
            statement, above = stack.pop()
            if statement is inner:
                return above
            if isinstance(statement, (For, IfThenElse)):
                for k, body in enumerate(bodies(statement)):
                    stack.extend((s, [*above, (statement, k)]) for s in body)
    raise illegal("the statement is not in the program")


def buffer_named(program: LoopProgram, name: str) -> Tensor:
    """The operand or private buffer of a name; RelayValueError `schedule.unknown-buffer` if there is none."""
    found = {t.name: t for t in (*(t for _, t in program.operands), *program.private)}
    if name not in found:
        help = did_you_mean(name, found) or f"the buffers are {', '.join(found)}"
        raise RelayValueError(f"there is no buffer `{name}`", code="schedule.unknown-buffer", help=help)
    return found[name]


def around(program: LoopProgram, inner: Statement) -> list[For]:
    """The loops around a statement, outermost first."""
    return [s for s, _ in path(program, inner) if isinstance(s, For)]


def rebuilt(body: Body, rule: Callable[[Statement], Sequence[Statement]]) -> Body:
    """A body with every statement replaced by what `rule` gives for it, what is inside first. No recursion."""
    done: list[list[Statement]] = [[]]
    stack: list[Statement | tuple[Statement] | None] = [*reversed(body)]
    while stack:
        match stack.pop():
            case None:  # the beginning of a body
                done.append([])
            case (statement,):  # all its bodies are done
                new = [tuple(done.pop()) for _ in bodies(statement)][::-1]
                done[-1].extend(rule(with_bodies(statement, new)))
            case For() | IfThenElse() as statement:
                stack.append((statement,))
                for part in reversed(bodies(statement)):
                    stack += [*reversed(part), None]
            case statement:
                done[-1].extend(rule(statement))
    return tuple(done[0])


def with_bodies(statement: Statement, new: Sequence[Body]) -> Statement:
    """A loop or condition with other bodies; itself if they are the same."""
    if all(len(a) == len(c) and all(x is y for x, y in zip(a, c)) for a, c in zip(bodies(statement), new)):
        return statement
    match statement:
        case For():
            return replace(statement, body=new[0])
        case IfThenElse():
            return replace(statement, body=new[0], otherwise=new[1])
        case _:
            return statement


def edited(program: LoopProgram, rule: Callable[[Statement], Sequence[Statement]]) -> LoopProgram:
    """A program with `rule` applied to every statement; the loop of a nest must stay one loop."""
    nests: list[LoopNest] = []
    for nest in program.nests:
        body = rebuilt((nest.loop,), rule)
        if len(body) != 1 or not isinstance(body[0], For):
            raise illegal(
                f"`{nest.loop.axis.name}` is shared out among the threads: it must stay the only outermost loop",
                help="take this step before `parallel`",
            )
        grain = nest.grain if body[0].axis.extent == nest.loop.axis.extent else 1
        nests.append(LoopNest(body[0], grain))
    return replace(program, nests=tuple(nests))


def exchanged(program: LoopProgram, old: For, new: Callable[[For], Sequence[Statement]]) -> LoopProgram:
    """A program with one loop replaced."""
    return edited(program, lambda s: new(s) if isinstance(s, For) and s.axis is old.axis else (s,))


def mapped(statement: Statement, rule: Callable[[ScalarExpr], ScalarExpr]) -> Statement:
    """A statement with `rule` applied to the expressions that it evaluates itself."""
    match statement:
        case Store(buffer, address, value):
            return Store(buffer, rule(address), rule(value))
        case Define(local, value):
            return Define(local, rule(value))
        case Accumulate(local, kind, value):
            return Accumulate(local, kind, rule(value))
        case Prefetch():
            return replace(statement, address=rule(statement.address))
        case IfThenElse():
            return replace(statement, condition=rule(statement.condition))
        case For():
            return statement if statement.stop is None else replace(statement, stop=rule(statement.stop))


def with_values(body: Body, new: Mapping[Leaf, ScalarExpr]) -> Body:
    """A body with axes or registers replaced by expressions, in normal form."""
    simplify = Simplifier()  # one for all: what an update reads and writes stays one address
    return rebuilt(body, lambda s: (mapped(s, lambda e: simplify(substitute(e, new))),))


def moved(
    buffer: Tensor, into: Tensor, place: Callable[[ScalarExpr], ScalarExpr]
) -> Callable[[Statement], Sequence[Statement]]:
    """The rule by which all that is done to a buffer is done to another one, at the `place` of each address there."""
    simplify = Simplifier()

    def load(n: ScalarExpr) -> ScalarExpr:
        return Load(into, (place(n.indices[0]),), n.part) if isinstance(n, Load) and n.tensor is buffer else n

    def rule(s: Statement) -> Sequence[Statement]:
        s = mapped(s, lambda e: simplify(rewrite(e, load)))
        if isinstance(s, (Store, Prefetch)) and s.buffer is buffer:
            return (replace(s, buffer=into, address=simplify(place(s.address))),)
        return (s,)

    return rule


def fresh(program: LoopProgram, wanted: str) -> str:
    """A name that no loop or buffer has: the wanted one, or that with a number."""
    return free_name(wanted, _taken(program))


def name_for(program: LoopProgram, given: Sequence[str], at: int, usual: str, *gone: str) -> str:
    """The name that the words of a step give something new, `gone` being free by then; without words the usual one or
    one like it. A given name is never changed: RelayValueError `schedule.illegal` if something has it."""
    if not given:
        return fresh(program, usual)
    values = {s.local.name for n in program.nests for s in statements((n.loop,)) if isinstance(s, Define)}
    if (name := given[at]) in (_taken(program) | values).difference(gone):
        raise illegal(f"there is a `{name}` already", f"name it otherwise: {fresh(program, f'{name}_')}")
    return name


def _taken(program: LoopProgram) -> set[str]:
    buffers = (*program.private, *(t for _, t in program.operands))
    return {loop.axis.name for loop in loops(program)} | {t.name for t in buffers}


def unique(program: LoopProgram) -> LoopProgram:
    """A program in which no two loops have one axis or one name."""
    while again := _with_axis_of_another(program):
        own = {s.axis: replace(s.axis) for s in statements((again,)) if isinstance(s, For)}
        program = edited(program, lambda s, loop=again, own=own: (with_axes(loop, own) if s is loop else s,))
    taken, seen = _taken(program), set[str]()
    new: dict[Axis, Axis] = {}
    for axis in (loop.axis for loop in loops(program)):
        if axis.name in seen:
            new[axis] = replace(axis, name=free_name(axis.name, taken))
        seen.add(new.get(axis, axis).name)
        taken |= seen
    return _with_axes(program, new)


def _with_axis_of_another(program: LoopProgram) -> For | None:
    seen: set[Axis] = set()
    return next((x for x in loops(program) if x.axis in seen or seen.add(x.axis)), None)


def _with_axes(program: LoopProgram, new: Mapping[Axis, Axis]) -> LoopProgram:
    if not new:
        return program
    nests = tuple(replace(n, loop=with_axes(n.loop, new)) for n in program.nests)
    prepared = tuple(replace(p, fill=with_axes(p.fill, new)) for p in program.prepared)
    return replace(program, nests=nests, prepared=prepared)


def with_axes(loop: For, new: Mapping[Axis, Axis]) -> For:
    """A loop, and those in it, with other axes in the place of some."""
    (found,) = _exchanged_axes((loop,), new)
    assert isinstance(found, For), "one statement for each"
    return found


def _exchanged_axes(body: Body, new: Mapping[Axis, Axis]) -> Body:
    of_loop: Callable[[Statement], tuple[Statement]] = lambda s: (
        replace(s, axis=new.get(s.axis, s.axis)) if isinstance(s, For) else s,
    )
    return rebuilt(with_values(body, new), of_loop)


def copied(program: LoopProgram, body: Body, suffix: str) -> Body:
    """A body whose loops and registers are its own, loops named after the old ones."""
    axes = [s.axis for s in statements(body) if isinstance(s, For)]
    registers = {s.local: replace(s.local) for s in statements(body) if isinstance(s, Define)}
    new = {a: replace(a, name=fresh(program, a.name + suffix)) for a in axes}

    def own(s: Statement) -> tuple[Statement]:
        match s:
            case Define(local) | Accumulate(local):
                return (replace(s, local=registers.get(local, local)),)
            case _:
                return (s,)

    return rebuilt(with_values(_exchanged_axes(body, new), registers), own)


# ---- what is read and written


@dataclass(frozen=True, slots=True)
class BufferAccess:
    """An element that is read or written; `kind` is the function of an update (`x = x + v`: "add"), else empty."""

    buffer: Tensor
    address: ScalarExpr
    write: bool
    kind: str = ""


def update_of(store: Store) -> tuple[str, ScalarExpr] | None:
    """`(function, value)` of a store that updates its element by an associative function; None for others."""
    value = store.value
    if not isinstance(value, Apply) or value.op not in FUNCTION.values():
        return None
    first, second = value.args
    own = isinstance(first, Load) and first.tensor is store.buffer and first.indices[0] is store.address
    if not own or any(isinstance(n, Load) and n.tensor is store.buffer for n in post_order(second)):
        return None
    return value.op, second


def accesses(body: Sequence[Statement]) -> Iterator[BufferAccess]:
    """Every access of a body; an update is one access."""
    return (access for statement in statements(tuple(body)) for access in own_accesses(statement))


def own_accesses(statement: Statement) -> Iterator[BufferAccess]:
    """The accesses of a statement itself, without what is in it."""
    update = update_of(statement) if isinstance(statement, Store) else None
    if isinstance(statement, Store):
        yield BufferAccess(statement.buffer, statement.address, True, update[0] if update else "")
    roots = (statement.address, update[1]) if isinstance(statement, Store) and update else values(statement)
    for node in post_order(*roots):
        if isinstance(node, Load):
            yield BufferAccess(node.tensor, node.indices[0], False)


def locals_of(body: Sequence[Statement]) -> tuple[set[Local], set[Local]]:
    """The registers that a body defines, and those that it uses or adds to."""
    defined, used = set[Local](), set[Local]()
    for statement in statements(tuple(body)):
        if isinstance(statement, Define):
            defined.add(statement.local)
        if isinstance(statement, Accumulate):
            used.add(statement.local)
        used |= {n for e in values(statement) for n in post_order(e) if isinstance(n, Local)}
    return defined, used
