"""Why a kernel looks as it does: the alternatives that were considered, what each was estimated to cost, the decision.

The figures are those that the choice was made from: they come from the same families.

Choices: docs/choices.md, Kernels.
"""

from __future__ import annotations

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import Kernel
from relaylab.codegen.network.network import operator_of
from relaylab.codegen.operations.convolution import ConvolutionKernel
from relaylab.codegen.operations.fused_body import Views
from relaylab.codegen.operations.jobs import ContractionJob, GenericJob, Job, ProcedureJob
from relaylab.codegen.operations.matrix_product import MatrixProductKernel
from relaylab.codegen.operations.weight_gradient import WeightGradient
from relaylab.codegen.templates.gemm import GemmSpec, gemm_problem, laid_out_first
from relaylab.codegen.templates.product_family import product_reasons


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
        case ContractionJob(contraction=MatrixProductKernel() as found):
            return _product(found.placed(views(job.data), job.weight_view(views), views(job.writes[0])), target)
        case ContractionJob(contraction=WeightGradient() as found):
            problem = found.problem(views(job.data), views(job.writes[0]), job.weight_view(views) is None)
            return [
                "the gradient of a weight: rows are taps x input channels, pixels are summed over",
                *product_reasons(problem, target),
            ]
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


def _product(spec: GemmSpec, target: CpuTarget) -> list[str]:
    found = laid_out_first(spec, target)
    if found is not None:
        first = "the right side is an input: what lays it out in panels runs before"
        return [first, *product_reasons(gemm_problem(found), target)]
    problem = gemm_problem(spec)
    source = {
        "packed": "the right side is constant: packed in panels at build time",
        "rows": "the right side is read where it lies: its columns are contiguous",
        "gathered": "the rows of the right side are not contiguous: few columns are read, else panels are gathered",
    }
    return [source[problem.weights.kind], *product_reasons(problem, target)]
