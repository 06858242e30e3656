"""Loop programs to native kernels: loops become loops, vectorised loops groups of vectors, registers SSA values.

A vectorised loop of extent n runs `unroll` vectors side by side, then the vectors that are left together with one
masked vector. Lane counts follow from the widest dtype in the loop and the target's registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, item_bytes, total_work
from relaylab.codegen.llvm.text import Index, IRFunction, Value, constant
from relaylab.codegen.loops import scalars
from relaylab.codegen.loops.contexts import (
    Mask,
    Ramp,
    VectorContext,
    as_lane,
    first_lanes,
    from_storage,
    storage_type,
    turns_of,
)
from relaylab.codegen.loops.emit import DUMMY_BYTES, Emitter
from relaylab.codegen.loops.facts import (
    ALIGN,
    LoopLanes,
    StatementUses,
    read_after_written,
    scratch_layout,
    uses_of,
    work,
)
from relaylab.codegen.loops.folds import combine, fold, neutral
from relaylab.codegen.loops.matrix_tiles import STATE_BYTES, fits_tiles, write_product
from relaylab.codegen.loops.moving import MovingPointers
from relaylab.codegen.loops.outlining import Arguments, Outline, Routine, known_routine, outline
from relaylab.codegen.loops.register_transpose import load_columns, neighbours, rows_apart, store_interleaved
from relaylab.codegen.loops.rows import write_rows
from relaylab.loop.expr import INDEX, Axis, Guard, Load, Local, ScalarExpr, Tensor, post_order
from relaylab.loop.matrix import matrix_product
from relaylab.loop.program import (
    SIZES,
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
    check_depth,
    identity,
    sizes_in,
    statements,
)
from relaylab.loop.scalar import compute_dtype


def lower_program(
    program: LoopProgram, target: CpuTarget, tiles: bool = False, cost: tuple[int, int] | None = None
) -> Kernel:
    """The kernel of a loop program; operands are its buffers in order, then "scratch" if it needs any.

    Packed constants (roles "weight0" …) begin with a cache line. With `tiles`, for what the compiler writes itself,
    pointers move with the loops around a tile of registers, and a product that is added is one instruction. `cost` are
    the operations and bytes of a run, where they are not those of the program as it is written.
    """
    check_depth(program)
    offsets, scratch = scratch_layout(program.scratch)
    needed = not isinstance(scratch, int) or scratch > 0
    roles = tuple(role for role, _ in program.operands) + (("scratch",) if needed else ())
    f = IRFunction(program.name, len(roles))
    pointers = {t: p for (_, t), p in zip(program.operands, f.pointers)}
    uses = uses_of(program)
    lowering = _Lowering(f, program, target, pointers, tiles, uses)
    if needed:
        own = f.offset(f.pointers[-1], f.mul(f.thread, lowering.number(scratch)))
        pointers |= {t: f.offset(own, lowering.number(at)) for t, at in offsets.items()}
    for nest in program.nests:
        lowering.nest(nest)
    text, declares = f.finish()
    parts = work(program, uses)
    flops, traffic = cost or total_work(parts)
    open_work = parts if any(lengths for _, _, lengths in parts) else ()
    items, open_items = (program.items, None) if isinstance(program.items, int) else (0, program.items)
    routines = tuple(lowering.routines)
    counts = items, scratch, flops, traffic
    return Kernel(program.name, text, declares, roles, *counts, routines, open_items, open_work, program)


@dataclass(slots=True)
class _Lowering:
    f: IRFunction
    program: LoopProgram
    target: CpuTarget
    pointers: dict[Tensor, Value]
    tiles: bool
    uses: dict[Statement, StatementUses]
    given: Arguments | None = None  # where these are not the program's loops but a function that they call
    routines: dict[Routine, None] = field(default_factory=dict)  # that are called
    emitter: Emitter = field(init=False)
    lanes: LoopLanes = field(init=False)
    moving: MovingPointers = field(init=False)
    items: ScalarExpr | int = field(init=False)
    state: Value | None = field(init=False)  # memory for what tiles of bytes are set up by

    def __post_init__(self) -> None:
        self.items = self.program.items
        private = frozenset(self.program.registers)
        body = tuple(nest.loop for nest in self.program.nests) if self.given is None else self.given.outline.body
        every = list(statements(body))
        guarded = any(self.uses[s].guards for s in body)
        dummy = self.f.define("ptr", f"alloca [{DUMMY_BYTES} x i8], align {ALIGN}") if guarded else None
        shared = read_after_written(every, self.uses) if private else frozenset[Tensor]()
        aligned = frozenset(t for role, t in self.program.buffers if role.startswith("weight"))
        aligned |= {part.buffer for part in self.program.prepared}
        aligned = aligned if self.given is None else frozenset()
        products = self.target.byte_tiles and any(isinstance(s, For) and s.kind == "matrix" for s in every)
        self.state = self.f.define("ptr", f"alloca [{STATE_BYTES} x i8], align {STATE_BYTES}") if products else None
        vectors = [self.uses[s] for s in every if isinstance(s, For) and s.kind == "vectorized"]
        varying = frozenset(x for u in vectors for x in (*u.defined, *u.carried) if x.dtype == INDEX)
        self.emitter = Emitter(
            self.f, self.pointers, self.target, dummy, private, shared, aligned, varying, self.tiles, self._sizes()
        )
        self.lanes = LoopLanes(self.uses, private, self.target.vector_bytes)
        self.moving = MovingPointers(self.emitter, self.lanes, given=self.given)
        if self.given is not None:
            self.moving.begun = self.given.begun
            known = self.given.streams(None, self.given.outline.places)
            self.emitter.streams |= {at: (s, rest, self.moving.begun[s.spot]) for at, (s, rest) in known.items()}

    def _sizes(self) -> dict[int, Ramp]:
        """The sizes of the call, read before everything else."""
        pointer = next((p for t, p in self.pointers.items() if t.name == SIZES), None)
        if pointer is None:
            return {}
        slots = [s.slot for s in sizes_in(self.program.nests, self.program.scratch)]
        return {k: Ramp(self.f.load("i64", self.f.offset(pointer, 8 * k), 8)) for k in slots}

    def number(self, value: ScalarExpr | int) -> Index:
        """A number, or what an expression of sizes is in this call."""
        return value if isinstance(value, int) else self.emitter.value(value, VectorContext({}))

    def _length(self, axis: Axis) -> Index:
        """How many turns a loop has."""
        return self.number(axis.length) if self.given is None else self.given.length(axis)

    # ---- loops

    def nest(self, nest: LoopNest) -> None:
        """A parallel loop over this call's share of its items."""
        begin, end = (self._share(x, nest) for x in (self.f.begin, self.f.end))
        loop = nest.loop
        if nest.grain > 1 or loop.kind == "vectorized":
            end = self.f.minimum(self.f.mul(end, nest.grain), self.number(loop.axis.length))
            begin = self.f.mul(begin, nest.grain)
        if loop.kind == "vectorized":
            self._vector_range(loop, begin, end, VectorContext({}))
            return
        self.f.loop(begin, end, lambda i: self._body(loop.body, [VectorContext({loop.axis: Ramp(i)})]))

    def _share(self, position: Value, nest: LoopNest) -> Index:
        """Where a share of the program's items lies among those of a nest."""
        own, total = nest.items, self.items
        if own == total:
            return position
        divisor = self.f.maximum(self.number(total), 1)  # there may be no items
        return self.f.div(self.f.mul(position, self.number(own)), divisor)

    def _body(self, body: Sequence[Statement], group: list[VectorContext]) -> None:
        """Statements for every context of a group; the registers of the contexts are updated in place."""
        for statement in body:
            self.f.at(0)
            match statement:
                case Define(local, value):
                    for at in group:
                        at.env[local] = self.emitter.lane(value, at)
                case Accumulate(local, kind, value):
                    for at in group:
                        self._accumulate(local, kind, value, at)
                case Store(buffer, address, value):
                    assert value.dtype == buffer.dtype, f"{value.dtype} is stored as {buffer.dtype}"
                    for at in group:
                        self.emitter.store(buffer, address, value, at)
                case For(kind="vectorized"):
                    self._vector(statement, group)
                case For(kind="unrolled"):
                    self._unrolled(statement, group)
                case For(kind="matrix"):
                    self._matrix(statement, group)
                case For(kind="outlined"):
                    self._outlined(statement, group)
                case For():
                    self._serial(statement, group)
                case IfThenElse():
                    self._branch(statement, group)
                case Prefetch(buffer, address, near):
                    self.emitter.prefetch(buffer, address, group[0], near)

    def _branch(self, statement: IfThenElse, group: list[VectorContext]) -> None:
        """One of two bodies, which hand on accumulators and registers."""
        cells, uses = self.emitter.cells, self.uses[statement]
        carried = [(k, local) for local in uses.carried for k in range(len(group))]
        kept, before, ended = cells.changed(uses.stores), cells.held, dict(self.moving.ended)

        def side(body: Body) -> list[Value]:
            inner = [VectorContext(dict(at.env), at.width, at.mask, at.real) for at in group]
            cells.held = {tensor: dict(held) for tensor, held in before.items()}
            self._body(body, inner)
            return [*(self._register(local, inner[k]) for k, local in carried), *cells.take(kept)]

        other = (lambda: side(statement.otherwise)) if statement.otherwise or carried or kept else None
        results = self.f.branch(self.emitter.value(statement.condition, group[0]), lambda: side(statement.body), other)
        cells.put(kept, results[len(carried) :], uses.stores)
        self.moving.ended = ended  # where loops of one side end is not known on the other
        for (k, local), result in zip(carried, results):
            group[k].env[local] = as_lane(result, local.dtype)

    def _unrolled(self, loop: For, group: list[VectorContext]) -> None:
        """The turns of a loop, one after another."""
        if len(group) == 1 and self._tile(loop, group[0]):
            return
        sums = self.uses[loop].carried
        for i in range(loop.axis.extent):
            inner = [at.within(loop.axis, Ramp(i)) for at in group]
            self._body(loop.body, inner)
            for at, turn in zip(group, inner):
                at.env.update((local, turn.env[local]) for local in sums)

    def _matrix(self, loop: For, group: list[VectorContext]) -> None:
        """A product of bytes: by tiles where the target has them and they hold it."""
        product = None if self.state is None or self.lanes.in_registers(loop) else matrix_product(loop)
        if product is None or self.state is None or group[0].width > 1 or not fits_tiles(product):
            return self._serial(loop, group)
        write_product(self.emitter, product, group[0], self.state)

    def _outlined(self, loop: For, group: list[VectorContext]) -> None:
        """A loop whose turns call a function, if its body can be one."""
        alone = self.given is None and len(group) == 1 and group[0].width == 1
        indexed = self.target.facts.indexed
        found = outline(loop, self.emitter.registers, self.pointers, indexed) if alone else None
        if found is None:
            return self._serial(loop, group)
        routine = known_routine((found.key, self.target.key, self.tiles), lambda: self._routine(found))
        self.routines[routine] = None
        self.f.loop(0, loop.axis.extent, lambda i: self._call(routine, found, group[0].within(loop.axis, Ramp(i))))
        self.emitter.cells.put((), (), self.uses[loop].stores)  # what it had in registers is gone

    def _call(self, routine: Routine, found: Outline, at: VectorContext) -> None:
        """A call of a body's function."""
        begin = lambda s, more: self.f.offset(self.moving.begin(s, at), more, item_bytes(s.buffer.dtype))
        pointers = [begin(stream, more) for stream, more in found.spots.values()]
        self.f.run(routine.name, *pointers, *map(self.f.value, found.numbers))

    def _routine(self, found: Outline) -> Routine:
        """The function of a body."""
        f = IRFunction("routine", len(found.spots), len(found.numbers))
        given = Arguments(found, f.pointers, f.numbers)
        pointers = {stream.buffer: p for (stream, _), p in zip(found.spots.values(), f.pointers)}
        inner = _Lowering(f, self.program, self.target, pointers, self.tiles, self.uses, given)
        inner._body(found.body, [VectorContext({})])
        return Routine.by_content(f.name, *f.finish())

    def _serial(self, loop: For, group: list[VectorContext]) -> None:
        """A loop that carries the accumulators of all contexts."""
        cells = self.emitter.cells
        alone = loop.body[0] if len(loop.body) == 1 and loop.stop is loop.axis.size is None else None
        stop = None if loop.stop is None else self.emitter.value(loop.stop, group[0])
        if isinstance(alone, Store) and loop.axis.extent > 1 and not self.lanes.in_registers(loop):
            if self._interleave(loop, alone, group) or self._transpose(loop, alone, group):
                return
        carried = [(k, local) for local in self.uses[loop].carried for k in range(len(group))]
        written = self.uses[loop].stores
        kept = cells.changed(written)
        moves = self.tiles and len(group) == 1 and group[0].width == 1
        streams, around = (self.moving.streams(loop), self.moving.around(loop)) if moves else ({}, {})
        every = (*(stream for stream, _ in streams.values()), *around.values())
        begins = {stream: self.moving.begin(stream, group[0]) for stream in every}
        moving = [stream for stream in begins if stream.step]

        def turn(i: Index, *phis: Value) -> list[Value]:
            here = dict(zip(moving, phis[len(phis) - len(moving) :]))
            now = begins | here
            self.emitter.streams |= {place: (stream, rest, now[stream]) for place, (stream, rest) in streams.items()}
            self.moving.begun |= {spot: now[stream] for spot, stream in around.items()}
            inner = [at.within(loop.axis, Ramp(i)) for at in group]
            for (k, local), phi in zip(carried, phis):
                inner[k].env[local] = as_lane(phi, local.dtype)
            cells.put(kept, phis[len(carried) :], written)
            self._body(loop.body, inner)
            ends = self.moving.following(loop, here)
            return [*(self._register(local, inner[k]) for k, local in carried), *cells.take(kept), *ends]

        start = [*(self._register(local, group[k]) for k, local in carried), *cells.take(kept)]
        start += [begins[stream] for stream in moving]
        extent = self._length(loop.axis)
        results = self.f.loop(0, extent if stop is None else self.f.minimum(stop, extent), turn, start)
        cells.put(kept, results[len(carried) :], written)
        self.moving.left(loop, dict(zip(moving, results[len(results) - len(moving) :])))
        for (k, local), result in zip(carried, results):
            group[k].env[local] = as_lane(result, local.dtype)

    def _interleave(self, loop: For, store: Store, group: list[VectorContext]) -> bool:
        """Do a loop of stores that fill the gaps between their lanes as contiguous stores; False if it is not one."""
        count, places = loop.axis.extent, []
        for at in group:
            turns = turns_of(loop, at)
            first = neighbours(self.emitter, store.address, turns)
            if at.width < 2 or first is None or first.step != count:
                return False
            places.append((at, turns, first.base))
        for at, turns, base in places:
            rows = [self.emitter.spread(self.emitter.value(store.value, turn), at.width) for turn in turns]
            store_interleaved(self.emitter, store.buffer, base, rows, at)
        return True

    def _transpose(self, loop: For, store: Store, group: list[VectorContext]) -> bool:
        """Do a loop over neighbours of loads whose lanes are rows apart, by transposes; False if it is none."""
        nodes = list(post_order(store.value))
        if any(isinstance(n, Guard) for n in nodes):
            return False
        places = [(at, at.real, turns_of(loop, at)) for at in group if at.width > 1 and at.real is not None]
        if len(places) < len(group):
            return False
        found = [
            {n: first for n in nodes if isinstance(n, Load) and (first := rows_apart(self.emitter, n, turns))}
            for _, _, turns in places
        ]
        if not all(found):
            return False
        for (at, real, turns), loads in zip(places, found):
            for load, first in loads.items():
                type, size = storage_type(load.dtype), item_bytes(load.dtype)
                pointer = self.f.offset(self.pointers[load.tensor], self.f.mul(first.base, size))
                vectors = load_columns(self.f, pointer, type, size, at.width, real, first.step, len(turns))
                for turn, column in zip(turns, vectors):
                    turn.env[load] = from_storage(self.f, column, load.dtype, self.emitter.halves)
            for turn in turns:
                self._body(loop.body, [turn])
        return True

    def _register(self, local: Local, at: VectorContext) -> Value:
        """An accumulator as one value: in all lanes where there are several."""
        x = self.emitter.number(local, at.env[local], at)
        if local.dtype == INDEX:
            x = scalars.resize(self.f, x, "i64", True)
        return self.emitter.spread(x, at.width)

    # ---- vectors

    def _vector(self, loop: For, group: list[VectorContext]) -> None:
        """A vectorised loop, for every (scalar) context in turn."""
        for at in group:
            if self._tile(loop, at):
                continue
            size = loop.axis.size
            flat = self._vectors(loop, at) if size is None else self._vector_range(loop, 0, self.number(size), at)
            self._fold(loop, at, flat)

    def _tile(self, loop: For, at: VectorContext) -> bool:
        """Do the rows of a tile at once; False if the loop is none."""
        return at.width == 1 and write_rows(self.emitter, loop, at, self.lanes.written_out)

    def _vectors(self, loop: For, at: VectorContext) -> list[Value]:
        """A vectorised loop of static extent, the last vector masked; its partial accumulators."""
        width, extent = self.lanes.width(loop), loop.axis.extent
        step, rows = width * loop.unroll, loop.unroll
        main = extent // step * step
        if self.lanes.in_registers(loop):  # they have no addresses that a loop computes
            main, rows = 0, -(-extent // width)
        flat = self.f.loop(0, main, self._several(loop, at, width), self._partial(loop, width, rows), step)
        rest = [self._context(loop, at, k, width, min(width, extent - k)) for k in range(main, extent, width)]
        count = len(rest) * len(self.uses[loop].carried)
        return [*(self._turn(loop, rest, flat[:count]) if rest else ()), *flat[count:]]

    def _vector_range(self, loop: For, low: Index, high: Index, at: VectorContext) -> list[Value]:
        """A vectorised loop between bounds that are known at run time; its partial accumulators."""
        width, sums = self.lanes.width(loop), self.uses[loop].carried
        step = width * loop.unroll
        main = self.f.add(low, self.f.mul(self.f.div(self.f.sub(high, low), step), step))
        # A share may be empty, with `low` above `high`: no vector then, and none in the loop of the rest.
        whole = self.f.select(self.f.compare("slt", low, high), self.f.value(main), self.f.value(low))

        def last(i: Index, *flat: Value) -> list[Value]:
            mask = Mask(None, self.f.dynamic_mask(self.f.minimum(self.f.sub(high, i), width), width))
            return self._turn(loop, [VectorContext({**at.env, loop.axis: Ramp(i, 1)}, width, mask)], flat)

        start = self._partial(loop, width, loop.unroll)
        ends = self.f.loop(low, whole, self._several(loop, at, width), start, step)
        return [*self.f.loop(whole, high, last, ends[: len(sums)], step=width), *ends[len(sums) :]]

    def _partial(self, loop: For, width: int, rows: int) -> list[Value]:
        """What the accumulators of some vectors begin with."""
        sums = self.uses[loop].carried
        return [neutral(self._kind(local, loop), local.dtype, width) for _ in range(rows) for local in sums]

    def _several(self, loop: For, at: VectorContext, width: int) -> Callable[..., list[Value]]:
        """The turn of a loop that does as many vectors as it unrolls."""

        def turn(i: Index, *flat: Value) -> list[Value]:
            firsts = [self.f.add(i, u * width) for u in range(loop.unroll)]
            return self._turn(loop, [self._context(loop, at, first, width, width) for first in firsts], flat)

        return turn

    def _turn(self, loop: For, contexts: list[VectorContext], flat: Sequence[Value]) -> list[Value]:
        """The body for a group of vectors, with their partial accumulators."""
        sums = self.uses[loop].carried
        for k, context in enumerate(contexts):
            context.env.update(zip(sums, flat[k * len(sums) : (k + 1) * len(sums)]))
        self._body(loop.body, contexts)
        return [self._register(local, context) for context in contexts for local in sums]

    def _context(self, loop: For, at: VectorContext, first: Index, width: int, real: int) -> VectorContext:
        return VectorContext({**at.env, loop.axis: Ramp(first, 1)}, width, first_lanes(real, width), real)

    # ---- accumulators

    def _kind(self, local: Local, loop: For) -> str:
        return next(s.kind for s in statements(loop.body) if isinstance(s, Accumulate) and s.local is local)

    def _accumulate(self, local: Local, kind: str, value: ScalarExpr, at: VectorContext) -> None:
        total, amount = self._register(local, at), self.emitter.value(value, at)
        if local.dtype == INDEX:
            amount = scalars.resize(self.f, amount, "i64", True)
        amount = self.emitter.spread(amount, at.width)
        if at.mask.lanes is not None:
            nothing = constant(amount.type, identity(kind, compute_dtype(local.dtype)).value)
            amount = self.f.select(at.mask.lanes, amount, nothing)
        at.env[local] = as_lane(combine(self.f, kind, local.dtype, total, amount), local.dtype)

    def _fold(self, loop: For, at: VectorContext, flat: list[Value]) -> None:
        """Add the lanes of all partial accumulators to the registers around the loop."""
        sums = self.uses[loop].carried
        for k, local in enumerate(sums):
            kind = self._kind(local, loop)
            lanes = fold(self.f, kind, local.dtype, flat[k :: len(sums)])
            total = combine(self.f, kind, local.dtype, self._register(local, at), lanes)
            at.env[local] = as_lane(total, local.dtype)
