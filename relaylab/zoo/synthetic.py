"""A small network with a little of everything, for trying passes."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import add, nn, reshape, reshape_like
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.zoo import layers
from relaylab.zoo.init import Constant, Sizes, create_workload


@checked
def get_net(input_shape: Sizes = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None) -> Function:
    """The network as a function of its input and parameters; `wtype` is the data type of the weights."""
    if len(input_shape) != 4:
        raise RelayValueError("the input has four axes, NCHW", code="zoo.image-size", help="input_shape=(1, 3, 24, 12)")
    wtype = wtype or dtype
    rank, channels, width = len(input_shape), input_shape[1], input_shape[-1]
    data = var("data", shape=input_shape, dtype=dtype)

    def dense(x: Expr, name: str) -> Expr:
        flat = reshape(x, newshape=(-1, width))
        return reshape_like(nn.relu(nn.dense(flat, var(name, shape=(width, width), dtype=wtype))), data)

    def conv(x: Expr, name: str) -> Expr:
        weight = var(name, shape=(channels, channels, *([3] * (rank - 2))), dtype=wtype)
        return nn.softmax(nn.conv2d(x, weight, kernel_size=(3, 3), padding=1))

    both = add(dense(data, "dense_weight"), conv(data, "conv_weight"))
    body = layers.batch_norm_infer(nn.bias_add(both, var("bias")), name="batch_norm")
    net = add(dense(body, "dense2_weight"), conv(body, "conv2_weight"))
    return Function(free_vars(net), net)


@checked
def get_workload(
    input_shape: Sizes = (1, 3, 24, 12), dtype: str = "float32", wtype: str | None = None
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters: every weight is one over the number of its elements."""
    return create_workload(get_net(input_shape, dtype, wtype), Constant())
