"""Any fused group as a native kernel: operator lowerings and the views of their operands in, `Kernel` out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from relaylab.codegen.kernel import Kernel, View
from relaylab.codegen.lowering import lower_program
from relaylab.codegen.target import Target
from relaylab.loop.expr import Tensor
from relaylab.loop.group import Group, Layout


@dataclass(frozen=True, slots=True)
class Operand:
    """An external operand of a kernel: its role among the operands and how it lies in memory."""

    role: str
    view: View


def layout(view: View) -> Layout:
    """A view as the loop level sees it."""
    return Layout(view.shape, view.dtype, view.strides, view.offset)


def read(group: Group, operand: Operand) -> Tensor:
    """The readable tensor of an external operand."""
    return group.read(operand.role, layout(operand.view))


def write(group: Group, operand: Operand, value: Tensor) -> None:
    """Store a value of the group to an external operand."""
    group.write(operand.role, value, layout(operand.view))


def lower_group(group: Group, target: Target) -> Kernel:
    """The kernel of a group, named by its content after the group's name."""
    program = replace(group.program(), name=group.name)
    return lower_program(program, target).by_content(group.name)
