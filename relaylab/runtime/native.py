"""Object code made callable: `Code` links an executable once, `Instance` owns the memory of one network.

llvmlite is imported when the first executable is linked, for its linker only.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from relaylab.runtime import abi
from relaylab.runtime.archive import ArtifactError
from relaylab.runtime.executable import Executable, StoredTensor, TargetInfo
from relaylab.runtime.memory import address, aligned, aligned_like, numbers_of
from relaylab.runtime.threads import pool_address
from relaylab.support.errors import RelayError

IDLE = 1.25
"""Threads may take so many times as long as an even share of a batch takes before they share each kernel instead."""
RUN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


WITH_ANOTHER = 'build it here, or build it with a target that both machines have, such as "llvm -mcpu=x86-64-v3"'


class Library(Protocol):
    """Linked code, loaded as long as this lives."""

    def __getitem__(self, symbol: str) -> int:
        """The address of a symbol."""
        ...


class Linker:
    """The one LLVM linker of the process."""

    def __init__(self) -> None:
        llvm: Any = import_module("llvmlite.binding")  # untyped, and imported only by those who link
        self.llvm = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        # JITLink lays the sections of an object side by side; the older linker may find places for them that are
        # further apart than code reaches (2 GB, in a process that maps much), and then ends the process
        self.jit = llvm.create_lljit_compiler(use_jit_link=True)
        self.numbers = itertools.count()
        self.entries: dict[tuple[bytes, str], tuple[Library, int]] = {}

    def link(self, objects: tuple[bytes, ...], symbols: set[str]) -> Library:
        """Link object files; the result maps symbols to addresses and keeps the code loaded while it lives."""
        builder = self.llvm.JITLibraryBuilder().add_current_process()
        for code in objects:
            builder.add_object_img(code)
        for symbol in symbols:
            builder.export_symbol(symbol)
        try:
            return builder.link(self.jit, f"relaylab{next(self.numbers)}")
        except RuntimeError as error:
            raise RelayError(
                f"the object code cannot be linked: {error}",
                code="runtime.link",
                help="build the module again; if that does not help, this is a defect of relaylab",
            ) from None

    def entry(self, code: bytes, name: str = abi.ENTRY) -> int:
        """The address of an entry. It is linked once and never unloaded: the pool's workers run in it."""
        if (code, name) not in self.entries:
            library = self.link((code,), {name})
            self.entries[code, name] = (library, library[name])
        return self.entries[code, name][1]

    def check(self, target: TargetInfo) -> None:
        """ArtifactError unless this machine has what the object code uses."""
        here = self.llvm.get_process_triple()
        if not same_machine(target.triple, here):
            raise _other_machine(f"it is compiled for {target.triple}, this is {here}", "load it on such a machine, or")
        have = host_features()
        missing = sorted(name for name in target.features if not have.get(name, False))
        if missing:
            why = "which this processor does not have or its system does not grant"
            raise _other_machine(f"it uses the CPU features {', '.join(missing)}, {why}")


def check_machine(target: TargetInfo) -> None:
    """ArtifactError unless this machine has what code for a target uses."""
    with _lock:
        linker().check(target)


def flow_entry(code: bytes, target: TargetInfo, name: str = abi.FLOW) -> Callable[[object], int]:
    """`relaylab_flow` of an entry's object file; ArtifactError if this machine has not what its target needs."""
    with _lock:
        linker().check(target)
        return RUN(linker().entry(code, name))


@cache
def host_features() -> Mapping[str, bool]:
    """Every feature that LLVM knows on this kind of machine, and whether this process may use it."""
    found = dict(linker().llvm.get_host_cpu_features())
    tiles = [name for name in found if name.startswith("amx-")]
    if any(found[name] for name in tiles) and not _tiles_granted():
        found |= dict.fromkeys(tiles, False)
    return found


def _tiles_granted() -> bool:
    """Ask the system for the state of tiles, which each process has to (Linux, `arch_prctl`)."""
    if sys.platform != "linux":
        return False
    # SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return ctypes.CDLL(None).syscall(158, 0x1023, 18) == 0


