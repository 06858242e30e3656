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
from collections.abc import Callable, Sequence
from operator import gt
from typing import cast

import numpy as np

from relaylab.codegen.build import WINOGRAD, compiled_plan
from relaylab.codegen.counted_ranges import with_counted_ranges
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.cache import ObjectCache
from relaylab.codegen.loops.facts import uses_of, work
from relaylab.codegen.network.network import Network, NetworkTensor, network_of
from relaylab.codegen.network.open_sizes import InputSizes, OpenSizes, evaluated
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
from relaylab.runtime.memory import SMALL, OutOfMemory, address, aligned_copy, fresh, numbers_of
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
        self.wanted = InputSizes(self.inputs)
        self.named = self.wanted.named
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
        alike: dict[object, int] = {}
        kinds = [(t.shape, t.dtype, group) for t, group in zip(self.network.outputs, groups)]
        self.out_alike = [alike.setdefault(kind, k) for k, kind in enumerate(kinds)]
        self.results = [(ResultMemory(), np.dtype(t.dtype)) for t in self.network.outputs]
        self.in_caches = [k in self.caches for k in range(len(self.results))]
        self.never = [False] * len(self.results)
        self.shapes: object = None
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
        self._know(self.wanted.known(first), [Turn(0, 0, 0)] * len(groups))
        self.planned, self.entry, self.objects = compiled_plan(self.planner, self.target, len(jobs), self._reserve)
        self.library = None
        self._instantiate()

    def _find_rooms(self, groups: Sequence[CacheGroup]) -> None:
        """Which inputs and outputs are caches, and the sizes that say how much room they have."""
        ins, outs, sizes = self.network.inputs, self.network.outputs, self.sizes
        self.rooms: list[tuple[Rooms, SymbolicDim]] = []
        self.room_names: list[tuple[SizeVar, SizeVar]] = []
        self.caches: dict[int, tuple[int, int]] = {}
        self.cached: list[list[int]] = []
        self.copying: list[set[Job]] = []
        for number, group in enumerate(groups):
            inputs = [ins.index(cache.source) for cache in group.caches]
            self.rooms.append((Rooms(inputs, group.axis), sizes.var_of(group.length)))
            self.room_names.append(
                (cast(SizeVar, sizes.var_of(group.before)), cast(SizeVar, sizes.var_of(group.after)))
            )
            places = [outs.index(cache.join.whole) for cache in group.caches]
            self.caches |= {place: (number, k) for k, place in enumerate(places)}
            self.cached.append(places)
            self.copying.append({cache.copy for cache in group.caches})

    def _know(self, sizes: dict[SizeVar, int], turns: Sequence[Turn]) -> None:
        """Take these numbers for the sizes, and the rooms of caches."""
        self.known = sizes
        for (before, after), turn in zip(self.room_names, turns):
            sizes[before], sizes[after] = turn.before, turn.after

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
        copies = [{k for k, job in enumerate(self.planned.jobs) if job in copying} for copying in self.copying]
        self.copy_steps: list[list[tuple[int, Callable[[Sequence[int]], int]]]] = [[] for _ in copies]
        """Where the items of the steps stand that bring what a cache held, and how many they are."""
        open_steps: dict[ScalarExpr, list[int]] = {}
        self.sized: list[int] = []
        for k, step in enumerate(plan.steps):
            kernel = self.planned.kernels[step.kernel]
            at, items = k * abi.STEP_WORDS + abi.STEP_ITEMS, kernel.open_items
            owner = next((number for number, found in enumerate(copies) if k in found), None)
            if owner is not None:
                self.copy_steps[owner].append((at, formula(kernel.items if items is None else items)))
            elif items is not None:
                open_steps.setdefault(items, []).append(at)
            if items is not None or (SIZES in kernel.operands and kernel.items > 1):
                self.sized.append(k)
        self.open_steps = [(formula(items), found) for items, found in open_steps.items()]
        self.words = numbers_of(self.instance.steps)
        self.shares: dict[tuple[int, ...], list[int]] = {}
        self.shared_for: tuple[int, ...] = ()
        self.nbytes = [info.nbytes for info in plan.outputs]
        self.filled = np.zeros(len(self.capacities) or 1, np.int64)
        self.numbers, self.numbers_at = numbers_of(self.filled), address(self.filled)
        self.places = [0] * (len(plan.inputs) + len(plan.outputs))

    def _plan_again(self) -> None:
        """Plan for the known sizes: as they are if there is no memory for more. What fails leaves no capacities, so
        that no run takes what was planned before for what it needs.
        """
        grown = bool(self.capacities)
        try:
            self._reserve()
            self.planned = self.planner.plan()
            self._instantiate()
        except BaseException as error:
            self.capacities = []
            if not (grown and isinstance(error, OutOfMemory)):
                raise
            self._plan_again()

    def _resize(self, sizes: dict[SizeVar, int], turns: Sequence[Turn]) -> None:
        """Get ready for inputs of other shapes, and caches of other room."""
        self.shapes = None
        self._know(sizes, turns)
        values = self.sizes.values(sizes)
        if len(values) != len(self.capacities) or any(map(gt, values, self.capacities)):
            self._plan_again()
        numbers, words = self.numbers, self.words
        for k, number in enumerate(values):
            numbers[k] = number
        for turn, copies in zip(turns, self.copy_steps):
            for place, items in copies:
                words[place] = 0 if turn.held else items(values)
        for items, found in self.open_steps:
            number = items(values)
            for place in found:
                words[place] = number
        self._share(values)
        forms: list[tuple[tuple[int, ...], tuple[int, ...] | None, int]] = []
        for k, first in enumerate(self.out_alike):
            forms.append(self._lies(k, values, turns) if first == k else forms[first])
        self.out_forms = forms

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
        return self.wanted.fit(arrays) is not None

    def bind(self, shapes: tuple[tuple[int, ...], ...], inputs: Sequence[int], results: Sequence[int]) -> None:
        """Get ready for inputs of these shapes at these addresses, and results at those; of a form without caches."""
        if shapes != self.shapes:
            self._resize(self.wanted.known(shapes), [])
            self.shapes = shapes
        self._place([*inputs, self.numbers_at, *results])

    def _place(self, places: list[int]) -> None:
        """Let the code read and write at these addresses."""
        if places != self.places:
            for k, (old, new) in enumerate(zip(self.places, places, strict=True)):
                if old != new:
                    self.instance.point(abi.FIRST_IO_BASE + k, new)
            self.places = places

    def run(self, leaves: Sequence[np.ndarray]) -> list[NDArray] | None:
        """The results for arrays of the inputs; None if those are not of the inputs' types."""
        sizes = self.wanted.fit(leaves)
        if sizes is None:
            return None
        with self.lock:
            turns = [rooms.turn(leaves, evaluated(length, sizes)) for rooms, length in self.rooms]
            key = [x.shape for x in leaves], [(turn.before, turn.after, bool(turn.held)) for turn in turns]
            if key != self.shapes:
                self._resize(sizes, turns)
                self.shapes = key
            places, kept = self._inputs(leaves, turns)
            places.append(self.numbers_at)
            outputs, memory = self._outputs(turns, places)
            self._place(places)
            self.instance.run_steps()
            for (rooms, _), turn, found in zip(self.rooms, turns, self.cached):
                rooms.wrote(turn, [outputs[k] for k in found], [memory[k] for k in found])
            for k, tensor in self.planner.copies:
                np.copyto(outputs[k], self._source(tensor.root, kept, outputs).reshape(outputs[k].shape))
            return list(map(NDArray, outputs, self.never, self.in_caches))

    def _inputs(self, leaves: Sequence[np.ndarray], turns: Sequence[Turn]) -> tuple[list[int], list[np.ndarray]]:
        """Where the inputs lie, and what keeps them there."""
        places, kept = [0] * len(leaves), list(leaves)
        for (rooms, _), turn in zip(self.rooms, turns):
            if turn.held:
                for k, (_, lent) in zip(rooms.inputs, turn.held):
                    places[k] = lent.place
            elif turn.strided:
                for k in rooms.inputs:
                    places[k] = address(leaves[k])
        for k, x in enumerate(leaves):
            if not places[k]:
                places[k] = address(x)
                if not readable(x, places[k]):
                    kept[k] = aligned_copy(x, x.dtype)
                    places[k] = address(kept[k])
        return places, kept

    def _outputs(self, turns: Sequence[Turn], places: list[int]) -> tuple[list[np.ndarray], dict[int, Lent]]:
        """The arrays of the results, whose addresses are added to `places`, and the memory that is lent to them."""
        outputs: list[np.ndarray] = []
        memory: dict[int, Lent] = {}
        for k, ((blocks, dtype), (shape, strides, nbytes)) in enumerate(zip(self.results, self.out_forms)):
            if strides is None and nbytes <= SMALL:
                array, place = fresh(shape, dtype, nbytes)
                outputs.append(array)
                places.append(place)
                continue
            held = ()
            if strides is not None:
                number, at = self.caches[k]
                held = turns[number].held
            owner, lent = held[at] if held else blocks.lend(nbytes)
            memory[k] = lent
            outputs.append(np.ndarray(shape, dtype, owner, 0, strides))
            places.append(lent.place)
        return outputs, memory

    def _source(self, root: NetworkTensor, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> np.ndarray:
        """What a result is a copy of: an input, a constant or another result."""
        network: Network = self.network
        if root.origin == "input":
            return inputs[network.inputs.index(root)]
        return root.constant if root.origin == "constant" else outputs[self.planner.outputs[root]]


__all__ = ["OpenForm"]
