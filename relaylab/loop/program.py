"""Loop programs: loops, registers and stores over flat buffers; what is printed is what is emitted.

A `LoopProgram` is a list of `LoopNest`s, each a parallel loop over its own work items; a share of the items
of the program is the same share of those of every nest. Statements are `Define`, `Accumulate`, `Store`, `Prefetch`,
`For` and `IfThenElse`. Buffers are flat: a `Load` of a program has one index, the address in elements.

In a `vectorized` loop every statement stands for the lanes of a vector, `unroll` vectors side by
side and a masked rest at the end; an `Accumulate` into a register from outside the loop is folded
over the lanes when the loop ends. The turns of an `unrolled` loop are written out one after another. A `matrix` loop is
a product of bytes that a machine may do by tiles (`loop/matrix.py`). Each turn of an `outlined` loop is a call of a
function, which loops with bodies of the same form share, in other kernels too; its body ends with all that it leaves in
memory, no register of it is read outside.

Private buffers lie in memory (`scratch`) or, where every address is known once loops are unrolled, in the registers
of the machine (`registers`). What follows from operands that are known when the program is built (`known`) may be
`prepared` then.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, count

from relaylab.loop.expr import MOST_SIZE, Axis, Const, Local, ScalarExpr, Size, Tensor, apply, post_order
from relaylab.loop.scalar import highest, lowest
from relaylab.loop.show import ATOM, Shown, show
from relaylab.loop.sizes import largest
from relaylab.support.errors import RelayValueError

MOST_DEEP = 128


@dataclass(frozen=True, slots=True, eq=False)
class Define:
    """`local = value`: a register, or the start of an accumulator."""

    local: Local
    value: ScalarExpr


@dataclass(frozen=True, slots=True, eq=False)
class Accumulate:
    """`local = kind(local, value)` with kind sum, prod, max, min, any or all; outside of vectorized loops also last."""

    local: Local
    kind: str
    value: ScalarExpr


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """`buffer[address] = value`."""

    buffer: Tensor
    address: ScalarExpr
    value: ScalarExpr


@dataclass(frozen=True, slots=True, eq=False)
class For:
    """A loop of `axis` over 0 .. extent-1: kind serial, vectorized, unrolled, matrix or outlined.

    A serial loop ends at `stop` if that is less than the extent; it is computed once, before the first turn.
    """

    axis: Axis
    kind: str
    body: tuple[Statement, ...]
    unroll: int = 1
    stop: ScalarExpr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch:
    """Ask for the cache line of `buffer[address]`, which may lie beyond the buffer: nothing is read.

    It comes into the second-level cache, or `near`, into the first.
    """

    buffer: Tensor
    address: ScalarExpr
    near: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class IfThenElse:
    """`body` where `condition` holds, which is the same in all lanes, else `otherwise`."""

    condition: ScalarExpr
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


TURN_BY_TURN = ("serial", "matrix", "outlined")
"""The kinds of loops whose turns follow each other, as far as anything shows."""
SIZES = "sizes"
"""The operand from which a program takes the sizes that are known when it runs."""

Statement = Define | Accumulate | Store | Prefetch | For | IfThenElse
Body = tuple[Statement, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LoopNest:
    """A parallel loop: item p runs `loop` for its axis in p*grain .. min((p+1)*grain, extent)-1."""

    loop: For
    grain: int = 1

    @property
    def items(self) -> ScalarExpr | int:
        """The number of independent work items."""
        return (self.loop.axis.length + (self.grain - 1)) // self.grain


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """An operand that is filled when the program is built: loops in each other around one store."""

    buffer: Tensor
    fill: For

    @property
    def role(self) -> str:
        """Its role, which no buffer of a program has: those are single words."""
        return f"prepared {self.buffer.name}"


@dataclass(frozen=True, slots=True, eq=False)
class LoopProgram:
    """A kernel at loop level: its buffers (with the role of each), private scratch buffers and nests."""

    name: str
    buffers: tuple[tuple[str, Tensor], ...]
    scratch: tuple[Tensor, ...]
    nests: tuple[LoopNest, ...]
    registers: tuple[Tensor, ...] = ()
    prepared: tuple[Prepared, ...] = ()
    known: frozenset[Tensor] = frozenset()

    @property
    def operands(self) -> tuple[tuple[str, Tensor], ...]:
        """The buffers with their roles, and what is prepared."""
        return (*self.buffers, *((p.role, p.buffer) for p in self.prepared))

    @property
    def loops(self) -> tuple[For, ...]:
        """The outermost loops: of what is prepared, and of the nests."""
        return (*(part.fill for part in self.prepared), *(nest.loop for nest in self.nests))

    @property
    def private(self) -> tuple[Tensor, ...]:
        """The buffers that each call has of its own."""
        return (*self.scratch, *self.registers)

    @property
    def items(self) -> ScalarExpr | int:
        """The number of work items: every nest does the same share of its own items."""
        numbers = [n.items for n in self.nests if isinstance(n.items, int)]
        total: ScalarExpr | int = max(numbers, default=0 if self.nests else 1)
        for items in dict.fromkeys(n.items for n in self.nests):
            if not isinstance(items, int):
                total = items if total == 0 else apply("max", items, total)
        return total

    def __str__(self) -> str:
        return "\n".join(_Writer().program(self))


def identity(kind: str, dtype: str) -> Const:
    """The value that an accumulator starts with."""
    value = {"sum": 0, "prod": 1, "any": False, "all": True}.get(kind)
    if value is None:
        value = lowest(dtype) if kind == "max" else highest(dtype)
    return Const(value, dtype)


def statements(body: Body) -> Iterator[Statement]:
    """Every statement of a body, loops before what is in them."""
    stack = list(reversed(body))
    while stack:
        statement = stack.pop()
        yield statement
        stack.extend(reversed(inside(statement)))


def bodies(statement: Statement) -> tuple[Body, ...]:
    """The bodies that a statement contains."""
    match statement:
        case For():
            return (statement.body,)
        case IfThenElse():
            return (statement.body, statement.otherwise)
        case _:
            return ()


def inside(statement: Statement) -> Body:
    """The statements that stand directly in a statement."""
    match statement:  # not by `bodies`: walks ask this of every statement, 33,000 times in a large build
        case For():
            return statement.body
        case IfThenElse():
            return statement.body + statement.otherwise
        case _:
            return ()


def check_depth(program: LoopProgram) -> None:
    """That loops and conditions stand no more than `MOST_DEEP` in each other, since what runs or compiles them takes a
    turn of its own for each; RelayValueError `loop.depth`."""
    stack: list[tuple[Statement, int]] = [(nest.loop, 1) for nest in program.nests]
    while stack:
        statement, depth = stack.pop()
        if depth > MOST_DEEP:
            message = f"loops and conditions stand more than {MOST_DEEP} deep in each other"
            raise RelayValueError(message, code="loop.depth", help="fuse some of them")
        stack += [(s, depth + 1) for s in inside(statement)]


def values(statement: Statement) -> tuple[ScalarExpr, ...]:
    """The expressions that a statement itself evaluates."""
    match statement:
        case Store(_, address, value):
            return address, value
        case Define(_, value) | Accumulate(_, _, value):
            return (value,)
        case Prefetch(address=address):
            return (address,)
        case IfThenElse(condition):
            return (condition,)
        case For():
            return tuple(e for e in (statement.stop, statement.axis.size) if e is not None)


def sizes_in(nests: Iterable[LoopNest], scratch: Iterable[Tensor] = ()) -> list[Size]:
    """The sizes that loops and private buffers use, by their slots."""
    parts = [e for nest in nests for s in statements((nest.loop,)) for e in values(s)]
    parts += [t.size for t in scratch if t.size is not None]
    return sorted({n for n in post_order(*parts) if isinstance(n, Size)}, key=lambda s: s.slot)


SIGNS = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min=", "any": "|=", "all": "&=", "last": "="}
"""How an `Accumulate` of a kind is written."""


def extent_of(length: ScalarExpr | int) -> int:
    """The extent of an axis that is `length` long, with sizes at their largest."""
    if isinstance(length, int):
        return length
    slots = [n.slot for n in post_order(length) if isinstance(n, Size)]
    return largest(length, [MOST_SIZE] * (max(slots, default=-1) + 1))


FUNCTION = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "lor", "all": "land"}
"""The scalar function with which an `Accumulate` of a kind combines."""


class _Writer:
    """Writes a program; expressions that it has in several places are made to text once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: Shown = {}
        self.names: Shown = {}  # of axes that have the name of a loop around theirs
        self.around: list[str] = []  # the names of the loops around a line, by its level
        self.apart: list[str] = []  # of the line that is written

    def program(self, program: LoopProgram) -> list[str]:
        known = program.known
        given = ", ".join(f"{t.name}: {role} {_type(t)}{' known' * (t in known)}" for role, t in program.buffers)
        self.line(0, f"kernel {program.name}({given}) items={self.show(program.items)}")
        if any(t.name == SIZES for _, t in program.buffers) and (sizes := sizes_in(program.nests, program.scratch)):
            self.line(1, f"sizes {', '.join(dict.fromkeys(f'{show(s)}={s.slot}' for s in sizes))}")
        for kind, tensors in (("scratch", program.scratch), ("registers", program.registers)):
            for t in tensors:
                self.line(1, f"{kind} {t.name}: {_type(t) if t.size is None else f'{t.dtype}[{self.show(t.size)}]'}")
        for part in program.prepared:
            self.line(1, f"prepared {part.buffer.name}: {_type(part.buffer)}")
            self.body((part.fill,))
        for nest in program.nests:
            by = f" by {nest.grain}" if nest.grain > 1 else ""
            self.line(1, f"parallel {self.loop(nest.loop, 1, by)}")
            self.body(nest.loop.body)
        return self.lines

    def line(self, level: int, text: str) -> None:
        """A line, below those of the long expressions in it."""
        self.lines += [f"{'  ' * level}${k} = {part}" for k, part in enumerate(self.apart)]
        self.lines.append("  " * level + text)
        if self.apart:
            self.shown, self.apart = dict(self.names), []

    def show(self, value: ScalarExpr | int) -> str:
        return show(value, self.shown, self.apart) if isinstance(value, ScalarExpr) else str(value)

    def body(self, body: Body) -> None:
        stack: list[tuple[Statement | str, int]] = [(s, 2) for s in reversed(body)]
        while stack:
            statement, level = stack.pop()
            if isinstance(statement, str):
                self.line(level, statement)
                continue
            self.line(level, self.statement(statement, level))
            for k, part in reversed([*enumerate(bodies(statement))]):
                stack.extend((s, level + 1) for s in reversed(part))
                if k and part:
                    stack.append(("else:", level))

    def statement(self, statement: Statement, level: int) -> str:
        match statement:
            case Store(buffer, address, value):
                return f"{buffer.name}[{self.show(address)}] = {self.show(value)}"
            case For():
                return f"for {self.loop(statement, level)}"
            case Define(local, value):
                return f"{local.name}: {local.dtype} = {self.show(value)}"
            case Accumulate(local, kind, value):
                return f"{local.name} {SIGNS[kind]} {self.show(value)}"
            case Prefetch(buffer, address, near):
                return f"prefetch {'near ' * near}{buffer.name}[{self.show(address)}]"
            case IfThenElse(condition):
                self.around = self.around[:level]  # what stood here before is not around it
                return f"if {self.show(condition)}:"

    def loop(self, loop: For, level: int, by: str = "") -> str:
        axis, around = loop.axis, self.around[:level]
        name = free_name(axis.name, around)
        self.around = around + [""] * (level - len(around)) + [name]
        if self.names.get(axis, (axis.name, ATOM)) != (name, ATOM):
            self.names[axis] = name, ATOM
            self.shown = dict(self.names)
        below = "" if axis.size is None or axis.extent == extent_of(axis.size) else f" below {axis.extent}"
        stop = "" if loop.stop is None else f" to {self.show(loop.stop)}"
        how = "" if loop.kind == "serial" else f" {loop.kind}"
        times = f" x{loop.unroll}" if loop.unroll > 1 and how else ""
        return f"{name} in {self.show(axis.length)}{below}{stop}{by}{how}{times}:"


def free_name(wanted: str, taken: Container[str]) -> str:
    """A name that is not taken: the wanted one, or that with a number."""
    return next(n for n in chain([wanted], (f"{wanted}{k}" for k in count(2))) if n not in taken)


def _type(tensor: Tensor) -> str:
    return f"{tensor.dtype}[{math.prod(tensor.shape)}]"
