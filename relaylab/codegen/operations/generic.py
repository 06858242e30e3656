"""Any fused group as a native kernel: operator lowerings and the views of their operands in, `Kernel` out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel
from relaylab.codegen.loops.lowering import lower_program
from relaylab.ir import Call, Expr, op_name
from relaylab.loop.program import LoopProgram
from relaylab.loop.program_builder import ProgramBuilder
from relaylab.loop.schedule import Schedule
from relaylab.loop.schedule.tree import unique
from relaylab.loop.verify import unproven
from relaylab.support.errors import RelayIndexError
from relaylab.transform import PassContext

VERIFY = "relay.codegen.verify"


def lower_group(
    group: ProgramBuilder,
    target: CpuTarget,
    parts: Sequence[Expr] = (),
    schedule: Schedule | None = None,
    known: Collection[str] = (),
) -> Kernel:
    """The kernel of a group, named by its content after the group's name; `parts` are what its parts compute.

    Without a schedule the loops are chosen; one begins with these or with the loops as they are written down, and
    `known` are the roles of constants.

    Under `PassContext(config={"relay.codegen.verify": True})` every access must be proven to lie in its buffer, or
    RelayIndexError `codegen.unproven-index` is raised.
    """
    if schedule is None:
        program = group.program()
    else:
        program = unique(group.program()) if schedule.picked else group.plain()
        tensors = frozenset(tensor for role, tensor in program.buffers if role in known)
        program = schedule.apply(replace(program, known=tensors))
    return lower_checked(program, target, parts).by_content(group.name)


def lower_checked(program: LoopProgram, target: CpuTarget, parts: Sequence[Expr] = (), tiles: bool = False) -> Kernel:
    """The kernel of a program whose accesses are proven if that is asked for."""
    if PassContext.current().get_config(VERIFY, False):
        refuse_unproven(program, parts, "the operator's `lower`")
    return lower_program(program, target, tiles)


def refuse_unproven(program: LoopProgram, parts: Sequence[Expr | None], place: str) -> None:
    """RelayIndexError `codegen.unproven-index` for an access that may leave its buffer; it is written in `place`."""
    access = unproven(program)
    if access is None:
        return
    part = parts[access.part - 1] if 0 < access.part <= len(parts) else None
    operator = f" of `{op_name(part)}`" if isinstance(part, Call) else ""
    raise RelayIndexError(
        f"the kernel `{program.name}` is not proven to stay in its buffers: an access{operator} to {access}",
        code="codegen.unproven-index",
        place=f"  --> {part.span}" if part is not None and part.span is not None else "",
        help=f"guard or clamp the index in {place}",
    )
