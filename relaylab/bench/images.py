"""Networks of images in ONNX, of random weights: super-resolution, efficient and modern ones, a detector."""

from __future__ import annotations

import numpy as np

from relaylab.bench.onnx_graph import OnnxGraph, declared

PICTURE = (1, 3, 224, 224)

EFFICIENT = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
             (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))  # fmt: skip
"""EfficientNet-B0: by what the channels grow inside, channels, blocks, stride, kernel (Tan and Le, 2019)."""

MOBILE = ((16, 16, 1, 3, 0, 0), (64, 24, 2, 3, 0, 0), (72, 24, 1, 3, 0, 0), (72, 40, 2, 5, 1, 0), (120, 40, 1, 5, 1, 0),
          (120, 40, 1, 5, 1, 0), (240, 80, 2, 3, 0, 1), (200, 80, 1, 3, 0, 1), (184, 80, 1, 3, 0, 1),
          (184, 80, 1, 3, 0, 1), (480, 112, 1, 3, 1, 1), (672, 112, 1, 3, 1, 1), (672, 160, 2, 5, 1, 1),
          (960, 160, 1, 5, 1, 1), (960, 160, 1, 5, 1, 1))  # fmt: skip
"""MobileNetV3-Large: channels inside, channels, stride, kernel, squeeze, hard swish (Howard et al., 2019)."""


@declared((1, 1, 224, 224))
def super_resolution(g: OnnxGraph, x: str) -> str:
    """Three times as large (Shi et al., 2016)."""
    for ins, outs, kernel in ((1, 64, 5), (64, 64, 3), (64, 32, 3)):
        x = g.call("Relu", g.conv(x, ins, outs, kernel))
    return g.call("DepthToSpace", g.conv(x, 32, 9, 3), blocksize=3, mode="CRD")


def _swish(g: OnnxGraph, x: str) -> str:
    return g.call("Mul", x, g.call("Sigmoid", x))


def _activated(g: OnnxGraph, x: str, hard: int) -> str:
    return g.call("HardSwish", x) if hard else g.call("Relu", x)


def _excited(g: OnnxGraph, x: str, channels: int, inner: int, hard: bool) -> str:
    """Channels weighted by what their means say (Hu et al., 2017)."""
    y = g.conv(g.call("GlobalAveragePool", x), channels, inner)
    y = g.conv(g.call("Relu", y) if hard else _swish(g, y), inner, channels)
    return g.call("Mul", x, g.call("HardSigmoid", y, alpha=1 / 6) if hard else g.call("Sigmoid", y))


def _head(g: OnnxGraph, x: str, channels: int) -> str:
    return g.linear(g.call("Flatten", g.call("GlobalAveragePool", x)), channels, 1000)


