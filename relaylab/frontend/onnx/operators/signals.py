"""Transforms of signals: DFT, STFT, and the matrix that sums their bins to mels."""

from __future__ import annotations

import numpy as np

from relaylab import op
from relaylab.frontend.fourier import LONGEST, open_transform, turns
from relaylab.frontend.graph import Graph, elements, is_open
from relaylab.frontend.onnx.model import dtype_of
from relaylab.frontend.onnx.node import OnnxNode
from relaylab.frontend.onnx.operators.arithmetic import same
from relaylab.frontend.onnx.operators.contract import product
from relaylab.frontend.onnx.table import converts
from relaylab.frontend.open_loops import turns_of
from relaylab.ir import Constant, Expr, const
from relaylab.op import nn
from relaylab.op.fourier import TwoStepTransform


@converts("DFT", since=17)
def dft_attribute(g: Graph, node: OnnxNode, x: Expr, length: Expr | None = None) -> Expr:
    return _transformed(g, node, x, length, node.get("axis", 1))


@converts("DFT", since=20)
def dft(g: Graph, node: OnnxNode, x: Expr, length: Expr | None = None, axis: Expr | None = None) -> Expr:
    return _transformed(g, node, x, length, -2 if axis is None else g.ints(axis, "axis")[0])


def _transformed(g: Graph, node: OnnxNode, x: Expr, length: Expr | None, axis: int) -> Expr:
    """The discrete Fourier transform as one product with a matrix of cosines and sines.

    The last axis holds real and imaginary parts (or real ones alone). Of a real signal one side of the bins says all:
    a one-sided transform gives that side, its inverse takes it.
    """
    rank, axis = g.rank(x), g.axis(axis, g.rank(x))
    shape = g.named(x)
    if is_open(shape[-1]):
        g.shape(x)  # refuses what is open
    inverse = bool(node.get("onesided", 0) and node.get("inverse", 0))
    known = None if length is None else g.value(length)
    if is_open(shape[axis]) and known is not None and not inverse and axis < rank - 1:
        many = int(known.reshape(-1)[0])
        node.bound(many)
        behind = [[0, many if a == axis else 0] for a in range(rank)]
        x = elements(nn.pad(x, behind), {axis: 0}, {axis: many})
        shape = g.named(x)
    if is_open(shape[axis]):
        return _openly(g, node, x, length, axis)
    onesided, inverse = bool(node.get("onesided", 0)), bool(node.get("inverse", 0))
    natural = 2 * (shape[axis] - 1) if onesided and inverse else shape[axis]
    n = natural if length is None else g.ints(length, "dft_length")[0]
    if axis == rank - 1 or not 0 < n <= LONGEST or shape[-1] not in (1, 2):
        raise node.error(f"axis {axis} of {shape} to {n} points", code="import.shape")
    used = min(n // 2 + 1 if onesided and inverse else n, shape[axis])
    two = _in_two_steps(g, x, n, used, onesided, inverse)
    if two is not None:
        order = [rank - 1, axis, *(d for d in range(rank - 1) if d != axis)]
        flat = op.reshape(op.transpose(x, order), (shape[-1], n, -1))
        count = n // 2 + 1 if onesided else n
        out = two.transformed(flat, count, 1 / n if inverse else 1.0, g.dtype(x))
        out = op.reshape(out, (count, *[shape[d] for d in order[2:]], 2))
        now = [*order[1:], rank - 1]
        return op.transpose(out, [now.index(d) for d in range(rank)])
    table = turns(n, used, onesided, inverse)[:, : shape[-1]]
    cut = op.strided_slice(x, [0], [used], [1], axes=[axis]) if used < shape[axis] else x
    order = [d for d in range(rank - 1) if d != axis] + [axis, rank - 1]
    rest = [shape[d] for d in order[:-2]]
    flat = op.reshape(op.transpose(cut, order), (-1, used * shape[-1]))
    by = g.const(table.reshape(used * shape[-1], -1), x)
    out = op.reshape(product(g, flat, by), (*rest, *table.shape[2:]), allowzero=True)
    return op.transpose(out, [order.index(d) for d in range(rank)])


def _openly(g: Graph, node: OnnxNode, x: Expr, length: Expr | None, axis: int) -> Expr:
    """The same for a number of points that only run time knows."""
    half, inverse = bool(node.get("onesided", 0)), bool(node.get("inverse", 0))
    extent = g.named(x)[axis]
    many, size = turns_of(x, axis), extent
    if half and inverse:
        many, size = op.multiply(op.subtract(many, const(1, "int64")), const(2, "int64")), 2 * (extent - 1)
    if length is not None:
        known = g.symbolic(length)
        if known is None:
            raise node.error("how many points a transform has, only data says", "import.dynamic", g.remedy)
        if extent != (known.reshape(-1)[0] // 2 + 1 if half and inverse else known.reshape(-1)[0]):
            raise node.error(f"{extent} elements to another number of points", "import.dynamic", g.remedy)
        many, size = op.reshape(same(g, length, "int64"), ()), known.reshape(-1)[0]
    parts = [op.take(x, const(k, "int64"), axis=g.rank(x) - 1) for k in range(g.dims(x)[-1])]
    found = open_transform(g, parts, axis, many, size, half, inverse)
    by = op.cast(many, g.dtype(x))
    return op.stack([op.divide(v, by) if inverse else v for v in found], -1)


def _in_two_steps(g: Graph, x: Expr, n: int, used: int, onesided: bool, inverse: bool) -> TwoStepTransform | None:
    """The transform of whole frames of a known number by two products, if that is better and gives what is wanted."""
    shape, dtypes = g.named(x), ("float32", "float64")
    if used < n or any(map(is_open, shape)) or (onesided and inverse) or g.dtype(x) not in dtypes or 0 in shape:
        return None
    parts = int(shape[-1])
    return TwoStepTransform.instead_of(2 * parts * n * (n // 2 + 1 if onesided else n), n, parts, inverse)


@converts("STFT", since=17)
def stft(g: Graph, node: OnnxNode, x: Expr, step: Expr, window: Expr | None = None, length: Expr | None = None) -> Expr:
    """Frames of the signal, one `step` apart, each weighted and transformed: (batch, frames, bins, 2)."""
    shape, by = g.named(x), g.ints(step, "frame_step")[0]
    if length is not None:
        n = g.ints(length, "frame_length")[0]
    elif window is not None:
        n = g.shape(window)[0]
    else:
        raise node.error("neither a window nor frame_length is given", code="import.arity")
    parts = shape[2] if len(shape) == 3 else 1
    fits = len(shape) in (2, 3) and parts in (1, 2) and (window is None or g.shape(window) == (n,))
    open_ = is_open(shape[1])
    if not fits or by < 1 or not 0 < n <= LONGEST or not (open_ or n <= shape[1]):
        raise node.error(f"frames of {n} every {by} of a signal of the shape {shape}", code="import.shape")
    onesided = bool(node.get("onesided", 1))
    if parts == 1 and not any(map(is_open, shape)) and g.dtype(x) in ("float32", "float64") and 0 not in shape:
        found = op.stft(op.reshape(x, shape[:2]), n, by, n, window, False, onesided)
        return op.transpose(found, [0, 2, 1, 3])
    table = turns(n, n, onesided, False)[:, :parts]
    frames = (shape[1] - n) // by + 1
    if open_:
        apart = [op.take(op.reshape(x, (*shape[:2], parts)), const(k, "int64"), axis=2) for k in range(parts)]
        cut = op.stack([op.sliding_window(p, 1, [n], [by]) for p in apart], -1)
    else:
        node.bound(frames, n)
        at = by * np.arange(frames)[:, None] + np.arange(n)
        cut = op.take(op.reshape(x, (-1, shape[1], parts)), Constant(at), axis=1)
    if window is not None:
        cut = op.multiply(cut, op.reshape(window, (n, 1)))
    flat = op.reshape(cut, (-1, n * parts))
    out = product(g, flat, g.const(table.reshape(n * parts, -1), x))
    return op.reshape(out, (shape[0], frames, *table.shape[2:]), allowzero=True)


@converts("MelWeightMatrix", since=17)
def mel_weights(g: Graph, node: OnnxNode, mels: Expr, length: Expr, rate: Expr, low: Expr, high: Expr) -> Expr:
    """Triangles over the bins of a transform, whose corners are as far apart as mels. Davis and Mermelstein, 1980."""
    dtype = dtype_of(node.get("output_datatype", 1), "the attribute `output_datatype`")
    ins = {"num_mel_bins": mels, "dft_length": length, "sample_rate": rate}
    count, n, hertz = (g.ints(v, name)[0] for name, v in ins.items())
    edges = [g.known(v, w).item() for v, w in ((low, "lower_edge_hertz"), (high, "upper_edge_hertz"))]
    first, last = (2595 * np.log10(1 + max(edge, 0) / 700) for edge in edges)
    if min(count, n, hertz) < 1:
        raise node.error(f"{count} mels of {n} points at {hertz} Hz", code="import.shape")
    node.bound(n // 2 + 1, count + 2)
    mel = first + np.arange(count + 2) * ((last - first) / (count + 2))
    corner = np.floor((n + 1) * 700 * (10 ** (mel / 2595) - 1) / hertz).astype("int64")
    begin, top, end = corner[:-2], corner[1:-1], corner[2:]
    bins = np.arange(n // 2 + 1)[:, None]
    if corner[-1] > n // 2 + 1 or corner.min() < 0:
        raise node.error(f"{edges} Hz are not among the bins of {n} points at {hertz} Hz", code="import.shape")
    rising = np.where(top > begin, (bins - begin) / np.maximum(top - begin, 1), 1.0)
    falling = (end - bins) / np.maximum(end - top, 1)
    out = np.where((bins >= begin) & (bins <= top), rising, np.where((bins > top) & (bins < end), falling, 0.0))
    return Constant(out.astype(dtype))
