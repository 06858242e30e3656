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
from itertools import repeat
from operator import gt
from typing import cast

import numpy as np

from relaylab.codegen.build import compiled_plan, is_minimal, kernel_memo
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.views import span_bytes
from relaylab.codegen.network.network import NetworkTensor, network_of
from relaylab.codegen.network.open_sizes import InputSizes, OpenSizes, evaluated
from relaylab.codegen.open.caches import CacheGroup, with_caches
from relaylab.codegen.open.convolutions import with_padded_images
from relaylab.codegen.open.equal import with_equal_sizes
from relaylab.codegen.open.products import with_plain_products
from relaylab.codegen.open.results import Held, ResultMemory, Rooms, Turn, readable, whole
from relaylab.codegen.open.rules import check_known, check_open
from relaylab.codegen.open.told import with_told_sizes
from relaylab.codegen.open.types import AskedTypes
from relaylab.codegen.operations.jobs import Job, ProcedureJob
from relaylab.codegen.operations.layout import lay_out
from relaylab.codegen.operations.plan import Planner, shares_for
from relaylab.codegen.operations.schedules import chosen_schedules
from relaylab.codegen.operations.select import jobs_of
from relaylab.codegen.specialize import input_tensors
from relaylab.ir.dims import SizeVar
from relaylab.ir.module import IRModule
from relaylab.loop.expr import ScalarExpr, Size
from relaylab.loop.program import SIZES
from relaylab.loop.sizes import formula, largest, number_of
from relaylab.runtime import abi
from relaylab.runtime.executable import Executable, TargetInfo
from relaylab.runtime.memory import SMALL, OutOfMemory, address, aligned_copy, fresh, numbers_of
from relaylab.runtime.native import Code, Instance
from relaylab.runtime.ndarray import NDArray
from relaylab.runtime.threads import num_threads
from relaylab.support.collection import no_collection
from relaylab.transform import DynamicToStatic, InferType, Sequential, SimplifyExpr, default_passes
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
        self.wanted = InputSizes([t for _, t in input_tensors(mod["main"].params)])
        self.named = self.wanted.named
        self.sizes = OpenSizes(frozenset(self.named))
        self.capacities: list[int] = []
        with no_collection():
            known = Sequential([DynamicToStatic(), InferType(), SimplifyExpr(), InferType()])(mod)
            plain = first_order(with_plain_products(with_equal_sizes(with_told_sizes(known))))
            check_known(plain["main"])  # before the passes, which take long and find no sizes
            final = Sequential(default_passes())(with_padded_images(plain))
            check_open(final["main"])
            self.asked = AskedTypes(plain["main"], final["main"])
            self.network = network_of(final["main"], "tvmgen_open", self.sizes)
            self._compile(first, caches)
        self.results = [(ResultMemory(), np.dtype(t.dtype)) for t in self.network.outputs]
        self.in_caches = [k in self.caches for k in range(len(self.results))]
        self.others = [k for k in range(len(self.results)) if k not in self.caches]
        alike: dict[object, int] = {}
        self.alike = [alike.setdefault(self.network.outputs[k].shape, n) for n, k in enumerate(self.others)]
        self.copied: dict[int, np.ndarray] = {}
        """Copies of small inputs that lie where kernels cannot read them, by number: each serves the next run."""
        self.shapes: object = None
        self.seconds = time.perf_counter() - start

    @property
    def called(self) -> list[str]:
        """The kernels that a run calls, in order."""
        return [step.name for step in self.planned.plan.steps]

    # ---- compiling and planning

    def _compile(self, first: Sequence[tuple[int, ...]], caches: bool) -> None:
        chosen = chosen_schedules(self.network)
        jobs = [j for o in self.network.operations for j in jobs_of(o, self.target, is_minimal(), chosen.get(o))]
        jobs, groups = with_caches(self.network, jobs) if caches else (jobs, [])
        layouts = lay_out(self.network, jobs)
        for group in groups:
            group.lay_out(layouts)
        self._find_rooms(groups)
        self.planner = Planner(self.network, layouts, self.target, kernel_memo(self.target), self._at)
        self._know(self.wanted.known(first), [Turn(0, 0, 0)] * len(groups))
        self.planned, self.entry, self.objects = compiled_plan(self.planner, self._reserve)
        self.library = None
        self._instantiate()

    def _find_rooms(self, groups: Sequence[CacheGroup]) -> None:
        """Which inputs and outputs are caches, and the sizes that say how much room they have."""
        ins, outs, sizes = self.network.inputs, self.network.outputs, self.sizes
        self.rooms: list[Rooms] = []
        self.copying: dict[Job, Rooms] = {}
        """The jobs that bring what a cache held."""
        for group in groups:
            inputs = [ins.index(cache.source) for cache in group.caches]
            results = [outs.index(cache.join.whole) for cache in group.caches]
            before, after = (cast(SizeVar, sizes.var_of(size)) for size in (group.before, group.after))
            self.rooms.append(Rooms(inputs, results, group.axis, sizes.var_of(group.length), before, after))
            self.copying |= {cache.copy: self.rooms[-1] for cache in group.caches}
        self.caches = {k for rooms in self.rooms for k in rooms.results}
        """Which results are caches."""
        continued = {k for rooms in self.rooms for k in rooms.inputs}
        self.plain = [k for k in range(len(ins)) if k not in continued and ins[k] is not sizes.tensor]

    def _know(self, sizes: dict[SizeVar, int], turns: Sequence[Turn]) -> None:
        """Take these numbers for the sizes, and the rooms of caches."""
        self.known = sizes
        for rooms, turn in zip(self.rooms, turns):
            sizes[rooms.before], sizes[rooms.after] = turn.before, turn.after

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
            self.evaluated[value] = largest(value, self.capacities)
        return self.evaluated[value]

    def _instantiate(self) -> None:
        """An instance for the capacities as they are."""
        info = TargetInfo(self.target.triple, self.target.needs, str(self.target))
        plan = self.planned.plan
        code = Code(Executable("open", info, plan, self.entry, self.objects, self.planned.constants), self.library)
        self.library = code.library
        self.instance = Instance(code, num_threads())
        for rooms in self.rooms:
            rooms.settle()
        open_steps: dict[ScalarExpr, list[int]] = {}
        self.sized: list[int] = []
        for k, (step, job) in enumerate(zip(plan.steps, self.planned.jobs)):
            kernel = self.planned.kernels[step.kernel]
            at, items = k * abi.STEP_WORDS + abi.STEP_ITEMS, kernel.open_items
            rooms = self.copying.get(job)
            if rooms is not None:
                rooms.steps.append((at, formula(kernel.items if items is None else items)))
            elif items is not None:
                open_steps.setdefault(items, []).append(at)
            if items is not None or (SIZES in kernel.operands and kernel.items > 1):
                self.sized.append(k)
        self.open_steps = [(formula(items), found) for items, found in open_steps.items()]
        jobs = dict.fromkeys(self.planned.jobs[k] for k in self.sized)
        self.procedural = [job for job in jobs if isinstance(job, ProcedureJob)]
        """What reads most of its operands under conditions that nobody knows: it counts by all of them."""
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
        self.asked.check(sizes)
        self._know(sizes, turns)
        values = self.sizes.values(sizes)
        if len(values) != len(self.capacities) or any(map(gt, values, self.capacities)):
            self._plan_again()
        numbers, words = self.numbers, self.words
        for k, number in enumerate(values):
            numbers[k] = number
        for rooms, turn in zip(self.rooms, turns):
            if not (turn.held and rooms.still):
                for place, items in rooms.steps:
                    words[place] = 0 if turn.held else items(values)
                rooms.still = bool(turn.held)
        for items, found in self.open_steps:
            number = items(values)
            for place in found:
                words[place] = number
        self._share(values)
        self.numbered = values
        shapes: list[tuple[int, ...]] = []
        for k, first in zip(self.others, self.alike):
            shapes.append(shapes[first] if first < len(shapes) else self._shape(k))
        self.out_shapes = shapes

    def _shape(self, k: int) -> tuple[int, ...]:
        """The shape of a result, for the sizes as they are."""
        dims = cast("tuple[Size | int, ...]", self.network.outputs[k].shape)
        return tuple([self.numbered[n.slot] if isinstance(n, Size) else n for n in dims])

    def _share(self, values: Sequence[int]) -> None:
        """Say how many threads work on the steps whose work sizes decide, to a factor of two."""
        key = tuple([n.bit_length() for n in values])
        if key == self.shared_for:
            return
        if key not in self.shares:
            at = lambda size: number_of(size, values)
            steps = [(self.planned.plan.steps[k].kernel, self.planned.jobs[k]) for k in self.sized]
            works = {name: self.planned.kernels[name].work(at) for name, _ in steps}
            held: dict[Job, int] = {
                job: sum(map(at, map(self._bytes, (*job.reads, *job.writes)))) for job in self.procedural
            }
            self.shares[key] = [shares_for(works[name][0], held.get(job, works[name][1])) for name, job in steps]
        self.instance.steps[self.sized, abi.STEP_SHARES] = self.shares[key]
        self.shared_for = key

    def _bytes(self, tensor: NetworkTensor) -> int:
        """Bytes of a tensor, by sizes."""
        return span_bytes(self.planner.layouts(tensor))

    # ---- running

    def bind(self, shapes: tuple[tuple[int, ...], ...], inputs: Sequence[int], results: Sequence[int]) -> None:
        """Get ready for inputs of these shapes at these addresses, and results at those; of a form without caches."""
        if shapes != self.shapes:
            self._resize(self.wanted.known(shapes), [])
            self.shapes = shapes
        for k, place in enumerate([*inputs, self.numbers_at, *results]):
            self._move(k, place)

    def _move(self, k: int, place: int) -> None:
        """Let the code read or write an input or a result, the inputs first, at this address."""
        if self.places[k] != place:
            self.instance.point(abi.FIRST_IO_BASE + k, place)
            self.places[k] = place

    def run(self, leaves: Sequence[np.ndarray]) -> list[NDArray] | None:
        """The results for arrays of the inputs; None if those are not of the inputs' types."""
        sizes = self.wanted.fit(leaves)
        if sizes is None:
            return None
        with self.lock:
            turns = [rooms.turn(leaves, evaluated(rooms.length, sizes)) for rooms in self.rooms]
            key = list(sizes.values()), [(turn.before, turn.after, bool(turn.held)) for turn in turns]
            if key != self.shapes:
                self._resize(sizes, turns)
                self.shapes = key
            kept = list(leaves)
            for k in self.plain:
                kept[k] = self._read(k, leaves[k])
            self._move(len(leaves), self.numbers_at)
            outputs = dict(zip(self.others, map(self._output, self.others, self.out_shapes)))
            held = [self._caches(rooms, turn, kept) for rooms, turn in zip(self.rooms, turns)]
            self.instance.run_steps()
            for rooms, turn, memory in zip(self.rooms, turns, held):
                outputs |= zip(rooms.results, rooms.wrote(turn, memory))
            found = [outputs[k] for k in range(len(outputs))]
            for k, tensor in self.planner.copies:
                np.copyto(found[k], self._source(tensor.root, kept, found).reshape(found[k].shape))
            return list(map(NDArray, found, repeat(False), self.in_caches))

    def _read(self, k: int, x: np.ndarray) -> np.ndarray:
        """Let the code read an input where it lies, or a copy of it; what it reads."""
        place = address(x)
        if not readable(x, place):
            own = self.copied.get(k)
            if own is not None and own.shape == x.shape:
                np.copyto(own, x)
            else:
                own = aligned_copy(x, x.dtype)
                if x.nbytes <= SMALL:
                    self.copied[k] = own
            x, place = own, address(own)
        self._move(k, place)
        return x

    def _output(self, k: int, shape: tuple[int, ...]) -> np.ndarray:
        """An array for a result that is no cache, where the code writes it."""
        (blocks, dtype), nbytes = self.results[k], self.nbytes[k]
        if nbytes <= SMALL:
            array, place = fresh(shape, dtype, nbytes)
        else:
            owner, lent = blocks.lend(nbytes)
            array, place = np.ndarray(shape, dtype, owner), lent.place
        self._move(len(self.network.inputs) + k, place)
        return array

    def _caches(self, rooms: Rooms, turn: Turn, kept: list[np.ndarray]) -> tuple[Held, ...]:
        """The memory of the caches of one length after a run, where the code writes them, and reads what they were."""
        if turn.held and rooms.home is turn.held:
            return turn.held
        rooms.home = ()
        held = turn.held or tuple([self._room(k, rooms.axis, turn.after) for k in rooms.results])
        for k, (_, lent) in zip(rooms.inputs, held):
            if turn.strided:
                self._move(k, lent.place if turn.held else address(kept[k]))
            else:
                kept[k] = self._read(k, kept[k])
        for k, (_, lent) in zip(rooms.results, held):
            self._move(len(self.network.inputs) + k, lent.place)
        rooms.home = turn.held
        return held

    def _room(self, k: int, axis: int, room: int) -> Held:
        """Memory for a result that is a cache, with room for so many along an axis."""
        (blocks, dtype), shape = self.results[k], self._shape(k)
        owner, lent = blocks.lend(math.prod((*shape[:axis], room, *shape[axis + 1 :])) * dtype.itemsize)
        return whole(owner, shape, dtype, axis, room), lent

    def _source(self, root: NetworkTensor, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> np.ndarray:
        """What a result is a copy of: an input, a constant or another result."""
        if root.origin == "input":
            return inputs[self.network.inputs.index(root)]
        return root.constant if root.origin == "constant" else outputs[self.planner.outputs[root]]
