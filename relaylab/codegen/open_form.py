"""A program with open sizes as one network: kernels take extents when they run, memory is planned for capacities.

Every expression of sizes in the program is a slot of the operand "sizes". Before a run the slots are filled in and the
steps are told how many items they have; nothing is compiled. A slot that exceeds its capacity (a power of two) has
the memory planned again. Inputs are read where they lie, results are written to memory that nobody looks at any more.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab.codegen.build import WINOGRAD, compiled_plan
from relaylab.codegen.counted_ranges import with_counted_ranges
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.cache import ObjectCache
from relaylab.codegen.loops.facts import uses_of, work
from relaylab.codegen.network.network import Network, NetworkTensor, network_of
from relaylab.codegen.network.open_sizes import OpenSizes, evaluated
from relaylab.codegen.open_caches import CacheGroup, with_caches
from relaylab.codegen.open_products import without_transposes
from relaylab.codegen.open_results import Lent, ResultMemory, Rooms, Turn, readable, strides_of
from relaylab.codegen.open_rules import check_open
from relaylab.codegen.operations.jobs import Job
from relaylab.codegen.operations.layout import lay_out
from relaylab.codegen.operations.memo import KernelMemo
from relaylab.codegen.operations.plan import Planner, shares_for
from relaylab.codegen.operations.select import jobs_of
from relaylab.codegen.specialize import tensors_of
from relaylab.ir.dims import SizeVar, SymbolicDim
from relaylab.ir.expr import Function
from relaylab.ir.module import IRModule
from relaylab.ir.visit import walk
from relaylab.loop.expr import ScalarExpr, Size
from relaylab.loop.program import SIZES, LoopProgram
from relaylab.loop.sizes import formula, number_of
from relaylab.runtime import abi
from relaylab.runtime.executable import Executable, TargetInfo
from relaylab.runtime.memory import address, aligned_copy
from relaylab.runtime.native import Code, Instance
from relaylab.runtime.ndarray import NDArray
from relaylab.runtime.threads import num_threads
from relaylab.support.collection import no_collection
from relaylab.transform import DynamicToStatic, InferType, PassContext, Sequential, default_passes
from relaylab.transform.normal_forms.first_order import first_order


class OpenForm:
    """One compiled form for all sizes. Calls from several threads take turns."""

    def __init__(self, mod: IRModule, target: CpuTarget, first: Sequence[tuple[int, ...]], caches: bool = True):
        """Compile the typed `mod` in the current PassContext; `first` are the shapes that memory is planned for.

        Without `caches` results lie on their own, whatever they were joined of.

        Raises RelayError for a program of which a part has no kernel that takes its extents when it runs.
        """
        start = time.perf_counter()
        self.lock = threading.RLock()
        self.target = target
        main = mod["main"]
        self.inputs = [t for p in main.params for t in tensors_of(p.inferred or p.type_annotation) or ()]
        dims = [(d, k, axis) for k, t in enumerate(self.inputs) for axis, d in enumerate(t.shape)]
        self.named = {d: (k, axis) for d, k, axis in reversed(dims) if isinstance(d, SizeVar)}
        alike: dict[tuple[object, ...], int] = {}
        self.alike = [alike.setdefault(t.shape, k) for k, t in enumerate(self.inputs)]
        self.others = [
            (d, k, axis) for d, k, axis in dims if self.alike[k] == k and self.named.get(cast(SizeVar, d)) != (k, axis)
        ]
        self.ranks = [len(t.shape) for t in self.inputs]
        self.sizes = OpenSizes(frozenset(self.named))
        self.capacities: list[int] = []
        with no_collection():
            plain = first_order(without_transposes(with_counted_ranges(InferType()(DynamicToStatic()(mod)))))
            final = Sequential(default_passes())(plain)
            for node in walk((final["main"].body,)):
                if isinstance(node, Function):
                    check_open(node)
            self.network = network_of(final["main"], "tvmgen_open", self.sizes)
            self._compile(first, caches)
        groups = [self.caches.get(k, (None, 0))[0] for k in range(len(self.network.outputs))]
        self.out_alike = [(t.shape, t.dtype, group) for t, group in zip(self.network.outputs, groups)]
        self.results = [(ResultMemory(), np.dtype(t.dtype)) for t in self.network.outputs]
        self.shapes: object = None
        self.dtypes = [np.dtype(t.dtype) for t in self.inputs]
        self.seconds = time.perf_counter() - start

    # ---- compiling and planning

    def _compile(self, first: Sequence[tuple[int, ...]], caches: bool) -> None:
        minimal = bool(PassContext.current().get_config(WINOGRAD, True))
        jobs = [j for o in self.network.operations for j in jobs_of(o, self.target, minimal)]
        jobs, groups = with_caches(self.network, jobs) if caches else (jobs, [])
        layouts, cache = lay_out(self.network, jobs), ObjectCache.default()
        for group in groups:
            group.lay_out(layouts)
        self._find_rooms(groups)
        memo = KernelMemo(self.target, cache, {WINOGRAD: minimal})
        self.planner = Planner(self.network, layouts, self.target, memo, self._at)
        self.known = self._known(first, [(0, 0)] * len(groups))
        self.planned, self.entry, self.objects = compiled_plan(self.planner, self.target, len(jobs), self._reserve)
        self.library = None
        self._instantiate()

    def _find_rooms(self, groups: Sequence[CacheGroup]) -> None:
        """Which inputs and outputs are caches, and the sizes that say how much room they have."""
        ins, outs, sizes = self.network.inputs, self.network.outputs, self.sizes
        self.rooms: list[tuple[Rooms, SymbolicDim]] = []
        self.room_names: list[tuple[SizeVar, SizeVar]] = []
        self.caches: dict[int, tuple[int, int]] = {}
        self.copying: list[set[Job]] = []
        for number, group in enumerate(groups):
            inputs = [ins.index(cache.source) for cache in group.caches]
            self.rooms.append((Rooms(inputs, group.axis), sizes.var_of(group.length)))
            self.room_names.append(
                (cast(SizeVar, sizes.var_of(group.before)), cast(SizeVar, sizes.var_of(group.after)))
            )
            self.caches |= {outs.index(cache.join.whole): (number, k) for k, cache in enumerate(group.caches)}
            self.copying.append({cache.copy for cache in group.caches})

    def _known(self, shapes: Sequence[tuple[int, ...]], rooms: Sequence[tuple[int, int]] = ()) -> dict[SizeVar, int]:
        found = {d: shapes[k][axis] for d, (k, axis) in self.named.items()}
        for names, numbers in zip(self.room_names, rooms):
            found.update(zip(names, numbers))
        return found

    def _reserve(self) -> None:
        """Capacities for the known sizes: powers of two, and none less than it was."""
        values = self.sizes.values(self.known)
        before = self.capacities or [1] * len(values)
        # A size that grows goes on growing: what was too little is planned for four times as much.
        room = [n if n <= old or not self.capacities else 2 * n for n, old in zip(values, before)]
        self.capacities = [max(1 << max(n - 1, 0).bit_length(), old) for n, old in zip(room, before)]
        self.evaluated: dict[ScalarExpr, int] = {}
        cast(NetworkTensor, self.sizes.tensor).shape = (len(values),)

    def _at(self, value: ScalarExpr | int) -> int:
        if not isinstance(value, ScalarExpr):
            return int(value)
        if value not in self.evaluated:
            self.evaluated[value] = number_of(value, self.capacities)
        return self.evaluated[value]

    def _instantiate(self) -> None:
        """An instance for the capacities as they are."""
        info = TargetInfo(self.target.triple, self.target.needs, str(self.target))
        plan = self.planned.plan
        code = Code(Executable("open", info, plan, self.entry, self.objects, self.planned.constants), self.library)
        self.library = code.library
        self.instance = Instance(code, num_threads())
        bases = code.base_of - abi.FIRST_IO_BASE
        self.users = np.flatnonzero(bases >= 0)
        self.bases, self.offsets = bases[self.users], code.offset_of[self.users]
        steps: dict[ScalarExpr, list[int]] = {}
        self.sized: list[int] = []
        for k, step in enumerate(plan.steps):
            kernel = self.planned.kernels[step.kernel]
            if kernel.open_items is not None:
                steps.setdefault(kernel.open_items, []).append(k)
            if kernel.open_items is not None or (SIZES in kernel.operands and kernel.items > 1):
                self.sized.append(k)
        self.open_steps = [(formula(items), np.array(found)) for items, found in steps.items()]
        jobs = self.planned.jobs
        self.copy_steps = [np.array([k for k, job in enumerate(jobs) if job in copies]) for copies in self.copying]
        self.items = self.instance.steps[:, abi.STEP_ITEMS].copy()
        self.shares: dict[tuple[int, ...], list[int]] = {}
        self.shared_for: tuple[int, ...] = ()
        self.nbytes = [info.nbytes for info in plan.outputs]
        self.filled = np.zeros(len(self.capacities) or 1, np.int64)

    def _resize(self, shapes: Sequence[tuple[int, ...]], turns: Sequence[Turn]) -> None:
        """Get ready for inputs of other shapes, and caches of other room."""
        self.shapes, self.known = None, self._known(shapes, [(turn.before, turn.after) for turn in turns])
        values = self.sizes.values(self.known)
        if any(n > most for n, most in zip(values, self.capacities)):
            self._reserve()
            self.planned = self.planner.plan()
            self._instantiate()
        self.filled[: len(values)] = values
        steps = self.instance.steps
        for items, found in self.open_steps:
            self.items[found] = items(values)
        steps[:, abi.STEP_ITEMS] = self.items
        for turn, found in zip(turns, self.copy_steps):
            if turn.held:
                steps[found, abi.STEP_ITEMS] = 0
        self._share(values)
        forms: dict[object, tuple[tuple[int, ...], tuple[int, ...] | None, int]] = {}
        self.out_forms = [
            forms.get(alike) or forms.setdefault(alike, self._lies(k, values, turns))
            for k, alike in enumerate(self.out_alike)
        ]

    def _lies(
        self, k: int, values: Sequence[int], turns: Sequence[Turn]
    ) -> tuple[tuple[int, ...], tuple[int, ...] | None, int]:
        """How a result lies: its shape, its strides if it is a cache, the bytes of its memory."""
        dims = cast("tuple[Size | int, ...]", self.network.outputs[k].shape)
        shape = tuple([values[n.slot] if isinstance(n, Size) else n for n in dims])
        if k not in self.caches:
            return shape, None, self.nbytes[k]
        number, _ = self.caches[k]
        axis, room, size = self.rooms[number][0].axis, turns[number].after, self.results[k][1].itemsize
        nbytes = math.prod((*shape[:axis], room, *shape[axis + 1 :])) * size
        return shape, strides_of(shape, axis, room, size), nbytes

    def _share(self, values: Sequence[int]) -> None:
        """Say how many threads work on the steps whose work sizes decide, to a factor of two."""
        key = tuple([n.bit_length() for n in values])
        if key == self.shared_for:
            return
        if key not in self.shares:
            at = lambda size: number_of(size, values)
            kernels = [self.planned.kernels[self.planned.plan.steps[k].kernel] for k in self.sized]
            programs = {kernel.name: cast(LoopProgram, kernel.program) for kernel in kernels}
            found = {name: shares_for(*work(program, uses_of(program), at)) for name, program in programs.items()}
            self.shares[key] = [found[kernel.name] for kernel in kernels]
        self.instance.steps[self.sized, abi.STEP_SHARES] = self.shares[key]
        self.shared_for = key

    # ---- running

    def takes(self, arrays: Sequence[np.ndarray]) -> bool:
        """Whether arrays have the data types and shapes of the inputs, with one number for each size."""
        if [x.dtype for x in arrays] != self.dtypes:
            return False
        shapes = [x.shape for x in arrays]
        if shapes != [shapes[first] for first in self.alike]:
            return False
        if [len(shape) for shape in shapes] != self.ranks:
            return False
        known = self._known(shapes)
        for d, k, axis in self.others:
            number = known.get(cast(SizeVar, d), d)
            wanted = evaluated(number, known) if isinstance(number, SymbolicDim) else number
            if wanted != shapes[k][axis]:
                return False
        return True

    def bind(self, shapes: tuple[tuple[int, ...], ...], inputs: Sequence[int], results: Sequence[int]) -> None:
        """Get ready for inputs of these shapes at these addresses, and results at those; of a form without caches."""
        if shapes != self.shapes:
            self._resize(shapes, [])
            self.shapes = shapes
        places = [*inputs, address(self.filled), *results]
        self.instance.operands[self.users] = np.array(places, np.uint64)[self.bases] + self.offsets

    def run(self, leaves: Sequence[np.ndarray]) -> list[NDArray]:
        """The results for arrays of the inputs, which `takes` says are right."""
        with self.lock:
            shapes = tuple([x.shape for x in leaves])
            turns: list[Turn] = []
            if self.rooms:
                known = self._known(shapes)
                turns = [rooms.turn(leaves, evaluated(length, known)) for rooms, length in self.rooms]
            key = shapes, [(turn.before, turn.after, bool(turn.held)) for turn in turns]
            if key != self.shapes:
                self._resize(shapes, turns)
                self.shapes = key
            places, kept = self._inputs(leaves, turns)
            outputs, lents = self._outputs(turns)
            places += [address(self.filled), *[lent.place for lent in lents]]
            self.instance.operands[self.users] = np.array(places, np.uint64)[self.bases] + self.offsets
            self.instance.run_steps()
            for k, (number, _) in self.caches.items():
                self.rooms[number][0].wrote(lents[k], turns[number])
            for k, tensor in self.planner.copies:
                np.copyto(outputs[k], self._source(tensor.root, kept, outputs).reshape(outputs[k].shape))
            return [NDArray(x, lent=k in self.caches) for k, x in enumerate(outputs)]

    def _inputs(self, leaves: Sequence[np.ndarray], turns: Sequence[Turn]) -> tuple[list[int], list[np.ndarray]]:
        """Where the inputs lie, and what keeps them there."""
        places, kept = [0] * len(leaves), list(leaves)
        for (rooms, _), turn in zip(self.rooms, turns):
            for k, (_, lent) in zip(rooms.inputs, turn.held):
                places[k] = lent.place
            if turn.strided and not turn.held:
                for k in rooms.inputs:
                    places[k] = address(leaves[k])
        for k, x in enumerate(leaves):
            if not places[k]:
                places[k] = address(x)
                if not readable(x, places[k]):
                    kept[k] = aligned_copy(x, x.dtype)
                    places[k] = address(kept[k])
        return places, kept

    def _outputs(self, turns: Sequence[Turn]) -> tuple[list[np.ndarray], list[Lent]]:
        """The arrays of the results, and what they hang on."""
        outputs: list[np.ndarray] = []
        lents: list[Lent] = []
        for k, ((memory, dtype), (shape, strides, nbytes)) in enumerate(zip(self.results, self.out_forms)):
            number, place = self.caches.get(k, (0, 0))
            held = turns[number].held if strides is not None else ()
            owner, lent = held[place] if held else memory.lend(nbytes)
            outputs.append(np.ndarray(shape, dtype, owner, 0, strides))
            lents.append(lent)
        return outputs, lents

    def _source(self, root: NetworkTensor, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> np.ndarray:
        """What a result is a copy of: an input, a constant or another result."""
        network: Network = self.network
        if root.origin == "input":
            return inputs[network.inputs.index(root)]
        return root.constant if root.origin == "constant" else outputs[self.planner.outputs[root]]


__all__ = ["OpenForm"]
