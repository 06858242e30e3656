"""The derivatives of sums of products: einsum, stft, and products with sparse matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from string import ascii_letters

import numpy as np

from relaylab.ir import Call, Expr, IntImm, TensorType, Tuple, TupleGetItem, const, facets
from relaylab.op.tensor.einsum import extents_of, terms
from relaylab.transform.engine.build import call, reshaped, scalar
from relaylab.transform.engine.infer_type import dtype_of, fields_of
from relaylab.transform.gradients.reverse import expanded
from relaylab.transform.gradients.rules import add, gradient_of, mul, sub
from relaylab.transform.gradients.rules_moves import extents
from relaylab.transform.gradients.rules_scatter import masked

Factor = tuple[Expr, list[str], list[int]]
"""An operand of einsum: its value, letters and extents."""


@gradient_of("einsum")
def _einsum(c: Call, y: Expr, g: Expr) -> Sequence[list[Expr]]:
    """For each operand the sum of products of all others and the gradient, over the letters that it lacks."""
    equation, operands = facets(c).equation, c.args[0]
    shapes = [t.concrete_shape for t in fields_of(operands) if isinstance(t, TensorType)]
    letters, out = terms(equation, [len(s) for s in shapes])
    found = extents_of(equation, letters, [list(map(IntImm, s)) for s in shapes])
    whole = {x: int(n) for x, n in found.items() if isinstance(n, int)}
    parts: list[Factor] = [(TupleGetItem(operands, k), x, list(s)) for k, (x, s) in enumerate(zip(letters, shapes))]
    result: Factor = (g, out, [whole[x] for x in out])
    return [[_operand(part, [*parts[:k], *parts[k + 1 :], result], whole, dtype_of(c)) for k, part in enumerate(parts)]]


def _operand(part: Factor, factors: list[Factor], whole: dict[str, int], dtype: str) -> Expr:
    _, own, shape = part
    target: list[str] = []
    for d, (x, n) in enumerate(zip(own, shape)):
        if n != whole[x]:
            continue  # broadcast along the letter: the sum over it
        if x in target:  # a diagonal: elements beside it get nothing
            factors = [*factors, (const(np.eye(n), dtype), [x, f"={d}"], [n, n])]
            x = f"={d}"
        elif not any(x in names and sizes[names.index(x)] == n for _, names, sizes in factors):
            factors = [*factors, (const(np.ones(n), dtype), [x], [n])]
        target.append(x)
    short: dict[str, str] = {}
    write = lambda names: "".join(short.setdefault(x, ascii_letters[len(short)]) for x in names)
    text = ",".join(write(names) for _, names, _ in factors) + "->" + write(target)
    made = call("einsum", Tuple([v for v, _, _ in factors]), equation=text)
    return reshaped(made, shape)


@gradient_of("stft")
@expanded
def _stft(c: Call) -> Expr:
    """A convolution with strides: its weights are the window times the waves."""
    (x, window), a = c.args, facets(c)
    n, frequencies, frames, _ = extents(c)
    width, dtype = a.win_length, dtype_of(c)
    angle = 2 * np.pi / width * np.outer(np.arange(frequencies), np.arange(width))
    waves = np.stack([np.cos(angle), -np.sin(angle)], axis=1) / (math.sqrt(a.n_fft) if a.normalized else 1)
    frame = call("cast", call("strided_slice", window, begin=[0], end=[width], strides=[1]), dtype=dtype)
    weight = reshaped(mul(const(waves, dtype), frame), [2 * frequencies, 1, width])
    line = call("expand_dims", x, axis=1)
    made = call("nn.conv1d", line, weight, strides=[a.hop_length], channels=2 * frequencies, kernel_size=[width])
    end = [n, 2 * frequencies, frames]  # n_fft may be wider than a frame: then there may be windows behind the last
    made = call("strided_slice", made, begin=[0, 0, 0], end=end, strides=[1, 1, 1])
    return call("transpose", reshaped(made, [n, frequencies, 2, frames]), axes=[0, 1, 3, 2])


# ---- sparse matrices


def _blocks(sparse: Sequence[Expr]) -> tuple[Expr, Expr, list[int], int]:
    """The blocks of a matrix (of no row: zeros), the rows they lie in, their shape, and how many rows there are."""
    data, _, indptr = sparse
    shape = [*extents(data)[:1], *(extents(data)[1:] or [1, 1])]
    rows, place = extents(indptr)[0] - 1, const(np.arange(shape[0]), dtype_of(indptr))
    row = sub(call("searchsorted", indptr, place, right=True, dtype="int64"), scalar(1, "int64"))
    first, end = scalar(0, "int64"), scalar(rows - 1, "int64")
    kept = call("logical_and", call("greater_equal", row, first), call("less_equal", row, end))
    blocks = masked(reshaped(kept, [-1, 1, 1]), reshaped(data, shape))
    return blocks, call("minimum", call("maximum", row, first), end), shape, rows


def _product(x: Expr, width: int, lines: int, sparse: Sequence[Expr]) -> Expr:
    """The product of a sparse matrix with the transpose of `x`, (lines, width)."""
    blocks, row, (_, tall, wide), rows = _blocks(sparse)
    split = reshaped(x, [lines, width // wide, wide])
    seen = call("take", split, call("cast", sparse[1], dtype="int64"), axis=1)
    parts = call("einsum", Tuple([blocks, seen]), equation="brc,mbc->brm")
    empty = const(np.zeros([rows, tall, lines]), dtype_of(sparse[0]))
    sums = call("scatter_nd", empty, call("expand_dims", row, axis=0), parts, mode="add")
    return reshaped(sums, [rows * tall, lines])


@gradient_of("nn.sparse_dense", "nn.internal.sparse_dense_padded")
@expanded
def _sparse_dense(c: Call) -> Expr:
    x, *sparse = c.args
    lines, width = extents(x)
    made = _product(x, width, lines, sparse)
    return made if facets(c).sparse_lhs else call("transpose", made, axes=[1, 0])


@gradient_of("nn.sparse_add")
@expanded
def _sparse_add(c: Call) -> Expr:
    x, *sparse = c.args
    blocks, row, (_, tall, wide), rows = _blocks(sparse)
    empty = const(np.zeros([rows, extents(x)[1] // wide, tall, wide]), dtype_of(x))
    places = call("stack", Tuple([row, call("cast", sparse[1], dtype="int64")]), axis=0)
    whole = call("scatter_nd", empty, places, blocks, mode="add")
    return add(x, reshaped(call("transpose", whole, axes=[0, 2, 1, 3]), extents(x)))


@gradient_of("nn.sparse_conv2d")
@expanded
def _sparse_conv2d(c: Call) -> Expr:
    """The product of the matrix with what each pixel sees: all channels of each tap (NHWC), all taps of each (NCHW)."""
    (x, *sparse), k, nchw = c.args, facets(c).kernel_size, facets(c).layout == "NCHW"
    image = x if nchw else call("transpose", x, axes=[0, 3, 1, 2])
    n, channels, height, width = extents(x) if nchw else [extents(x)[d] for d in (0, 3, 1, 2)]
    border = [(0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)]
    image = call("nn.pad", image, scalar(0, dtype_of(x)), pad_width=border, pad_mode="constant")
    cut = lambda v, u: call(
        "strided_slice", image, begin=[0, 0, v, u], end=[n, channels, v + height, u + width], strides=[1] * 4
    )
    taps = call("stack", Tuple([cut(v, u) for v in range(k) for u in range(k)]), axis=2 if nchw else 1)
    seen = call("transpose", taps, axes=[0, 3, 4, 1, 2])
    lines, columns = n * height * width, channels * k * k
    made = _product(reshaped(seen, [lines, columns]), columns, lines, sparse)
    made = reshaped(made, [-1, n, height, width])
    return call("transpose", made, axes=[1, 0, 2, 3] if nchw else [1, 2, 3, 0])
