"""Automatic quantization: float programs become programs on small integers, as `relay.quantize`.

    with relay.quantize.qconfig(calibrate_mode="kl_divergence", weight_scale="max"):
        mod = relay.quantize.quantize(mod, params, dataset=batches)

The passes are in `transform.quantized`: QuantizePartition, QuantizeAnnotate, QuantizeCalibrate, QuantizeRealize.
"""

from relaylab.quantize.config import QConfig, current_qconfig, kind2str, qconfig
from relaylab.quantize.quantize import (
    annotate,
    calibrate,
    collect_stats,
    partition,
    prerequisite_optimize,
    quantize,
    realize,
    register_annotate_function,
    register_partition_function,
)
from relaylab.transform.quantized.quantize_annotate import (
    QAnnotateExpr,
    QAnnotateKind,
    QuantizeContext,
    attach_simulated_quantize,
    quantize_context,
)
from relaylab.transform.quantized.quantize_partition import QPartitionExpr

__all__ = [
    "QAnnotateExpr", "QAnnotateKind", "QConfig", "QPartitionExpr", "QuantizeContext", "annotate",
    "attach_simulated_quantize", "calibrate", "collect_stats", "current_qconfig", "kind2str", "partition",
    "prerequisite_optimize", "qconfig", "quantize", "quantize_context", "realize", "register_annotate_function",
    "register_partition_function",
]  # fmt: skip
__dir__ = lambda: sorted(__all__)
