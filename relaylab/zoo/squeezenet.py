"""SqueezeNet 1.0 and 1.1: squeeze, then expand by two convolutions side by side (Iandola et al., 2016)."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import concatenate, nn
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.zoo.init import Size, Sizes, create_workload

POOL = "pool"
VERSIONS: dict[str, list[str | tuple[int, int]]] = {
    "1.0": [POOL, (16, 64), (16, 64), (32, 128), POOL, (32, 128), (48, 192), (48, 192), (64, 256), POOL, (64, 256)],
    "1.1": [POOL, (16, 64), (16, 64), POOL, (32, 128), (32, 128), POOL, (48, 192), (48, 192), (64, 256), (64, 256)],
}


def _conv(net: Expr, name: str, channels: int, size: int, padding: int, strides: int = 1) -> Expr:
    weight, bias = var(f"{name}_weight"), var(f"{name}_bias")
    strided, around, window = (strides, strides), (padding, padding), (size, size)
    return nn.relu(nn.bias_add(nn.conv2d(net, weight, strided, around, channels=channels, kernel_size=window), bias))


def _fire(net: Expr, squeeze: int, expand: int, prefix: str) -> Expr:
    net = _conv(net, f"{prefix}_input_conv", squeeze, 1, 0)
    left = _conv(net, f"{prefix}_left_conv", expand, 1, 0)
    right = _conv(net, f"{prefix}_right_conv", expand, 3, 1)
    return concatenate((left, right), axis=1)


@checked
def get_net(batch_size: Size, image_shape: Sizes, num_classes: int, version: str, dtype: str) -> Function:
    """The network as a function of its input and parameters."""
    if version not in VERSIONS:
        raise RelayValueError(
            f"Unsupported SqueezeNet version {version}", code="zoo.version", help="1.0 or 1.1 expected"
        )
    data = var("data", shape=(batch_size, *image_shape), dtype=dtype)
    net = _conv(data, "conv1", 96, 7, 3, 2) if version == "1.0" else _conv(data, "conv1", 64, 3, 1, 2)
    number = 0
    for part in VERSIONS[version]:
        if isinstance(part, str):
            net = nn.max_pool2d(net, pool_size=(3, 3), strides=(2, 2))
        else:
            number += 1
            net = _fire(net, *part, f"fire{number}")
    net = nn.global_avg_pool2d(_conv(nn.dropout(net, rate=0.5), "conv_final", num_classes, 1, 0))
    net = nn.softmax(nn.batch_flatten(net))
    return Function(free_vars(net), net)


@checked
def get_workload(
    batch_size: Size = 1,
    num_classes: int = 1000,
    version: str = "1.0",
    image_shape: Sizes = (3, 224, 224),
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; `version` is "1.0" or "1.1"."""
    return create_workload(get_net(batch_size, image_shape, num_classes, version, dtype))
