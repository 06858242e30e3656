"""Which kernels serve an operation: one template with its epilogue, one generic group, or a sequence of both.

* No contraction in the function: the generic lowering does it as a whole.
* One contraction, and after it only elementwise operators of its shape: the template, the rest as its epilogue.
* An operator that is a procedure has a job of its own.
* Anything else is cut at every call: contractions by their templates, the others by the generic lowering.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.network.network import NetworkTensor, NetworkValue, Operation, operator_of, tensor_type
from relaylab.codegen.operations.contraction import Contraction
from relaylab.codegen.operations.convolution import convolution_of, transposed_convolution_of
from relaylab.codegen.operations.epilogue import EpilogueExpr, epilogue_of
from relaylab.codegen.operations.fused_body import tensors_of
from relaylab.codegen.operations.jobs import ContractionJob, GenericJob, Job, ProcedureJob
from relaylab.codegen.operations.matrix_product import matrix_product_of
from relaylab.codegen.operations.open_convolution import open_convolution_of
from relaylab.codegen.operations.open_product import open_product_of
from relaylab.codegen.operations.weight_gradient import weight_gradient_of
from relaylab.codegen.templates.problem import Choices
from relaylab.codegen.templates.schedule import choices_of
from relaylab.ir import Call, Constant, Expr, Op, TensorType, Tuple, TupleType, Type, is_dynamic, walk
from relaylab.ir.visit import operands_of
from relaylab.loop.schedule import FROM, Schedule, placed
from relaylab.op.base import OpPattern
from relaylab.support.errors import RelayValueError

AGAIN = 4096
"""Elements from which on a step of its own costs less than computing again what it gives."""


def jobs_of(
    operation: Operation, target: CpuTarget, minimal: bool = True, schedule: Schedule | None = None
) -> list[Job]:
    """The jobs that compute an operation, in order; none for one that only reshapes. With a schedule it is one job."""
    if operation.reshape_only:
        return []
    selection = _Selection(operation, target, minimal)
    return selection.jobs() if schedule is None else selection.scheduled(schedule)


CONTRACTIONS = {
    **{f"nn.conv{rank}d": convolution_of for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": transposed_convolution_of for rank in (1, 2, 3)},
    **dict.fromkeys(("nn.dense", "nn.matmul", "nn.batch_matmul"), matrix_product_of),
    "nn.conv2d_backward_weight": weight_gradient_of,
}
"""What makes a contraction of a call of an operator, or None of one that no template computes."""


def contraction_of(call: Call, target: CpuTarget, minimal: bool = True) -> Contraction | None:
    """The contraction that a call of an operator is; None when no template computes it.

    `minimal` allows algorithms with fewer products (Winograd's, Strassen's), which round differently.
    """
    make = CONTRACTIONS.get(call.op.name) if isinstance(call.op, Op) else None
    return make(call, target, minimal) if make else None


class _Selection:
    """The body of one Primitive function, and what its expressions stand for outside."""

    def __init__(self, operation: Operation, target: CpuTarget, minimal: bool):
        self.operation, self.target, self.minimal = operation, target, minimal
        self.body = operation.function.body
        self.values: dict[Expr, NetworkValue] = dict(zip(operation.function.params, operation.inputs))
        self.order = list(walk((self.body,), operands_of))
        self.calls = [e for e in self.order if isinstance(e, Call)]
        for expr in self.order:
            # A single number becomes an immediate of the code; arrays are operands.
            if isinstance(expr, Constant) and expr.data.size != 1:
                self.values[expr] = _constant(expr)

    def jobs(self) -> list[Job]:
        """The whole operation."""
        found = self._jobs()
        for part, job in enumerate(found):
            job.part, job.minimal = part, self.minimal
        return found

    def scheduled(self, schedule: Schedule) -> list[Job]:
        """The whole operation by a schedule, which begins with its plain loops or with those that are picked."""
        found: list[Job] = [self._generic(self.calls, self.body, self.operation.outputs)]
        with placed(f"step 1: {' '.join((FROM, *schedule.begins))}"):
            if schedule.picked:
                found = self._picked(choices_of(schedule.begins[1:]))
        found[0].schedule = schedule
        return found

    def _picked(self, choices: Choices) -> list[Job]:
        """The one job of the whole operation, with numbers that are chosen."""
        found = self.jobs()
        if len(found) > 1:
            raise RelayValueError(f"the picked loops are those of {len(found)} kernels", code="schedule.illegal")
        (job,) = found
        if choices and not isinstance(job, ContractionJob):
            raise RelayValueError("only products and convolutions have choices", code="schedule.illegal")
        if choices and isinstance(job, ContractionJob):
            job.contraction = job.contraction.chosen(choices)
        return [job]

    def _jobs(self) -> list[Job]:
        contractions = {call: found for call in self.calls if (found := self._contraction(call)) is not None}
        if any(_is_procedure(call) for call in self.calls):
            return self._cut(contractions)
        if not contractions:
            first = [self._before(call) for call in self.calls if self._reads_again(call)]
            done = {call for job in first for call in job.calls}
            rest = [call for call in self.calls if call not in done]
            return [*first, self._generic(rest, self.body, self.operation.outputs)]
        if len(contractions) == 1:
            ((anchor, contraction),) = contractions.items()
            fused = self._fused(anchor, contraction)
            if fused is not None:
                return [fused]
        return self._cut(contractions)

    def _contraction(self, call: Call) -> Contraction | None:
        """The contraction of a call whose weight is what the template needs."""
        if any(is_dynamic(e.checked_type) for e in (call, *call.args)):
            found = open_product_of(call, self.operation, self.target)
            found = found or open_convolution_of(call, self.operation, self.target)
        else:
            found = contraction_of(call, self.target, self.minimal)
        if found is None:
            return None
        weight = self.values.get(call.args[found.args[1]])
        constant = isinstance(weight, NetworkTensor) and weight.root.origin == "constant" and weight.alias is None
        return found if constant or not found.packs else found.with_input()

    # ---- one job for all

    def _fused(self, anchor: Call, contraction: Contraction) -> ContractionJob | None:
        """The template with the rest of the body as its epilogue; None where that cannot be."""
        if not all(arg in self.values for arg in anchor.args[:2]) or not isinstance(self.body.checked_type, TensorType):
            return None
        after = self._after(anchor)
        if self.body not in after or not all(self._pointwise(call, anchor) for call in after - {anchor}):
            return None
        known = self._known_below(self.body, {anchor})
        epilogue = epilogue_of(self.body, anchor, known, self.operation) if self.body is not anchor else None
        if self.body is not anchor and (epilogue is None or not epilogue.fits(contraction)):
            return None
        return self._with_template(anchor, contraction, self.operation.outputs[0], epilogue)

    def _after(self, anchor: Call) -> set[Expr]:
        """The expressions that depend on the anchor, itself included."""
        found: set[Expr] = {anchor}
        for expr in self.order:
            if any(child in found for child in operands_of(expr)):
                found.add(expr)
        return found

    def _pointwise(self, expr: Expr, anchor: Call) -> bool:
        """Is it an elementwise operator whose result has the anchor's shape?"""
        return (
            isinstance(expr, Call)
            and operator_of(expr).pattern <= OpPattern.BROADCAST
            and isinstance(expr.checked_type, TensorType)
            and expr.checked_type.shape == tensor_type(anchor).shape
        )

    def _with_template(
        self, anchor: Call, contraction: Contraction, out: NetworkTensor, epilogue: EpilogueExpr | None = None
    ) -> ContractionJob:
        data, weight = (cast("NetworkTensor", self.values[anchor.args[k]]) for k in contraction.args)
        reads = tensors_of([data, weight, *(epilogue.tensors if epilogue else ())])
        return ContractionJob(self.operation, reads, (out,), contraction, data, weight, epilogue)

    def _known_below(self, root: Expr, stop: set[Expr]) -> dict[Expr, NetworkValue]:
        """The expressions under `root` that stand for external tensors, not looking below `stop`."""
        below = lambda e: () if e in self.values or e in stop else operands_of(e)
        return {e: self.values[e] for e in walk((root,), below) if e in self.values and e not in stop}

    def _generic(self, calls: Sequence[Call], root: Expr, outputs: tuple[NetworkTensor, ...]) -> GenericJob:
        known = self._known_below(root, set())
        reads = tensors_of(list(known.values()))
        results = tuple(zip(outputs, _parts(root)))
        return GenericJob(
            self.operation, reads, tuple(t for t, _ in results), known, tuple(calls), tuple(part for _, part in results)
        )

    def _reads_again(self, call: Call) -> bool:
        """Does it take elements twice or more, on average, that are computed with a question whether they are there?"""
        data = call.args[0] if operator_of(call).name == "take" else None
        if not isinstance(data, Call) or data in self.values or is_dynamic(call.checked_type):
            return False
        shapes = tensor_type(call).concrete_shape, tensor_type(data).concrete_shape
        of = walk((data,), lambda e: () if e in self.values else operands_of(e))
        padded = any(isinstance(e, Call) and operator_of(e).name in ("nn.pad", "nn.mirror_pad") for e in of)
        return padded and math.prod(shapes[0]) >= max(2 * math.prod(shapes[1]), AGAIN)

    def _before(self, call: Call) -> GenericJob:
        """A job for the data of a call."""
        data = cast("Call", call.args[0])
        below = [c for c in walk((data,), lambda e: () if e in self.values else operands_of(e)) if isinstance(c, Call)]
        tensor = self._tensor(tensor_type(data))
        job = self._generic(below, data, (tensor,))
        self.values[data] = tensor
        return job

    # ---- one job per call

    def _cut(self, contractions: dict[Call, Contraction]) -> list[Job]:
        """Every call on its own; what it gives is a tensor of its own, the body's are the operation's."""
        final = dict(zip(_parts(self.body), self.operation.outputs))
        found: list[Job] = []
        for call in self.calls:
            outputs = self._outputs(call, final)
            if call in contractions and all(arg in self.values for arg in call.args[:2]):
                found.append(self._with_template(call, contractions[call], outputs[0]))
            elif _is_procedure(call):
                known = self._known_below(call, set())
                found.append(ProcedureJob(self.operation, tensors_of(list(known.values())), outputs, known, call))
            else:
                found.append(self._generic([call], call, outputs))
            self.values[call] = outputs[0] if isinstance(call.checked_type, TensorType) else outputs
        return found + self._copies(final)

    def _outputs(self, call: Call, final: dict[tuple[Expr, int | None], NetworkTensor]) -> tuple[NetworkTensor, ...]:
        return tuple(final.pop((call, k), None) or self._tensor(t) for k, t in _typed_parts(call.checked_type))

    def _tensor(self, t: TensorType) -> NetworkTensor:
        return NetworkTensor(self.operation.shape(t), t.dtype, "result")

    def _copies(self, final: dict[tuple[Expr, int | None], NetworkTensor]) -> list[Job]:
        """What the body gives that no call computes: its inputs, and a field given twice."""
        return [self._generic([], expr, (tensor,)) for (expr, _), tensor in final.items()]


def _is_procedure(call: Call) -> bool:
    """Whether an operator is a procedure."""
    return operator_of(call).definition.is_procedure()


def _constant(expr: Constant) -> NetworkTensor:
    data = np.asarray(expr.data)
    return NetworkTensor(data.shape, data.dtype.name, "constant", data=data)


def _typed_parts(type_: Type) -> list[tuple[int | None, TensorType]]:
    if isinstance(type_, TupleType):
        return list(enumerate(cast("tuple[TensorType, ...]", type_.fields)))
    return [(None, cast("TensorType", type_))]


def _parts(root: Expr) -> list[tuple[Expr, int | None]]:
    """The tensors that an expression gives, each as an expression or a field of one."""
    stack: list[Expr] = [root]
    found: list[tuple[Expr, int | None]] = []
    while stack:
        expr = stack.pop()
        if isinstance(expr, Tuple):
            stack.extend(reversed(expr.fields))
        elif isinstance(expr.checked_type, TupleType):
            found.extend((expr, k) for k in range(len(expr.checked_type.fields)))
        else:
            found.append((expr, None))
    return found
