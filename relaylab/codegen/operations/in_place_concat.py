"""Concatenation without copying: what is joined is written where the result wants it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from relaylab.codegen.kernels.views import Halo, wider
from relaylab.codegen.network.network import NetworkTensor, flatten, tensor_type
from relaylab.codegen.operations.jobs import GenericJob, Job
from relaylab.ir import Call, Expr, Op, TensorType, Tuple
from relaylab.ir.op import op_name
from relaylab.transform.simplify.simplify_shapes import axis_order


class ConcatenateAttrs(Protocol):
    """The attributes of `concatenate` and `stack`."""

    axis: int


@dataclass(frozen=True, slots=True)
class InPlaceConcat:
    """Tensors that lie one after another along an axis of `whole`, or (None) in its memory, all of them row-major.

    `jobs` make those that the kernel of the concatenation would have made.
    """

    job: Job
    whole: NetworkTensor
    parts: tuple[NetworkTensor, ...]
    axis: int | None
    jobs: tuple[Job, ...] = ()

    def halo(self, halos: Mapping[NetworkTensor, Halo]) -> Halo:
        """The zeros that the whole and its parts need together; along the axis, only those of the whole."""
        needed = halos.get(self.whole, ())
        for part in self.parts:
            needed = wider(needed, self.across(halos.get(part, ())))
        return needed

    def across(self, halo: Halo) -> Halo:
        """The zeros but for those along the axis."""
        return tuple((0, 0) if a == self.axis else zeros for a, zeros in enumerate(halo))

    def fits(self, orders: Mapping[NetworkTensor, tuple[int, ...]], halos: Mapping[NetworkTensor, Halo]) -> bool:
        """May its tensors lie so? Those that `orders` lacks are row-major, and others see them."""
        tensors = (self.whole, *self.parts)
        if self.axis is None:
            return all(orders.get(t) in (None, tuple(range(len(t.shape)))) and not halos.get(t) for t in tensors)
        axis, along = self.axis, (halos.get(part, ()) for part in self.parts)
        alike = {orders.get(t) for t in tensors}
        return len(alike) == 1 and None not in alike and all(not own or own[axis] == (0, 0) for own in along)


def in_place_concats(
    jobs: list[Job],
    orders: dict[NetworkTensor, tuple[int, ...]],
    halos: Mapping[NetworkTensor, Halo],
    outputs: Iterable[NetworkTensor],
) -> list[InPlaceConcat]:
    """The concatenations that need no copy, in order.

    Every part must be made here, once, in the memory order of the whole, and must be free to lie anywhere. `orders`
    learns those of parts that got jobs of their own.
    """
    found: list[InPlaceConcat] = []
    taken = {tensor.root for tensor in outputs}
    solid: set[NetworkTensor] = set()  # in one piece, as their parts are
    for job in jobs:
        for join in _joins(job):
            if join.axis is not None and not solid.isdisjoint(join.parts):
                continue
            if join.whole in orders and join.axis is not None:
                orders |= {own.writes[0]: orders[join.whole] for own in join.jobs}
            if not taken.intersection(join.parts) and join.fits(orders, halos):
                taken.update(join.parts)
                solid |= {join.whole} if join.axis is None else set()
                found.append(join)
                break
    return found


def _joins(job: Job) -> Iterator[InPlaceConcat]:
    """The concatenations that a job may be taken for: along its axis, and of pieces of memory."""
    if not isinstance(job, GenericJob) or len(job.results) != 1 or job.schedule is not None:
        return
    root, _ = job.results[0]
    if root not in job.calls or not isinstance(root, Call):
        return
    if op_name(root) == "concatenate" and (join := _join(job, *_fields(root), {root})) is not None:
        yield join
    if job.operation.sizes is not None:  # where a size leads, only views say, and not those of reshaped tensors
        return
    pieces: list[Expr] = []
    passed: set[Expr] = set()
    left: list[Expr] = [root]
    while left:
        expr = left.pop()
        inside = () if expr in job.known or expr in passed else _in_order(expr)
        pieces += () if inside else (expr,)
        passed |= {expr} if inside else set()
        left += reversed(inside)
    if len(pieces) > 1 and (join := _join(job, pieces, None, passed)) is not None:
        yield join


def _fields(call: Call) -> tuple[Sequence[Expr], int]:
    """What is concatenated, and along which axis."""
    joined = call.args[0].fields if isinstance(call.args[0], Tuple) else call.args[:1]
    return joined, cast("ConcatenateAttrs", call.attrs).axis % len(tensor_type(call).shape)


def _in_order(expr: Expr) -> Sequence[Expr]:
    """What an expression only puts in a row, element by element; empty if it does anything else."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or not isinstance(expr.checked_type, TensorType):
        return ()
    if expr.op.definition.reshapes:
        return expr.args[:1]
    shape = tensor_type(expr).shape
    if expr.op.name == "transpose":
        axes = axis_order(expr, len(shape))
        moved = [axis for axis, n in zip(axes, shape) if not is_one(n)]
        return expr.args[:1] if moved == sorted(moved) else ()
    if expr.op.name in ("concatenate", "stack"):
        fields, axis = _fields(expr)
        alone = isinstance(expr.args[0], Tuple) and len(fields) == 1
        return fields if alone or all(map(is_one, shape[:axis])) else ()
    return ()


def is_one(n: object) -> bool:
    """Is an extent known to be 1?"""
    return isinstance(n, int) and n == 1


def _join(job: GenericJob, joined: Sequence[Expr], axis: int | None, passed: set[Expr]) -> InPlaceConcat | None:
    """The concatenation of these values, of which at least half exist before, by calls that do nothing else."""
    inner = [e for e in joined if e not in job.known]
    if any(not isinstance(e.checked_type, TensorType) for e in inner) or 2 * len(inner) > len(joined):
        return None
    made = {e: NetworkTensor(job.operation.shape(t), t.dtype, "result") for e in inner for t in (tensor_type(e),)}
    jobs = tuple(job.value(e, tensor, 1 + k) for k, (e, tensor) in enumerate(made.items()))
    if sum(len(own.calls) for own in jobs) != len(job.calls) - len(passed):  # they share work
        return None
    parts = [t for e in joined for t in (flatten(job.known[e]) if e in job.known else (made[e],))]
    if axis is None:
        parts = [t.root for t in parts]
    if any(t.origin != "result" or t.alias is not None for t in parts) or len(set(parts)) != len(parts):
        return None
    return InPlaceConcat(job, job.writes[0], tuple(parts), axis, jobs)
