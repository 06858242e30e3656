"""What the body of an `outlined` loop takes from around it, and by what it is the same function as another's.

Products differ in how far rows of theirs lie apart and in how many turns they have; the code of a tile of registers is
the same. Where the body's addresses begin, its steps between rows and the turns of its loops are arguments.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from relaylab.codegen.kernels.kernel import Routine
from relaylab.codegen.llvm.text import Value
from relaylab.codegen.loops.streams import AxisSum, Place, Spot, Stream, moves, terms_of
from relaylab.loop.expr import Apply, Axis, Const, Load, Local, ScalarExpr, Tensor, post_order
from relaylab.loop.program import Body, Define, For, Prefetch, Statement, Store

MOST_ROWS = 14  # each has a register for its distance, of the 16 that there are
SHORT = 64  # steps up to it are part of the code


@dataclass(slots=True)
class Outline:
    """The arguments of a body's function: pointers (`spots`, each with the number that is added), and numbers.

    `steps` are those of addresses with a loop, `lengths` turns of loops: the place of each among the numbers. Functions
    with equal keys are one.
    """

    body: Body
    spots: dict[Spot, tuple[Stream, int]] = field(default_factory=dict)
    places: dict[Place, tuple[Stream, AxisSum]] = field(default_factory=dict)
    steps: dict[tuple[Spot, ScalarExpr], int] = field(default_factory=dict)
    lengths: dict[Axis, int] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    key: tuple[Hashable, ...] = ()


@dataclass(slots=True)
class Arguments:
    """The arguments of a function by its outline."""

    outline: Outline
    pointers: Sequence[Value]
    numbers: Sequence[Value]

    @property
    def begun(self) -> dict[Spot, Value]:
        """Where the addresses of a spot begin."""
        return dict(zip(self.outline.spots, self.pointers))

    def length(self, axis: Axis) -> Value:
        """How many turns a loop has."""
        return self.numbers[self.outline.lengths[axis]]

    def streams(
        self, axis: Axis | None, found: Mapping[Place, tuple[Stream, AxisSum]]
    ) -> dict[Place, tuple[Stream, AxisSum]]:
        """Streams of the loop along an axis as they are in the function."""
        made: dict[Stream, Stream] = {}
        return {place: (self._stream(axis, s, made), self._rest(s.spot, rest)) for place, (s, rest) in found.items()}

    def _stream(self, axis: Axis | None, stream: Stream, made: dict[Stream, Stream]) -> Stream:
        if stream not in made:
            at = None if axis is None else self.outline.steps.get((stream.spot, axis))
            made[stream] = stream if at is None else replace(stream, step=self.numbers[at])
        return made[stream]

    def _rest(self, spot: Spot, rest: AxisSum) -> AxisSum:
        steps, terms = self.outline.steps, rest[0]
        own = ((a, f if (at := steps.get((spot, a))) is None else self.numbers[at]) for a, f in terms)
        return tuple(own), rest[1] - self.outline.spots[spot][1]


class NotApart(Exception):
    """A body that is no function of pointers and numbers."""


_ROUTINES: dict[Hashable, Routine] = {}
MOST_ROUTINES = 1024  # that a process remembers


def known_routine(key: Hashable, make: Callable[[], Routine]) -> Routine:
    """The function of a body, written once in a process for all that are alike."""
    if key not in _ROUTINES:
        if len(_ROUTINES) >= MOST_ROUTINES:
            _ROUTINES.clear()
        _ROUTINES[key] = make()
    return _ROUTINES[key]


def outline(loop: For, registers: frozenset[Tensor], operands: Container[Tensor], indexed: bool) -> Outline | None:
    """The arguments of the function that the turns of a loop call; None where its body can be no such function.

    Rows that lie far apart are arguments where code for the machine may be `indexed`.
    """
    if loop.stop is not None or loop.axis.size is not None:
        return None
    try:
        return _Reader(Outline(loop.body), registers, operands, indexed).read()
    except NotApart:
        return None


class _Reader:
    """Reads a body; `said` is all that decides the text of its function, with names by the order of their first use."""

    def __init__(self, found: Outline, registers: frozenset[Tensor], operands: Container[Tensor], indexed: bool):
        self.found, self.registers, self.operands, self.indexed = found, registers, operands, indexed
        self.said: list[Hashable] = []
        self.names: dict[object, int] = {}
        self.loops: dict[ScalarExpr, For] = {}
        self.own: set[Axis | Local] = set()
        self.rows: set[tuple[Spot, ScalarExpr]] = set()  # of which one is how far what is written out lies apart

    def read(self) -> Outline:
        """The outline."""
        stack: list[Statement | None] = [*reversed(self.found.body)]
        while stack:
            statement = stack.pop()
            self.said.append(None if statement is None else self._statement(statement))
            if isinstance(statement, For):
                stack += [None, *reversed(statement.body)]
        if len(self.rows) > 1:
            raise NotApart
        self.found.key = tuple(self.said)
        return self.found

    def _statement(self, statement: Statement) -> Hashable:
        match statement:
            case For():
                return self._loop(statement)
            case Define(local, value):
                said = local.dtype, self._value(value, near=False)
                self.own.add(local)
                return "define", self._name(local), *said
            case Store(buffer, address, value):
                return "store", self._value(value, near=True), self._place(buffer, address, near=True)
            case Prefetch(buffer, address, near):
                return "prefetch", near, self._place(buffer, address, near=False, ahead=True)
        raise NotApart

    def _loop(self, loop: For) -> Hashable:
        axis = loop.axis
        if loop.kind not in ("serial", "unrolled", "vectorized") or loop.stop is not None or axis.size is not None:
            raise NotApart
        self.loops[axis] = loop
        self.own.add(axis)
        if loop.kind != "serial":
            return loop.kind, self._name(axis), axis.extent, loop.unroll
        if loop not in self.found.body or axis.extent < 2:
            raise NotApart  # its streams begin where no argument says
        self.found.lengths[axis] = self._number(axis.extent)
        return loop.kind, self._name(axis)

    def _name(self, of: object) -> int:
        return self.names.setdefault(of, len(self.names))

    def _number(self, value: int) -> int:
        self.found.numbers.append(value)
        return len(self.found.numbers) - 1

    def _value(self, root: ScalarExpr, near: bool) -> Hashable:
        """An expression of numbers, of what is loaded and of the body's own registers."""
        said: list[Hashable] = []
        order: dict[ScalarExpr, int] = {}
        nodes = list(post_order(root))
        addresses = set(post_order(*(index for n in nodes if isinstance(n, Load) for index in n.indices)))
        for node in (n for n in nodes if n not in addresses):
            order[node] = len(order)
            match node:
                case Load(tensor, (address,), part):
                    said.append((part, self._place(tensor, address, near)))
                case Const(value, dtype):
                    said.append((repr(value), dtype))
                case Local() if node in self.own:
                    said.append(self._name(node))
                case Apply(op, args, dtype, part):
                    said.append((op, dtype, part, *(order[a] for a in args)))
                case _:
                    raise NotApart
        return tuple(said)

    def _place(self, buffer: Tensor, address: ScalarExpr, near: bool, ahead: bool = False) -> Hashable:
        """An element, of vectors side by side (`near`: steps are part of the code), or what is asked for `ahead`."""
        terms, const = terms_of(address)
        within = {a: f for a, f in terms.items() if isinstance(a, Axis) and a in self.loops}
        outer = tuple((a, f) for a, f in terms.items() if a not in within)
        said = self._name(buffer), buffer.dtype
        if buffer in self.registers:
            if outer:
                raise NotApart
            return *said, const, *((self._name(a), f) for a, f in within.items())
        if buffer not in self.operands or any(moves(a, self.own) for a, _ in outer):
            raise NotApart
        stream = Stream(buffer, outer, 0)
        stream, begin = self.found.spots.setdefault(stream.spot, (stream, const))
        self.found.places[buffer, address] = stream, (tuple(within.items()), const)

        def fixed(axis: Axis, step: int) -> bool:
            kind = self.loops[axis].kind
            return (
                near or kind == "vectorized" or not ahead and (step <= SHORT or kind == "unrolled" and not self.indexed)
            )

        steps = ((self._name(a), f if fixed(a, f) else self._step(stream.spot, a, f)) for a, f in within.items())
        return *said, self._name(stream), const - begin, *steps

    def _step(self, spot: Spot, axis: ScalarExpr, step: int) -> Hashable:
        """A step that is an argument."""
        key = spot, axis
        if key not in self.found.steps:
            self.found.steps[key] = self._number(step)
        loop = self.loops[axis]
        if loop.kind == "unrolled":
            self.rows.add(key)
            if loop.axis.extent > MOST_ROWS:
                raise NotApart
        return "argument", self.found.steps[key]
