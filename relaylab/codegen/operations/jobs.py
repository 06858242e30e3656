"""Jobs: the pieces of work that operations are cut into, each made into one kernel or a few that follow each other.

A job knows which tensors it reads and writes. The planner decides how they lie in memory (their views); then
`launches` gives the kernels and what each of their operands is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel, KernelSequence, MemoryView
from relaylab.codegen.network.network import NetworkTensor, NetworkValue, Operation, flatten, operator_of
from relaylab.codegen.operations.contraction import Contraction, families_are_own
from relaylab.codegen.operations.epilogue import EpilogueExpr
from relaylab.codegen.operations.even_steps import Steps, even_steps
from relaylab.codegen.operations.fused_body import FusedBody, Views, tensors_of
from relaylab.codegen.operations.generic import lower_checked, lower_group, refuse_unproven
from relaylab.codegen.operations.memo import KernelMemo
from relaylab.codegen.templates import Epilogue
from relaylab.codegen.templates.pack import Packing
from relaylab.ir import Attrs, Call, Expr
from relaylab.ir.visit import operands_of, walk
from relaylab.loop.procedure import Procedure
from relaylab.loop.program import SIZES, Prepared
from relaylab.loop.program_builder import ProgramBuilder
from relaylab.loop.run import prepare
from relaylab.loop.schedule import Schedule, placed
from relaylab.loop.schedule.tree import unique
from relaylab.op.base import OpPattern
from relaylab.support.errors import RelayValueError

LANES_KEEPING = (
    "nn.max_pool",
    "nn.avg_pool",
    "nn.global_",
    "nn.adaptive_",
    "concatenate",
    "nn.pad",
    "nn.lrn",
    "take",
    "nn.conv",
)
LAYING_OUT = {"in1", "rows0", "weight0"}  # the operands of kernels that lay an input out before the one that reads it


@dataclass(frozen=True, slots=True, eq=False)
class PackedConstant:
    """A constant as a kernel reads it; `key` is equal for equal ones."""

    key: tuple
    make: Callable[[], Packing]


def packed_later(weight: NetworkTensor, pack: Callable[[np.ndarray], Packing]) -> Packing:
    """`pack` of a constant, which is computed when it is written if it waits for that."""
    if weight.data is not None:
        return pack(weight.data)
    like = pack(np.broadcast_to(np.zeros((), weight.dtype), weight.shape))  # packers look at no element before
    return Packing(like.size, like.dtype, lambda out: pack(weight.constant).write(out))


@dataclass(frozen=True, slots=True)
class Workspace:
    """Memory that the kernels of one job share."""

    name: str
    nbytes: int


OperandSource = NetworkTensor | PackedConstant | Workspace


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel and what its operands are, by role ("scratch" is nobody's)."""

    kernel: Kernel
    operands: Mapping[str, OperandSource]


