"""Inception v3: factorized convolutions in parallel (Szegedy et al., "Rethinking the Inception Architecture", 2015)."""

from __future__ import annotations

from collections.abc import Sequence

from relaylab.ir import Expr, Function, IRModule, free_vars, var
from relaylab.op import concatenate, nn
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.zoo import layers
from relaylab.zoo.init import Size, Sizes, create_workload

Pair = tuple[int, int]
Step = tuple[int, Pair, Pair, Pair]  # channels, kernel, stride, padding


def Conv(
    data: Expr,
    num_filter: int,
    kernel: Pair = (1, 1),
    stride: Pair = (1, 1),
    pad: Pair = (0, 0),
    name: str = "",
    suffix: str = "",
) -> Expr:
    """Convolution, batch norm, relu."""
    conv = layers.conv2d(
        data, channels=int(num_filter), kernel_size=kernel, strides=stride, padding=pad, name=f"{name}{suffix}_conv1"
    )
    return nn.relu(layers.batch_norm_infer(conv, epsilon=2e-5, scale=False, name=f"{name}{suffix}_bn"))


def Pooling(data: Expr, kernel: Pair, stride: Pair, pad: Pair, pool_type: str) -> Expr:
    """Maximum or average pooling; the average counts the padding."""
    if pool_type == "max":
        return nn.max_pool2d(data, pool_size=kernel, strides=stride, padding=pad)
    return nn.avg_pool2d(data, pool_size=kernel, strides=stride, padding=pad, count_include_pad=True)


