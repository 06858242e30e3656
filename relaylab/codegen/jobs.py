"""Jobs: the pieces of work that operations are cut into, each made into one kernel or a few that follow each other.

A job knows which tensors it reads and writes. The planner decides how they lie in memory (their views); then
`launches` gives the kernels and what each of their operands is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from relaylab.codegen.contraction import Contraction, Made
from relaylab.codegen.generic import Operand, lower_group, read, write
from relaylab.codegen.inside import Inside, Views
from relaylab.codegen.kernel import Kernel, View
from relaylab.codegen.network import Operation, Tensor, Value, flatten
from relaylab.codegen.remembered import Memo
from relaylab.codegen.tail import Tail
from relaylab.codegen.target import Target
from relaylab.codegen.templates import Epilogue
from relaylab.ir import Call, Expr
from relaylab.loop.group import Group
from relaylab.op.base import OpPattern

LANES_KEEPING = ("nn.max_pool", "nn.avg_pool", "nn.global_", "nn.adaptive_", "concatenate", "nn.pad", "nn.lrn")


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A constant as a kernel reads it; `key` is equal for equal ones."""

    key: tuple
    make: Callable[[], np.ndarray]


@dataclass(frozen=True, slots=True)
class Workspace:
    """Memory that the kernels of one job share."""

    name: str
    nbytes: int


Reference = Tensor | Packed | Workspace


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel and what its operands are, by role ("scratch" is nobody's)."""

    kernel: Kernel
    operands: Mapping[str, Reference]


@dataclass(eq=False, slots=True)
class Job:
    """What all jobs have. `operation` is the one it belongs to (None for copies that the planner adds)."""

    operation: Operation | None
    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]

    def launches(self, views: Views, target: Target, memo: Memo) -> list[Launch]:
        """The kernels for these views, in order. `memo` holds what equal jobs have made."""
        raise AttributeError(type(self).__name__)

    def _once(self, views: Views, memo: Memo, part: int, make: Callable[[], Made]) -> Made:
        """What `make` gives, made once for jobs that are the same part of equal functions and see equal views.

        Their operands must also coincide in the same places.
        """
        inputs = list(flatten(self.operation.inputs))
        alike = tuple(inputs.index(t) for t in inputs)
        packed = tuple(t.origin == "constant" for t in self.reads)
        return memo.once(self.operation.function, (part, alike, packed, tuple(map(views, (*self.reads, *self.writes)))), make)

    def parts(self) -> tuple[Expr | None, ...]:
        """What the parts of the kernels (see `IRFunction.at`) come from; None is the loops that all parts share."""
        return (None,)

    def in_place(self) -> tuple[Tensor, ...]:
        """The tensors that are read only where, and before, the first result is written."""
        return ()

    def keeps_lanes(self) -> bool:
        """Does each result lie well in the memory order of the operands?"""
        return False


@dataclass(eq=False, slots=True)
class Copy(Job):
    """Copies a tensor into another memory order or halo."""

    def launches(self, views: Views, target: Target, memo: Memo) -> list[Launch]:
        source, result = self.reads[0], self.writes[0]
        group = Group("copy")
        value = read(group, Operand("in0", views(source)))
        write(group, Operand("out0", views(result)), value)
        return [Launch(lower_group(group, target), {"in0": source, "out0": result})]


@dataclass(eq=False, slots=True)
class Generic(Job):
    """Calls of operators fused by the generic lowering. `known` are the values of its inputs, `results` of its writes.

    `part` numbers the jobs of an operation.
    """

    calls: tuple[Call, ...] = ()
    known: Mapping[Expr, Value] = field(default_factory=dict)
    results: tuple[tuple[Expr, int | None], ...] = ()
    part: int = 0

    def launches(self, views: Views, target: Target, memo: Memo) -> list[Launch]:
        made = self._once(views, memo, self.part, lambda: Made((self._kernel(views, target),)))
        operands: dict[str, Reference] = {f"in{k}": t for k, t in enumerate(self.reads)}
        operands |= {f"out{k}": t for k, t in enumerate(self.writes)}
        return [Launch(made.kernels[0], operands)]

    def _kernel(self, views: Views, target: Target) -> Kernel:
        group = Group("_".join(dict.fromkeys(c.op.name.replace(".", "_") for c in self.calls))[:40] or "copy")
        inside = Inside(group)
        inside.read(self.reads, views)
        inside.know(self.known)
        for k, (tensor, (expr, field_)) in enumerate(zip(self.writes, self.results)):
            value = inside.value(expr)
            write(group, Operand(f"out{k}", views(tensor)), value if field_ is None else value[field_])
        return lower_group(group, target)

    def parts(self) -> tuple[Expr | None, ...]:
        inside = Inside(Group("parts"))
        inside.read(self.reads, lambda t: View.dense(t.shape, t.dtype))
        inside.know(self.known)
        for expr, _ in self.results:
            inside.value(expr)
        return (self.calls[0] if len(self.calls) == 1 else None, *inside.parts)

    def in_place(self) -> tuple[Tensor, ...]:
        if len(self.writes) != 1 or not all(c.op.pattern <= OpPattern.BROADCAST for c in self.calls):
            return ()
        return tuple(t for t in self.reads if t.shape == self.writes[0].shape)

    def keeps_lanes(self) -> bool:
        return all(c.op.pattern <= OpPattern.BROADCAST or c.op.name.startswith(LANES_KEEPING) for c in self.calls)


@dataclass(eq=False, slots=True)
class Heavy(Job):
    """A contraction by a template, with the elementwise operators after it as its epilogue."""

    contraction: Contraction | None = None
    data: Tensor | None = None
    weight: Tensor | None = None
    tail: Tail | None = None
    part: int = 0

    @property
    def sides(self) -> tuple[Tensor, ...]:
        """The side inputs of the epilogue, once for every way in which they are read."""
        return self.tail.tensors if self.tail else ()

    def launches(self, views: Views, target: Target, memo: Memo) -> list[Launch]:
        data, weight, out = self.data, self.weight, self.writes[0]
        roles = [f"side{k}" for k in range(len(self.sides))]
        packed = weight.origin == "constant"
        made = self._once(views, memo, self.part, lambda: self._made(views, target, packed))
        operands: dict[str, Reference] = {"in0": data, "out0": out, **dict(zip(roles, self.sides))}
        operands |= {role: Workspace(role, nbytes) for role, nbytes in made.workspaces}
        if packed:
            views_key = (views(data), views(out), type(self.contraction).__name__, made.kernels[0].name)
            operands["weight0"] = Packed((id(weight.data), views_key), lambda: self.contraction.pack(
                views(data), views(out), target, weight.data))
        else:
            operands["in1"] = weight
        return [Launch(kernel, operands) for kernel in made.kernels]

    def _made(self, views: Views, target: Target, packed: bool) -> Made:
        epilogue = self.tail.epilogue(views, self.contraction, target) if self.tail else Epilogue()
        weight = None if packed else views(self.weight)
        return self.contraction.build(views(self.data), weight, views(self.writes[0]), target, epilogue)

    def parts(self) -> tuple[Expr | None, ...]:
        return (self.contraction.call, *(self.tail.parts if self.tail else ()))

    def in_place(self) -> tuple[Tensor, ...]:
        others = {t.root for t in (self.data, self.weight)}
        return tuple(t for t in self.sides if t.root not in others and t.shape == self.writes[0].shape)
