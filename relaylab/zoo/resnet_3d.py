"""ResNet over videos: 3-D convolutions, no pooling at the entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import nn
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.zoo import layers
from relaylab.zoo import resnet as resnet_2d
from relaylab.zoo.init import Size, Sizes, create_workload
from relaylab.zoo.resnet import EPSILON

Triple = tuple[int, int, int]


def _bn_relu(data: Expr, name: str) -> Expr:
    """The normalized axis is always 1, also for channels-last data, as in the reference."""
    return nn.relu(layers.batch_norm_infer(data, epsilon=EPSILON, name=name))


def residual_unit(
    data: Expr,
    num_filter: int,
    stride: Triple,
    dim_match: bool,
    name: str,
    bottle_neck: bool = True,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
) -> Expr:
    """A unit on videos (N, C, D, H, W), with convolutions over frames, rows and columns; else as of `resnet`."""

    def conv(x: Expr, channels: int, size: int, strided: bool, part: str) -> Expr:
        return layers.conv3d(
            x,
            channels=channels,
            kernel_size=(size,) * 3,
            strides=stride if strided else (1, 1, 1),
            padding=(size // 2,) * 3,
            data_layout=data_layout,
            kernel_layout=kernel_layout,
            name=f"{name}_{part}",
        )

    bn_relu = lambda x, part: _bn_relu(x, f"{name}_{part}")
    return resnet_2d.preactivated(data, num_filter, dim_match, bottle_neck, conv, bn_relu)


def resnet(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: Sizes,
    bottle_neck: bool = True,
    layout: str = "NCDHW",
    dtype: str = "float32",
) -> Function:
    """The network of `num_stages` stages with `units[i]` units of `filter_list[i + 1]` channels each."""
    kernel_layout = layers.conv_kernel_layout(layout)
    data = var("data", shape=data_shape, dtype=dtype)
    body = layers.batch_norm_infer(data, epsilon=EPSILON, scale=False, name="bn_data")
    entry: dict[str, Any] = dict(channels=filter_list[0], data_layout=layout, kernel_layout=kernel_layout, name="conv0")
    if cast(int, data_shape[layout.index("H")]) <= 32:
        body = layers.conv3d(body, kernel_size=(3, 3, 3), strides=(1, 1, 1), padding=(1, 1, 1), **entry)
    else:
        body = layers.conv3d(body, kernel_size=(3, 7, 7), strides=(1, 2, 2), padding=(1, 3, 3), **entry)
        body = _bn_relu(body, "bn0")
    for i in range(num_stages):
        for j in range(units[i]):
            stride: Triple = (2, 2, 2) if i > 0 and j == 0 else (1, 1, 1)
            body = residual_unit(
                body, filter_list[i + 1], stride, j > 0, f"stage{i + 1}_unit{j + 1}", bottle_neck, layout, kernel_layout
            )
    pool = nn.global_avg_pool3d(_bn_relu(body, "bn1"), layout=layout)
    net = nn.softmax(layers.dense_add_bias(nn.batch_flatten(pool), units=num_classes, name="fc1"))
    return Function(free_vars(net), net)


@checked
def get_net(
    batch_size: Size,
    num_classes: int,
    num_layers: int = 50,
    image_shape: Sizes = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
    **kwargs: object,
) -> Function:
    """The network as a function of its input and parameters."""
    return resnet_2d.get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, resnet)


@checked
def get_workload(
    batch_size: Size = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: Sizes = (3, 16, 112, 112),
    layout: str = "NCDHW",
    dtype: str = "float32",
    **kwargs: object,
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters."""
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, **kwargs))
