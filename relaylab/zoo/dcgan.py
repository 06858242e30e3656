"""The generator of DCGAN: an image from a random vector (Radford et al., 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import nn, reshape, tanh, transpose
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.zoo import layers
from relaylab.zoo.init import Size, create_workload

KERNEL = 4


def deconv2d(data: Expr, oshape: Sequence[int], layout: str, name: str, stride: int = 2) -> Expr:
    """A transposed convolution that makes an image of `oshape` (channels, height, width)."""
    pad = (KERNEL - 1) // 2
    adjust = tuple((size + 2 * pad - KERNEL) % stride for size in oshape[1:])
    kernel_layout = {"NCHW": "IOHW", "NHWC": "HWOI"}.get(layout)
    if kernel_layout is None:
        raise RelayValueError(f"the generator has no layout {layout}", code="zoo.layout", help="use NCHW or NHWC")
    return layers.conv2d_transpose(
        data,
        channels=oshape[0],
        kernel_size=(KERNEL, KERNEL),
        strides=(stride, stride),
        padding=(pad, pad),
        output_padding=adjust,
        data_layout=layout,
        kernel_layout=kernel_layout,
        name=name,
    )


def deconv2d_bn_relu(data: Expr, prefix: str, oshape: Sequence[int], layout: str) -> Expr:
    """Transposed convolution, batch norm, relu."""
    net = deconv2d(data, oshape, layout, f"{prefix}_deconv")
    return nn.relu(
        layers.batch_norm_infer(
            net, epsilon=1e-5 + 1e-12, axis=layout.index("C"), scale=False, name=f"{prefix}_batch_norm"
        )
    )


@checked
def get_net(
    batch_size: Size,
    random_len: int = 100,
    oshape: Sequence[int] = (3, 64, 64),
    ngf: int = 128,
    code: Any = None,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> Function:
    """The network as a function of its input and parameters; images are 64x64."""
    if len(oshape) != 3 or tuple(oshape[1:]) != (64, 64):  # channels first in every layout, as in the reference
        raise RelayValueError("Only support 64x64 image", code="zoo.image-size", help="oshape=(channels, 64, 64)")
    code = var("data", shape=(batch_size, random_len), dtype=dtype) if code is None else code
    net = nn.relu(nn.dense(code, var("dense_weight"), units=4 * 4 * ngf * 8))
    net = reshape(net, newshape=(-1, ngf * 8, 4, 4))
    if layout == "NHWC":
        net = transpose(net, axes=(0, 2, 3, 1))
    for prefix, channels, size in (("g2", ngf * 4, 8), ("g3", ngf * 2, 16), ("g4", ngf, 32)):
        net = deconv2d_bn_relu(net, prefix, (channels, size, size), layout)
    net = tanh(deconv2d(net, oshape, layout, "g5_deconv"))
    return Function(free_vars(net), net)


@checked
def get_workload(
    batch_size: Size,
    oshape: Sequence[int] = (3, 64, 64),
    ngf: int = 128,
    random_len: int = 100,
    layout: str = "NCHW",
    dtype: str = "float32",
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters."""
    return create_workload(get_net(batch_size, random_len, oshape=oshape, ngf=ngf, layout=layout, dtype=dtype))
