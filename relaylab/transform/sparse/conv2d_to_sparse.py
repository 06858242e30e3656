"""Conv2dToSparse: convolutions whose weights are mostly zeros multiply by what is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from relaylab.analysis.sparse_weights import is_sparse_convolution
from relaylab.ir import Expr, Function, IRModule
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.sparse.weights import with_sparse_weights


@pass_(
    level=4,
    requires=("DeadCodeElimination",),
    preserves=False,
    example={"weight_name": [], "weight_shape": [], "layout": "NHWC", "kernel_size": 1},
)
class Conv2dToSparse(FunctionPass):
    """Makes the named weights of `nn.conv2d` parameters of `nn.sparse_conv2d`.

    Convolutions with strides, groups or dilation, and those that change the size of the image, stay.
    """

    weight_name: Annotated[Sequence[str], "The names of the weights."]
    weight_shape: Annotated[Sequence[Sequence[int]], "For each the extents of data (three), indices and indptr."]
    layout: Annotated[str, "The layout of the images: NHWC or NCHW."]
    kernel_size: Annotated[int, "The extent of the kernels."]

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        how = {"layout": self.layout, "kernel_size": self.kernel_size}
        fits = lambda c: is_sparse_convolution(c, self.layout, self.kernel_size)
        made = lambda c, parts: call("nn.sparse_conv2d", c.args[0], *parts, **how)
        return with_sparse_weights(func, self.weight_name, self.weight_shape, fits, made)
