"""How every tensor lies in memory: the order of its axes, and zeros around it where convolutions read over the edge.

Outputs of the network and tensors that are reshaped in place stay row-major. Others take the order that the
template that makes or reads them likes, and elementwise operators hand it on. Where a template cannot read what
it gets, a copy is put before it.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.kernels.views import Halo, laid_out, wider
from relaylab.codegen.network.network import Network, NetworkTensor
from relaylab.codegen.operations.in_place_concat import InPlaceConcat, in_place_concats
from relaylab.codegen.operations.jobs import ContractionJob, CopyJob, Job
from relaylab.loop.expr import ScalarExpr

Order = tuple[int, ...]


@dataclass(slots=True)
class NetworkLayout:
    """The jobs, copies included, the view of every tensor, and for parts of a larger tensor that tensor and at which of
    its elements they begin: kernels do not know, so that equal layers that write different parts are one kernel."""

    jobs: list[Job]
    views: dict[NetworkTensor, MemoryView] = field(default_factory=dict)
    wholes: dict[NetworkTensor, tuple[NetworkTensor, int]] = field(default_factory=dict)

    def __call__(self, tensor: NetworkTensor) -> MemoryView:
        """The view of a tensor; one that is not known yet is row-major."""
        found = self.views.get(tensor)
        if found is None:
            found = self.views[tensor] = laid_out(tensor.shape, tensor.dtype, range(len(tensor.shape)))
        return found

    def home(self, tensor: NetworkTensor) -> NetworkTensor:
        """The tensor whose buffer holds it."""
        return self.place(tensor)[0]

    def place(self, tensor: NetworkTensor) -> tuple[NetworkTensor, int]:
        """The tensor whose buffer holds it, and at which element of that its own memory begins."""
        tensor, at = tensor.root, 0
        while tensor in self.wholes:
            tensor, start = self.wholes[tensor]
            at += start
        return tensor, at

    def join(self, join: InPlaceConcat) -> None:
        """Give the parts of a concatenation their places within the whole, whose view is known."""
        view, start = self(join.whole), 0
        halo = join.across(view.halo)
        halo = halo if any(map(any, halo)) else ()
        for part in join.parts:
            if join.axis is None:
                self.wholes[part] = join.whole, start
                start += math.prod(part.shape)
                continue
            # Memory is planned for capacities: only a kernel knows where a size leads.
            inside, before = (start, 0) if isinstance(start, ScalarExpr) else (0, start)
            self.views[part] = replace(view, shape=part.shape, offset=view.offset + inside, halo=halo)
            self.wholes[part] = join.whole, before
            start += part.shape[join.axis] * view.strides[join.axis]


def lay_out(network: Network, jobs: list[Job]) -> NetworkLayout:
    """Decide the layout of all tensors that the jobs make."""
    fixed = _row_major(network) | _merged(jobs)
    preferred = _preferred_orders(jobs)
    orders: dict[NetworkTensor, Order] = {}
    for job in jobs:
        for tensor in job.writes:
            if tensor not in fixed:
                orders[tensor] = _order(job, tensor, orders, preferred)
    layouts = NetworkLayout([])
    halos = _halos(jobs, fixed)
    joins = in_place_concats(jobs, orders, halos, network.outputs)
    for join in joins:
        halos[join.whole] = join.halo(halos)
    for tensor, order in orders.items():
        layouts.views[tensor] = laid_out(tensor.shape, tensor.dtype, order, halos.get(tensor, ()))
    # A concatenation of concatenations: the outer whole gets its place first, its parts are wholes themselves.
    for join in reversed(joins):
        layouts.join(join)
    joined = {join.job: join.jobs for join in joins}
    _insert_copies([made for job in jobs for made in joined.get(job, (job,))], layouts)
    return layouts


def _row_major(network: Network) -> set[NetworkTensor]:
    """Tensors that others see: outputs, and what reshapes share the memory of."""
    fixed = {tensor.root for tensor in network.outputs} | set(network.outputs)
    for operation in network.operations:
        if operation.reshape_only:
            fixed |= {operation.outputs[0], operation.outputs[0].root}
    return fixed


def _merged(jobs: list[Job]) -> set[NetworkTensor]:
    """Tensors whose leading axes a template takes as one: its result and what its epilogue reads."""
    flat = [job for job in jobs if isinstance(job, ContractionJob) and job.contraction.row_major]
    return {tensor for job in flat for t in (*job.writes, *job.sides) for tensor in (t, t.root)}


def _preferred_orders(jobs: list[Job]) -> dict[NetworkTensor, Order]:
    """The order in which the first template that reads a tensor would like it."""
    preferred: dict[NetworkTensor, Order] = {}
    for job in jobs:
        if isinstance(job, ContractionJob):
            preferred.setdefault(job.data, job.contraction.data_order)
    for job in reversed(jobs):  # of open images the padding is a step of its own, before the template
        if job.operation.sizes is not None and job.keeps_lanes() and (order := preferred.get(job.writes[0])):
            for tensor in job.reads:
                if len(tensor.shape) == len(order):
                    preferred.setdefault(tensor, order)
    return preferred


def _order(
    job: Job, tensor: NetworkTensor, orders: dict[NetworkTensor, Order], preferred: dict[NetworkTensor, Order]
) -> Order:
    rank = len(tensor.shape)
    if isinstance(job, ContractionJob):
        return job.contraction.out_order
    if tensor in preferred:
        return preferred[tensor]
    if job.keeps_lanes():
        same = [t for t in job.reads if t in orders and len(t.shape) == rank]
        if same:
            return orders[max(same, key=lambda t: sum(a == b for a, b in zip(t.shape, tensor.shape)))]
    return tuple(range(rank))


def _halos(jobs: list[Job], fixed: set[NetworkTensor]) -> dict[NetworkTensor, Halo]:
    """The zeros that must be around each tensor that a job makes, for all templates that read it."""
    halos: dict[NetworkTensor, Halo] = {}
    for job in jobs:
        if (
            isinstance(job, ContractionJob)
            and job.data.origin == "result"
            and job.data not in fixed
            and job.data.alias is None
        ):
            # Only what a job here writes can have zeros around it; inputs and reshaped tensors are copied instead.
            halos[job.data] = wider(halos.get(job.data, ()), job.contraction.halo())
    return halos


def _insert_copies(jobs: list[Job], layouts: NetworkLayout) -> None:
    """Put a copy before a template that cannot read its data as it lies; equal needs share one."""
    copies: dict[tuple, NetworkTensor] = {}
    for job in jobs:
        if isinstance(job, ContractionJob):
            job.settle(layouts)
        if isinstance(job, ContractionJob) and not job.contraction.accepts(layouts(job.data)):
            order, halo = job.contraction.data_order, job.contraction.halo()
            key = (job.data, order, halo)
            if key not in copies:
                copies[key] = _copied(job.data, order, halo, layouts)
                layouts.jobs.append(CopyJob(job.operation, (job.data,), (copies[key],)))
            _replace_data(job, copies[key])
        layouts.jobs.append(job)


def _copied(tensor: NetworkTensor, order: Order, halo: Halo, layouts: NetworkLayout) -> NetworkTensor:
    copy = NetworkTensor(tensor.shape, tensor.dtype, "result")
    layouts.views[copy] = laid_out(tensor.shape, tensor.dtype, order, halo)
    return copy


def _replace_data(job: ContractionJob, copy: NetworkTensor) -> None:
    others = (job.weight, *job.sides)
    job.reads = tuple(dict.fromkeys(copy if t is job.data and t not in others else t for t in (*job.reads, copy)))
    job.data = copy
