"""Convolutions and transposed convolutions of one to three spatial axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph
from relaylab.frontend.onnx import windows
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.table import converts
from relaylab.ir import Expr, const
from relaylab.op import nn

MOST_TAPS = 16  # of a block, up to which its rows are added one after another
CONV = {1: nn.conv1d, 2: nn.conv2d, 3: nn.conv3d}
TRANSPOSE = {1: nn.conv1d_transpose, 2: nn.conv2d_transpose, 3: nn.conv3d_transpose}


@converts("Conv")
def conv(g: Graph, node: OnnxNode, x: Expr, w: Expr, b: Expr | None = None) -> Expr:
    out = convolution(g, node, x, w)
    return out if b is None else nn.bias_add(out, b)


def convolution(g: Graph, node: OnnxNode, x: Expr, w: Expr, **more: Any) -> Expr:
    """The convolution of a node, without its bias."""
    shape = g.shape(w)
    if len(shape) != g.rank(x) or len(shape) < 3:
        raise node.error(f"data of rank {g.rank(x)} and weights of the shape {shape} do not fit", code="import.rank")
    win = windows.read(g, node, x, shape[2:])
    build = more.pop("build", None) or CONV[len(win.kernel)]
    return build(
        x,
        w,
        **more,
        strides=win.strides,
        padding=win.padding,
        dilation=win.dilations,
        groups=node.get("group", 1),
        channels=shape[0],
        kernel_size=win.kernel,
    )


@converts("ConvTranspose")
def conv_transpose(g: Graph, node: OnnxNode, x: Expr, w: Expr, b: Expr | None = None) -> Expr:
    shape, groups = g.shape(w), node.get("group", 1)
    if len(shape) != g.rank(x) or not 3 <= len(shape) <= 5:
        raise node.error(f"data of rank {g.rank(x)} and weights of the shape {shape} do not fit", code="import.rank")
    n = len(shape) - 2
    extra = windows.of_length(node, "output_padding", node.ints("output_padding") or [0] * n, n, 0)
    strides, dilations, before, after, extra = _margins(g, node, x, shape[2:], extra)
    out = TRANSPOSE[n](
        x,
        w,
        strides=strides,
        padding=(*before, *after),
        dilation=dilations,
        groups=groups,
        channels=shape[1] * groups,
        kernel_size=shape[2:],
        output_padding=extra,
    )
    return out if b is None else nn.bias_add(out, b)


def _margins(
    g: Graph, node: OnnxNode, x: Expr, kernel: tuple[int, ...], extra: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    """Strides, dilations, what is cut off before and after, and what is added after, per axis.

    A target that is larger than the full result is reached by adding after it.
    """
    n = len(kernel)
    strides, dilations = (
        windows.of_length(node, name, node.ints(name) or [1] * n, n, 1) for name in ("strides", "dilations")
    )
    auto, pads, target = node.choice("auto_pad", "NOTSET", windows.AUTO), node.ints("pads"), node.ints("output_shape")
    if tuple(node.ints("kernel_shape") or kernel) != kernel:
        raise node.error(f"kernel_shape {node.ints('kernel_shape')}, weights of {list(kernel)}", code="import.shape")
    same = auto.startswith("SAME")
    if target is None and not same:
        pads = pads if pads is not None and auto == "NOTSET" else [0] * (2 * n)
        pads = windows.of_length(node, "pads", pads, 2 * n, 0)
        return strides, dilations, pads[:n], pads[n:], extra
    sizes = g.shape(x)[2:]
    target = [i * s for i, s in zip(sizes, strides)] if target is None else target[-n:]
    target = windows.of_length(node, "output_shape", target, n, 1)
    cut = [
        s * (i - 1) + e + (k - 1) * d + 1 - t
        for i, s, e, k, d, t in zip(sizes, strides, extra, kernel, dilations, target)
    ]
    extra = tuple(e + max(-c, 0) for e, c in zip(extra, cut))
    less, more = [max(c, 0) // 2 for c in cut], [max(c, 0) - max(c, 0) // 2 for c in cut]
    before, after = (less, more) if auto == "SAME_UPPER" else (more, less)
    return strides, dilations, tuple(before), tuple(after), extra


@converts("DepthToSpace")
def depth_to_space(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return nn.depth_to_space(x, node.need("blocksize"), "NCHW", node.choice("mode", "DCR", ("DCR", "CRD")))


@converts("SpaceToDepth")
def space_to_depth(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    if node.choice("mode", "DCR", ("DCR", "CRD")) == "DCR":
        return nn.space_to_depth(x, node.need("blocksize"), "NCHW")
    (n, c, h, w), b = g.shape(x), node.need("blocksize")
    blocks = op.transpose(op.reshape(x, (n, c, h // b, b, w // b, b)), [0, 1, 3, 5, 2, 4])
    return op.reshape(blocks, (n, c * b * b, h // b, w // b))


@converts("Col2Im", since=18)
def col2im(g: Graph, node: OnnxNode, x: Expr, image: Expr, block: Expr) -> Expr:
    """Sums of overlapping blocks, of any number of axes."""
    size, kernel = g.ints(image, "image_shape"), g.ints(block, "block_shape")
    rank, shape = len(size), (g.named(x)[0], *g.extents(x, 1))
    strides, dilations = (node.ints(name) or [1] * rank for name in ("strides", "dilations"))
    pads = node.ints("pads") or [0] * (2 * rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    room = [n + a + b - r for n, a, b, r in zip(size, pads, pads[rank:], reach)]
    counts = [r // s + 1 for r, s in zip(room, strides)]
    taps = math.prod(kernel)
    fits = len(shape) == 3 and {len(kernel), len(strides), len(dilations), len(pads) // 2} == {rank}
    if not fits or min(kernel) < 1 or min(room) < 0 or shape[1] % taps or shape[2] != math.prod(counts):
        raise node.error(f"columns of {shape} are no blocks of {kernel} in images of {size}", code="import.shape")
    node.bound(taps, taps)
    columns = op.reshape(x, (shape[0] * (shape[1] // taps), taps, *counts))
    spaces = [r - (n - 1) * s for r, n, s in zip(room, counts, strides)]
    return op.reshape(
        put_together(g, columns, kernel, strides, dilations, pads, spaces), (shape[0], shape[1] // taps, *size)
    )


def put_together(
    g: Graph, columns: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
    pads: Sequence[int], spaces: Sequence[int],
) -> Expr:  # fmt: skip
    """The sums of overlapping blocks of columns (images, taps of a block, *how many blocks along each axis)."""
    rank = len(kernel)
    if [*kernel] == [*strides] and max(dilations) == 1 and not any((*pads, *spaces)):
        counts = g.dims(columns)[2:]
        x = op.reshape(columns, (-1, *kernel, *counts))  # which lie side by side
        x = op.transpose(x, [0, *(a for k in range(rank) for a in (1 + rank + k, 1 + k))])
        return op.reshape(x, (-1, *(n * k for n, k in zip(counts, kernel))))
    many = rank == 2 and math.prod(kernel) > MOST_TAPS
    return (_by_convolution if many else _by_taps)(g, columns, kernel, strides, dilations, pads, spaces)


def _by_convolution(
    g: Graph, columns: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
    pads: Sequence[int], spaces: Sequence[int],
) -> Expr:  # fmt: skip
    """A transposed convolution whose kernel puts every row of a column in its place."""
    taps = math.prod(kernel)
    return nn.conv2d_transpose(
        columns,
        g.const(np.eye(taps).reshape(taps, 1, *kernel), columns),
        strides=strides,
        padding=pads,
        dilation=dilations,
        channels=1,
        kernel_size=kernel,
        output_padding=spaces,
    )


def _by_taps(
    g: Graph, columns: Expr, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int],
    pads: Sequence[int], spaces: Sequence[int],
) -> Expr:  # fmt: skip
    """The rows of the columns one after another: spread by the strides, moved to their tap, added."""
    rank, total = len(kernel), None
    for k, tap in enumerate(np.ndindex(*kernel)):
        row = op.take(columns, const(k, "int64"), axis=1)
        spread = nn.dilate(row, [1, *strides]) if max(strides) > 1 else row
        before = [t * d for t, d in zip(tap, dilations)]
        after = [(n - 1) * d - b + s for n, d, b, s in zip(kernel, dilations, before, spaces)]
        moved = nn.pad(spread, [(0, 0), *zip(before, after)], 0.0)
        total = moved if total is None else op.add(total, moved)
    assert total is not None
    if not any(pads):
        return total
    ends = [n - p for n, p in zip(g.dims(total)[1:], pads[rank:])]
    return op.strided_slice(total, [*pads[:rank]], ends, [1] * rank, axes=list(range(1, rank + 1)))
