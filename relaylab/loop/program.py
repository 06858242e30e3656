"""Loop programs: loops, registers and stores over flat buffers; what is printed is what is emitted.

A `LoopProgram` is a list of `LoopNest`s, each a parallel loop over its own work items; a share of the items
of the program is the same share of those of every nest. Statements are `Define`, `Accumulate`, `Store`, `Prefetch`,
`For` and `IfThenElse`. Buffers are flat: a `Load` of a program has one index, the address in elements.

In a `vectorized` loop every statement stands for the lanes of a vector, `unroll` vectors side by
side and a masked rest at the end; an `Accumulate` into a register from outside the loop is folded
over the lanes when the loop ends. The turns of an `unrolled` loop are written out one after another.

Private buffers lie in memory (`scratch`) or, where every address is known once loops are unrolled, in the registers
of the machine (`registers`). What follows from operands that are known when the program is built (`known`) may be
`prepared` then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from relaylab.loop.expr import Axis, Const, Local, ScalarExpr, Size, Tensor, apply, post_order
from relaylab.loop.scalar import highest, lowest
from relaylab.loop.show import show


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
    """A loop of `axis` over 0 .. extent-1: kind serial, vectorized or unrolled.

    A serial loop ends at `stop` if that is less than the extent; it is computed once, before the first turn.
    """

    axis: Axis
    kind: str
    body: tuple[Statement, ...]
    unroll: int = 1
    stop: ScalarExpr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prefetch:
    """Ask for the cache line of `buffer[address]`, which may lie beyond the buffer: nothing is read."""

    buffer: Tensor
    address: ScalarExpr


@dataclass(frozen=True, slots=True, eq=False)
class IfThenElse:
    """`body` where `condition` holds, which is the same in all lanes, else `otherwise`."""

    condition: ScalarExpr
    body: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()


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
        """The buffers with their roles, and what is prepared, whose name is its role."""
        return (*self.buffers, *((p.buffer.name, p.buffer) for p in self.prepared))

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
                total = items if total in (0, 1) else apply("max", items, total)
        return total

    def __str__(self) -> str:
        lines = [
            f"kernel {self.name}({', '.join(_buffer(role, t) for role, t in self.buffers)}) items={_number(self.items)}"
        ]
        lines += [f"  scratch {t.name}: {t.dtype}[{t.shape[0]}]" for t in self.scratch]
        lines += [f"  registers {t.name}: {t.dtype}[{t.shape[0]}]" for t in self.registers]
        for part in self.prepared:
            lines += [f"  prepared {part.buffer.name}: {part.buffer.dtype}[{part.buffer.shape[0]}]"]
            lines += _body_lines((part.fill,), 2)
        for nest in self.nests:
            lines += _nest_lines(nest)
        return "\n".join(lines)


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
    return tuple(s for body in bodies(statement) for s in body)


def values(statement: Statement) -> tuple[ScalarExpr, ...]:
    """The expressions that a statement itself evaluates."""
    match statement:
        case Store(_, address, value):
            return address, value
        case Define(_, value) | Accumulate(_, _, value):
            return (value,)
        case Prefetch(_, address):
            return (address,)
        case IfThenElse(condition):
            return (condition,)
        case For():
            return tuple(e for e in (statement.stop, statement.axis.size) if e is not None)


def sizes_in(nests: Iterable[LoopNest]) -> list[Size]:
    """The sizes that loops use, by their slots."""
    parts = (e for nest in nests for s in statements((nest.loop,)) for e in values(s))
    return sorted({n for n in post_order(*parts) if isinstance(n, Size)}, key=lambda s: s.slot)


def _buffer(role: str, tensor: Tensor) -> str:
    return f"{tensor.name}: {role} {tensor.dtype}[{math.prod(tensor.shape)}]"


def _nest_lines(nest: LoopNest) -> list[str]:
    loop = nest.loop
    by = f" by {nest.grain}" if nest.grain > 1 else ""
    lines = [f"  parallel {loop.axis.name} in {_number(loop.axis.length)}{by}{_how(loop)}:"]
    return lines + _body_lines(loop.body, 2)


def _number(value: ScalarExpr | int) -> str:
    return str(value) if isinstance(value, int) else show(value)


def _how(loop: For) -> str:
    if loop.kind != "vectorized":
        return " unrolled" if loop.kind == "unrolled" else ""
    return " vectorized" if loop.unroll == 1 else f" vectorized x{loop.unroll}"


def _body_lines(body: Body, depth: int) -> list[str]:
    lines: list[str] = []
    stack: list[tuple[Statement | str, int]] = [(s, depth) for s in reversed(body)]
    while stack:
        statement, level = stack.pop()
        if isinstance(statement, str):
            lines.append("  " * level + statement)
            continue
        lines.append("  " * level + _line(statement))
        for k, part in reversed([*enumerate(bodies(statement))]):
            stack.extend((s, level + 1) for s in reversed(part))
            if k and part:
                stack.append(("else:", level))
    return lines


_SIGNS = {"sum": "+=", "prod": "*=", "max": "max=", "min": "min=", "any": "|=", "all": "&=", "last": "="}


def _line(statement: Statement) -> str:
    match statement:
        case For(axis):
            stop = "" if statement.stop is None else f" to {show(statement.stop)}"
            return f"for {axis.name} in {_number(axis.length)}{stop}{_how(statement)}:"
        case Define(local, value):
            return f"{local.name}: {local.dtype} = {show(value)}"
        case Accumulate(local, kind, value):
            return f"{local.name} {_SIGNS[kind]} {show(value)}"
        case Store(buffer, address, value):
            return f"{buffer.name}[{show(address)}] = {show(value)}"
        case Prefetch(buffer, address):
            return f"prefetch {buffer.name}[{show(address)}]"
        case IfThenElse(condition):
            return f"if {show(condition)}:"