def host_triple() -> str:
    """LLVM's name of this machine."""
    return linker().llvm.get_process_triple()


_lock = threading.RLock()
_linker: list[Linker] = []
_fork = ExitStack()


def _hold_linker() -> None:
    """A fork waits for the linker, and for LLVM, which llvmlite guards by a lock: a child could release neither."""
    _fork.enter_context(_lock)
    ffi = sys.modules.get("llvmlite.binding.ffi")
    guard = getattr(getattr(ffi, "lib", None), "_lock", None)
    if guard is not None:
        _fork.enter_context(guard)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_linker, after_in_parent=_fork.close, after_in_child=_fork.close)


def linker() -> Linker:
    """The linker, made at first use."""
    with _lock:
        if not _linker:
            _linker.append(Linker())
        return _linker[0]


def same_machine(triple: str, other: str) -> bool:
    """Does object code for one triple fit where the other is?"""
    return _family(triple) == _family(other)


def _family(triple: str) -> tuple[str, str]:
    """Architecture and operating system of a triple: what decides whether object code fits."""
    parts = (triple + "---").split("-")
    system = next((name for name in ("linux", "darwin", "macos", "windows") if name in triple), "")
    architecture = {"arm64": "aarch64", "amd64": "x86_64"}.get(parts[0], parts[0])
    return architecture, {"macos": "darwin"}.get(system, system)


def _other_machine(why: str, help: str = "") -> ArtifactError:
    return ArtifactError(
        f"the module does not run on this machine: {why}",
        code="runtime.other-machine",
        help=f"{help} build it here" if help else WITH_ANOTHER,
    )


class Code:
    """The linked code and constants of an executable; shared by its instances."""

    def __init__(self, executable: Executable, library: Library | None = None):
        """Link the code; `library` is that of the same kernels, if they are linked already."""
        self.executable = executable
        plan = executable.plan
        with _lock:  # LLVM's linker is one for the process; Python threads may build at the same time
            linker().check(executable.target)
            self.entry = RUN(linker().entry(executable.entry))
            names = {step.kernel for step in plan.steps}
            self.library = linker().link(executable.objects, names) if library is None else library
        self.constants = _aligned_copy(executable.constants)
        self.base_of = np.array([base for step in plan.steps for base, _, _ in step.operands], np.int64)
        self.offset_of = np.array([at for step in plan.steps for _, at, _ in step.operands], np.uint64)
        self.users: dict[int, list[tuple[int, int]]] = {}
        for k, (base, at) in enumerate(zip(self.base_of.tolist(), self.offset_of.tolist())):
            self.users.setdefault(base, []).append((k, at))

    def part_entry(self) -> int:
        """The address of what runs the steps of several parts of a batch as a kernel."""
        with _lock:
            return linker().entry(self.executable.entry, abi.PARTS)

    def step_table(self, operands: int) -> np.ndarray:
        """The step records, for an operand table that lies at address `operands`."""
        steps = self.executable.plan.steps
        table = np.zeros((len(steps), abi.STEP_WORDS), np.uint64)
        at = operands
        for row, step in zip(table, steps):
            row[:] = (self.library[step.kernel], at, step.items, step.shares)
            at += 8 * len(step.operands)
        return table


def _aligned_copy(data: np.ndarray) -> np.ndarray:
    if address(data) % 64 == 0:  # what kernels may count on
        return data
    copy = aligned(data.nbytes, "the constants")
    copy[:] = data
    return copy


