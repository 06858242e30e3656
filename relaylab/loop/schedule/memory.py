"""Steps that say where data lies: pack (array packing), registers, inline."""

from __future__ import annotations

import math
from dataclasses import replace

from relaylab.loop.expr import Axis, Guard, Load, Local, ScalarExpr, Tensor, post_order
from relaylab.loop.program import (
    TURN_BY_TURN,
    Accumulate,
    Define,
    For,
    IfThenElse,
    LoopProgram,
    Prepared,
    Statement,
    Store,
    bodies,
    statements,
    values,
)
from relaylab.loop.region import address, dense_strides, substitute
from relaylab.loop.schedule.legal import conflict
from relaylab.loop.schedule.step import named, primitive
from relaylab.loop.schedule.tree import (
    Body,
    accesses,
    around,
    buffer_named,
    counted,
    edited,
    exchanged,
    fresh,
    illegal,
    locals_of,
    loop_named,
    mapped,
    name_for,
    own_accesses,
    path,
    rebuilt,
    update_of,
    whole,
    with_bodies,
    with_values,
)
from relaylab.loop.show import show
from relaylab.loop.simplify import Simplifier
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

Words = tuple[str, ...]
MOST_PACKED = 1 << 24  # elements
MOST_REGISTERS = 1 << 10  # elements, of all private buffers in registers together


@primitive(
    "pack BUFFER LOOP AXIS ... [as NAME]",
    "cache_read(T, scope), array packing",
    "cache_read(block, ...), transform_layout",
)
def pack(program: LoopProgram, words: Words) -> LoopProgram:
    """At the start of each turn of LOOP, what is read of BUFFER in it is copied into a private buffer whose axes are
    the named loops in it, outermost first (array packing)."""
    before, names = named(words)
    buffer, loop = buffer_named(program, before[0]), loop_named(program, before[1])
    inner = [s.axis for s in statements(loop.body) if isinstance(s, For)]
    order = [counted(loop_named(program, n)).axis for n in before[2:]]
    wrong = [a.name for k, a in enumerate(order) if a not in inner or a in order[:k]]
    if wrong:
        raise illegal(f"`{wrong[0]}` does not stand once in `{before[1]}`")
    if lanes := [s.axis.name for s in (*around(program, loop), loop) if s.kind == "vectorized"]:
        raise illegal(f"`{before[1]}` runs in the lanes of `{lanes[0]}`", "pack first")
    if any(a.write and a.buffer is buffer for a in accesses(loop.body)):
        raise illegal(f"`{before[0]}` is written in `{before[1]}`")
    if buffer in program.registers:
        raise illegal(f"`{before[0]}` lives in registers")
    _check_reached(program, loop, buffer)
    simplify = Simplifier()
    body = rebuilt(loop.body, lambda s: (mapped(s, simplify),))
    element = _element(buffer, before[1], body)
    _check_axes(element, inner, order)
    defined, _ = locals_of(body)
    if known := [n.name for n in post_order(element) if n in defined and isinstance(n, Local)]:
        raise illegal(f"what is read depends on `{known[0]}`, which is computed in `{before[1]}`")
    size = math.prod(a.extent for a in order)
    if size > MOST_PACKED:
        raise illegal(f"{size:,} elements would be packed", f"at most {MOST_PACKED:,}: pack further in")
    packed = Tensor(name_for(program, names, 0, f"{buffer.name}_packed"), (size,), buffer.dtype)
    strides = dense_strides([a.extent for a in order])
    known = {element: simplify.intern(Load(packed, (simplify(address(tuple(order), strides)),)))}
    body = rebuilt(body, lambda s: (mapped(s, lambda e: simplify(e, known)),))
    new = replace(loop, body=(_copy(program, element, order, packed, strides), *body))
    return replace(exchanged(program, loop, lambda s: (new,)), scratch=(*program.scratch, packed))


@primitive("registers BUFFER ...", 'set_scope("local")', 'set_scope(block, 0, "local")')
def registers(program: LoopProgram, words: Words) -> LoopProgram:
    """Private buffers live in the registers of the machine: all their addresses are known once loops are unrolled, but
    for one vectorized loop, whose lanes are neighbours."""
    for name in words:
        buffer, users = _private(program, name)
        chosen = (*program.registers, buffer)
        if (size := sum(t.shape[0] for t in chosen)) > MOST_REGISTERS:
            raise illegal(f"{size:,} elements are more than registers hold", f"at most {MOST_REGISTERS:,}")
        for statement in users:
            _check_addresses(program, statement, buffer)
        _check_filled(program, users, buffer)
        scratch = tuple(t for t in program.scratch if t is not buffer)
        program = replace(program, scratch=scratch, registers=chosen)
    return program


def _private(program: LoopProgram, name: str) -> tuple[Tensor, list[Statement]]:
    """A private buffer in memory, and the statements that touch it."""
    buffer = buffer_named(program, name)
    if buffer not in program.scratch:
        raise illegal(f"`{name}` is no private buffer in memory")
    return buffer, [s for nest in program.nests for s in statements((nest.loop,)) if _touches(s, buffer)]


