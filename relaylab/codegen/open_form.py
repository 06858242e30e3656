"""A program with open sizes as one network: kernels take extents when they run, memory is planned for capacities.

Every expression of sizes in the program is a slot of the operand "sizes". Before a run the slots are filled in and the
steps are told how many items they have; nothing is compiled. A slot that exceeds its capacity (a power of two) has
the memory planned again. Inputs are read where they lie, results are written to memory that nobody looks at any more.

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab.codegen.build import WINOGRAD, compiled_plan
from relaylab.codegen.counted_ranges import with_counted_ranges
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.cache import ObjectCache
from relaylab.codegen.network.network import Network, NetworkTensor, network_of
from relaylab.codegen.network.open_sizes import OpenSizes, evaluated
from relaylab.codegen.open_products import without_transposes
from relaylab.codegen.open_rules import check_open
from relaylab.codegen.operations.layout import lay_out
from relaylab.codegen.operations.memo import KernelMemo
from relaylab.codegen.operations.plan import Planner
from relaylab.codegen.operations.select import jobs_of
from relaylab.codegen.specialize import tensors_of
from relaylab.ir.dims import SizeVar, SymbolicDim
from relaylab.ir.expr import Function
from relaylab.ir.module import IRModule
from relaylab.ir.visit import walk
from relaylab.loop.expr import ScalarExpr, Size
from relaylab.loop.sizes import formula, number_of
from relaylab.runtime import abi
from relaylab.runtime.executable import Executable, TargetInfo
from relaylab.runtime.memory import ALIGNMENT, address, aligned, aligned_like
from relaylab.runtime.native import Code, Instance, host_triple
from relaylab.runtime.ndarray import NDArray
from relaylab.runtime.threads import num_threads
from relaylab.support.collection import no_collection
from relaylab.transform import DynamicToStatic, InferType, PassContext, Sequential, default_passes
from relaylab.transform.normal_forms.first_order import first_order

SPARE = 2
"""How many blocks of memory per result are kept that nobody looks at."""


class _Lent:
    """What arrays over a block hang on: as long as one of them lives, slices of it too, no run writes there."""

    __slots__ = ("__array_interface__", "__weakref__", "block")

    def __init__(self, block: np.ndarray, place: int, shape: tuple[int, ...], kind: str):
        self.block = block
        self.__array_interface__ = {"shape": shape, "typestr": kind, "data": (place, False), "version": 3}


class _Results:
    """The memory of one result: blocks that are lent, and given back when no array over them lives."""

    def __init__(self, dtype: str) -> None:
        self.dtype = np.dtype(dtype)
        # numpy has no name for data types that were added to it: their bits are lent.
        self.kind = self.dtype.str if self.dtype.kind in "biuf" else f"u{self.dtype.itemsize}"
        self.lent: list[tuple[weakref.ref[_Lent], np.ndarray, int]] = []

    def lend(self, shape: tuple[int, ...], nbytes: int) -> tuple[np.ndarray, int]:
        """An array in a block of at least `nbytes`, and where it lies."""
        free = [entry for entry in self.lent if entry[0]() is None]
        block, place = next(((b, p) for _, b, p in free if b.nbytes >= nbytes), (None, 0))
        if block is None:
            block = aligned(max(nbytes, 1), "a result")
            place = address(block)
        lent = _Lent(block, place, shape, self.kind)
        spare = [entry for entry in free if entry[1] is not block][:SPARE]
        busy = [entry for entry in self.lent if entry not in free] if free else self.lent
        self.lent = [*busy, *spare, (weakref.ref(lent), block, place)]
        return np.asarray(lent).view(self.dtype), place


class OpenForm:
    """One compiled form for all sizes. Calls from several threads take turns."""

    def __init__(self, mod: IRModule, target: CpuTarget, first: Sequence[tuple[int, ...]]):
        """Compile the typed `mod` in the current PassContext; `first` are the shapes that memory is planned for.

        Raises RelayError for a program of which a part has no kernel that takes its extents when it runs.
        """
        start = time.perf_counter()
        self.lock = threading.RLock()
        self.target = target
        main = mod["main"]
        self.inputs = [t for p in main.params for t in tensors_of(p.inferred or p.type_annotation) or ()]
        dims = [(d, k, axis) for k, t in enumerate(self.inputs) for axis, d in enumerate(t.shape)]
        self.named = {d: (k, axis) for d, k, axis in reversed(dims) if isinstance(d, SizeVar)}
        self.others = [(d, k, axis) for d, k, axis in dims if self.named.get(cast(SizeVar, d)) != (k, axis)]
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
            self._compile(first)
        self.results = [_Results(t.dtype) for t in self.network.outputs]
        self.shapes: object = None
        self.dtypes = [np.dtype(t.dtype) for t in self.inputs]
        self.seconds = time.perf_counter() - start

    # ---- compiling and planning

    def _compile(self, first: Sequence[tuple[int, ...]]) -> None:
        minimal = bool(PassContext.current().get_config(WINOGRAD, True))
        jobs = [j for o in self.network.operations for j in jobs_of(o, self.target, minimal)]
        layouts, cache = lay_out(self.network, jobs), ObjectCache.default()
        memo = KernelMemo(self.target, cache, {WINOGRAD: minimal})
        self.planner = Planner(self.network, layouts, self.target, memo, self._at)
        self.known = self._known(first)
        self.planned, self.entry, self.objects = compiled_plan(self.planner, self.target, len(jobs), self._reserve)
        self.library = None
        self._instantiate()

    def _known(self, shapes: Sequence[tuple[int, ...]]) -> dict[SizeVar, int]:
        return {d: shapes[k][axis] for d, (k, axis) in self.named.items()}

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
        info = TargetInfo(host_triple(), self.target.needs, str(self.target))
        plan = self.planned.plan
        code = Code(Executable("open", info, plan, self.entry, self.objects, self.planned.constants), self.library)
        self.library = code.library
        self.instance = Instance(code, num_threads())
        bases = code.base_of - abi.FIRST_IO_BASE
        self.users = np.flatnonzero(bases >= 0)
        self.bases, self.offsets = bases[self.users], code.offset_of[self.users]
        steps: dict[ScalarExpr, list[int]] = {}
        for k, step in enumerate(plan.steps):
            items = self.planned.kernels[step.kernel].open_items
            if items is not None:
                steps.setdefault(items, []).append(k)
        self.open_steps = [(formula(items), np.array(found)) for items, found in steps.items()]
        self.nbytes = [info.nbytes for info in plan.outputs]
        self.filled = np.zeros(len(self.capacities) or 1, np.int64)

    def _resize(self, shapes: Sequence[tuple[int, ...]]) -> None:
        """Get ready for inputs of other shapes."""
        self.shapes, self.known = None, self._known(shapes)
        values = self.sizes.values(self.known)
        if any(n > most for n, most in zip(values, self.capacities)):
            self._reserve()
            self.planned = self.planner.plan()
            self._instantiate()
        self.filled[: len(values)] = values
        for items, steps in self.open_steps:
            self.instance.steps[steps, abi.STEP_ITEMS] = items(values)
        self.out_shapes = [
            tuple([values[n.slot] if isinstance(n, Size) else n for n in cast("tuple[Size | int, ...]", t.shape)])
            for t in self.network.outputs
        ]
        self.shapes = tuple(shapes)

    # ---- running

    def takes(self, arrays: Sequence[np.ndarray]) -> bool:
        """Whether arrays have the data types and shapes of the inputs, with one number for each size."""
        if [x.dtype for x in arrays] != self.dtypes:
            return False
        shapes = [x.shape for x in arrays]
        if tuple(shapes) == self.shapes:
            return True
        if [len(shape) for shape in shapes] != self.ranks:
            return False
        known = self._known(shapes)
        for d, k, axis in self.others:
            number = known.get(cast(SizeVar, d), d)
            wanted = evaluated(number, known) if isinstance(number, SymbolicDim) else number
            if wanted != shapes[k][axis]:
                return False
        return True

    def run(self, leaves: Sequence[np.ndarray]) -> list[NDArray]:
        """The results for arrays of the inputs, which `takes` says are right."""
        with self.lock:
            shapes = tuple([x.shape for x in leaves])
            if shapes != self.shapes:
                self._resize(shapes)
            places = [address(x) for x in leaves]
            kept = [x if _readable(x, p) else _aligned_copy(x) for x, p in zip(leaves, places)]
            places = [p if own is x else address(own) for x, own, p in zip(leaves, kept, places)]
            lent = [r.lend(shape, n) for r, shape, n in zip(self.results, self.out_shapes, self.nbytes)]
            places += [address(self.filled), *(place for _, place in lent)]
            self.instance.operands[self.users] = np.array(places, np.uint64)[self.bases] + self.offsets
            self.instance.run_steps()
            outputs = [array for array, _ in lent]
            for k, tensor in self.planner.copies:
                np.copyto(outputs[k], self._source(tensor.root, kept, outputs).reshape(outputs[k].shape))
            return list(map(NDArray, outputs))

    def _source(self, root: NetworkTensor, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> np.ndarray:
        """What a result is a copy of: an input, a constant or another result."""
        network: Network = self.network
        if root.origin == "input":
            return inputs[network.inputs.index(root)]
        return root.constant if root.origin == "constant" else outputs[self.planner.outputs[root]]


def _readable(x: np.ndarray, place: int) -> bool:
    """Whether kernels can read an array where it lies: they may read whole cache lines."""
    return place % ALIGNMENT == 0 and x.flags.c_contiguous


def _aligned_copy(x: np.ndarray) -> np.ndarray:
    copy = aligned_like(x.shape, x.dtype)
    np.copyto(copy, x)
    return copy


__all__ = ["OpenForm"]
