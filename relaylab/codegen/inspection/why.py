"""Why a kernel looks as it does: the alternatives that were considered, what each was estimated to cost, the decision.

The figures are those that the choice was made from: they come from the same functions.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel
from relaylab.codegen.network.network import operator_of
from relaylab.codegen.operations.contraction import ConvolutionKernel, MatrixProductKernel
from relaylab.codegen.operations.fused_body import Views
from relaylab.codegen.operations.jobs import ContractionJob, GenericJob, Job, ProcedureJob
from relaylab.codegen.templates import choose, strassen, supports_depthwise
from relaylab.codegen.templates.conv import ConvSpec, conv_problem
from relaylab.codegen.templates.conv_transpose import transpose_problems
from relaylab.codegen.templates.dots import dots_schedule, few_columns
from relaylab.codegen.templates.gemm import GemmSpec, gemm_problem
from relaylab.codegen.templates.minimal import TAPS
from relaylab.codegen.templates.problem import Problem
from relaylab.codegen.templates.schedule import Blocking, candidates, estimate, schedule_contraction
from relaylab.codegen.templates.winograd import point_problem, winograd_shape

SHOWN = 5
"""Register tiles that are listed, the chosen one first."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """An alternative: its name, its estimated cycles, or why it was not considered."""

    name: str
    cycles: float | None = None
    declined: str = ""


def why(kernel: Kernel, job: Job, views: Views, target: CpuTarget) -> str:
    """Why this kernel serves this job, as text."""
    head = f"{kernel.name}: for {target.isa}, {target.vector_bytes * 8}-bit vectors, {target.registers} registers"
    return "\n".join([head, *(f"  {line}" for line in _reasons(kernel, job, views, target)), ""])


def _reasons(kernel: Kernel, job: Job, views: Views, target: CpuTarget) -> list[str]:
    match job:
        case ContractionJob(contraction=ConvolutionKernel() as found):
            return _convolution(found, found.placed(views(job.data), views(job.writes[0])), target)
        case ContractionJob(contraction=MatrixProductKernel() as found):
            weight = None if job.weight.origin == "constant" else views(job.weight)
            return _product(found.placed(views(job.data), weight, views(job.writes[0])), target)
        case GenericJob(calls=calls):
            names = ", ".join(dict.fromkeys(operator_of(c).name for c in calls)) or "a copy"
            return [
                f"generic lowering: no template computes {names}; the loops are those of the result, "
                f"{kernel.items} items to share",
                "outer loops are parallel, the innermost contiguous axis is vectorized",
            ]
        case ProcedureJob(call=call):
            return [
                f"{operator_of(call).name} is a procedure: it says its loops itself, {kernel.items} items to share",
                "its parallel loops are kernels that run one after another",
            ]
    return ["a copy into another memory order, or with zeros around it, that the next kernel needs"]


def _convolution(found: ConvolutionKernel, spec: ConvSpec, target: CpuTarget) -> list[str]:
    if found.method == "depthwise":
        return [
            "depthwise: every channel has its own filter, there is nothing to contract over",
            "lanes run along the channels, registers hold neighbouring pixels",
        ]
    if found.method == "transposed":
        problems = transpose_problems(spec, target)
        return [
            f"a transposed convolution is {len(problems)} convolutions of stride 1, one per phase of the stride",
            *(line for problem in problems for line in _tile(problem, target)),
        ]
    lines = [_depthwise(found.spec), *_table(conv_alternatives(found.spec, target), found.method)]
    if found.method == "direct":
        return lines + _gemm_like(conv_problem(spec), target, spec.minimal)
    shape = winograd_shape(spec, found.m)
    form = (
        "the points of a block fit the second-level cache: one kernel, "
        f"{shape.blocks.count} blocks of <= {shape.block} tiles"
        if shape.blocked
        else "the transformed weights are large: three kernels, each over all tiles"
    )
    return [*lines, form, *_tile(point_problem(shape), target)]


def _depthwise(spec: ConvSpec) -> str:
    return f"not depthwise: {supports_depthwise(spec) or 'it is'}"


def conv_alternatives(spec: ConvSpec, target: CpuTarget) -> list[Alternative]:
    """The algorithms for a convolution: direct, and each F(m, r)."""
    if not spec.minimal:
        return [
            Alternative("direct", choose.direct_cycles(spec, target)),
            Alternative("winograd", declined="turned off"),
        ]
    cycles = choose.winograd_options(spec, target)
    rest = [Alternative(f"winograd{m}", cycles.get(m), choose.declined(spec, m)) for m in TAPS]
    return [Alternative("direct", choose.direct_cycles(spec, target)), *rest]


def _product(spec: GemmSpec, target: CpuTarget) -> list[str]:
    problem = gemm_problem(spec)
    source = {
        "packed": "the right side is constant: packed in panels at build time",
        "rows": "the right side is read where it lies: its columns are contiguous",
        "gathered": "the right side is gathered panel by panel: its columns are not contiguous",
    }
    return [source[problem.weights.kind], *_gemm_like(problem, target, spec.minimal)]


def _gemm_like(problem: Problem, target: CpuTarget, minimal: bool) -> list[str]:
    """Strassen's algorithm or the ordinary product, and the tile."""
    plain = Alternative("ordinary", estimate(problem, target, strassen.weight_bytes(problem)))
    reason = strassen.declined(problem, target) if minimal else "turned off, or the right side is no constant"
    other = Alternative("strassen", None if reason else strassen.strassen_cycles(problem, target), reason)
    pays = minimal and strassen.strassen_pays(problem, target)
    lines = _table([plain, other], "strassen" if pays else "ordinary")
    if pays:
        return [*lines, *_tile(strassen.half_product(problem), target, strassen.SUPPLY)]
    return lines + _tile(problem, target)


def _table(options: Sequence[Alternative], chosen: str) -> list[str]:
    found = []
    for option in options:
        mark = "->" if option.name == chosen else "  "
        cost = f"not possible: {option.declined}" if option.cycles is None else f"{option.cycles:14,.0f} cycles"
        found.append(f"{mark} {option.name:10} {cost}")
    return found


def _tile(problem: Problem, target: CpuTarget, supply: float | None = None) -> list[str]:
    """The register tile: what was considered, and what follows for the loops."""
    extents = " x ".join(str(axis.extent) for axis in problem.rows)
    size = f"product of {extents} rows x {problem.columns} columns over {problem.depth}, batch {problem.batch.extent}:"
    if few_columns(problem, target):
        schedule = dots_schedule(problem, target)
        return [
            size,
            f"{problem.columns} columns are too few for vectors: lanes run along the reduction, "
            f"tiles of {schedule.tile} rows",
        ]
    options = {} if supply is None else {"supply": supply}
    schedule = schedule_contraction(problem, target, **options)
    rows = candidates(problem, target, **options)[:SHOWN]
    lines = [
        f"{'  ' if k else '->'} {tile[0]} x {tile[1]} rows x {vectors} vectors {cost:14,.0f} cycles"
        for k, (cost, vectors, tile) in enumerate(rows)
    ]
    return [size, *lines, _order(schedule)]


def _order(schedule: Blocking) -> str:
    order = (
        "panels outside: a panel of weights stays in the cache for its tiles"
        if schedule.panels_outer
        else (
            "tiles outside: a block of rows meets all panels"
            if schedule.panels > 1
            else "tiles outside, one panel at a time"
        )
    )
    prefetch = ", the next panel is prefetched" if schedule.prefetch else ""
    return f"an item is {schedule.tiles} tiles x {schedule.panels} panels, {order}{prefetch}"