@primitive("memory BUFFER ...", 'set_scope("global")', 'set_scope(block, 0, "global")')
def memory(program: LoopProgram, words: Words) -> LoopProgram:
    """Private buffers that live in registers lie in memory again, so that loops over them need not be written out."""
    for name in words:
        buffer = buffer_named(program, name)
        if buffer not in program.registers:
            raise illegal(f"`{name}` does not live in registers")
        left = tuple(t for t in program.registers if t is not buffer)
        program = replace(program, registers=left, scratch=(*program.scratch, buffer))
    return program


@primitive("constant BUFFER ...", "a stage that is computed once", "preprocessing, transform_layout of a parameter")
def constant(program: LoopProgram, words: Words) -> LoopProgram:
    """Private buffers that are copies of constants are filled when the program is built, not when it runs."""
    for name in words:
        buffer, users = _private(program, name)
        stores = [s for s in users if isinstance(s, Store) and s.buffer is buffer]
        if len(stores) != 1 or users[0] is not stores[0] or update_of(stores[0]):
            raise illegal(f"`{name}` is not filled by one store, before it is used")
        fill = _fill(program, stores[0])
        scratch = tuple(t for t in program.scratch if t is not buffer)
        program = edited(program, lambda s, fill=fill: () if s is fill else (s,))
        program = replace(program, scratch=scratch, prepared=(*program.prepared, Prepared(buffer, fill)))
    return program


def _fill(program: LoopProgram, store: Store) -> For:
    """The loops that only fill a buffer, with what is known when the program is built."""
    above, fill = [s for s, _ in path(program, store)], None
    while len(above) > 1 and isinstance(loop := above[-1], For) and len(loop.body) == 1:
        fill = whole(loop)
        above.pop()
    if fill is None:
        raise illegal(f"no loop fills only `{store.buffer.name}`")
    own = {s.axis for s in statements((fill,)) if isinstance(s, For)}
    for node in post_order(store.address, store.value):
        if isinstance(node, Local) or isinstance(node, Axis) and node not in own:
            raise illegal(f"`{store.buffer.name}` is filled anew for each `{node.name}`", "pack it further out")
        if isinstance(node, Load) and node.tensor not in program.known:
            raise illegal(f"`{node.tensor.name}` is no constant")
    if any(isinstance(s, IfThenElse) for s in above):
        raise illegal(f"`{store.buffer.name}` is filled under a condition")
    return fill


@primitive("inline VALUE ...", "compute_inline()", "compute_inline(block)")
def inline(program: LoopProgram, words: Words) -> LoopProgram:
    """A value that is kept in a register is computed where it is used, so that nothing stands beside the loop in it."""
    for name in words:
        found = [s for nest in program.nests for s in statements((nest.loop,))]
        defined = [s for s in found if isinstance(s, Define)]
        chosen = [s for s in defined if s.local.name == name]
        if not chosen:
            names = dict.fromkeys(s.local.name for s in defined)
            help = did_you_mean(name, names) or f"the values are {', '.join(names) or 'none'}"
            raise RelayValueError(f"there is no value `{name}`", code="schedule.unknown-value", help=help)
        for kept in chosen:
            _check_inline(program, kept, found)
        program = edited(program, lambda s, chosen=chosen: (_inlined(s, chosen),))
    return program


def _check_inline(program: LoopProgram, kept: Define, found: list[Statement]) -> None:
    """A value must stay what it was to its last use."""
    local = kept.local
    if any(isinstance(s, Accumulate) and s.local is local for s in found):
        raise illegal(f"`{local.name}` is added to", f"part its loop: fission {around(program, kept)[-1].axis.name}")
    written = {s.buffer for s in found if isinstance(s, Store)}
    read = {n.tensor for n in post_order(kept.value) if isinstance(n, Load)}
    if both := read & written:
        raise illegal(f"`{local.name}` reads `{min(t.name for t in both)}`, which is written too")
    statement, side = path(program, kept)[-1]
    beside = statements(bodies(statement)[side])
    used = {n for n in post_order(kept.value) if isinstance(n, Local)}
    if added := {s.local.name for s in beside if isinstance(s, Accumulate) and s.local in used}:
        raise illegal(f"`{local.name}` reads `{min(added)}`, which is added to after it")


def _inlined(statement: Statement, chosen: list[Define]) -> Statement:
    """A loop or condition without the chosen registers that it begins; their values stand at the uses after them."""
    return with_bodies(statement, [_without(body, chosen) for body in bodies(statement)])


def _without(body: Body, chosen: list[Define]) -> Body:
    while kept := next((s for s in body if s in chosen), None):
        at = body.index(kept)
        body = (*body[:at], *with_values(body[at + 1 :], {kept.local: kept.value}))
    return body


def _check_reached(program: LoopProgram, loop: For, buffer: Tensor) -> None:
    """What a loop reads of a buffer must be read in every turn: what a condition keeps from it may not be there."""
    for statement in statements(loop.body):
        if not any(a.buffer is buffer for a in own_accesses(statement)):
            continue
        above = [s for s, _ in path(program, statement)]
        for other in above[above.index(loop) + 1 :]:
            if isinstance(other, IfThenElse):
                raise illegal(f"`{buffer.name}` is read only where `{show(other.condition)}`", "pack it further in")
            whole(other)


