"""From contractions in the common shape to a kernel: one after another in one range of work items."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel
from relaylab.codegen.loops.lowering import lower_program
from relaylab.codegen.templates.dots import DotLoops, dots_schedule, few_columns, weights_size
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.problem import Problem
from relaylab.codegen.templates.program_parts import ProgramParts, epilogue_buffers
from relaylab.codegen.templates.schedule import schedule_contraction
from relaylab.codegen.templates.tile_loops import TileLoops
from relaylab.loop.expr import Tensor
from relaylab.loop.program import LoopProgram

DTYPES = ("float32", "float64", "int32")


def contraction(
    prefix: str, problem: Problem, target: CpuTarget, epilogue: Epilogue, roles: tuple[str, ...], traffic: int
) -> Kernel:
    """A kernel that is one contraction; see `contractions`."""
    return contractions(prefix, (problem,), target, epilogue, roles, traffic)


def contractions(
    prefix: str,
    problems: Sequence[Problem],
    target: CpuTarget,
    epilogue: Epilogue,
    roles: tuple[str, ...],
    traffic: int,
) -> Kernel:
    """A kernel of contractions with common operands: input, weights, output, side inputs, scratch where needed."""
    program = contraction_program(prefix, problems, target, epilogue, roles)
    return lower_program(program, target, True, (sum(p.flops for p in problems), traffic)).by_content(prefix)


def contraction_program(
    name: str, problems: Sequence[Problem], target: CpuTarget, epilogue: Epilogue, roles: tuple[str, ...]
) -> LoopProgram:
    """The contractions as a loop program with these operands: input, weights, output, side inputs."""
    buffers = contraction_buffers(problems, target, epilogue, roles)
    parts = ProgramParts({**buffers, **dict(zip(("x", "w", "out"), (buffers[role] for role in roles)))})
    nests = [_loops(p, target, epilogue, parts).nest() for p in problems]
    return LoopProgram(name, tuple(buffers.items()), tuple(parts.scratch), tuple(nests), tuple(parts.registers))


def _loops(problem: Problem, target: CpuTarget, epilogue: Epilogue, parts: ProgramParts) -> TileLoops:
    width = target.lanes(problem.dtype)
    if few_columns(problem, target):
        return DotLoops(problem, dots_schedule(problem, target), width, epilogue, parts)
    return TileLoops(problem, schedule_contraction(problem, target), width, epilogue, parts)


def contraction_buffers(
    problems: Sequence[Problem], target: CpuTarget, epilogue: Epilogue, roles: tuple[str, ...]
) -> dict[str, Tensor]:
    """The operands by role, with as many elements as are read or written."""
    first = problems[0]
    sizes = [max(reach(p) for p in problems) for reach in (_x_reach, lambda p: _w_reach(p, target), _out_reach)]
    found = {role: Tensor(role, (size,), first.dtype) for role, size in zip(roles, sizes)}
    found[roles[2]] = Tensor(roles[2], (sizes[2],), first.out_dtype)
    return found | epilogue_buffers(epilogue, first.channels or first.columns, first.dtype)


def _x_reach(p: Problem) -> int:
    """Elements of the input up to the last that is read."""
    steps = [(axis.extent, axis.x) for axis in (p.batch, *p.rows)] + [(tap.count, tap.x) for tap in p.taps]
    return p.x_start + 1 + sum((n - 1) * step for n, step in steps if step > 0)


def _w_reach(p: Problem, target: CpuTarget) -> int:
    if p.weights.kind == "packed":
        return p.weights.start + weights_size(p, target)
    steps = ((p.batch.extent, p.batch.w), (p.depth, p.weights.k), (p.columns, p.weights.n))
    return p.weights.start + 1 + sum((n - 1) * step for n, step in steps)


def _out_reach(p: Problem) -> int:
    steps = [(axis.extent, axis.out) for axis in (p.batch, *p.rows)]
    steps += [(p.batch.extent, p.channel * p.out_column), (p.columns, p.out_column)]
    return p.out_start + 1 + sum((n - 1) * step for n, step in steps)