@dataclass(eq=False, slots=True)
class Job:
    """What all jobs have: the operation that it belongs to, and its number among that operation's jobs."""

    operation: Operation
    reads: tuple[NetworkTensor, ...]
    writes: tuple[NetworkTensor, ...]
    part: int = field(default=0, kw_only=True)
    minimal: bool = field(default=True, kw_only=True)
    """May it take algorithms with fewer products? Equal functions may differ in it."""
    schedule: Schedule | None = field(default=None, kw_only=True)

    def launches(self, views: Views, target: CpuTarget, memo: KernelMemo) -> list[Launch]:
        """The kernels for these views, in order. `memo` holds what equal jobs have made."""
        raise AttributeError(type(self).__name__)

    def _once(
        self, views: Views, memo: KernelMemo, make: Callable[[], KernelSequence], stored: bool = True
    ) -> KernelSequence:
        """What `make` gives, made once for jobs that are the same part of equal functions and see equal views.

        Their operands must also coincide in the same places. Unless it is `stored`, later builds make it anew.
        """
        if self.schedule is not None and not self.schedule.kept:
            return make()
        # f(x, x) and f(x, y) have equal functions but not equal operands: a buffer may serve two roles in one of them
        # only.
        inputs = list(flatten(self.operation.inputs))
        alike = tuple(inputs.index(t) for t in inputs)
        packed = tuple(t.origin == "constant" for t in self.reads)
        function, sizes = self.operation.function, self.operation.sizes
        views_ = tuple(map(views, (*self.reads, *self.writes)))
        by = self.schedule and f"by {self.schedule}"
        own = sizes.signature(function) if sizes else ()
        key = self.part, self.minimal, alike, packed, by, views_, own, self.steps()
        return memo.once(function, key, make, stored, sizes if own else None)

    def steps(self) -> tuple[object, ...]:
        """What of its constants is in its code."""
        return ()

    def _sizes(self) -> dict[str, OperandSource]:
        """The operand from which kernels of an open program take sizes."""
        sizes = self.operation.sizes
        return {SIZES: sizes.tensor} if sizes and sizes.tensor else {}

    def parts(self) -> tuple[Expr | None, ...]:
        """What the parts of the kernels (see `IRFunction.at`) come from; None is the loops that all parts share."""
        return (None,)

    def in_place(self) -> tuple[NetworkTensor, ...]:
        """The tensors that are read only where, and before, the first result is written."""
        return ()

    def keeps_lanes(self) -> bool:
        """Does each result lie well in the memory order of the operands?"""
        return False


@dataclass(eq=False, slots=True)
class CopyJob(Job):
    """Copies a tensor into another memory order or halo."""

    def launches(self, views: Views, target: CpuTarget, memo: KernelMemo) -> list[Launch]:
        source, result = self.reads[0], self.writes[0]
        group = ProgramBuilder("copy")
        group.write("out0", group.read("in0", views(source)), views(result))
        return [Launch(lower_group(group, target), {"in0": source, "out0": result, **self._sizes()})]


@dataclass(eq=False, slots=True)
class LoweredJob(Job):
    """What comes from the loops that operators say themselves. `known` are the values of its inputs."""

    known: Mapping[Expr, NetworkValue]
    found: tuple[Steps | None, ...] | None = field(default=None, init=False)

    def steps(self) -> tuple[Steps | None, ...]:
        """Of every tensor that is read the numbers that it is computed of; None of one that is loaded."""
        if self.schedule is not None:
            return (None,) * len(self.reads)
        if self.found is None:
            self.found = tuple(map(even_steps, self.reads))
        return self.found

    def operands(self) -> dict[str, OperandSource]:
        """What is read and written, by role."""
        read = {f"in{k}": t for k, (t, steps) in enumerate(zip(self.reads, self.steps())) if steps is None}
        return {**read, **{f"out{k}": t for k, t in enumerate(self.writes)}}

    def body(self, group: ProgramBuilder, views: Views) -> FusedBody:
        """What its expressions are in a group that reads its operands."""
        steps = dict(zip(self.reads, self.steps()))
        tensors = {t: group.read(f"in{k}", views(t)) for k, t in enumerate(self.reads) if steps[t] is None}
        return FusedBody(group, self.operation, self.known, tensors, {t: s for t, s in steps.items() if s})


