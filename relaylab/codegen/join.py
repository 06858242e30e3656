"""Concatenation without copying: what is joined is written where the result wants it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from relaylab.codegen.jobs import Generic, Job
from relaylab.codegen.kernel import View
from relaylab.codegen.network import Tensor, flatten
from relaylab.codegen.views import Halo, wider


@dataclass(frozen=True, slots=True)
class Join:
    """Tensors that lie one after another along an axis of `whole`."""

    job: Job
    whole: Tensor
    parts: tuple[Tensor, ...]
    axis: int

    def place(self, view: View) -> dict[Tensor, View]:
        """The views of the parts within that of the whole."""
        found, start = {}, 0
        for part in self.parts:
            halo = tuple((0, 0) if a == self.axis else zeros for a, zeros in enumerate(view.halo))
            found[part] = replace(view, shape=part.shape, offset=view.offset + start * view.strides[self.axis],
                                  halo=halo if any(map(any, halo)) else ())
            start += part.shape[self.axis]
        return found

    def halo(self, halos: Mapping[Tensor, Halo]) -> Halo:
        """The zeros that the whole and its parts need together; along the axis, only those of the whole."""
        needed = halos.get(self.whole, ())
        for part in self.parts:
            own = halos.get(part, ())
            needed = wider(needed, tuple((0, 0) if a == self.axis else zeros for a, zeros in enumerate(own)))
        return needed


def joins_of(jobs: list[Job], orders: Mapping[Tensor, tuple[int, ...]], halos: Mapping[Tensor, Halo]) -> list[Join]:
    """The concatenations that need no copy, in order.

    Every part must be made here, once, in the memory order of the whole, and must be free to lie anywhere.
    """
    found: list[Join] = []
    taken: set[Tensor] = set()
    for job in jobs:
        join = _join(job)
        if join is None or any(part in taken or orders.get(part) != orders.get(join.whole) for part in join.parts):
            continue
        along = (halos.get(part, ()) for part in join.parts)
        if join.whole in orders and all(not own or own[join.axis] == (0, 0) for own in along):
            taken.update(join.parts)
            found.append(join)
    return found


def _join(job: Job) -> Join | None:
    """The concatenation that a job is, if it is nothing else."""
    if not isinstance(job, Generic) or len(job.calls) != 1 or job.calls[0].op.name != "concatenate":
        return None
    call = job.calls[0]
    joined = (call.args[0],) if call.args[0] in job.known else call.args[0].fields
    if any(e not in job.known for e in joined):  # a field of an operand that is a tuple
        return None
    parts = tuple(t for e in joined for t in flatten(job.known[e]))
    fresh = all(t.origin == "result" and t.alias is None for t in parts)
    if not fresh or len(set(parts)) != len(parts):
        return None
    return Join(job, job.writes[0], parts, call.attrs.axis % len(job.writes[0].shape))
