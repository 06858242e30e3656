"""A program with `if` and loops as one native call: its blocks are compiled as open forms, instructions join them.

`relaylab_flow` walks the instructions: steps of blocks, jumps, copies of tensors, rows that are collected. They are
written anew for each set of sizes; nothing is compiled then. A run comes back when a collector needs room, and now and
then, so that it can be interrupted.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab.codegen.flow.items import (
    Append,
    FlowBlock,
    FlowChoice,
    FlowProgram,
    Item,
    Move,
    Pin,
    Repeat,
    all_items,
    leaf_types,
    refused,
    sized,
)
from relaylab.codegen.flow.program import flow_program
from relaylab.codegen.flow.stretches import InstructionRows, RunsInTurn, Stretches, listing
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.network.open_sizes import InputSizes, evaluated
from relaylab.codegen.open.form import OpenForm
from relaylab.codegen.open.results import ResultMemory
from relaylab.codegen.operations.schedules import one_program
from relaylab.ir.dims import AnyDim, SizeVar, SymbolicDim
from relaylab.ir.expr import Var
from relaylab.ir.module import IRModule
from relaylab.ir.types import TensorType
from relaylab.runtime import abi
from relaylab.runtime.memory import address, aligned
from relaylab.runtime.ndarray import NDArray
from relaylab.runtime.threads import num_threads
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.transform import InferType

FIRST_ROOM = 1 << 12
"""Bytes of room that a collector of unknown length begins with."""


class FlowForm:
    """One compiled form, for all sizes. Calls from several threads take turns."""

    def __init__(self, mod: IRModule, target: CpuTarget, first: Sequence[tuple[int, ...]]):
        """Compile the typed `mod` in the current PassContext; `first` are the shapes that memory is planned for.

        Raises RelayError for a program that has more than graphs, `if` and loops, or that has no open form.
        """
        start = time.perf_counter()
        self.turns = RunsInTurn()
        self.program: FlowProgram = flow_program(mod)
        self.params = self.program.params
        self.wanted = InputSizes([_type(p) for p in self.params])
        self.named = self.wanted.named
        self.shapes: object = None
        self.known = self.wanted.known(first)
        self.inside = all_items(self.program.items)
        self.pinned = {i.target: i.collector for i in self.inside if isinstance(i, Pin)}
        self._check_sizes()
        self.blocks: dict[FlowBlock, OpenForm] = {}
        with one_program():
            for block in [i for i in self.inside if isinstance(i, FlowBlock)]:
                shapes = [self.shape(p) for p in block.function.params]
                mod = InferType()(IRModule.from_expr(block.function))
                self.blocks[block] = OpenForm(mod, target, shapes, caches=False)
        self.stretches = Stretches(target)
        self.repeats = any(isinstance(i, Repeat) for i in self.inside)
        self.ran = 0
        """How many instructions the last call ran."""
        self.results = [ResultMemory() for _ in self.program.results]
        self.memory: dict[Var, np.ndarray] = {}
        self.seconds = time.perf_counter() - start

    @property
    def called(self) -> list[str]:
        """The kernels of its blocks."""
        return [name for form in self.blocks.values() for name in form.called]

    # ---- sizes

    def _check_sizes(self) -> None:
        """That the inputs say how large every tensor is, and how long the rows of collectors are."""
        collectors = self.program.collectors
        found = [*self.params, *[v for i in self.inside for v in sized(i)]]
        found += [v for v in self.program.results if v not in collectors]
        dims = [d for v in found for d in _type(v).shape]
        dims += [d for v in collectors for d in _type(v).shape[1:]]
        if any(v in collectors for v in found) or any(type(d) is AnyDim for d in dims):
            raise refused("a size that only a run gives")
        try:
            for d in dims:
                self._extent(d)
        except KeyError:
            raise refused("a size that no input has") from None

    def _extent(self, d: object) -> int:
        return evaluated(d, self.known) if isinstance(d, SymbolicDim) else int(cast(int, d))

    def shape(self, var: Var) -> tuple[int, ...]:
        """The shape of a tensor for the sizes as they are."""
        return tuple(self._extent(d) for d in _type(var).shape)

    # ---- instructions

    def _resize(self, shapes: tuple[tuple[int, ...], ...], known: dict[SizeVar, int]) -> None:
        self.shapes, self.known = None, known
        self.records: dict[Var, np.ndarray] = {}
        self.constants: list[np.ndarray] = []
        for var, value in self.program.constants.items():
            self._array(var)[...] = value
        for var in self.program.collectors:
            self._collector(var)
        writer = _Writer(self)
        writer.write(self.program.items)
        writer.add(abi.END)
        self.code = np.array(writer.rows, np.uint64)
        self.names, self.zero = writer.names, writer.zero
        self.stretches.start(self.code, num_threads())
        self.places = [self._array(p) for p in self.params]
        collectors = self.program.collectors
        self.finals = [None if v in collectors else self._array(v) for v in self.program.results]
        self.shapes = shapes

    def memory_of(self, var: Var) -> np.ndarray:
        """The bytes of a tensor, at least as many as it needs."""
        holder, need = self.pinned.get(var, var), max(1, self.bytes_of(var))
        have = self.memory.get(holder)
        if have is None or have.nbytes < need:
            have = self.memory[holder] = aligned(need, f"a tensor {var.type_annotation}")
        return have

    def place(self, var: Var) -> int:
        """Where a tensor lies."""
        return address(self.memory_of(var))

    def bytes_of(self, var: Var) -> int:
        """How large a tensor is."""
        return math.prod(self.shape(var)) * _dtype(var).itemsize

    def _array(self, var: Var) -> np.ndarray:
        return self.memory_of(var)[: self.bytes_of(var)].view(_dtype(var)).reshape(self.shape(var))

    def _collector(self, var: Var) -> None:
        """The record of a collector: its room is that of the tensor it becomes, if that is known."""
        if 0 in self._row(var):
            raise _no_rows(f"rows without elements: {var.type_annotation}")  # bytes do not say how many
        targets = [t for t, c in self.pinned.items() if c is var]
        if targets:
            memory, room = self.memory_of(targets[0]), self.bytes_of(targets[0])
            if any(self.bytes_of(t) != room for t in targets):
                raise _no_rows(f"numbers of rows that differ: {var.type_annotation}")
        else:
            memory = self.memory.setdefault(var, aligned(FIRST_ROOM, "the rows of a loop"))
            room = memory.nbytes
        self.records[var] = np.array([address(memory), room, 0], np.uint64)

    def constant(self, value: np.ndarray) -> np.ndarray:
        """The elements of a constant in a row, kept as long as the instructions."""
        self.constants.append(np.ascontiguousarray(value))
        return self.constants[-1]

    def _grow(self, var: Var, need: int) -> None:
        """More room for the rows of a loop whose number is not known."""
        _, room, used = map(int, self.records[var])
        if var in self.pinned.values():
            raise _no_rows(f"more rows than its result has: {var.type_annotation}")
        old = self.memory[var]
        new = aligned(max(2 * room, 2 * (used + need)), "the rows of a loop")
        if self.program.collectors[var]:
            new[new.nbytes - used :] = old[room - used : room]
        else:
            new[:used] = old[:used]
        self.memory[var] = new
        self.records[var][:2] = (address(new), new.nbytes)

    # ---- running

    def run(self, leaves: Sequence[np.ndarray]) -> list[NDArray] | None:
        """The results for arrays of the inputs; None if those are not of the inputs' types.

        RelayValueError `vm.busy` within a run, `vm.size` for rows that no form takes.
        """
        known = self.wanted.fit(leaves)
        if known is None:
            return None
        with self.turns:
            shapes = tuple([x.shape for x in leaves])
            if shapes != self.shapes:
                self._resize(shapes, known)
            for own, value in zip(self.places, leaves):
                own[...] = value
            self.ran = self.stretches.run(self._handle)
            return [self._lend(k, final) for k, final in enumerate(self.finals)]

    def _handle(self, status: int, row: np.ndarray) -> None:
        if status == abi.FLOW_SHORT:
            raise _no_rows("fewer rows than its result has")
        var = next(v for v, r in self.records.items() if address(r) == int(row[1]))
        self._grow(var, int(row[3]))

    def _lend(self, k: int, final: np.ndarray | None) -> NDArray:
        """A result, in memory that nobody looks at."""
        source = self._rows(self.program.results[k]) if final is None else final
        owner, _ = self.results[k].lend(source.nbytes)
        out = np.ndarray(source.shape, source.dtype, owner)
        out[...] = source
        return NDArray(out)

    def _rows(self, var: Var) -> np.ndarray:
        """What a collector has."""
        _, room, used = map(int, self.records[var])
        start = room - used if self.program.collectors[var] else 0
        row = self._row(var)
        size = math.prod(row) * _dtype(var).itemsize
        data = self.memory[var][start : start + used].view(_dtype(var))
        return data.reshape(used // size, *row)

    def _row(self, var: Var) -> tuple[int, ...]:
        """The shape of what a collector has rows of."""
        return tuple(self._extent(d) for d in _type(var).shape[1:])

    # ---- looking

    def listing(self) -> str:
        """The instructions, one on a line, for the sizes of the last call."""
        if self.shapes is None:
            return ""
        return listing("main", self.code, self.names, " for the sizes of the last call")


def _type(var: Var) -> TensorType:
    return leaf_types(var.type_annotation)[0]


def _dtype(var: Var) -> np.dtype:
    return np.dtype(_type(var).dtype)


def _no_rows(what: str) -> RelayError:
    """What no form takes: the virtual machine runs it, and says what is wrong, if anything is."""
    return RelayValueError(
        f"a loop gives {what}", code="vm.size", help="the number of turns has to be that of the shape that its rows get"
    )


class _Writer(InstructionRows):
    """Writes the instructions of items for the sizes as they are."""

    def __init__(self, form: FlowForm):
        super().__init__()
        self.form = form
        self.leaving: list[list[int]] = []
        self.zero = np.zeros(1, np.uint64)

    def write(self, items: Sequence[Item]) -> None:
        """Instructions for items, in order. Depth is bounded by `items.DEEPEST`."""
        form = self.form
        for item in items:
            match item:
                case FlowBlock():
                    self.block(item)
                case Move(target, source):
                    self.copy(form.place(target), form.place(source), form.bytes_of(target), target.name_hint)
                case Append(target, None):
                    self.copy(address(form.records[target]) + 16, address(self.zero), 8, f"{target.name_hint} is empty")
                case Append(target, Var() as source, before):
                    words = address(form.records[target]), form.place(source), form.bytes_of(source), int(before)
                    self.add(abi.APPEND, *words, name=f"{source.name_hint} to {target.name_hint}")
                case FlowChoice(condition, true, false):
                    test = self.add(abi.UNLESS, form.place(condition), 0, name=condition.name_hint)
                    self.write(true)
                    jump = self.add(abi.JUMP)
                    self.rows[test][2] = len(self.rows)
                    self.write(false)
                    self.rows[jump][1] = len(self.rows)
                case Repeat(body):
                    self.repeat(body)
                case Pin(target, collector):
                    self.add(abi.EXACT, address(form.records[collector]), form.bytes_of(target), name=target.name_hint)
                case _:
                    self.leaving[-1].append(self.add(abi.JUMP))

    def copy(self, to: int, source: int, nbytes: int, name: str) -> None:
        """A copy of a tensor."""
        if nbytes:
            self.add(abi.COPY, to, source, nbytes, name=name)

    def repeat(self, body: Sequence[Item]) -> None:
        """A loop."""
        head = len(self.rows)
        self.leaving.append([])
        self.write(body)
        self.add(abi.JUMP, head)
        for jump in self.leaving.pop():
            self.rows[jump][1] = len(self.rows)

    def block(self, block: FlowBlock) -> None:
        """The steps of a graph, and copies of results that no step writes."""
        form, own = self.form.blocks[block], self.form
        inputs = [own.place(p) for p in block.function.params]
        outputs = [own.place(v) for v in block.outputs]
        form.bind(tuple(own.shape(p) for p in block.function.params), inputs, outputs)
        steps = address(form.instance.steps)
        for k, step in enumerate(form.instance.plan.steps):
            self.add(abi.STEP, steps + 8 * abi.STEP_WORDS * k, name=step.name)
        for k, tensor in form.planner.copies:
            root, v = tensor.root, block.outputs[k]
            if root.origin == "input":
                place = inputs[form.network.inputs.index(root)]
            elif root.origin == "constant":
                place = address(own.constant(root.constant))
            else:
                place = outputs[form.planner.outputs[root]]
            self.copy(outputs[k], place, own.bytes_of(v), v.name_hint)


__all__ = ["FlowForm"]