def _step(channels: int, kernel: Pair = (1, 1), stride: int = 1, same: bool = True) -> Step:
    """A step of a tower; `same` pads so that a stride of one keeps the size."""
    pad = (kernel[0] // 2, kernel[1] // 2) if same else (0, 0)
    return channels, kernel, (stride, stride), pad


def _tower(data: Expr, steps: Sequence[Step], name: str) -> Expr:
    """Convolutions one after the other, named `<name>_conv`, `<name>_conv_1` …"""
    for i, (channels, kernel, stride, pad) in enumerate(steps):
        data = Conv(data, channels, kernel, stride, pad, name, "_conv" if i == 0 else f"_conv_{i}")
    return data


def _pooled(data: Expr, pool: str, proj: int, name: str) -> Expr:
    return Conv(Pooling(data, (3, 3), (1, 1), (1, 1), pool), proj, name=f"{name}_tower_2", suffix="_conv")


def Inception7A(data: Expr, c1: int, d3: Sequence[int], c5: Sequence[int], pool: str, proj: int, name: str) -> Expr:
    """1x1, 5x5 and double 3x3 towers beside a pooled one."""
    one = Conv(data, c1, name=f"{name}_conv")
    five = _tower(data, [_step(c5[0]), _step(c5[1], (5, 5))], f"{name}_tower")
    three = _tower(data, [_step(d3[0]), _step(d3[1], (3, 3)), _step(d3[2], (3, 3))], f"{name}_tower_1")
    return concatenate((one, five, three, _pooled(data, pool, proj, name)), axis=1)


def Inception7B(data: Expr, c3: int, d3: Sequence[int], name: str) -> Expr:
    """Halves the image: 3x3 and double 3x3 towers beside a maximum."""
    three = Conv(data, c3, (3, 3), (2, 2), (0, 0), f"{name}_conv")
    double = _tower(data, [_step(d3[0]), _step(d3[1], (3, 3)), _step(d3[2], (3, 3), 2, same=False)], f"{name}_tower")
    return concatenate((three, double, Pooling(data, (3, 3), (2, 2), (0, 0), "max")), axis=1)


def Inception7C(data: Expr, c1: int, d7: Sequence[int], q7: Sequence[int], pool: str, proj: int, name: str) -> Expr:
    """7x7 convolutions factorized into 1x7 and 7x1, twice and four times."""
    one = Conv(data, c1, name=f"{name}_conv")
    double = _tower(data, [_step(d7[0]), _step(d7[1], (1, 7)), _step(d7[2], (7, 1))], f"{name}_tower")
    kernels = [(7, 1), (1, 7), (7, 1), (1, 7)]
    quad = _tower(data, [_step(q7[0]), *(_step(c, k) for c, k in zip(q7[1:], kernels))], f"{name}_tower_1")
    return concatenate((one, double, quad, _pooled(data, pool, proj, name)), axis=1)


def Inception7D(data: Expr, c3: Sequence[int], d7: Sequence[int], pool: str, name: str) -> Expr:
    """Halves the image: 3x3 and factorized 7x7 towers beside a pooled one."""
    three = _tower(data, [_step(c3[0]), _step(c3[1], (3, 3), 2, same=False)], f"{name}_tower")
    steps = [_step(d7[0]), _step(d7[1], (1, 7)), _step(d7[2], (7, 1)), _step(d7[3], (3, 3), 2, same=False)]
    seven = _tower(data, steps, f"{name}_tower_1")
    return concatenate((three, seven, Pooling(data, (3, 3), (2, 2), (0, 0), pool)), axis=1)


def Inception7E(data: Expr, c1: int, d3: Sequence[int], c3: Sequence[int], pool: str, proj: int, name: str) -> Expr:
    """3x3 convolutions split into a 1x3 and a 3x1 side by side."""
    one = Conv(data, c1, name=f"{name}_conv")
    narrow = _tower(data, [_step(d3[0])], f"{name}_tower")
    wide = _tower(data, [_step(c3[0]), _step(c3[1], (3, 3))], f"{name}_tower_1")
    split = []
    for body, channels, tower in ((narrow, d3[1:], f"{name}_tower"), (wide, c3[2:], f"{name}_tower_1")):
        split.append(Conv(body, channels[0], (1, 3), pad=(0, 1), name=tower, suffix="_mixed_conv"))
        split.append(Conv(body, channels[1], (3, 1), pad=(1, 0), name=tower, suffix="_mixed_conv_1"))
    return concatenate((one, *split, _pooled(data, pool, proj, name)), axis=1)


def _entry(data: Expr) -> Expr:
    body = Conv(data, 32, (3, 3), (2, 2), name="conv")
    body = Conv(body, 32, (3, 3), name="conv_1")
    body = Conv(body, 64, (3, 3), pad=(1, 1), name="conv_2")
    body = Pooling(body, (3, 3), (2, 2), (0, 0), "max")
    body = Conv(body, 80, name="conv_3")
    body = Conv(body, 192, (3, 3), name="conv_4")
    return Pooling(body, (3, 3), (2, 2), (0, 0), "max")


@checked
def get_net(batch_size: Size, num_classes: int, image_shape: Sizes, dtype: str) -> Function:
    """The network as a function of its input and parameters."""
    body = _entry(var("data", shape=(batch_size, *image_shape), dtype=dtype))
    for proj, name in ((32, "mixed"), (64, "mixed_1"), (64, "mixed_2")):
        body = Inception7A(body, 64, (64, 96, 96), (48, 64), "avg", proj, name)
    body = Inception7B(body, 384, (64, 96, 96), "mixed_3")
    for width, name in ((128, "mixed_4"), (160, "mixed_5"), (160, "mixed_6"), (192, "mixed_7")):
        body = Inception7C(body, 192, (width, width, 192), (width, width, width, width, 192), "avg", 192, name)
    body = Inception7D(body, (192, 320), (192, 192, 192, 192), "max", "mixed_8")
    for pool, name in (("avg", "mixed_9"), ("max", "mixed_10")):
        body = Inception7E(body, 320, (384, 384, 384), (448, 384, 384, 384), pool, 192, name)
    flat = nn.batch_flatten(Pooling(body, (8, 8), (1, 1), (0, 0), "avg"))
    # the bias is called fc2_bias, as in the reference
    net = nn.softmax(nn.bias_add(nn.dense(flat, var("fc1_weight"), units=num_classes), var("fc2_bias"), axis=-1))
    return Function(free_vars(net), net)


@checked
def get_workload(
    batch_size: Size = 1, num_classes: int = 1000, image_shape: Sizes = (3, 299, 299), dtype: str = "float32"
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters."""
    return create_workload(get_net(batch_size, num_classes, image_shape, dtype))
