"""`relay.qnn.op`: the quantized dialect."""

from relaylab.op.builder import offered as _offered
from relaylab.op.qnn.contract import batch_matmul, conv2d, conv2d_transpose, dense
from relaylab.op.qnn.elementwise import (
    abs,
    add,
    concatenate,
    erf,
    exp,
    hardswish,
    leaky_relu,
    log,
    mul,
    rsqrt,
    sigmoid,
    sqrt,
    subtract,
    tanh,
)
from relaylab.op.qnn.scale import current_requantize_config, dequantize, quantize, requantize, requantize_config
from relaylab.op.qnn.simulate import simulated_dequantize, simulated_quantize

__all__ = _offered(globals())
