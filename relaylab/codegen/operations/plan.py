"""From jobs to the plan that the runtime follows: kernels, steps, and where every operand lies.

Intermediate tensors share one arena by their life spans; an elementwise result takes the place of an operand that
dies with it; results of the network are written where the caller reads them.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, MemoryView
from relaylab.codegen.kernels.views import same_place, span_bytes
from relaylab.codegen.network.arena import Allocation, place
from relaylab.codegen.network.network import Network, NetworkTensor, of_whole_batch
from relaylab.codegen.operations.constant_pool import ConstantPool
from relaylab.codegen.operations.jobs import Job, Launch, OperandSource, PackedConstant, Workspace, packed_later
from relaylab.codegen.operations.layout import NetworkLayout
from relaylab.codegen.operations.memo import KernelMemo
from relaylab.codegen.templates.pack import Packing
from relaylab.loop.expr import ScalarExpr
from relaylab.runtime import abi
from relaylab.runtime.executable import ArenaBlock, ExecutionPlan, KernelCall, StoredTensor, TensorInfo

SMALL_SECONDS = 2e-6  # a step that takes less runs on one thread
# Low for one core, so that a step counts as worth a second thread sooner rather than later.
FLOPS_PER_SECOND, BYTES_PER_SECOND = 60e9, 12e9


@dataclass(slots=True)
class NetworkPlan:
    """The plan, the distinct kernels by name, packed constants, the memory of tensors, and the job of every step."""

    plan: ExecutionPlan
    kernels: dict[str, Kernel]
    constants: np.ndarray
    storage: dict[NetworkTensor, int]
    jobs: tuple[Job, ...] = ()


@dataclass(eq=False, slots=True)
class _Buffer(Allocation):
    """Memory for one or more tensors, in the arena unless `base` says otherwise."""

    base: int = abi.BASE_ARENA
    offset: int = 0


class Planner:
    """Plans a network; one of an open program again and again, for sizes `at` which it is told how large all is.

    A network that is run in `parts` has inputs and results that are so many times as long as its tensors.
    """

    def __init__(
        self,
        network: Network,
        layouts: NetworkLayout,
        target: CpuTarget,
        memo: KernelMemo,
        at: Callable[[ScalarExpr | int], int] = lambda value: int(value),
        parts: int = 1,
    ):
        self.at, self.parts = at, parts
        self.network, self.layouts, self.target, self.memo = network, layouts, target, memo
        self.constants = ConstantPool()
        self.launches: list[tuple[Job, Launch]] = []
        self.kernels: dict[str, Kernel] = {}

    def launch(self, on_kernel: Callable[[Kernel], None]) -> None:
        """Make the kernels; `on_kernel` is told of every distinct one, in their order, as soon as it exists."""
        for job in self.layouts.jobs:
            for launch in job.launches(self.layouts, self.target, self.memo):
                self.launches.append((job, launch))
                if launch.kernel.name not in self.kernels:
                    self.kernels[launch.kernel.name] = launch.kernel
                    on_kernel(launch.kernel)

    def plan(self) -> NetworkPlan:
        """Where everything lies, and the steps."""
        self.buffers: dict[NetworkTensor | tuple[int, Workspace], _Buffer] = {}
        self.outputs: dict[NetworkTensor, int] = {}
        self.copies: list[tuple[int, NetworkTensor]] = []
        self.written: dict[NetworkTensor, int] = {}
        self._bind_outputs()
        self._allocate()
        self.constants.add_all(self._constants(), self.network.let_go)
        steps = tuple(self._step(job, launch) for job, launch in self.launches)
        scratch = max((self.at(kernel.scratch) for kernel in self.kernels.values()), default=0)
        plan = ExecutionPlan(
            tuple(TensorInfo(t.name, self._whole(t.shape), t.dtype) for t in self.network.inputs),
            tuple(TensorInfo(f"output{k}", self._whole(t.shape), t.dtype) for k, t in enumerate(self.network.outputs)),
            steps,
            self.arena,
            scratch,
            tuple((k, self._value(t)) for k, t in self.copies),
            self._values(),
            self._held(),
            self.parts,
        )
        jobs = tuple(job for job, _ in self.launches)
        return NetworkPlan(plan, self.kernels, self.constants.blob(), self._storage(), jobs)

    def _constants(self) -> Iterator[PackedConstant]:
        """What operands and outputs are in memory of their own: first what is packed."""
        operands = [thing for _, launch in self.launches for thing in launch.operands.values()]
        yield from (thing for thing in operands if isinstance(thing, PackedConstant))
        plain = [thing.root for thing in (*operands, *self.network.outputs) if isinstance(thing, NetworkTensor)]
        yield from (as_it_is(root) for root in plain if root.origin == "constant")

    def _all(self, numbers: Iterable[ScalarExpr | int]) -> tuple[int, ...]:
        return tuple(map(self.at, numbers))

    def _whole(self, shape: tuple[ScalarExpr | int, ...]) -> tuple[int, ...]:
        """The shape of an input or result that all parts have together."""
        return of_whole_batch(self._all(shape), self.parts)

    def _span(self, tensor: NetworkTensor) -> int:
        """Bytes of the buffer of a tensor."""
        return self.at(span_bytes(self.layouts(tensor)))

    # ---- where things lie

    def _bind_outputs(self) -> None:
        """Let results be written where the caller reads them; other outputs are copied after a run."""
        for k, tensor in enumerate(self.network.outputs):
            # An output that is an input, a constant or given twice cannot be written by a kernel.
            if tensor.root.origin == "result" and tensor.root not in self.outputs:
                self.outputs[tensor.root] = k
            else:
                self.copies.append((k, tensor))

    def _allocate(self) -> None:
        """A buffer for every tensor that a step writes, and its place."""
        last = self._last_uses()
        written = 0
        for k, (job, launch) in enumerate(self.launches):
            ends = k + 1 == len(self.launches) or self.launches[k + 1][0] is not job
            for thing in launch.operands.values():
                if isinstance(thing, Workspace):
                    self._workspace(job, thing, k)
            for tensor in job.writes if ends else ():
                self._buffer(job, tensor, written, k, last)
            written = k + 1 if ends else written
        self._place()

    def _last_uses(self) -> dict[NetworkTensor, int]:
        """The last step that uses each buffer; tensors that are copied out live to the end."""
        last: dict[NetworkTensor, int] = {}
        for k, (job, _) in enumerate(self.launches):
            for tensor in (*job.reads, *job.writes):
                last[self.layouts.home(tensor)] = k
        return last | {self.layouts.home(tensor): len(self.launches) for _, tensor in self.copies}

    def _buffer(self, job: Job, tensor: NetworkTensor, first: int, step: int, last: dict[NetworkTensor, int]) -> None:
        home = self.layouts.home(tensor)
        if home in self.buffers:
            return
        if home in self.outputs:
            base = abi.FIRST_IO_BASE + len(self.network.inputs) + self.outputs[home]
            self.buffers[home] = _Buffer(self._span(home), first, step, base=base)
            return
        view = self.layouts(home)
        reused = self._reused(job, home, step, last) if home is tensor else None
        if reused is not None:
            self.buffers[home] = reused
            reused.last = max(reused.last, last[home])
            return
        # Zeros around a tensor are written once, when the arena is made: only tensors of the very same frame may take
        # turns there.
        halo = (view.shape, view.strides, view.halo, view.dtype) if view.halo else None
        self.buffers[home] = _Buffer(self._span(home), first, max(step, last[home]), halo)

    def _reused(self, job: Job, tensor: NetworkTensor, step: int, last: dict[NetworkTensor, int]) -> _Buffer | None:
        """The buffer of an operand that dies with this job and lies as its result will."""
        view = self.layouts(tensor)
        if job.schedule is not None and job.schedule.loops:
            return None  # loops that are written out may read what they have written
        for operand in job.in_place():
            own, home = self.layouts(operand), self.layouts.home(operand)
            buffer = self.buffers.get(home)
            if buffer is None or home is not operand.root or buffer.base != abi.BASE_ARENA:
                continue
            dies = buffer.last == step == last[home] and not self._read_elsewhere(job, operand, buffer)
            if dies and same_place(own, view) and (own.halo, own.dtype) == (view.halo, view.dtype):
                return buffer
        return None

    def _read_elsewhere(self, job: Job, operand: NetworkTensor, buffer: _Buffer) -> bool:
        """Does the job read this buffer at other places too (say, a part of a concatenation, broadcast over it)?"""
        view = self.layouts(operand)
        others = (t for t in job.reads if t is not operand and self.buffers.get(self.layouts.home(t)) is buffer)
        return any(not same_place(self.layouts(t), view) for t in others)

    def _workspace(self, job: Job, work: Workspace, step: int) -> None:
        """Memory for the kernels of one job, from the first of them that uses it to the last."""
        # Workspaces are equal by name and size; each job needs its own.
        key = (id(job), work)
        if key in self.buffers:
            self.buffers[key].last = step
        else:
            self.buffers[key] = _Buffer(work.nbytes, step, step)

    def _place(self) -> None:
        own = list(dict.fromkeys(b for b in self.buffers.values() if b.base == abi.BASE_ARENA))
        offsets, self.arena = place(own)
        for buffer, offset in zip(own, offsets):
            buffer.offset = offset

    def _where(self, job: Job, thing: OperandSource) -> tuple[int, int, int]:
        """The base, the byte offset and the bytes of an operand."""
        if isinstance(thing, PackedConstant):
            return self._constant(thing)
        if isinstance(thing, Workspace):
            return abi.BASE_ARENA, self.buffers[id(job), thing].offset, thing.nbytes
        return self._extent(thing.root)

    def _extent(self, root: NetworkTensor) -> tuple[int, int, int]:
        if root.origin == "input":
            base = abi.FIRST_IO_BASE + self.network.inputs.index(root)
            return base, 0, self._span(root)
        if root.origin == "constant":
            return self._constant(as_it_is(root))
        home, start = self.layouts.place(root)
        buffer, before = self.buffers[home], start * self.layouts(root).itemsize
        return buffer.base, buffer.offset + before, buffer.size - before

    def _constant(self, packed: PackedConstant) -> tuple[int, int, int]:
        return abi.BASE_CONSTANTS, self.constants.add(packed), self.constants.sizes[packed.key]

    # ---- steps and values

    def _step(self, job: Job, launch: Launch) -> KernelCall:
        kernel, operation = launch.kernel, job.operation
        scratch = abi.BASE_SCRATCH, 0, self.at(kernel.scratch)
        places = tuple(
            scratch if role == "scratch" else self._where(job, launch.operands[role]) for role in kernel.operands
        )
        return KernelCall(
            kernel.name,
            places,
            kernel.items if kernel.open_items is None else self.at(kernel.open_items),
            shares_of(kernel),
            operation.node,
            kernel.flops * self.parts,
            kernel.bytes * self.parts,
            operation.name,
        )

    def _value(self, tensor: NetworkTensor) -> StoredTensor:
        """Where a tensor can be read after the steps that make it."""
        view: MemoryView = self.layouts(tensor)
        base, offset, _ = self._extent(tensor.root)
        place_ = base, offset + self.at(view.offset) * view.itemsize
        return StoredTensor(
            place_, self._all(view.shape), self._all(view.strides), view.dtype, self._ready(tensor.root)
        )

    def _ready(self, root: NetworkTensor) -> int:
        """The number of steps after which a tensor is complete: its own, or those of its parts."""
        if not self.written:
            self.written = {t: k + 1 for k, (job, _) in enumerate(self.launches) for t in job.writes}
            for part in self.written.copy():
                done = self.written[part]
                while part in self.layouts.wholes:
                    part, _ = self.layouts.wholes[part]
                    self.written[part] = max(self.written.get(part, 0), done)
        return self.written.get(root, 0)

    def _values(self) -> tuple[tuple[int, int, StoredTensor], ...]:
        tensors = [t for operation in self.network.operations for t in operation.outputs]
        return tuple((t.node, t.output, self._value(t)) for t in tensors)

    def _held(self) -> tuple[ArenaBlock, ...]:
        """What the arena holds, each buffer once, in the order of the steps."""
        kinds = {b: "tensor" if isinstance(key, NetworkTensor) else "workspace" for key, b in self.buffers.items()}
        end = len(self.launches) - 1
        found = [
            ArenaBlock(b.offset, b.size, b.first, min(b.last, end), "padded" if b.halo else kind)
            for b, kind in kinds.items()
            if b.base == abi.BASE_ARENA
        ]
        return tuple(sorted(found, key=lambda h: (h.first, h.offset)))

    def _storage(self) -> dict[NetworkTensor, int]:
        """A number for the memory of every tensor of the graph: equal for tensors that share it."""
        numbers: dict[object, int] = {}
        tensors = [
            *self.network.inputs,
            *self.network.constants,
            *(t for operation in self.network.operations for t in operation.outputs),
        ]
        found = {}
        for tensor in tensors:
            buffer = self.buffers.get(self.layouts.home(tensor))
            key = tensor.root if buffer is None else (buffer.base, buffer.offset)
            found[tensor] = numbers.setdefault(key, len(numbers))
        return found


def as_it_is(tensor: NetworkTensor) -> PackedConstant:
    """A constant that kernels read as it is in the program."""
    return PackedConstant((tensor.identity, None), lambda: packed_later(tensor, Packing.copied))


def shares_of(kernel: Kernel) -> int:
    """How many threads may work on a kernel: one where waking others costs more than they help."""
    few = kernel.open_items is None and kernel.items < 2
    return 1 if few else shares_for(kernel.flops, kernel.bytes)


def shares_for(flops: int, traffic: int) -> int:
    """How many threads may do so many operations on so many bytes."""
    return 1 if max(flops / FLOPS_PER_SECOND, traffic / BYTES_PER_SECOND) < SMALL_SECONDS else abi.MAX_THREADS
