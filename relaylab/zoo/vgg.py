"""VGG: stacks of 3x3 convolutions and three dense layers (Simonyan and Zisserman, 2014)."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import nn
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.zoo import layers
from relaylab.zoo.init import Size, Sizes, create_workload

FILTERS = [64, 128, 256, 512, 512]
LAYERS = {11: [1, 1, 2, 2, 2], 13: [2, 2, 2, 2, 2], 16: [2, 2, 3, 3, 3], 19: [2, 2, 4, 4, 4]}


def get_feature(internal_layer: Expr, layers_: Sequence[int], filters: Sequence[int], batch_norm: bool = False) -> Expr:
    """The convolutional part: per stage `layers_[i]` convolutions of `filters[i]` channels, then pooling."""
    for i, count in enumerate(layers_):
        for j in range(count):
            name = f"{i + 1}_{j + 1}"
            conv = layers.conv2d(
                internal_layer, kernel_size=(3, 3), padding=(1, 1), channels=filters[i], name=f"conv{name}"
            )
            internal_layer = nn.bias_add(conv, var(f"conv{name}_bias"))
            if batch_norm:
                internal_layer = layers.batch_norm_infer(internal_layer, name=f"bn{name}")
            internal_layer = nn.relu(internal_layer)
        internal_layer = nn.max_pool2d(internal_layer, pool_size=(2, 2), strides=(2, 2))
    return internal_layer


def get_classifier(input_data: Expr, num_classes: int) -> Expr:
    """The dense part: two hidden layers of 4096 with dropout, then the classes."""
    body = nn.batch_flatten(input_data)
    for name in ("fc6", "fc7"):
        body = nn.dropout(nn.relu(layers.dense_add_bias(body, units=4096, name=name)), rate=0.5)
    return layers.dense_add_bias(body, units=num_classes, name="fc8")


@checked
def get_net(
    batch_size: Size, image_shape: Sizes, num_classes: int, dtype: str, num_layers: int = 11, batch_norm: bool = False
) -> Function:
    """The network as a function of its input and parameters."""
    if num_layers not in LAYERS:
        raise RelayValueError(f"Invalid num_layers {num_layers}", code="zoo.layers", help="choices are 11, 13, 16, 19")
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    net = nn.softmax(get_classifier(get_feature(data, LAYERS[num_layers], FILTERS, batch_norm), num_classes))
    return Function(free_vars(net), net)


@checked
def get_workload(
    batch_size: Size,
    num_classes: int = 1000,
    image_shape: Sizes = (3, 224, 224),
    dtype: str = "float32",
    num_layers: int = 11,
    batch_norm: bool = False,
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; 11, 13, 16 or 19 layers."""
    return create_workload(get_net(batch_size, image_shape, num_classes, dtype, num_layers, batch_norm))
