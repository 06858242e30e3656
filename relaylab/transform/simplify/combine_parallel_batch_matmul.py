"""CombineParallelBatchMatmul: batched matrix products of the same tensor become one with more columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from relaylab.ir import Call, Expr, Function, IRModule, Tuple, facets
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import rank_of, shape_of, tensor_of
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.simplify.combine_parallel import Branch, Combiner, combine_parallel
from relaylab.transform.simplify.combine_parallel_dense import concatenated, last_axis_fits, sliced


class _BatchMatmul(Combiner):
    """Concatenates the right-hand sides."""

    op_name = "nn.batch_matmul"

    def supports(self, call: Call) -> bool:
        attrs = facets(call)
        return not attrs.transpose_a and attrs.transpose_b and rank_of(call.args[1]) == 3

    def compatible(self, a: Call, b: Call) -> bool:
        s, t = tensor_of(a.args[1]), tensor_of(b.args[1])
        return (
            s.dtype == t.dtype
            and facets(a).out_dtype == facets(b).out_dtype
            and (s.shape[0], s.shape[2]) == (t.shape[0], t.shape[2])
        )

    def follows(self, call: Call) -> bool:
        return super().follows(call) and "axis" not in facets(call).fields

    def _columns(self, branches: Sequence[Branch]) -> list[int]:
        return [int(shape_of(b[0].args[1])[1]) for b in branches]

    def combine(self, branches: Sequence[Branch]) -> Expr:
        first = branches[0][0]
        right = call("concatenate", Tuple([b[0].args[1] for b in branches]), axis=1)
        return Call(first.op, (first.args[0], right), first.attrs)

    def argument_fits(self, a: Call, b: Call, index: int) -> bool:
        return last_axis_fits(a, b, index)

    def arguments(self, branches: Sequence[Branch], depth: int, index: int) -> Expr:
        return concatenated([b[depth].args[index] for b in branches], self._columns(branches), axis=-1)

    def outputs(self, combined: Expr, branches: Sequence[Branch]) -> list[Expr]:
        return sliced(combined, 3, self._columns(branches))


@pass_(level=4, requires=("InferType",), idempotent=True)
class CombineParallelBatchMatmul(FunctionPass):
    """Combines batched matrix products that read the same tensor, with what follows them, and cuts the result apart."""

    min_num_branches: Annotated[int, "So many must read one tensor for them to be combined."] = 3

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        return combine_parallel(func, _BatchMatmul(), self.min_num_branches)
