"""MobileNet: depthwise separable convolutions (Howard et al., 2017)."""

from __future__ import annotations

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import nn
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.zoo import layers
from relaylab.zoo.init import Size, Sizes, create_workload

# (input channels, output channels, whether the block halves the image)
BLOCKS = [(32, 64, False), (64, 128, True), (128, 128, False), (128, 256, True), (256, 256, False), (256, 512, True)]
DEEP = [(512, 512, False)] * 5 + [(512, 1024, True), (1024, 1024, False)]
SHALLOW = [(512, 1024, True), (1024, 1024, False)]


def conv_block(
    data: Expr,
    name: str,
    channels: int,
    kernel_size: tuple[int, int] = (3, 3),
    strides: tuple[int, int] = (1, 1),
    padding: tuple[int, int] = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
) -> Expr:
    """Convolution, batch norm, relu. The batch norm normalizes axis 1 in every layout, as in the reference."""
    conv = layers.conv2d(
        data,
        channels=channels,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_layout=layout,
        kernel_layout=layers.conv_kernel_layout(layout),
        name=f"{name}_conv",
    )
    return nn.relu(layers.batch_norm_infer(conv, epsilon=epsilon, name=f"{name}_bn"))


def separable_conv_block(
    data: Expr,
    name: str,
    depthwise_channels: int,
    pointwise_channels: int,
    kernel_size: tuple[int, int] = (3, 3),
    downsample: bool = False,
    padding: tuple[int, int] = (1, 1),
    epsilon: float = 1e-5,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Expr:
    """A convolution of each channel by itself, then one across channels, each with batch norm and relu."""
    channel_axis = layout.index("C")
    shape = (depthwise_channels, 1, *kernel_size) if layout == "NCHW" else (*kernel_size, depthwise_channels, 1)
    depthwise = layers.conv2d(
        data,
        weight=var(f"{name}_weight", shape=shape, dtype=dtype),
        channels=depthwise_channels,
        groups=depthwise_channels,
        kernel_size=kernel_size,
        strides=(2, 2) if downsample else (1, 1),
        padding=padding,
        data_layout=layout,
        kernel_layout=layers.conv_kernel_layout(layout, True),
        name=f"{name}_depthwise_conv1",
    )
    act1 = nn.relu(layers.batch_norm_infer(depthwise, epsilon=epsilon, axis=channel_axis, name=f"{name}_bn1"))
    pointwise = layers.conv2d(
        act1,
        channels=pointwise_channels,
        kernel_size=(1, 1),
        strides=(1, 1),
        padding=(0, 0),
        data_layout=layout,
        kernel_layout=layers.conv_kernel_layout(layout),
        name=f"{name}_conv2",
    )
    return nn.relu(layers.batch_norm_infer(pointwise, epsilon=epsilon, axis=channel_axis, name=f"{name}_bn2"))


@checked
def mobile_net(
    num_classes: int = 1000,
    data_shape: Sizes = (1, 3, 224, 224),
    dtype: str = "float32",
    alpha: float = 1.0,
    is_shallow: bool = False,
    layout: str = "NCHW",
) -> Function:
    """The network with its channels scaled by `alpha`."""
    data = var("data", shape=data_shape, dtype=dtype)
    body = conv_block(data, "conv_block_1", int(32 * alpha), strides=(2, 2), layout=layout)
    for number, (fan_in, fan_out, downsample) in enumerate(BLOCKS + (SHALLOW if is_shallow else DEEP), 1):
        name = f"separable_conv_block_{number}"
        body = separable_conv_block(
            body, name, int(fan_in * alpha), int(fan_out * alpha), downsample=downsample, layout=layout, dtype=dtype
        )
    flat = nn.batch_flatten(nn.global_avg_pool2d(body, layout=layout))
    scores = nn.bias_add(nn.dense(flat, var("fc_weight"), units=num_classes), var("fc_bias"))
    net = nn.softmax(scores)
    return Function(free_vars(net), net)


@checked
def get_workload(
    batch_size: Size = 1,
    num_classes: int = 1000,
    image_shape: Sizes = (3, 224, 224),
    dtype: str = "float32",
    layout: str = "NCHW",
    alpha: float = 1.0,
    is_shallow: bool = False,
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters."""
    return create_workload(mobile_net(num_classes, (batch_size, *image_shape), dtype, alpha, is_shallow, layout))