@dataclass(eq=False, slots=True)
class GenericJob(LoweredJob):
    """Calls fused by the generic lowering. `results` are the values of its writes."""

    calls: tuple[Call, ...]
    results: tuple[tuple[Expr, int | None], ...]

    def launches(self, views: Views, target: CpuTarget, memo: KernelMemo) -> list[Launch]:
        (kernel,) = self._once(views, memo, lambda: KernelSequence((self._kernel(views, target),))).kernels
        return [Launch(kernel, self.operands() | self._prepared(kernel) | self._sizes())]

    def _kernel(self, views: Views, target: CpuTarget) -> Kernel:
        group, body = self.group(views)
        known = [f"in{k}" for k, t in enumerate(self.reads) if t.origin == "constant"]
        return lower_group(group, target, body.parts, self.schedule, known)

    def _prepared(self, kernel: Kernel) -> dict[str, OperandSource]:
        """What a schedule lets be filled now, from the constants that the kernel would read."""
        if kernel.program is None:
            return {}
        roles = {tensor: int(role[2:]) for role, tensor in kernel.program.buffers if tensor in kernel.program.known}

        def make(part: Prepared) -> np.ndarray:
            return prepare(part, {tensor: self.reads[k].constant.reshape(-1) for tensor, k in roles.items()})

        def packing(part: Prepared) -> Packing:
            shape = part.buffer.shape
            write = lambda out: np.copyto(out.reshape(shape), make(part))
            return Packing(math.prod(shape), np.dtype(part.buffer.dtype), write)

        of = tuple(self.reads[k].identity for k in roles.values())
        return {
            part.role: PackedConstant((of, kernel.name, part.buffer.name), lambda part=part: packing(part))
            for part in kernel.program.prepared
        }

    def group(self, views: Views) -> tuple[ProgramBuilder, FusedBody]:
        """What is computed, before loops are chosen, and the calls that it comes from."""
        group = ProgramBuilder(
            "_".join(dict.fromkeys(operator_of(c).name.replace(".", "_") for c in self.calls))[:40] or "copy"
        )
        body = self.body(group, views)
        for k, (tensor, (expr, field_)) in enumerate(zip(self.writes, self.results)):
            group.write(f"out{k}", body.tensor(expr, field_), views(tensor))
        return group, body

    def value(self, expr: Expr, tensor: NetworkTensor, part: int) -> GenericJob:
        """A job for one value of its body alone, which is written to `tensor`."""
        below = set(walk((expr,), lambda e: () if e in self.known else operands_of(e)))
        known = {e: value for e, value in self.known.items() if e in below}
        calls = tuple(c for c in self.calls if c in below)
        reads = tensors_of(list(known.values()))
        return replace(
            self, reads=reads, writes=(tensor,), known=known, calls=calls, results=((expr, None),), part=part
        )

    def parts(self) -> tuple[Expr | None, ...]:
        _, body = self.group(lambda t: MemoryView.dense(t.shape, t.dtype))
        return (self.calls[0] if len(self.calls) == 1 else None, *body.parts)

    def in_place(self) -> tuple[NetworkTensor, ...]:
        if len(self.writes) != 1 or not all(operator_of(c).pattern <= OpPattern.BROADCAST for c in self.calls):
            return ()
        return tuple(t for t in self.reads if t.shape == self.writes[0].shape)

    def keeps_lanes(self) -> bool:
        return all(
            operator_of(c).pattern <= OpPattern.BROADCAST or operator_of(c).name.startswith(LANES_KEEPING)
            for c in self.calls
        )


@dataclass(eq=False, slots=True)
class ProcedureJob(LoweredJob):
    """One call of an operator that is a procedure: a kernel for each of its parallel loops, one after another."""

    call: Call

    def launches(self, views: Views, target: CpuTarget, memo: KernelMemo) -> list[Launch]:
        made = self._once(views, memo, lambda: KernelSequence(tuple(self._kernels(views, target))))
        return [Launch(kernel, self.operands() | self._sizes()) for kernel in made.kernels]

    def _kernels(self, views: Views, target: CpuTarget) -> Iterator[Kernel]:
        operator = operator_of(self.call)
        group = ProgramBuilder(operator.name.replace(".", "_"))
        body = self.body(group, views)
        ins = [body.value(arg) for arg in self.call.args]
        outs = [group.read(f"out{k}", views(t)) for k, t in enumerate(self.writes)]
        procedure = Procedure(group)
        operator.facets(cast("Attrs | None", self.call.attrs)).procedure(procedure, *outs, *ins)
        procedure.check_stored(operator.name, outs)
        for program in procedure.programs:
            yield lower_checked(program, target, (self.call,)).by_content(group.name)

    def parts(self) -> tuple[Expr | None, ...]:
        return (self.call,)


