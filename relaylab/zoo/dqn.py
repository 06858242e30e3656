"""Deep Q-network: the network that learned to play Atari games (Mnih et al., 2015)."""

from __future__ import annotations

from relaylab.ir import Function, IRModule, free_vars, var
from relaylab.op import nn
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.zoo import layers
from relaylab.zoo.init import Size, Sizes, create_workload

CONVS = [(32, 8, 4), (64, 4, 2), (64, 3, 1)]  # channels, kernel, stride


@checked
def get_net(
    batch_size: Size,
    num_actions: int = 18,
    image_shape: Sizes = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> Function:
    """The network as a function of its input and parameters."""
    body = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    for number, (channels, size, stride) in enumerate(CONVS, 1):
        conv = layers.conv2d(
            body,
            kernel_size=(size, size),
            strides=(stride, stride),
            padding=(0, 0),
            channels=channels,
            data_layout=layout,
            kernel_layout=layers.conv_kernel_layout(layout),
            name=f"conv{number}",
        )
        body = nn.relu(nn.bias_add(conv, var(f"conv{number}_bias"), axis=layout.index("C")))
    hidden = nn.relu(layers.dense_add_bias(nn.batch_flatten(body), units=512, name="dense1"))
    actions = layers.dense_add_bias(hidden, units=num_actions, name="dense2")
    return Function(free_vars(actions), actions)


@checked
def get_workload(
    batch_size: Size,
    num_actions: int = 18,
    image_shape: Sizes = (4, 84, 84),
    dtype: str = "float32",
    layout: str = "NCHW",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters."""
    return create_workload(get_net(batch_size, num_actions, image_shape, dtype, layout))
