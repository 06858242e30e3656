"""`relay.qnn.op`: the quantized dialect."""

from relaylab.op.qnn_contract import batch_matmul, conv2d, conv2d_transpose, dense
from relaylab.op.qnn_elementwise import (
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
from relaylab.op.qnn_scale import dequantize, quantize, requantize
from relaylab.op.qnn_simulate import simulated_dequantize, simulated_quantize

__all__ = [
    "abs",
    "add",
    "batch_matmul",
    "concatenate",
    "conv2d",
    "conv2d_transpose",
    "dense",
    "dequantize",
    "erf",
    "exp",
    "hardswish",
    "leaky_relu",
    "log",
    "mul",
    "quantize",
    "requantize",
    "rsqrt",
    "sigmoid",
    "simulated_dequantize",
    "simulated_quantize",
    "sqrt",
    "subtract",
    "tanh",
]
