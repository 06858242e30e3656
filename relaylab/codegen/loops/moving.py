"""Pointers that move with the loops of a program: where they begin, and where they go on.

A loop around lanes that are written out has streams (`streams`). What a loop around it adds to their addresses moves
with that loop in turn, so that an address is computed once, before the outermost loop that it moves with: LLVM, which
runs no passes over the text, would compute it in every turn.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from relaylab.codegen.kernels.kernel import item_bytes
from relaylab.codegen.llvm.text import Index, Value
from relaylab.codegen.loops.contexts import Ramp, VectorContext
from relaylab.codegen.loops.emit import Emitter
from relaylab.codegen.loops.facts import LoopLanes
from relaylab.codegen.loops.outlining import Arguments
from relaylab.codegen.loops.streams import AxisSum, Place, Spot, Step, Stream, moves, streams_of
from relaylab.loop.program import Define, For, Prefetch, Statement, statements


@dataclass(slots=True)
class MovingPointers:
    """The streams of a program's loops."""

    emitter: Emitter
    lanes: LoopLanes
    begun: dict[Spot, Value] = field(default_factory=dict)  # where streams of loops inside begin in this turn
    ended: dict[Spot, tuple[Value, Step]] = field(default_factory=dict)  # where they ended, so many elements further
    given: Arguments | None = None  # of the function that these loops are in
    _own: dict[For, dict[Place, tuple[Stream, AxisSum]]] = field(default_factory=dict)
    _around: dict[For, dict[Spot, Stream]] = field(default_factory=dict)

    def streams(self, loop: For) -> dict[Place, tuple[Stream, AxisSum]]:
        """The streams of a loop around a tile of registers, or over the rows of one in memory; none of other loops."""
        if loop not in self._own:
            serves = self.lanes.in_registers(loop) or all(self._straight(s) for s in loop.body)
            found = streams_of(loop, self.emitter.registers, self._straight) if serves and loop.axis.extent > 1 else {}
            self._own[loop] = found if self.given is None else self.given.streams(loop.axis, found)
        return self._own[loop]

    def around(self, loop: For) -> dict[Spot, Stream]:
        """What moves the beginnings of the streams of loops inside of a loop, by where these begin."""
        if loop not in self._around:
            self._around[loop] = {} if loop.axis.extent < 2 or self.streams(loop) else self._moved_by(loop)
        return self._around[loop]

    def begin(self, stream: Stream, at: VectorContext) -> Value:
        """Where a stream is in the first turn."""
        if stream.spot in self.begun:
            return self.begun[stream.spot]
        f = self.emitter.f
        total: Index = 0
        for atom, factor in stream.start:
            x = self.emitter.lane(atom, at)
            assert isinstance(x, Ramp), "an index outside of lanes"
            total = f.add(total, f.mul(x.base, factor))
        return f.offset(self.emitter.pointers[stream.buffer], f.mul(total, item_bytes(stream.buffer.dtype)))

    def following(self, loop: For, here: Mapping[Stream, Value]) -> list[Value]:
        """Where streams go on after a turn that they begin `here`: where a loop inside ended, if that is the place."""
        ends = {s: self.ended[spot] for spot, s in self.around(loop).items() if spot in self.ended}
        found = []
        for stream, pointer in here.items():
            end, further = ends.get(stream, (pointer, 0))
            step = self.emitter.f.mul(stream.step, item_bytes(stream.buffer.dtype))
            found.append(end if further == stream.step else self.emitter.f.offset(pointer, step))
        return found

    def left(self, loop: For, ends: Mapping[Stream, Value]) -> None:
        """After a loop whose moving streams end so."""
        for spot in self.around(loop):
            self.begun.pop(spot, None)
            self.ended.pop(spot, None)
        if loop.stop is loop.axis.size is self.given is None:
            spots = ((s, end, s.step) for s, end in ends.items() if s.spot in self.begun)
            self.ended.update((s.spot, (end, n * loop.axis.extent)) for s, end, n in spots if isinstance(n, int))

    def _moved_by(self, loop: For) -> dict[Spot, Stream]:
        body = list(statements(loop.body))
        changing = {s.axis for s in body if isinstance(s, For)} | {s.local for s in body if isinstance(s, Define)}
        found: dict[Spot, Stream] = {}
        alike: dict[tuple[Spot, int], Stream] = {}
        for child in loop.body:
            for stream in self._entering(child):
                step = dict(stream.start).get(loop.axis, 0)
                rest = tuple((a, f) for a, f in stream.start if a is not loop.axis)
                if not any(moves(a, {loop.axis, *changing}) for a, _ in rest):
                    outer = Stream(stream.buffer, rest, step)
                    found[stream.spot] = alike.setdefault((outer.spot, step), outer)
        return found

    def _entering(self, statement: Statement) -> list[Stream]:
        """The streams that begin where a loop does."""
        if not isinstance(statement, For) or statement.kind != "serial":
            return []
        own = [stream for stream, _ in self.streams(statement).values()]
        return own or list(self.around(statement).values())

    def _straight(self, statement: Statement) -> bool:
        """Is it code without a loop: lanes that are written out, or what is asked for?"""
        if isinstance(statement, For) and statement.kind == "vectorized":
            return bool(self.lanes.written_out(statement))
        return isinstance(statement, Prefetch)
