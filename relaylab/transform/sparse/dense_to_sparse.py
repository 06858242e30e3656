"""DenseToSparse: dense layers whose weights are mostly zeros multiply by what is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from relaylab.analysis.sparse_weights import is_sparse_dense
from relaylab.ir import Expr, Function, IRModule
from relaylab.transform.engine.build import call
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import FunctionPass
from relaylab.transform.sparse.weights import with_sparse_weights


@pass_(level=4, requires=("DeadCodeElimination",), preserves=False, example={"weight_name": [], "weight_shape": []})
class DenseToSparse(FunctionPass):
    """Makes the named weights of `nn.dense` parameters `.data`, `.indices` and `.indptr` of `nn.sparse_dense`."""

    weight_name: Annotated[Sequence[str], "The names of the weights."]
    weight_shape: Annotated[Sequence[Sequence[int]], "For each the extents of data (three), indices and indptr."]

    def run(self, func: Function, mod: IRModule, ctx: PassContext) -> Expr:
        made = lambda c, parts: call("nn.sparse_dense", c.args[0], *parts)
        return with_sparse_weights(func, self.weight_name, self.weight_shape, is_sparse_dense, made)