@dataclass(eq=False, slots=True)
class ContractionJob(Job):
    """A contraction by a template, with the elementwise operators after it as its epilogue."""

    contraction: Contraction
    data: NetworkTensor
    weight: NetworkTensor
    epilogue: EpilogueExpr | None = None

    @property
    def sides(self) -> tuple[NetworkTensor, ...]:
        """The side inputs of the epilogue, once for every way in which they are read."""
        return self.epilogue.tensors if self.epilogue else ()

    def settle(self, views: Views) -> None:
        """Take the contraction that is best where its operands lie."""
        sides = self.epilogue.views(views) if self.epilogue else ()
        operands = views(self.data), self.weight_view(views), views(self.writes[0])
        self.contraction = self.contraction.lying(*operands, sides)

    def weight_view(self, views: Views) -> MemoryView | None:
        """How the weight lies in memory; None of a constant, which is packed when the program is built."""
        return None if self.weight.origin == "constant" else views(self.weight)

    def launches(self, views: Views, target: CpuTarget, memo: KernelMemo) -> list[Launch]:
        data, weight, out = self.data, self.weight, self.writes[0]
        roles = [f"side{k}" for k in range(len(self.sides))]
        made = self._once(views, memo, lambda: self._kernels(views, target), stored=families_are_own())
        operands = {"in0": data, "out0": out, **dict(zip(roles, self.sides)), **self._sizes()}
        operands |= {role: Workspace(role, nbytes) for role, nbytes in made.workspaces}
        if self.weight_view(views) is None:
            # Equal kernels read equal panels: two layers that share a weight, and how they take it, share those too.
            kind = type(self.contraction).__name__, self.contraction.weight_axes
            views_key = (views(data), views(out), *kind, made.kernels[0].name)
            operands["weight0"] = PackedConstant(
                (weight.identity, views_key),
                lambda: packed_later(weight, lambda w: self.contraction.pack(views(data), views(out), target, w)),
            )
        else:
            operands["in1"] = weight
        return [Launch(kernel, operands) for kernel in made.kernels]

    def _kernels(self, views: Views, target: CpuTarget) -> KernelSequence:
        epilogue = self.epilogue.bind(views, self.contraction) if self.epilogue else Epilogue()
        weight = self.weight_view(views)
        with placed(f"step 1: {self.schedule.steps[0]}" if self.schedule and self.schedule.steps else ""):
            made = self.contraction.build(views(self.data), weight, views(self.writes[0]), target, epilogue)
            if not families_are_own():
                for program in (kernel.program for kernel in made.kernels if kernel.program is not None):
                    refuse_unproven(program, self.parts(), "the loops of a kernel family")
            if self.schedule is None:
                return made
            *first, kernel = made.kernels
            if (program := kernel.program) is None or any(set(k.operands) - LAYING_OUT for k in first):
                raise RelayValueError(
                    "the picked kernel is not one loop program", code="schedule.illegal", help="from picked minimal=0"
                )
        new = lower_checked(self.schedule.apply(unique(program)), target, (self.contraction.call,), tiles=True)
        new = replace(new, flops=kernel.flops, bytes=kernel.bytes)
        return KernelSequence((*first, new.by_content(program.name)), made.workspaces)

    def parts(self) -> tuple[Expr | None, ...]:
        return (self.contraction.call, *(self.epilogue.parts if self.epilogue else ()))

    def in_place(self) -> tuple[NetworkTensor, ...]:
        others = {t.root for t in (self.data, self.weight)}
        return tuple(t for t in self.sides if t.root not in others and t.shape == self.writes[0].shape)
