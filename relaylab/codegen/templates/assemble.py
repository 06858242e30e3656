"""From contractions in the common shape to a kernel: one after another in one range of work items."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel
from relaylab.codegen.llvm.text import IRFunction
from relaylab.codegen.templates.dots import DotTileNest, dots_schedule, few_columns
from relaylab.codegen.templates.nest import OperandPointers, TileNest, loops_text
from relaylab.codegen.templates.output_site import Epilogue
from relaylab.codegen.templates.problem import Problem
from relaylab.codegen.templates.schedule import schedule_contraction

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
    gathered = any(problem.weights.kind == "gathered" for problem in problems)
    operands = (*roles, *epilogue.operands, *(("scratch",) if gathered else ()))
    f = IRFunction.kernel(prefix, operands)
    x, w, out, *others = f.pointers
    side = dict(zip(epilogue.operands, others))
    pointers = OperandPointers(x, w, out, side)
    nests = [_nest(f, problem, target, pointers, epilogue) for problem in problems]
    scratch = max(nest.scratch for nest in nests)
    if gathered:
        # The size of a thread's scratch is known only when all nests are made.
        own = f.offset(f.pointers[-1], f.mul(f.thread, scratch))
        for nest in nests:
            nest.pointers = OperandPointers(x, w, out, side, own)
    items = run_in_order(f, nests)
    text, declares = f.finish()
    loops = "".join(loops_text(prefix, nest, epilogue) for nest in nests)
    flops = sum(problem.flops for problem in problems)
    return Kernel(prefix, text, declares, operands, items, scratch, flops, traffic, loops).by_content(prefix)


def _nest(
    f: IRFunction, problem: Problem, target: CpuTarget, pointers: OperandPointers, epilogue: Epilogue
) -> TileNest:
    if few_columns(problem, target):
        return DotTileNest(f, problem, dots_schedule(problem, target), target, pointers, epilogue)
    return TileNest(f, problem, schedule_contraction(problem, target), target, pointers, epilogue)


def run_in_order(f: IRFunction, nests: Sequence[TileNest]) -> int:
    """Emit the nests so that their work items follow each other; the number of all items."""
    first = 0
    for nest in nests:
        if len(nests) == 1:
            nest.run(f.begin, f.end)
        else:
            nest.run(f.sub(f.maximum(f.begin, first), first), f.sub(f.minimum(f.end, first + nest.items), first))
        first += nest.items
    return first
