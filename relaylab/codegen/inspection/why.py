"""Why a kernel looks as it does: the alternatives that were considered, what each was estimated to cost, the decision.

The figures are those that the choice was made from: they come from the same families.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel
from relaylab.codegen.network.network import operator_of
from relaylab.codegen.operations.convolution import ConvolutionKernel
from relaylab.codegen.operations.fused_body import Views
from relaylab.codegen.operations.jobs import ContractionJob, GenericJob, Job, ProcedureJob
from relaylab.codegen.operations.matrix_product import MatrixProductKernel
from relaylab.codegen.operations.open_convolution import OpenConvolution
from relaylab.codegen.operations.open_product import OpenProduct
from relaylab.codegen.operations.pixel_product import PixelProduct
from relaylab.codegen.operations.weight_gradient import WeightGradient
from relaylab.codegen.templates.gemm import GemmSpec, gemm_problem, laid_out_first
from relaylab.codegen.templates.open_rows import PLANNED_ROWS
from relaylab.codegen.templates.problem import Problem
from relaylab.codegen.templates.product_family import product_reasons
from relaylab.codegen.templates.schedule import candidates
from relaylab.ir.expr import Call
from relaylab.ir.types import is_dynamic

PRODUCTS = ("nn.dense", "nn.matmul")
MOST_TILES = 4
"""Tiles of registers that are told, the chosen one first."""


def why(kernel: Kernel, job: Job, views: Views, target: CpuTarget) -> str:
    """Why this kernel serves this job, as text."""
    head = f"{kernel.name}: for {target.isa}, {target.vector_bytes * 8}-bit vectors, {target.registers} registers"
    return "\n".join([head, *(f"  {line}" for line in _reasons(kernel, job, views, target)), ""])


def _reasons(kernel: Kernel, job: Job, views: Views, target: CpuTarget) -> list[str]:
    match job:
        case ContractionJob(contraction=ConvolutionKernel() as found):
            weight = job.weight_view(views)
            spec = found.placed(views(job.data), views(job.writes[0]), weight)
            first = [] if weight is None else ["the weight is an input: what lays it out runs before"]
            return [*first, *found.alternatives(), *found.family.reasons(spec, target)]
        case ContractionJob(contraction=PixelProduct() as found):
            spec = found.placed(views(job.data), views(job.writes[0]))
            first = "single pixels, channel by channel: the weight is the left side, images are the right one"
            return [first, *_where_it_lies(spec, target)]
        case ContractionJob(contraction=MatrixProductKernel() as found):
            return _product(found.placed(views(job.data), job.weight_view(views), views(job.writes[0])), target)
        case ContractionJob(contraction=WeightGradient() as found):
            problem = found.problem(views(job.data), views(job.writes[0]), job.weight_view(views) is None)
            return [
                "the gradient of a weight: rows are taps x input channels, pixels are summed over",
                *product_reasons(problem, target),
            ]
        case ContractionJob(contraction=OpenProduct() as found):
            return [
                "how many rows there are a run says; the right side is constant: packed in panels at build time"
            ] + (_open_tiles(found.spec.problem(), target, "rows"))
        case ContractionJob(contraction=OpenConvolution() as found):
            planned = found.placed(views(job.data), views(job.writes[0])).planned()
            return ["how large the images are a run says: the direct algorithm, a line of pixels at a time"] + (
                _open_tiles(planned, target, "pixels of a line")
            )
        case GenericJob(calls=calls):
            names = ", ".join(dict.fromkeys(operator_of(c).name for c in calls)) or "a copy"
            return [
                *_open_weights(calls),
                f"generic lowering: no template computes {names}; the loops are those of the result, {_items(kernel)}",
                "outer loops are parallel, the innermost contiguous axis is vectorized",
            ]
        case ProcedureJob(call=call):
            return [
                f"{operator_of(call).name} is a procedure: it says its loops itself, {_items(kernel)}",
                "its parallel loops are kernels that run one after another",
            ]
    return ["a copy into another memory order, or with zeros around it, that the next kernel needs"]


def _open_weights(calls: Sequence[Call]) -> list[str]:
    """Why products of open rows have no template: theirs packs weights when the program is built."""
    held = [
        operator_of(c).name
        for c in calls
        if operator_of(c).name in PRODUCTS and is_dynamic(c.checked_type) and not is_dynamic(c.args[1].checked_type)
    ]
    return [f"{name} of open rows has a template where its weight is a constant; this is an input" for name in held]


def _items(kernel: Kernel) -> str:
    return (
        f"{kernel.items} items to share" if kernel.open_items is None else "sizes say how many items there are to share"
    )


def _open_tiles(planned: Problem, target: CpuTarget, rows: str) -> list[str]:
    """The tiles of registers of rows whose number is open, and what they were chosen among."""
    known = candidates(planned, target)
    lanes = target.lanes(planned.dtype)
    told = [
        f"  {tile[1]:3} {rows} x {vectors * lanes:3} columns {cycles:10,.0f} cycles" for cycles, vectors, tile in known
    ]
    chosen = f"-> tiles of {known[0][2][1]} {rows}, as many as there are; then lower ones for what is left"
    return [f"tiles of registers, by their cycles for {PLANNED_ROWS} {rows}:", *told[:MOST_TILES], chosen]


def _product(spec: GemmSpec, target: CpuTarget) -> list[str]:
    found = laid_out_first(spec, target)
    if found is not None:
        first = "the right side is an input: what lays it out in panels runs before"
        return [first, *product_reasons(gemm_problem(found), target)]
    return _where_it_lies(spec, target)


def _where_it_lies(spec: GemmSpec, target: CpuTarget) -> list[str]:
    problem = gemm_problem(spec)
    source = {
        "packed": "the right side is constant: packed in panels at build time",
        "rows": "the right side is read where it lies: its columns are contiguous",
        "bytes": "the right side is an input: four bytes of its rows are put together as they are read",
        "gathered": "the rows of the right side are not contiguous: few columns are read, else panels are gathered",
    }
    return [source[problem.weights.kind], *product_reasons(problem, target)]
