"""Kernels as tasks: each distinct fused function of a program as a Relay text of its own, and its plain loops."""

from __future__ import annotations

from dataclasses import dataclass

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.network.network import Network, NetworkTensor, NetworkValue, Operation, network_of
from relaylab.codegen.operations.jobs import ContractionJob, GenericJob
from relaylab.codegen.operations.records import kernel_key
from relaylab.codegen.operations.select import jobs_of
from relaylab.ir import Call, Constant, Expr, Function, IRModule, TensorType, Tuple, Var
from relaylab.loop.program import LoopProgram
from relaylab.loop.schedule import Schedule
from relaylab.support.errors import RelayError
from relaylab.transform.micro_batch import micro_batches


@dataclass(frozen=True)
class KernelTask:
    """One kernel to be tuned: `text` is a program of it alone (what a worker needs), `key` says what it computes.

    `uses` counts how often the program runs it, `plain` are the loops that schedules begin with, `template` says
    whether the picked loops are those of a template.
    """

    name: str
    key: str
    text: str
    uses: int
    plain: LoopProgram
    template: bool = False


def tasks_of(mod: IRModule, target: CpuTarget) -> list[KernelTask]:
    """The kernels of a fused module, each once, in the order of their first use; of a large batch those of a part.

    Kernels that cannot be schedules' are left out: those that only reshape, and those of operators from outside the
    package, which a worker does not know.
    """
    network: Network = network_of(micro_batches(mod["main"])[0])
    uses: dict[str, list[Operation]] = {}
    for operation in network.operations:
        if not operation.reshape_only and (key := kernel_key(operation)):
            uses.setdefault(key, []).append(operation)
    found: list[KernelTask] = []
    for key, operations in uses.items():
        if (plain := plain_loops(operations[0], target)) is not None:
            text = alone(operations[0]).astext(show_meta_data=False)
            jobs = jobs_of(operations[0], target)
            template = len(jobs) == 1 and isinstance(jobs[0], ContractionJob)
            found.append(KernelTask(operations[0].name, key, text, len(operations), plain, template))
    return found


def plain_loops(operation: Operation, target: CpuTarget) -> LoopProgram | None:
    """The loops of an operation as they are written down, on dense operands; None if it has none."""
    dense = lambda t: MemoryView.dense(t.shape, t.dtype)
    try:
        (job,) = jobs_of(operation, target, schedule=Schedule())
        return job.group(dense)[0].plain() if isinstance(job, GenericJob) else None
    except RelayError:  # an operator without a loop form
        return None


def alone(operation: Operation) -> IRModule:
    """A program that calls the function of an operation; what was constant is a constant there."""
    names = (f"x{k}" for k in range(10**6))
    params: list[Var] = []

    def given(value: NetworkValue) -> Expr:
        if not isinstance(value, NetworkTensor):
            return Tuple([given(v) for v in value])
        if value.origin == "constant" and value.alias is None:
            return Constant(value.constant)
        params.append(Var(next(names), TensorType(value.shape, value.dtype)))
        return params[-1]

    call = Call(operation.function, [given(v) for v in operation.inputs])
    return IRModule.from_expr(Function(params, call))
