"""BatchingOps: the three combinations of parallel operators."""

from __future__ import annotations

from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.manager import Sequential
from relaylab.transform.simplify.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from relaylab.transform.simplify.combine_parallel_conv2d import CombineParallelConv2D
from relaylab.transform.simplify.combine_parallel_dense import CombineParallelDense


@pass_(level=0, idempotent=True)
class BatchingOps(Sequential):
    """Combines parallel convolutions, dense layers and batched matrix products."""

    passes = (CombineParallelConv2D(), CombineParallelDense(), CombineParallelBatchMatmul())
