"""Results of an open program that continue one of its inputs: a cache, and along one axis what is new behind it.

Such a concatenation is two jobs, one that copies what was there and one that writes what is new. Both the input and the
result lie with room for more along the axis, as many places as a size says that each run is told. Where the result
takes the memory of the input, the copy has nothing to do (see `results.py`).

Choices: docs/choices.md, Running.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.network.network import Network, NetworkTensor, tensor_type
from relaylab.codegen.network.open_sizes import OpenSizes
from relaylab.codegen.operations.in_place_concat import ConcatenateAttrs, InPlaceConcat, is_one
from relaylab.codegen.operations.jobs import GenericJob, Job
from relaylab.codegen.operations.layout import NetworkLayout
from relaylab.ir import Tuple
from relaylab.ir.op import is_call_to
from relaylab.loop.expr import ScalarExpr, Size


@dataclass(eq=False, slots=True)
class Cache:
    """An input and the result that continues it; `copy` is the job that brings what was there."""

    source: NetworkTensor
    join: InPlaceConcat
    copy: GenericJob
    aliases: list[NetworkTensor] = field(default_factory=list)
    """Tensors in the same memory, with other axes of extent 1."""


@dataclass(eq=False, slots=True)
class CacheGroup:
    """Caches of the same lengths along the same axis: `before` and `after` are the sizes that say how much room is."""

    axis: int
    length: Size
    before: Size
    after: Size
    caches: list[Cache] = field(default_factory=list)

    def lay_out(self, layouts: NetworkLayout) -> None:
        """Give the tensors their views."""
        for cache in self.caches:
            join = cache.join
            layouts.views[cache.source] = _roomy(cache.source, self.axis, self.before)
            layouts.views[join.whole] = _roomy(join.whole, self.axis, self.after)
            layouts.join(join)
            for alias in cache.aliases:
                layouts.views[alias] = _squeezed(layouts(alias.root), alias)


def _roomy(tensor: NetworkTensor, axis: int, room: Size) -> MemoryView:
    shape = list(tensor.shape)
    shape[axis] = cast(int, room)
    return MemoryView(tensor.dtype, tensor.shape, MemoryView.dense(tuple(shape), tensor.dtype).strides)


def _squeezed(view: MemoryView, alias: NetworkTensor) -> MemoryView:
    """The view of a tensor that has the same axes but for those of extent 1."""
    steps = iter([s for n, s in zip(view.shape, view.strides) if not is_one(n)])
    return MemoryView(view.dtype, alias.shape, tuple(0 if is_one(n) else next(steps) for n in alias.shape))


def _long(tensor: NetworkTensor) -> list[int]:
    return [n for n in tensor.shape if not is_one(n)]


def with_caches(network: Network, jobs: Sequence[Job]) -> tuple[list[Job], list[CacheGroup]]:
    """The jobs of an open network with those concatenations in two, and the caches."""
    aliases: dict[NetworkTensor, list[NetworkTensor]] = {}
    for t in (t for o in network.operations for t in o.outputs if t.alias is not None):
        aliases.setdefault(t.root, []).append(t)
    groups: dict[tuple[int, object, object], CacheGroup] = {}
    taken: set[NetworkTensor] = set()
    found: list[Job] = []
    for job in jobs:
        cache = _cache(job, network)
        if cache is not None:
            cache.aliases += [t for root in (cache.source, cache.join.whole) for t in aliases.get(root, ())]
        if cache is None or {cache.source, cache.join.whole} & taken or not _plain(cache.aliases, network):
            found.append(job)
            continue
        taken |= {cache.source, cache.join.whole}
        axis = cast(int, cache.join.axis)
        key = axis, cache.source.shape[axis], cache.join.whole.shape[axis]
        if key not in groups:
            sizes = cast(OpenSizes, job.operation.sizes)
            groups[key] = CacheGroup(axis, cast(Size, key[2]), sizes.room("room before"), sizes.room("room"))
        groups[key].caches.append(cache)
        found += [cache.copy, cache.join.job]
    return found, list(groups.values())


def _plain(aliases: Sequence[NetworkTensor], network: Network) -> bool:
    """Whether tensors in the memory of a cache can be read there with room for more."""
    return all(_long(t) == _long(t.root) and t not in network.outputs for t in aliases)


def _cache(job: Job, network: Network) -> Cache | None:
    """The cache that a job continues, if it does nothing else with the result."""
    if not isinstance(job, GenericJob) or len(job.writes) != 1 or job.writes[0] not in network.outputs:
        return None
    call = job.operation.function.body
    if job.results != ((call, None),) or not is_call_to(call, "concatenate") or call not in job.calls:
        return None
    if not isinstance(call.args[0], Tuple) or len(call.args[0].fields) != 2:
        return None
    old, new = call.args[0].fields
    source, whole = job.known.get(old), job.writes[0]
    axis = cast("ConcatenateAttrs", call.attrs).axis % len(whole.shape)
    if not isinstance(source, NetworkTensor) or source not in network.inputs:
        return None
    if not isinstance(whole.shape[axis], ScalarExpr):
        return None
    added = job.operation.shape(tensor_type(new))
    parts = NetworkTensor(source.shape, source.dtype, "result"), NetworkTensor(added, whole.dtype, "result")
    copy, rest = (job.value(e, part, job.part + k) for k, (e, part) in enumerate(zip((old, new), parts)))
    return Cache(source, InPlaceConcat(rest, whole, parts, axis), copy)
