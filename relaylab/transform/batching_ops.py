"""BatchingOps: the three combinations of parallel operators."""

from __future__ import annotations

from relaylab.transform.combine_parallel_batch_matmul import CombineParallelBatchMatmul
from relaylab.transform.combine_parallel_conv2d import CombineParallelConv2D
from relaylab.transform.combine_parallel_dense import CombineParallelDense
from relaylab.transform.manager import Pass, Sequential, register_pass


@register_pass(idempotent=True)
def BatchingOps() -> Pass:
    """Combines parallel convolutions, dense layers and batched matrix products."""
    return Sequential(
        [CombineParallelConv2D(), CombineParallelDense(), CombineParallelBatchMatmul()], name="BatchingOps"
    )
