"""Conv2dToSparse2: convolutions whose constant weights are mostly zeros multiply by what is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from relaylab.analysis.sparse_weights import block_rows, convolution_matrix, is_sparse_convolution, sparsity
from relaylab.ir import Call, Constant, Expr, Function, IRModule, const, rewrite
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.engine.renewal import copied


@pass_(
    level=5,
    requires=("DeadCodeElimination",),
    example={"layout": "NHWC", "kernel_size": 1, "blocksize": [1, 1], "sparsity_threshold": 0.5},
)
class Conv2dToSparse2(FunctionPass):
    """Makes convolutions sparse whose weights are constants with enough zeros: the parts of these are constants too."""

    layout: Annotated[str, "The layout of the images: NHWC or NCHW."]
    kernel_size: Annotated[int, "The extent of the kernels."]
    blocksize: Annotated[Sequence[int], "The rows and columns of a block."]
    sparsity_threshold: Annotated[float, "Which share of a weight must be zero."]

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        def at(new: Expr, old: Expr) -> Expr:
            if not isinstance(new, Call) or not is_sparse_convolution(new, self.layout, self.kernel_size):
                return new
            weight = new.args[1]
            return self._sparse(new, weight) if isinstance(weight, Constant) else new

        return rewrite(func, at)

    def _sparse(self, conv: Call, weight: Constant) -> Expr:
        matrix = convolution_matrix(weight.data.numpy(), self.layout)
        rows = block_rows(matrix, self.blocksize) if sparsity(matrix) >= self.sparsity_threshold else None
        if rows is None:
            return conv
        parts = [copied(const(part), weight) for part in rows]
        return call("nn.sparse_conv2d", conv.args[0], *parts, layout=self.layout, kernel_size=self.kernel_size)
