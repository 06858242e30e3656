"""Jobs: the pieces of work that operations are cut into, each made into one kernel or a few that follow each other.

A job knows which tensors it reads and writes. The planner decides how they lie in memory (their views); then
`launches` gives the kernels and what each of their operands is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from relaylab.codegen.contraction import Contraction
from relaylab.codegen.generic import Operand, lower_group, read, write
from relaylab.codegen.inside import Inside, Views
from relaylab.codegen.kernel import Kernel
from relaylab.codegen.network import Operation, Tensor, Value
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

    def launches(self, views: Views, target: Target) -> list[Launch]:
        """The kernels for these views, in order."""
        raise AttributeError(type(self).__name__)

    def in_place(self) -> tuple[Tensor, ...]:
        """The tensors that are read only where, and before, the first result is written."""
        return ()

    def keeps_lanes(self) -> bool:
        """Does each result lie well in the memory order of the operands?"""
        return False


@dataclass(eq=False, slots=True)
class Copy(Job):
    """Copies a tensor into another memory order or halo."""

    def launches(self, views: Views, target: Target) -> list[Launch]:
        source, result = self.reads[0], self.writes[0]
        group = Group("copy")
        value = read(group, Operand("in0", views(source)))
        write(group, Operand("out0", views(result)), value)
        return [Launch(lower_group(group, target), {"in0": source, "out0": result})]


@dataclass(eq=False, slots=True)
class Generic(Job):
    """Calls of operators fused by the generic lowering. `known` are the values of its inputs, `results` of its writes."""

    calls: tuple[Call, ...] = ()
    known: Mapping[Expr, Value] = field(default_factory=dict)
    results: tuple[tuple[Expr, int | None], ...] = ()

    def launches(self, views: Views, target: Target) -> list[Launch]:
        group = Group("_".join(dict.fromkeys(c.op.name.replace(".", "_") for c in self.calls))[:40] or "copy")
        inside = Inside(group)
        inside.read(self.reads, views)
        inside.know(self.known)
        operands: dict[str, Reference] = {f"in{k}": t for k, t in enumerate(self.reads)}
        for k, (tensor, (expr, part)) in enumerate(zip(self.writes, self.results)):
            value = inside.value(expr)
            write(group, Operand(f"out{k}", views(tensor)), value if part is None else value[part])
            operands[f"out{k}"] = tensor
        return [Launch(lower_group(group, target), operands)]

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

    @property
    def sides(self) -> tuple[Tensor, ...]:
        """The side inputs of the epilogue, once for every way in which they are read."""
        return self.tail.tensors if self.tail else ()

    def launches(self, views: Views, target: Target) -> list[Launch]:
        data, weight, out = self.data, self.weight, self.writes[0]
        epilogue = self.tail.epilogue(views, self.contraction, target) if self.tail else Epilogue()
        roles = [f"side{k}" for k in range(len(self.sides))]
        packed = weight.origin == "constant"
        made = self.contraction.build(views(data), None if packed else views(weight), views(out), target, epilogue)
        operands: dict[str, Reference] = {"in0": data, "out0": out, **dict(zip(roles, self.sides))}
        operands |= {role: Workspace(role, nbytes) for role, nbytes in made.workspaces}
        if packed:
            views_key = (views(data), views(out), type(self.contraction).__name__, made.kernels[0].name)
            operands["weight0"] = Packed((id(weight.data), views_key), lambda: self.contraction.pack(
                views(data), views(out), target, weight.data))
        else:
            operands["in1"] = weight
        return [Launch(kernel, operands) for kernel in made.kernels]

    def in_place(self) -> tuple[Tensor, ...]:
        others = {t.root for t in (self.data, self.weight)}
        return tuple(t for t in self.sides if t.root not in others and t.shape == self.writes[0].shape)