def shares_evenly(parts: int, threads: int) -> bool:
    """Have so many threads about as much to do each if they take whole parts?"""
    return threads > 1 and -(-parts // threads) * threads <= IDLE * parts


_times: ContextVar[list[tuple[str, int]] | None] = ContextVar("times of steps", default=None)


@contextmanager
def profiled() -> Generator[list[tuple[str, int]], None, None]:
    """While the block runs, instances run step by step: the name of each step that was run, and its nanoseconds."""
    times: list[tuple[str, int]] = []
    before = _times.set(times)
    try:
        yield times
    finally:
        _times.reset(before)


class Instance:
    """One network ready to run: its arena, scratch memory, inputs and outputs. Not for two threads at once.

    Where a batch has parts for all threads, each thread runs parts of its own in an arena of its own.
    """

    def __init__(self, code: Code, threads: int):
        plan = code.executable.plan
        self.code, self.plan, self.threads = code, plan, threads
        arenas = threads if shares_evenly(plan.parts, threads) else 1
        self.order = [(part, arena) for arena in range(arenas) for part in range(arena, plan.parts, arenas)]
        self.arena = aligned(plan.arena_bytes * arenas, "the intermediate results")
        self.scratch = aligned(plan.scratch_bytes * (threads + arenas - 1), "the scratch memory")
        self.inputs = [aligned_like(i.shape, np.dtype(i.dtype), f"the input `{i.name}`") for i in plan.inputs]
        self.outputs = [self.new_output(k) for k in range(len(plan.outputs))]
        count = len(code.base_of)
        self._views = [(self.arena[:0], self.arena[:0])] * len(plan.copies)  # of no run yet
        self.operands = np.zeros(max(1, count * plan.parts), np.uint64)  # never empty: its address is taken
        self._words, self._users = numbers_of(self.operands), self._users_of_all_parts()
        self._bind_all()
        self.steps = np.tile(code.step_table(address(self.operands)), (plan.parts, 1))
        self.steps[:, abi.STEP_OPERANDS] += np.repeat(np.arange(plan.parts, dtype=np.uint64), len(plan.steps)) * (
            8 * count
        )
        self.context = self._context(self.steps)
        self._run, self._at = code.entry, ctypes.c_void_p(address(self.context))
        self._whole = self._at if arenas == 1 else self._in_parts(arenas)

    def _context(self, steps: np.ndarray) -> np.ndarray:
        return np.array((address(steps), 0, len(steps), self.threads, pool_address()), np.uint64)

    def _users_of_all_parts(self) -> Mapping[int, Sequence[tuple[int, int]]]:
        """For each base the operands that lie in it, and how far from its start."""
        if self.plan.parts == 1:
            return self.code.users
        users: dict[int, list[tuple[int, int]]] = {}
        for base, ones in self.code.users.items():
            for place, (part, arena) in enumerate(self.order):
                shift = self._shift(base, part, arena)
                users.setdefault(base, []).extend((place * len(self.code.base_of) + k, at + shift) for k, at in ones)
        return users

    def _shift(self, base: int, part: int, arena: int) -> int:
        """How far what a part of a batch has in a base lies behind what the first part has."""
        # Each part in its own scratch memory too: threads that are in different kernels need different amounts of it.
        own = {abi.BASE_ARENA: self.plan.arena_bytes, abi.BASE_SCRATCH: self.plan.scratch_bytes}
        return arena * own[base] if base in own else part * self.plan.part_bytes(base)

    def _in_parts(self, arenas: int) -> ctypes.c_void_p:
        """A context of one step, which runs the steps of all parts: those of an arena are one item."""
        ends = [0] * (arenas + 1)
        for _, arena in self.order:
            ends[arena + 1] += len(self.plan.steps)
        bounds = np.cumsum(ends, dtype=np.uint64)
        operands = np.array((address(self.steps), address(bounds)), np.uint64)
        step = np.array([(self.code.part_entry(), address(operands), arenas, arenas)], np.uint64)
        context = self._context(step)
        self._kept = (bounds, operands, step, context)
        return ctypes.c_void_p(address(context))

    def _bind_all(self) -> None:
        self.bind(abi.BASE_ARENA, self.arena)
        self.bind(abi.BASE_CONSTANTS, self.code.constants)
        self.bind(abi.BASE_SCRATCH, self.scratch)
        for index, data in enumerate(self.inputs):
            self.bind(self.plan.input_base(index), data)
        for index, data in enumerate(self.outputs):
            self.bind(self.plan.output_base(index), data)

    def bind(self, base: int, data: np.ndarray) -> None:
        """Let the operands that lie in `base` point into `data`."""
        self.point(base, address(data))

    def point(self, base: int, place: int) -> None:
        """Let the operands that lie in `base` point behind an address."""
        words = self._words
        for k, at in self._users.get(base, ()):
            words[k] = place + at

    def new_output(self, index: int) -> np.ndarray:
        """Fresh memory for an output."""
        info = self.plan.outputs[index]
        return aligned_like(info.shape, np.dtype(info.dtype), f"the output {index}")

    def replace_output(self, index: int, memory: np.ndarray | None = None) -> None:
        """Let the following runs write an output into other memory: what was such an output, or fresh one."""
        self.outputs[index] = self.new_output(index) if memory is None else memory
        self.bind(self.plan.output_base(index), self.outputs[index])

    def run(self) -> None:
        """Run all steps, and copy results that no step writes."""
        self.run_steps()
        for copy in range(len(self._views)):
            np.copyto(*self._seen(copy))

    def run_steps(self) -> None:
        """Run all steps."""
        times = _times.get()
        if times is None:
            self._run(self._whole)
        else:
            times += zip([step.name for step in self.plan.steps], self.timed_steps(time.perf_counter_ns))

    def timed_steps(self, clock: Callable[[], int]) -> list[int]:
        """Run all steps, one by one: the time of each in the clock's unit."""
        times: list[int] = []
        for step in range(len(self.plan.steps)):
            start = clock()
            self.run_step(step)
            times.append(clock() - start)
        return times

    def run_range(self, first: int, last: int) -> None:
        """Run the steps [first, last) of the table, in which each part of a batch has its own, in `order`."""
        self.context[abi.CTX_FIRST : abi.CTX_LAST + 1] = (first, last)
        try:
            self._run(self._at)
        finally:  # also after an interrupt: the next run must not be a part of one
            self.context[abi.CTX_FIRST : abi.CTX_LAST + 1] = (0, len(self.steps))

    def run_step(self, step: int) -> None:
        """Run one step, for each part of a batch."""
        for first in range(step, len(self.steps), len(self.plan.steps)):
            self.run_range(first, first + 1)

    def run_until(self, value: StoredTensor) -> np.ndarray:
        """The tensor that a plan's `StoredTensor` describes, after the steps that make it, of the whole batch."""
        parts: dict[int, np.ndarray] = {}
        for place, (part, _) in enumerate(self.order):
            first = place * len(self.plan.steps)
            self.run_range(first, first + value.ready)
            parts[part] = self.read(value, place).copy()
        return parts[0] if len(parts) == 1 else np.concatenate([parts[part] for part in sorted(parts)])

    def read(self, value: StoredTensor, place: int = 0) -> np.ndarray:
        """The tensor that a plan's `StoredTensor` describes, as a view of the memory it lies in.

        Of the part of a batch that is at `place` in the order of the steps.
        """
        base, offset = value.place
        offset += self._shift(base, *self.order[place])
        memory = self._memory(base).reshape(-1).view(np.uint8)
        itemsize = np.dtype(value.dtype).itemsize
        strides = [stride * itemsize for stride in value.strides]
        return np.ndarray(value.shape, value.dtype, memory.data, offset, strides)

    def _seen(self, copy: int) -> tuple[np.ndarray, np.ndarray]:
        """An output, and what `read` says that is copied into it: a view takes longer to make than to copy."""
        index, value = self.plan.copies[copy]
        memory, (source, view) = self._memory(value.place[0]), self._views[copy]
        if source is not memory:
            self._views[copy] = (memory, view := self.read(value))
        return self.outputs[index], view

    def _memory(self, base: int) -> np.ndarray:
        if base < abi.FIRST_IO_BASE:
            return (self.arena, self.code.constants, self.scratch)[base]
        at = base - abi.FIRST_IO_BASE
        return self.inputs[at] if at < len(self.inputs) else self.outputs[at - len(self.inputs)]