@declared(PICTURE)
def efficientnet(g: OnnxGraph, x: str) -> str:
    x, ins = _swish(g, g.conv(x, 3, 32, 3, 2)), 32
    for grown, outs, blocks, first, kernel in EFFICIENT:
        for k in range(blocks):
            stride, inner = (1 if k else first), ins * grown
            y = _swish(g, g.conv(x, ins, inner)) if grown > 1 else x
            y = _excited(g, _swish(g, g.conv(y, inner, inner, kernel, stride, inner)), inner, max(1, ins // 4), False)
            y = g.conv(y, inner, outs)
            x, ins = (g.call("Add", x, y) if stride == 1 and ins == outs else y), outs
    return _head(g, _swish(g, g.conv(x, ins, 1280)), 1280)


@declared(PICTURE)
def mobilenet_v3(g: OnnxGraph, x: str) -> str:
    x, ins = g.call("HardSwish", g.conv(x, 3, 16, 3, 2)), 16
    for inner, outs, stride, kernel, excite, hard in MOBILE:
        y = _activated(g, g.conv(x, ins, inner), hard) if inner != ins else x
        y = _activated(g, g.conv(y, inner, inner, kernel, stride, inner), hard)
        y = g.conv(_excited(g, y, inner, inner // 4, True) if excite else y, inner, outs)
        x, ins = (g.call("Add", x, y) if stride == 1 and ins == outs else y), outs
    return _head(g, g.call("HardSwish", g.conv(x, ins, 960)), 960)


@declared(PICTURE)
def convnext(g: OnnxGraph, x: str) -> str:
    """Two blocks of each width (Liu et al., 2022)."""
    x, size = g.transpose(g.conv(x, 3, 96, 4, 4, pads=[0] * 4), 0, 2, 3, 1), 96
    for width in (96, 192, 384, 768):
        if width != size:
            x = g.conv(g.transpose(g.norm(x, size), 0, 3, 1, 2), size, width, 2, 2, pads=[0] * 4)
            x, size = g.transpose(x, 0, 2, 3, 1), width
        for _ in range(2):
            y = g.transpose(g.conv(g.transpose(x, 0, 3, 1, 2), width, width, 7, groups=width), 0, 2, 3, 1)
            y = g.linear(g.gelu(g.linear(g.norm(y, width), width, 4 * width)), 4 * width, width)
            x = g.call("Add", x, g.call("Mul", y, g.weight(width)))
    return g.linear(g.call("ReduceMean", x, axes=[1, 2], keepdims=0), 768, 1000)


WINDOW = 7


def _rolled(g: OnnxGraph, x: str, by: int) -> str:
    """Rows and columns moved round, as torch.roll is exported."""
    for axis in (1, 2):
        at = [g.constant([v], "int64") for v in (by, 2**31 - 1, 0, by, axis)]
        ends = g.call("Slice", x, at[0], at[1], at[4]), g.call("Slice", x, at[2], at[3], at[4])
        x = g.call("Concat", *ends, axis=axis)
    return x


def _windows(g: OnnxGraph, x: str, side: int, width: int, heads: int, shift: int) -> str:
    """Attention within windows, those of every second block shifted (Liu et al., 2021)."""
    parts, count = side // WINDOW, WINDOW * WINDOW
    x = _rolled(g, x, shift) if shift else x
    cut = g.transpose(g.reshape(x, 1, parts, WINDOW, parts, WINDOW, width), 0, 1, 3, 2, 4, 5)
    added = g.rng.standard_normal((1, heads, count, count)).astype("float32")
    if shift:
        apart = g.rng.random((parts * parts, 1, count, count)) < 0.1
        added = added + np.where(apart, np.float32(-100), np.float32(0))
    y = g.attention(
        g.reshape(cut, parts * parts, count, width), width, heads, count, parts * parts, added=g.constant(added)
    )
    y = g.transpose(g.reshape(y, 1, parts, parts, WINDOW, WINDOW, width), 0, 1, 3, 2, 4, 5)
    y = g.reshape(y, 1, side, side, width)
    return _rolled(g, y, -shift) if shift else y


@declared(PICTURE)
def swin(g: OnnxGraph, x: str) -> str:
    """Two blocks of each width of Swin-T."""
    x, side, size = g.norm(g.transpose(g.conv(x, 3, 96, 4, 4, pads=[0] * 4), 0, 2, 3, 1), 96), 56, 96
    for width in (96, 192, 384, 768):
        if width != size:
            side //= 2
            x = g.transpose(g.reshape(x, 1, side, 2, side, 2, size), 0, 1, 3, 4, 2, 5)
            x = g.linear(g.norm(g.reshape(x, 1, side, side, 4 * size), 4 * size), 4 * size, width, bias=False)
            size = width
        for k in range(2):
            shift = WINDOW // 2 if k and side > WINDOW else 0
            x = g.call("Add", x, _windows(g, g.norm(x, width), side, width, width // 32, shift))
            wide = g.gelu(g.linear(g.norm(x, width), width, 4 * width))
            x = g.call("Add", x, g.linear(wide, 4 * width, width))
    return g.linear(g.call("ReduceMean", g.norm(x, 768), axes=[1, 2], keepdims=0), 768, 1000)


@declared((1, 3, 320, 320), whole=True)
def detector(g: OnnxGraph, x: str) -> str:
    """Boxes of 20 classes on three grids, and what non-maximum suppression leaves of them."""
    x, ins, boxes, scores = g.call("Relu", g.conv(x, 3, 16, 3, 2)), 16, [], []
    for outs, seen in ((32, False), (64, True), (128, True), (256, True)):
        x = g.call("Relu", g.conv(x, ins, outs, 3, 2))
        x, ins = g.call("Add", x, g.call("Relu", g.conv(x, outs, outs, 3))), outs
        if seen:
            found = g.transpose(g.reshape(g.conv(x, outs, 24), 1, 24, -1), 0, 2, 1)
            at = [g.constant([v], "int64") for v in (0, 4, 24, 2)]
            boxes.append(g.call("Slice", found, at[0], at[1], at[3]))
            scores.append(g.call("Slice", found, at[1], at[2], at[3]))
    sizes = g.scaled(g.call("Sigmoid", g.call("Concat", *boxes, axis=1)), 60.0)
    cells = [(n, 320 / n) for n in (40, 20, 10)]
    grid = [np.stack(np.meshgrid(np.arange(n), np.arange(n)), -1).reshape(-1, 2) * step for n, step in cells]
    centres = g.constant(np.tile(np.concatenate(grid), (1, 2)).astype("float32")[None])
    corners = g.call("Add", centres, g.call("Mul", sizes, g.constant([-1, -1, 1, 1], "float32")))
    likely = g.transpose(g.call("Sigmoid", g.call("Concat", *scores, axis=1)), 0, 2, 1)
    limits = (g.constant([50], "int64"), g.constant([0.5], "float32"), g.constant([0.6], "float32"))
    return g.call("NonMaxSuppression", corners, likely, *limits)
