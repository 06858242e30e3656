"""DenseNet (Huang et al., 2017), in the form that relay.testing has.

Not the paper's: the layers of a block form a chain and the block's result is the concatenation of
their results, without the block's input. The first layers of DenseNet-169 have 69 channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import concatenate, nn
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.zoo import layers
from relaylab.zoo.init import Size, Sizes, create_workload

BOTTLENECK = 4
# size: (channels of the first convolution, growth rate, layers of each block)
SPECS = {
    121: (64, 32, [6, 12, 24, 16]),
    161: (96, 48, [6, 12, 36, 24]),
    169: (69, 32, [6, 12, 32, 32]),
    201: (64, 32, [6, 12, 48, 32]),
}


def _norm_relu(data: Expr, name: str) -> Expr:
    return nn.relu(layers.batch_norm_infer(data, name=name))


def _dense_layer(data: Expr, growth_rate: int, index: str) -> Expr:
    wide = layers.conv2d(
        _norm_relu(data, f"batch_1_{index}"),
        channels=BOTTLENECK * growth_rate,
        kernel_size=(1, 1),
        name=f"conv2d_1_{index}",
    )
    return layers.conv2d(
        _norm_relu(wide, f"batch_2_{index}"),
        channels=growth_rate,
        kernel_size=(3, 3),
        padding=(1, 1),
        name=f"conv2d_2_{index}",
    )


def _dense_block(data: Expr, num_layers: int, growth_rate: int, index: int) -> Expr:
    outputs = []
    for i in range(num_layers):
        data = _dense_layer(data, growth_rate, f"{index}_{i}")
        outputs.append(data)
    return concatenate(outputs, 1)


def _transition(data: Expr, channels: int, index: int) -> Expr:
    conv = layers.conv2d(
        _norm_relu(data, f"batch_t_{index}"), channels=channels, kernel_size=(1, 1), name=f"conv_t_{index}"
    )
    return nn.avg_pool2d(conv, pool_size=(2, 2), strides=(2, 2))


def _net(init: int, growth_rate: int, blocks: Sequence[int], data_shape: Sizes, dtype: str, classes: int) -> Function:
    data = var("data", shape=data_shape, dtype=dtype)
    conv = layers.conv2d(data, channels=init, kernel_size=(7, 7), strides=(2, 2), padding=(3, 3), name="conv1")
    body = nn.max_pool2d(_norm_relu(conv, "batch1"), pool_size=(3, 3), strides=(2, 2), padding=(1, 1))
    features = init
    for i, num_layers in enumerate(blocks):
        body = _dense_block(body, num_layers, growth_rate, i)
        features += num_layers * growth_rate
        if i < len(blocks) - 1:
            features //= 2
            body = _transition(body, features, i)
    pool = nn.avg_pool2d(_norm_relu(body, "batch2"), pool_size=(7, 7))
    net = layers.dense_add_bias(nn.batch_flatten(pool), units=classes, name="dense")
    return Function(free_vars(net), net)


@checked
def get_net(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: Size = 4,
    image_shape: Sizes = (3, 224, 224),
    dtype: str = "float32",
) -> Function:
    """The network as a function of its input and parameters."""
    if densenet_size not in SPECS:
        raise RelayValueError(
            f"no DenseNet has {densenet_size} layers", code="zoo.layers", help=f"choose one of {sorted(SPECS)}"
        )
    return _net(*SPECS[densenet_size], (batch_size, *image_shape), dtype, classes)


@checked
def get_workload(
    densenet_size: int = 121,
    classes: int = 1000,
    batch_size: Size = 4,
    image_shape: Sizes = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; 121, 161, 169 or 201 layers."""
    return create_workload(get_net(densenet_size, classes, batch_size, image_shape, dtype))