def _element(buffer: Tensor, where: str, body: Body) -> ScalarExpr:
    """What is read of a buffer in a body: one load, or the guard that it stands in."""
    roots = [e for s in statements(body) for e in values(s)]
    nodes = list(post_order(*roots))
    loads = [n for n in nodes if isinstance(n, Load) and n.tensor is buffer]
    if len(loads) != 1:
        raise illegal(f"`{where}` reads `{buffer.name}` at {len(loads)} places, not at one")
    guards = [n for n in nodes if isinstance(n, Guard) and any(m is loads[0] for m in post_order(n.value))]
    if not guards:
        return loads[0]
    if len(guards) > 1 or guards[0].value is not loads[0]:
        raise illegal(f"`{buffer.name}` is read under a guard together with other values")
    return guards[0]


def _check_axes(element: ScalarExpr, inner: list[Axis], order: list[Axis]) -> None:
    """An element must depend on the axes that it is packed by, and inside the loop on no others."""
    used = {n for n in post_order(element) if isinstance(n, Axis) and n in inner}
    missing, beside = used - set(order), set(order) - used
    if missing:
        raise illegal(f"what is read changes with `{min(a.name for a in missing)}` too: name all its loops")
    if beside:
        raise illegal(f"what is read does not change with `{min(a.name for a in beside)}`")
    others = {n.tensor.name for n in post_order(element) if isinstance(n, Load)}
    if len(others) > 1:
        raise illegal("its place is read from another buffer")


def _copy(
    program: LoopProgram, element: ScalarExpr, order: list[Axis], packed: Tensor, strides: tuple[int, ...]
) -> Statement:
    """The loops that fill a packed buffer."""
    simplify = Simplifier()
    own = [Axis(fresh(program, f"{a.name}_pack"), a.extent) for a in order]
    value = simplify(substitute(element, dict(zip(order, own))))
    body: Statement = Store(packed, simplify(address(tuple(own), strides)), value)
    for axis in reversed(own):
        body = For(axis, "serial", (body,))
    return body


def _touches(statement: Statement, buffer: Tensor) -> bool:
    return any(a.buffer is buffer for a in own_accesses(statement))


def _check_filled(program: LoopProgram, users: list[Statement], buffer: Tensor) -> None:
    """The first statement that uses a buffer must fill it, in the same turn of every loop as all others, and under the
    same conditions."""
    simplify, first = Simplifier(), users[0] if users else None
    if not isinstance(first, Store) or first.buffer is not buffer or update_of(first):
        raise illegal(f"`{buffer.name}` is not filled before it is used")
    above = path(program, first)
    total = simplify.linear(simplify(first.address))
    places = {total.const}
    for loop in (s for s, _ in above if isinstance(s, For) and s.kind not in TURN_BY_TURN):
        factor = total.terms.get(loop.axis, 0)
        places = {p + k * factor for p in places for k in range(loop.axis.extent)}
    if places != set(range(buffer.shape[0])):
        raise illegal(f"the first store fills {len(places)} of the {buffer.shape[0]} elements of `{buffer.name}`")
    paths = [set(path(program, other)) for other in users[1:]]
    for statement, side in above:
        outside = any((statement, side) not in p for p in paths)
        if outside and isinstance(statement, IfThenElse):
            raise illegal(f"`{buffer.name}` is filled only where `{show(statement.condition)}`, and used elsewhere")
        if outside and isinstance(statement, For) and statement.kind in TURN_BY_TURN:
            raise illegal(f"`{buffer.name}` is filled in a loop and used outside of it")
        if not isinstance(statement, For) or statement.kind in TURN_BY_TURN:
            continue
        if any((statement, side) in p for p in paths):
            others = {a.buffer for a in accesses(statement.body)} - {buffer}
            if reason := conflict(statement.body, [statement.axis], others, sums=True):
                raise illegal(reason)


def _check_addresses(program: LoopProgram, statement: Statement, buffer: Tensor) -> None:
    """The addresses of a statement in `buffer` must be known once the unrolled loops around it are written out."""
    found = [a for a in own_accesses(statement) if a.buffer is buffer]
    kinds = {s.axis: s.kind for s in around(program, statement)}
    simplify = Simplifier()
    for access in found:
        for atom, factor in simplify.linear(simplify(access.address)).terms.items():
            kind = kinds.get(atom, "") if isinstance(atom, Axis) else ""
            name = f"`{atom.name}`" if isinstance(atom, Axis) else "a computed index"
            if kind == "vectorized" and factor != 1:
                raise illegal(f"the lanes of {name} lie {factor} elements apart in `{buffer.name}`")
            if kind not in ("vectorized", "unrolled"):
                what = f"{name}, which is {kind or 'no loop'}"
                raise illegal(f"the place in `{buffer.name}` changes with {what}", "unroll it first")
