"""Concatenation without copying: what is joined is written where the result wants it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol, cast

from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.kernels.views import Halo, wider
from relaylab.codegen.network.network import NetworkTensor, flatten, operator_of
from relaylab.codegen.operations.jobs import GenericJob, Job
from relaylab.ir import Tuple


class ConcatenateAttrs(Protocol):
    """The attributes of `concatenate`."""

    axis: int


@dataclass(frozen=True, slots=True)
class InPlaceConcat:
    """Tensors that lie one after another along an axis of `whole`."""

    job: Job
    whole: NetworkTensor
    parts: tuple[NetworkTensor, ...]
    axis: int

    def place(self, view: MemoryView) -> dict[NetworkTensor, MemoryView]:
        """The views of the parts within that of the whole."""
        found, start = {}, 0
        for part in self.parts:
            halo = self._across(view.halo)
            found[part] = replace(
                view,
                shape=part.shape,
                offset=view.offset + start * view.strides[self.axis],
                halo=halo if any(map(any, halo)) else (),
            )
            start += part.shape[self.axis]
        return found

    def halo(self, halos: Mapping[NetworkTensor, Halo]) -> Halo:
        """The zeros that the whole and its parts need together; along the axis, only those of the whole."""
        needed = halos.get(self.whole, ())
        for part in self.parts:
            needed = wider(needed, self._across(halos.get(part, ())))
        return needed

    def _across(self, halo: Halo) -> Halo:
        """The zeros but for those along the axis."""
        return tuple((0, 0) if a == self.axis else zeros for a, zeros in enumerate(halo))


def in_place_concats(
    jobs: list[Job], orders: Mapping[NetworkTensor, tuple[int, ...]], halos: Mapping[NetworkTensor, Halo]
) -> list[InPlaceConcat]:
    """The concatenations that need no copy, in order.

    Every part must be made here, once, in the memory order of the whole, and must be free to lie anywhere.
    """
    found: list[InPlaceConcat] = []
    taken: set[NetworkTensor] = set()
    for job in jobs:
        join = _join(job)
        if join is None or any(part in taken or orders.get(part) != orders.get(join.whole) for part in join.parts):
            continue
        along = (halos.get(part, ()) for part in join.parts)
        if join.whole in orders and all(not own or own[join.axis] == (0, 0) for own in along):
            taken.update(join.parts)
            found.append(join)
    return found


def _join(job: Job) -> InPlaceConcat | None:
    """The concatenation that a job is, if it is nothing else."""
    if not isinstance(job, GenericJob) or len(job.calls) != 1 or operator_of(job.calls[0]).name != "concatenate":
        return None
    call = job.calls[0]
    joined = call.args[0].fields if isinstance(call.args[0], Tuple) else call.args[:1]
    if any(e not in job.known for e in joined):  # a field of an operand that is a tuple
        return None
    parts = tuple(t for e in joined for t in flatten(job.known[e]))
    fresh = all(t.origin == "result" and t.alias is None for t in parts)
    if not fresh or len(set(parts)) != len(parts):
        return None
    return InPlaceConcat(
        job, job.writes[0], parts, cast("ConcatenateAttrs", call.attrs).axis % len(job.writes[0].shape)
    )
