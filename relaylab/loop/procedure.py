"""Procedures: results that are written by statements, because their elements depend on each other.

A `lower` gives one element at a time. What sorts, chooses or scatters says instead what is done in which order: loops
whose ends may be computed, conditions, registers, private memory, stores. Every parallel loop of a procedure is a loop
program of its own; they run one after another, so that one may read what those before it have written.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from relaylab.loop.builder import OutSpec, b, most
from relaylab.loop.evaluate import Ins
from relaylab.loop.expr import Axis, Const, Local, Number, ScalarExpr, Tensor, apply, as_index, const, limited
from relaylab.loop.nest import build_nest
from relaylab.loop.program import (
    Accumulate,
    Define,
    For,
    IfThenElse,
    LoopNest,
    LoopProgram,
    Statement,
    Store,
    extent_of,
)
from relaylab.loop.program_builder import BufferLayout, ProgramBuilder
from relaylab.loop.region import Assign, StoreRegion, address, by_data, normalise
from relaylab.loop.run import run
from relaylab.loop.scalar import Array
from relaylab.loop.simplify import Simplifier
from relaylab.support.errors import RelayTypeError, RelayValueError, is_a, shown

Position = ScalarExpr | int


class Procedure:
    """A procedure under construction, over the external operands of `group`; `b` builds its expressions.

    Indices that are computed from data are limited to their tensor, in loads and in stores. Extents are numbers, or
    sizes that are known when a kernel runs: what they decide is written for both cases (`sides`).
    """

    def __init__(self, group: ProgramBuilder):
        self.group, self.b = group, b
        self._programs: list[LoopProgram] = []
        self._open: list[list[Statement]] = []
        self._scratch: list[Tensor] = []
        self._stored: set[Tensor] = set()
        self._names: Counter[str] = Counter()
        self._simplify = Simplifier()

    @property
    def programs(self) -> Sequence[LoopProgram]:
        """What was written; one program that does nothing where there is nothing to do."""
        if not self._programs:
            self._program((), ())
        return self._programs

    def check_stored(self, name: str, outs: Sequence[Tensor]) -> None:
        """RelayValueError if nothing was stored in a result of the procedure of an operator: it would be what memory
        held before.
        """
        for k, out in enumerate(outs):
            if out not in self._stored and 0 not in out.shape:
                which = f"result {k}" if len(outs) > 1 else "its result"
                message = f"the procedure of {name} stores nothing in {which}"
                help = "write every element: p.store(out, index, value), or p.each(out, element)"
                raise RelayValueError(message, code="loop.not-stored", help=help)

    # ---- loops

    def each(self, out: Tensor, element: Callable[..., ScalarExpr]) -> None:
        """Store `element(*i)` at every index of a result, in any order and in parallel."""
        self._stored.add(out)
        flat, strides, offset = self.group.where(out)
        axes = tuple(_axis(f"i{d}", n) for d, n in enumerate(out.shape))
        value = self.group.flat(element(*axes))
        region = StoreRegion(axes, (Assign(flat, address(axes, strides, offset), value),))
        scratch: list[Tensor] = []
        nests = [build_nest(part, simplifier, scratch) for part, simplifier in normalise(region)]
        if nests:
            self._program(scratch, nests)

    @contextmanager
    def parallel(self, extent: int) -> Generator[Axis, None, None]:
        """A loop whose turns may run at the same time, each with private memory of its own."""
        axis = _axis(self._name("p"), extent)
        self._scratch = []
        body = self._body()
        with body as statements:
            yield axis
        if axis.extent:
            self._program(self._scratch, [LoopNest(For(axis, "serial", tuple(statements)))])

    @contextmanager
    def loop(
        self, extent: int, stop: ScalarExpr | None = None, kind: str = "serial", unroll: int = 1
    ) -> Generator[Axis, None, None]:
        """A loop over 0 .. extent-1, or to `stop` if that is less: kind serial or, without `stop`, vectorized, then
        `unroll` vectors side by side.
        """
        axis = _axis(self._name("k"), extent)
        with self._body() as statements:
            yield axis
        if axis.extent and statements:
            kind, end = "serial" if axis.extent == 1 else kind, None if stop is None else self._flat(stop)
            self._write(For(axis, kind, tuple(statements), unroll, end))

    @contextmanager
    def loops(self, extents: Sequence[int]) -> Generator[tuple[Axis, ...], None, None]:
        """Loops inside each other, the last one innermost."""
        axes = tuple(_axis(self._name("k"), n) for n in extents)
        with self._body() as statements:
            yield axes
        inner = tuple(statements)
        for axis in reversed(axes):
            inner = (For(axis, "serial", inner),) if axis.extent and inner else ()
        self._write(*inner)

    @contextmanager
    def when(self, condition: ScalarExpr) -> Generator[None, None, None]:
        """Statements that are done where a condition holds."""
        with self._body() as statements:
            yield
        if statements:
            self._write(IfThenElse(self._flat(condition), tuple(statements)))

    def sides(self, condition: ScalarExpr | bool) -> Iterator[bool]:
        """Both sides of a condition, one after the other, each done where it is the side that holds; of a condition
        that is known by now that side only.
        """
        known = const(condition, "bool") if isinstance(condition, bool) else self._flat(condition)
        if isinstance(known, Const):
            yield bool(known.value)
            return
        for side in (True, False):
            with self.when(known if side else apply("lnot", known)):
                yield side

    # ---- statements

    def let(self, value: ScalarExpr | int, name: str = "x") -> Local:
        """A register with a value (an index for a Python number): computed here, once. `add` and `set` change it."""
        flat = self._flat(as_index(value) if isinstance(value, int) else value)
        local = Local(self._name(name), flat.dtype)
        self._write(Define(local, flat))
        return local

    def fixed(self, value: ScalarExpr) -> Local:
        """A register that stays as it is: an index made of it is limited only where its value may be beyond."""
        local = self.let(value)
        self._simplify.ranges[local] = self._simplify.bounds(self._flat(value))
        return local

    def add(self, local: Local, value: ScalarExpr | Number, kind: str = "sum") -> None:
        """Combine a register with a value: sum, prod, max, min, any, all."""
        flat = self._flat(value if isinstance(value, ScalarExpr) else const(value, local.dtype))
        self._write(Accumulate(local, kind, flat))

    def set(self, local: Local, value: ScalarExpr) -> None:
        """Give a register another value; not in a vectorized loop."""
        self.add(local, value, "last")

    def store(self, tensor: Tensor, at: Sequence[Position] | Position, value: ScalarExpr | Number) -> None:
        """`tensor[at] = value`; nothing for a tensor without elements."""
        self._stored.add(tensor)
        indices = tuple(map(as_index, (at,) if isinstance(at, (ScalarExpr, int)) else at))
        if 0 in tensor.shape:
            return
        found = [(i, n) for i, n in zip(indices, tensor.shape, strict=True) if by_data(i)]
        inside = tuple(limited(i, n) if by_data(i) else i for i, n in zip(indices, tensor.shape))
        flat, strides, offset = self.group.where(tensor)
        value = value if isinstance(value, ScalarExpr) else const(value, tensor.dtype)
        store = Store(flat, self._flat(address(inside, strides, offset)), self._flat(value))
        there = self.b.all_of(*(self._flat(apply("gt", n, 0)) for _, n in found if isinstance(n, ScalarExpr)))
        # no place is in an axis without elements
        self._write(store if isinstance(there, Const) else IfThenElse(there, (store,)))

    def scratch(self, extent: int, dtype: str) -> Tensor:
        """Private memory of the parallel loop that is being written; its contents are undefined at first."""
        if not is_a(extent, int, ScalarExpr):
            message = f"private memory is a number of elements long, not {shown(extent)}"
            raise RelayTypeError(message, code="loop.scratch", help="give the product of the extents")
        length = most(extent, 1)
        layout = BufferLayout.dense((length,), dtype)
        tensor = self.group.private(self._name("s"), layout)
        self._scratch.append(self.group.where(tensor)[0])
        return tensor

    # ---- parts

    def _name(self, prefix: str) -> str:
        self._names[prefix] += 1
        return f"{prefix}{self._names[prefix] - 1}"

    @contextmanager
    def _body(self) -> Generator[list[Statement], None, None]:
        self._open.append([])
        yield self._open[-1]
        self._open.pop()

    def _write(self, *statements: Statement) -> None:
        if not self._open:
            message = "this statement stands outside of a parallel loop"
            help = "begin with `with p.parallel(extent) as i:`, an extent of 1 for what is done once"
            raise RelayValueError(message, code="loop.outside", help=help)
        self._open[-1].extend(statements)

    def _flat(self, value: ScalarExpr) -> ScalarExpr:
        return self._simplify(self.group.flat(value))

    def _program(self, scratch: Sequence[Tensor], nests: Sequence[LoopNest]) -> None:
        self._programs.append(self.group.closed(scratch, nests))


def _axis(name: str, length: ScalarExpr | int) -> Axis:
    """An axis as long as a number, or as an expression of sizes."""
    if isinstance(length, ScalarExpr):
        return Axis(name, extent_of(length), size=length)
    return Axis(name, int(length))


def perform(outs: Sequence[OutSpec], write: Callable[..., None], inputs: Ins) -> list[Array]:
    """The results that `write(p, *outs, *ins)` gives for numpy `inputs`: its programs evaluated one after another."""
    group, memory = ProgramBuilder("procedure"), dict[Tensor, Array]()

    def operand(role: str, x: Array) -> Tensor:
        tensor = group.read(role, BufferLayout.dense(x.shape, x.dtype.name))
        memory[group.where(tensor)[0]] = np.array(x).reshape(-1)
        return tensor

    ins = [operand(f"in{k}", np.asarray(x)) for k, x in enumerate(inputs)]
    results = [operand(f"out{k}", np.zeros(spec.shape, spec.dtype)) for k, spec in enumerate(outs)]
    procedure = Procedure(group)
    write(procedure, *results, *ins)
    procedure.check_stored("this operator", results)
    for program in procedure.programs:
        run(program, memory)
    return [memory[group.where(t)[0]].reshape(t.shape) for t in results]
