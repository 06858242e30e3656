"""ResNet with pre-activation units (He et al., "Identity Mappings in Deep Residual Networks", 2016).

The shapes for ImageNet (18, 34, 50, 101, 152, 200, 269 layers) and for CIFAR-sized images (6n+2 or 9n+2 layers).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import add, nn
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError, shown
from relaylab.zoo import layers
from relaylab.zoo.init import Size, Sizes, create_workload

EPSILON = 2e-5
UNITS = {
    18: [2, 2, 2, 2],
    34: [3, 4, 6, 3],
    50: [3, 4, 6, 3],
    101: [3, 4, 23, 3],
    152: [3, 8, 36, 3],
    200: [3, 24, 36, 3],
    269: [3, 30, 48, 8],
}


def _bn_relu(data: Expr, layout: str, name: str) -> Expr:
    return nn.relu(layers.batch_norm_infer(data, epsilon=EPSILON, axis=layout.index("C"), name=name))


def preactivated(
    data: Expr,
    num_filter: int,
    dim_match: bool,
    bottle_neck: bool,
    conv: Callable[[Expr, int, int, bool, str], Expr],
    bn_relu: Callable[[Expr, str], Expr],
) -> Expr:
    """One unit: batch norm and relu before each convolution, and a shortcut around them.

    `conv(x, channels, size, strided, name)` makes a convolution, `bn_relu(x, name)` what is before it.
    """
    act1 = bn_relu(data, "bn1")
    if bottle_neck:
        body = conv(act1, num_filter // 4, 1, True, "conv1")
        body = conv(bn_relu(body, "bn2"), num_filter // 4, 3, False, "conv2")
        body = conv(bn_relu(body, "bn3"), num_filter, 1, False, "conv3")
    else:
        body = conv(act1, num_filter, 3, True, "conv1")
        body = conv(bn_relu(body, "bn2"), num_filter, 3, False, "conv2")
    return add(body, data if dim_match else conv(act1, num_filter, 1, True, "sc"))


def residual_unit(
    data: Expr,
    num_filter: int,
    stride: tuple[int, int],
    dim_match: bool,
    name: str,
    bottle_neck: bool = True,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
) -> Expr:
    """A unit of ResNet v2 on images (N, C, H, W): gives (N, num_filter, H / stride, W / stride).

    With `bottle_neck` its convolutions are 1x1, 3x3 and 1x1, the first two with a quarter of the channels, else two
    of 3x3. With `dim_match` the data itself is added at the end (which needs its shape: a stride of 1, C = num_filter),
    else a 1x1 convolution of it. Parameters are `<name>_conv1_weight`, `<name>_bn1_gamma`, `<name>_sc_weight` …
    """

    def conv(x: Expr, channels: int, size: int, strided: bool, part: str) -> Expr:
        return layers.conv2d(
            x,
            channels=channels,
            kernel_size=(size, size),
            strides=stride if strided else (1, 1),
            padding=(size // 2, size // 2),
            data_layout=data_layout,
            kernel_layout=kernel_layout,
            name=f"{name}_{part}",
        )

    bn_relu = lambda x, part: _bn_relu(x, data_layout, f"{name}_{part}")
    return preactivated(data, num_filter, dim_match, bottle_neck, conv, bn_relu)


def resnet(
    units: Sequence[int],
    num_stages: int,
    filter_list: Sequence[int],
    num_classes: int,
    data_shape: Sizes,
    bottle_neck: bool = True,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """The network of `num_stages` stages with `units[i]` units of `filter_list[i + 1]` channels each.

    From `data` of `data_shape` (batch first, in `layout`) to probabilities (batch, num_classes). Images of more than
    32 rows begin with a 7x7 convolution and a pooling, smaller ones with a 3x3 convolution.
    """
    kernel_layout = layers.conv_kernel_layout(layout)
    height = cast(int, data_shape[layout.index("H")])
    data = var("data", shape=data_shape, dtype=dtype)
    body = layers.batch_norm_infer(data, epsilon=EPSILON, axis=layout.index("C"), scale=False, name="bn_data")
    size, stride = (3, 1) if height <= 32 else (7, 2)
    body = layers.conv2d(
        body,
        channels=filter_list[0],
        kernel_size=(size, size),
        strides=(stride, stride),
        padding=(size // 2, size // 2),
        data_layout=layout,
        kernel_layout=kernel_layout,
        name="conv0",
    )
    if height > 32:
        body = nn.max_pool2d(
            _bn_relu(body, layout, "bn0"), pool_size=(3, 3), strides=(2, 2), padding=(1, 1), layout=layout
        )
    for i in range(num_stages):
        for j in range(units[i]):
            stride_ij = (2, 2) if i > 0 and j == 0 else (1, 1)
            name = f"stage{i + 1}_unit{j + 1}"
            body = residual_unit(body, filter_list[i + 1], stride_ij, j > 0, name, bottle_neck, layout, kernel_layout)
    pool = nn.global_avg_pool2d(_bn_relu(body, layout, "bn1"), layout=layout)
    net = nn.softmax(layers.dense_add_bias(nn.batch_flatten(pool), units=num_classes, name="fc1"))
    return Function(free_vars(net), net)


def plan(num_layers: int, height: int) -> dict[str, Any]:
    """Units, stages, channels and kind of unit of the ResNet with that many layers for images of that height."""
    if height <= 28:
        if num_layers in range(164, 10**6, 9):
            return dict(
                units=[(num_layers - 2) // 9] * 3, num_stages=3, filter_list=[16, 64, 128, 256], bottle_neck=True
            )
        if num_layers in range(2, 164, 6):
            return dict(
                units=[(num_layers - 2) // 6] * 3, num_stages=3, filter_list=[16, 16, 32, 64], bottle_neck=False
            )
        raise RelayValueError(
            f"no experiments done on num_layers {num_layers}",
            code="zoo.layers",
            help="small images take 6n+2 layers below 164, or 9n+2 from 164 on",
        )
    if num_layers not in UNITS:
        raise RelayValueError(
            f"no experiments done on num_layers {num_layers}",
            code="zoo.layers",
            help=f"choose one of {sorted(UNITS)}; images of at most 28 rows take 6n+2, such as 8 or 20",
        )
    deep = num_layers >= 50
    filters = [64, 256, 512, 1024, 2048] if deep else [64, 64, 128, 256, 512]
    return dict(units=UNITS[num_layers], num_stages=4, filter_list=filters, bottle_neck=deep)


@checked
def get_net(
    batch_size: Size,
    num_classes: int,
    num_layers: int = 50,
    image_shape: Sizes = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    build: Callable[..., Function] = resnet,
    **kwargs: object,
) -> Function:
    """The network as a function of `data` (batch_size, *image_shape) and its parameters.

    `num_layers` as in `get_workload`. Raises RelayValueError `zoo.layers`, `zoo.image-size`.
    """
    layers.conv_kernel_layout(layout)  # refuses a layout that has none
    height = image_shape[layout.index("H") - 1] if len(image_shape) == len(layout) - 1 else None
    if not isinstance(height, int):
        raise RelayValueError(
            f"no image of {shown(image_shape)} has the layout {layout}, and a height that is known",
            code="zoo.image-size",
        )
    shape = plan(num_layers, height)
    return build(num_classes=num_classes, data_shape=(batch_size, *image_shape), layout=layout, dtype=dtype, **shape)


@checked
def get_workload(
    batch_size: Size = 1,
    num_classes: int = 1000,
    num_layers: int = 18,
    image_shape: Sizes = (3, 224, 224),
    layout: str = "NCHW",
    dtype: str = "float32",
    build: Callable[..., Function] = resnet,
    **kwargs: object,
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters, which are drawn from a seed: `data` (batch_size, *image_shape) to
    (batch_size, num_classes).

    `num_layers` is 18, 34, 50, 101, 152, 200 or 269; for images of at most 28 rows 6n+2 below 164, 9n+2 from 164 on.
    """
    return create_workload(get_net(batch_size, num_classes, num_layers, image_shape, layout, dtype, build))
