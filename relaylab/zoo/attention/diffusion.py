"""A block of latent diffusion's U-Net (Rombach et al., 2022): residual convolutions, attention to itself and a text."""

from __future__ import annotations

import math

import numpy as np

from relaylab.ir import Expr, Function, IRModule, Var, const, free_vars, var
from relaylab.op import add, concatenate, cos, multiply, nn, reshape, sin, transpose
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.zoo.attention.layers import gelu, heads_of, linear, norm, silu
from relaylab.zoo.init import create_workload

GROUPS = 32


def _conv(x: Expr, name: str, channels: int, kernel: int = 3) -> Expr:
    made = nn.conv2d(x, var(f"{name}_weight"), padding=kernel // 2, channels=channels, kernel_size=(kernel, kernel))
    return nn.bias_add(made, var(f"{name}_bias"))


def _group_norm(x: Expr, name: str, groups: int) -> Expr:
    return nn.group_norm(x, var(f"{name}_gamma"), var(f"{name}_beta"), num_groups=groups)


def time_embedding(time: Expr, batch: int, channels: int) -> Expr:
    """Cosines and sines of `time` (batch,) at falling frequencies, through two layers: (batch, 4 * channels)."""
    half = channels // 2
    angles = multiply(
        reshape(time, (batch, 1)),
        const(np.exp(-math.log(10000) * np.arange(half) / half).astype("float32").reshape(1, half)),
    )
    waves = concatenate([cos(angles), sin(angles)], axis=1)
    return linear(silu(linear(waves, "time1", 4 * channels)), "time2", 4 * channels)


@checked
def get_net(
    batch_size: int = 1, channels: int = 320, size: int = 16, heads: int = 8, text_length: int = 77, text_width: int
    = 768, groups: int = GROUPS,
) -> Function:  # fmt: skip
    """Images (batch, channels, size, size) from `data` of the same shape, `time` (batch,) and `text` (batch,
    text_length, text_width).
    """
    shape = (batch_size, channels, size, size)
    data, time = var("data", shape=shape), var("time", shape=(batch_size,))
    text = var("text", shape=(batch_size, text_length, text_width))
    moment = linear(silu(time_embedding(time, batch_size, channels)), "moment", channels)
    x = _conv(silu(_group_norm(data, "norm1", groups)), "conv1", channels)
    x = add(x, reshape(moment, (batch_size, channels, 1, 1)))
    x = add(data, _conv(silu(_group_norm(x, "norm2", groups)), "conv2", channels))

    split, pixels = heads_of(batch_size, heads, channels), size * size
    y = _conv(_group_norm(x, "norm3", groups), "inward", channels, 1)
    y = transpose(reshape(y, (batch_size, channels, pixels)), (0, 2, 1))
    y = add(y, split.self_attention(norm(y, "norm4"), "self", pixels))
    query = split.split(linear(norm(y, "norm5"), "cross_query", channels, bias=False), pixels)
    key, value = (
        split.split(linear(text, f"cross_{part}", channels, bias=False), text_length) for part in ("key", "value")
    )
    mixed = split.merge(split.attend(query, key, value, (pixels, text_length)), pixels)
    y = add(y, linear(mixed, "cross_output", channels))
    y = add(y, linear(gelu(linear(norm(y, "norm6"), "inner", 4 * channels)), "outer", channels))
    y = reshape(transpose(y, (0, 2, 1)), shape)
    out = add(x, _conv(y, "outward", channels, 1))
    return Function(free_vars(out), out)


def is_condition(param: Var) -> bool:
    """Whether a parameter is an input beside `data`."""
    return param.name_hint in ("time", "text")


@checked
def get_workload(**sizes: int) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module and its parameters; the sizes are those of `get_net`."""
    return create_workload(get_net(**sizes), is_input=is_condition)
