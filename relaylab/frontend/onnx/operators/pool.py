"""Pooling: windows, global, and of regions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.graph import Graph, is_open, of_count, rounded_up
from relaylab.frontend.onnx import windows
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.table import CONTRIB, converts
from relaylab.frontend.onnx.windows import Windows
from relaylab.frontend.open_loops import turns_of
from relaylab.ir import Constant, Expr
from relaylab.op import nn

MAX = {1: nn.max_pool1d, 2: nn.max_pool2d, 3: nn.max_pool3d}
AVERAGE = {1: nn.avg_pool1d, 2: nn.avg_pool2d, 3: nn.avg_pool3d}


def _rounded_up(g: Graph, node: OnnxNode, x: Expr, win: Windows) -> Windows:
    if not node.get("ceil_mode", 0):
        return win
    reach = [win.reach(k) for k in range(len(win.kernel))]
    return replace(win, after=rounded_up(g, x, reach, win.strides, win.before, win.after))


def _arguments(win: Windows) -> dict[str, Any]:
    return {"pool_size": win.kernel, "strides": win.strides, "dilation": win.dilations, "padding": win.padding}


@converts("MaxPool")
def max_pool(g: Graph, node: OnnxNode, x: Expr) -> list[Expr]:
    win = _rounded_up(g, node, x, windows.read(g, node, x))
    by_columns = node.get("storage_order", 0)
    largest = MAX[len(win.kernel)](x, **_arguments(win))
    return [largest] if len(node.outputs) < 2 else [largest, _places(g, node, x, win, by_columns)]


@converts("NhwcMaxPool", domain=CONTRIB)
def max_pool_last(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """The same with the channels behind."""
    rank = g.rank(x)
    out = max_pool(g, node, op.transpose(x, [0, rank - 1, *range(1, rank - 1)]))[0]
    return op.transpose(out, [0, *range(2, rank), 1])


def _places(g: Graph, node: OnnxNode, x: Expr, win: Windows, by_columns: bool) -> Expr:
    """Where the largest elements are in the flat input: its parts that meet each tap of the window, and the first
    tap that has the largest one. `by_columns` counts the last axis first."""
    shape, rank, least = (g.named(x)[0], *g.extents(x, 1)), len(win.kernel), g.dtype(x)
    lowest = -np.inf if "float" in least else np.iinfo(least).min
    node.bound(*win.kernel)
    padded = nn.pad(x, ((0, 0), (0, 0), *zip(win.before, win.after)), g.const(lowest, x))
    reach = [(n + b + a - win.reach(k)) for k, (n, b, a) in enumerate(zip(shape[2:], win.before, win.after))]
    counts = [r // s + 1 for r, s in zip(reach, win.strides)]
    taps = [[t * d for t, d in zip(tap, win.dilations)] for tap in np.ndindex(*win.kernel)]
    parts = [
        op.strided_slice(
            padded, tap, [t + (n - 1) * s + 1 for t, n, s in zip(tap, counts, win.strides)], win.strides,
            axes=list(range(2, 2 + rank)),
        )
        for tap in taps
    ]  # fmt: skip
    best = op.argmax(op.stack(parts, 0), axis=[0])
    sizes = shape[2:]
    steps = [math.prod(sizes[:k] if by_columns else sizes[k + 1 :]) for k in range(rank)]
    corner = sum(
        np.expand_dims((np.arange(n) * s - b) * step, [d for d in range(rank) if d != k])
        for k, (n, s, b, step) in enumerate(zip(counts, win.strides, win.before, steps))
    )
    offsets = Constant(np.array(taps, "int64") @ np.array(steps, "int64"))
    within = op.add(op.take(offsets, best), Constant(np.asarray(corner, "int64")))
    many = turns_of(x, 0) if is_open(shape[0]) else g.const(shape[0], "int64")
    images = of_count(op.arange(op.multiply(many, g.const(shape[1], "int64")), dtype="int64"), shape[0] * shape[1])
    first = op.multiply(images, g.const(math.prod(sizes), "int64"))
    return op.add(within, op.reshape(first, (*shape[:2], *[1] * rank), allowzero=True))


@converts("AveragePool")
def average_pool(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return averaged(g, node, x, bool(node.get("count_include_pad", 0)))


def averaged(g: Graph, node: OnnxNode, x: Expr, with_zeros: bool) -> Expr:
    """Means of windows. Zeros of the padding count if asked for, what `ceil_mode` reads behind them never does."""
    plain = windows.read(g, node, x)
    win = _rounded_up(g, node, x, plain)
    if with_zeros and win.padding != plain.padding:
        x = nn.pad(x, ((0, 0), (0, 0), *zip(plain.before, plain.after)), 0.0)
        behind = tuple(a - b for a, b in zip(win.after, plain.after))
        win, with_zeros = replace(win, before=(0,) * len(behind), after=behind), False
    return AVERAGE[len(win.kernel)](x, **_arguments(win), count_include_pad=with_zeros)


@converts("LpPool")
def lp_pool(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    """The p-th root of the sum of p-th powers: the mean with zeros, times the number of taps."""
    p = g.const(node.get("p", 2), x)
    powers = averaged(g, node, op.power(op.abs(x), p), True)
    taps = np.prod(node.ints("kernel_shape") or [])
    if node.get("ceil_mode", 0):
        raise node.error("ceil_mode is not imported for LpPool", code="import.attribute")
    return op.power(op.multiply(powers, g.const(taps, x)), op.divide(g.const(1, x), p))


def _spatial(g: Graph, x: Expr) -> list[int]:
    return list(range(2, g.rank(x)))


@converts("GlobalAveragePool")
def global_average_pool(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return nn.global_avg_pool2d(x) if g.rank(x) == 4 else op.mean(x, axis=_spatial(g, x), keepdims=True)


@converts("GlobalMaxPool")
def global_max_pool(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    return nn.global_max_pool2d(x) if g.rank(x) == 4 else op.max(x, axis=_spatial(g, x), keepdims=True)


@converts("GlobalLpPool")
def global_lp_pool(g: Graph, node: OnnxNode, x: Expr) -> Expr:
    p = g.const(node.get("p", 2), x)
    total = op.sum(op.power(op.abs(x), p), axis=_spatial(g, x), keepdims=True)
    return op.power(total, op.divide(g.const(1, x), p))


@converts("MaxUnpool")
def max_unpool(g: Graph, node: OnnxNode, x: Expr, indices: Expr, output_shape: Expr | None = None) -> Expr:
    """Every element at its flat index of the result, zeros elsewhere."""
    shape, win = g.shape(x), windows.read(g, node, x)
    natural = [
        *shape[:2],
        *((n - 1) * win.strides[k] + win.kernel[k] - win.before[k] - win.after[k] for k, n in enumerate(shape[2:])),
    ]
    target = g.ints(output_shape, "output_shape") if output_shape is not None else natural
    if len(target) != len(shape):
        raise node.error(f"output_shape {target} has another rank than {shape}", code="import.rank")
    many = int(np.prod(natural))
    flat = op.sparse_to_dense(op.reshape(indices, (-1,)), (many,), op.reshape(x, (-1,)), g.const(0, x))
    filled = op.reshape(flat, natural)
    more = [t - n for t, n in zip(target, natural)]
    if min(more) < 0:
        raise node.error(f"output_shape {target} is smaller than {natural}", code="import.shape")
    return nn.pad(filled, [(0, m) for m in more], g.const(0, x)) if any(more) else filled
