"""Complex numbers as two real ones; Fourier transforms as products with a matrix of cosines and sines."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np

from relaylab import op
from relaylab.frontend.fourier import LONGEST, open_transform, turns
from relaylab.frontend.pytorch.graph import Operand, TorchGraph
from relaylab.frontend.pytorch.node import AtenNode
from relaylab.frontend.pytorch.operators.shapes import stack
from relaylab.frontend.pytorch.operators.special import atan2, hypot
from relaylab.frontend.pytorch.parts import ComplexParts, by_parts, complex_of, of_any, of_complex
from relaylab.frontend.pytorch.table import TABLE, converts
from relaylab.ir import Expr
from relaylab.op import nn
from relaylab.op.fourier import TwoStepTransform

Number = ComplexParts | Operand

_ALIKE = (
    "_to_copy clone alias detach contiguous lift_fresh_copy lift_fresh neg view reshape _unsafe_view view_copy"
    " _reshape_copy permute permute_copy transpose.int transpose_copy.int t squeeze.dims squeeze.dim squeeze unsqueeze"
    " expand expand_copy repeat slice.Tensor slice_copy.Tensor select.int select_copy.int split_with_sizes split.Tensor"
    " unbind.int flip roll tril triu index_select index.Tensor _unsafe_index.Tensor gather sum sum.dim_IntList mean"
    " mean.dim cumsum diagonal unfold as_strided full new_full full_like scalar_tensor"
)
for _name in _ALIKE.split():
    of_complex(_name)(by_parts(_name if "." in _name else f"{_name}.default"))


@converts("complex")
def complex_(g: TorchGraph, node: AtenNode, real: Expr, imag: Expr) -> ComplexParts:
    if g.dims(real) == g.dims(imag):
        return ComplexParts(real, imag)
    shape = g.sizes(g.all_sizes(op.add(real, imag)))
    return ComplexParts(op.broadcast_to(real, shape), op.broadcast_to(imag, shape))


@converts("polar")
def polar(g: TorchGraph, node: AtenNode, size: Expr, angle: Expr) -> ComplexParts:
    return ComplexParts(op.multiply(size, op.cos(angle)), op.multiply(size, op.sin(angle)))


@converts("view_as_complex", "view_as_complex_copy")
def view_as_complex(g: TorchGraph, node: AtenNode, x: Expr) -> ComplexParts:
    last = g.rank(x) - 1
    return ComplexParts(*(op.take(x, g.const(k, "int64"), axis=last) for k in (0, 1)))


@of_any("view_as_real", "view_as_real_copy")
def view_as_real(g: TorchGraph, node: AtenNode, x: ComplexParts) -> Expr:
    return stack(g, node, [x.real, x.imag], -1)


@of_any("real")
def real(g: TorchGraph, node: AtenNode, x: Number) -> Operand:
    return x.real if isinstance(x, ComplexParts) else x


@of_any("imag")
def imag(g: TorchGraph, node: AtenNode, x: ComplexParts) -> Expr:
    return x.imag


@of_any("_conj", "conj", "_conj_physical", "conj_physical", "resolve_conj")
def conj(g: TorchGraph, node: AtenNode, x: Number) -> Number:
    if not isinstance(x, ComplexParts) or node.name.startswith("resolve"):
        return x
    return ComplexParts(x.real, op.negative(x.imag))


@of_any("angle")
def angle(g: TorchGraph, node: AtenNode, x: Number) -> Expr:
    x = complex_of(g, x, node.dtype)
    return atan2(g, node, x.imag, x.real)


@of_complex("abs")
def absolute(g: TorchGraph, node: AtenNode, x: ComplexParts) -> Expr:
    return hypot(g, node, x.real, x.imag)


@of_complex("exp")
def exp(g: TorchGraph, node: AtenNode, x: ComplexParts) -> ComplexParts:
    return polar(g, node, op.exp(x.real), x.imag)


@of_complex("cat", "stack")
def joined(g: TorchGraph, node: AtenNode, tensors: Sequence[Number], dim: int = 0) -> ComplexParts:
    return by_parts(node.name)(g, node, [complex_of(g, t, node.dtype) for t in tensors], dim)


@of_complex("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(g: TorchGraph, node: AtenNode, condition: Expr, a: Number, b: Number) -> ComplexParts:
    return by_parts(node.name)(g, node, condition, *(complex_of(g, v, node.dtype) for v in (a, b)))


@of_complex("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(g: TorchGraph, node: AtenNode, x: ComplexParts, mask: Expr, value: Number) -> ComplexParts:
    return by_parts(node.name)(g, node, x, mask, complex_of(g, value, node.dtype))


@of_complex("copy", "slice_scatter", "select_scatter")
def written(g: TorchGraph, node: AtenNode, x: Number, source: Number, *where: object, **more: object) -> object:
    """Part of a tensor, or all of it, with other values: what is real has no imaginary part."""
    return by_parts(node.name)(g, node, *(complex_of(g, v, node.dtype) for v in (x, source)), *where, **more)


@of_complex("index_put", "_unsafe_index_put")
def put(g: TorchGraph, node: AtenNode, x: Number, indices: object, values: Number, accumulate: bool = False) -> object:
    return by_parts(node.name)(
        g, node, complex_of(g, x, node.dtype), indices, complex_of(g, values, node.dtype), accumulate
    )


@of_complex("zeros_like", "ones_like", "empty_like")
def filled(g: TorchGraph, node: AtenNode, x: ComplexParts, dtype: object = None) -> Number:
    found = TABLE[node.name](g, node, x.real)
    return ComplexParts(found, op.zeros_like(found)) if node.value.dtype.is_complex else found


@of_complex("constant_pad_nd")
def padded(g: TorchGraph, node: AtenNode, x: ComplexParts, pad: Sequence[int], value: Number = 0) -> ComplexParts:
    number = value if isinstance(value, (int, float, complex)) else 0
    return by_parts(node.name)(g, node, x, pad, complex(number))


@of_complex("add.Tensor", "sub.Tensor", "add.Scalar", "sub.Scalar")
def added(g: TorchGraph, node: AtenNode, a: Number, b: Number, alpha: float = 1) -> ComplexParts:
    return by_parts(node.name)(g, node, *(complex_of(g, v, node.dtype) for v in (a, b)), alpha=alpha)


def _product(a: ComplexParts, b: ComplexParts, by: Callable[[Expr, Expr], Expr]) -> ComplexParts:
    """(a + bi)(c + di)."""
    return ComplexParts(
        op.subtract(by(a.real, b.real), by(a.imag, b.imag)), op.add(by(a.real, b.imag), by(a.imag, b.real))
    )


@of_complex("mul.Tensor", "mul.Scalar", "mm", "bmm", "mv", "dot")
def times(g: TorchGraph, node: AtenNode, a: Number, b: Number) -> ComplexParts:
    """What is real is not multiplied by 0."""

    def product(x: Operand, y: Operand) -> Expr:
        return TABLE[node.name](g, node, g.to(x, node.dtype), g.to(y, node.dtype))

    if not isinstance(a, (ComplexParts, complex)):
        b = complex_of(g, b, node.dtype)
        return ComplexParts(product(a, b.real), product(a, b.imag))
    a = complex_of(g, a, node.dtype)
    if not isinstance(b, (ComplexParts, complex)):
        return ComplexParts(product(a.real, b), product(a.imag, b))
    return _product(a, complex_of(g, b, node.dtype), product)


@of_complex("pow.Tensor_Scalar")
def power(g: TorchGraph, node: AtenNode, x: ComplexParts, exponent: Number) -> ComplexParts:
    """Small whole powers, as products."""
    if not isinstance(exponent, (int, float)) or exponent not in range(1, 9):
        raise node.error(f"complex numbers to the power {exponent} are not imported", "import.option")
    out = x
    for _ in range(int(exponent) - 1):
        out = _product(out, x, op.multiply)
    return out


@of_complex("div.Tensor", "div.Scalar")
def divided(g: TorchGraph, node: AtenNode, a: Number, b: Number) -> ComplexParts:
    """The divisor is first divided by the larger of its parts, so that no square overflows (Smith, 1962)."""
    a = complex_of(g, a, node.dtype)
    if not isinstance(b, (ComplexParts, complex)):
        by = g.to(b, node.dtype)
        return ComplexParts(op.divide(a.real, by), op.divide(a.imag, by))
    b = complex_of(g, b, node.dtype)
    large = op.maximum(op.abs(b.real), op.abs(b.imag))
    c, d = op.divide(b.real, large), op.divide(b.imag, large)
    by = op.multiply(large, op.add(op.multiply(c, c), op.multiply(d, d)))
    over = _product(a, ComplexParts(c, op.negative(d)), op.multiply)
    return ComplexParts(op.divide(over.real, by), op.divide(over.imag, by))


@of_complex("sym_size.int")
def size(g: TorchGraph, node: AtenNode, x: ComplexParts, axis: int) -> int | Expr:
    return TABLE["sym_size.int"](g, node, x.real, axis)


# ---- Fourier transforms


def _factor(n: float, normalization: int) -> float:
    """torch's `fft_norm_mode`: none, by the root of the number of points, by that number."""
    return (1.0, 1 / math.sqrt(n), 1 / n)[normalization]


def _turned(
    g: TorchGraph,
    node: AtenNode,
    x: ComplexParts | Expr,
    axis: int,
    inverse: bool = False,
    scale: float = 1,
    points: int = 0,
) -> list[Expr]:
    """The parts of a transform along one axis. `points`: of a real signal, one side is given, or asked for."""
    parts = [x.real, x.imag] if isinstance(x, ComplexParts) else [x]
    rank = g.rank(parts[0])
    axis = g.axis(axis, rank)
    extent = g.extent(parts[0], axis)
    n = points or extent
    if not 0 < max(n, extent) <= LONGEST:
        raise node.error(f"a transform of {n} points, at most {LONGEST} are imported", "import.shape")
    if g.is_static(parts[0]) and 0 not in g.shape(parts[0]) and n == extent and not (points and inverse):
        wanted = n // 2 + 1 if points else n
        two = TwoStepTransform.instead_of(2 * len(parts) * n * wanted, n, len(parts), inverse)
        if two is not None and g.dtype(parts[0]) in ("float32", "float64"):
            return _in_two_steps(g, two, parts, axis, wanted, scale)
    used = min(n // 2 + 1, extent) if points and inverse else extent
    table = turns(n, used, bool(points), inverse)[:, : len(parts)] * (scale * (n if inverse else 1))
    if used < extent:
        parts = [op.strided_slice(p, [0], [used], [1], axes=[axis]) for p in parts]
    order = [a for a in range(rank) if a != axis] + [axis]
    back = [order.index(a) for a in range(rank)]
    still = axis == rank - 1
    moved = op.concatenate([p if still else op.transpose(p, order) for p in parts], axis=rank - 1)
    matrix = table.transpose(3, 2, 1, 0).reshape(-1, len(parts) * used)  # what `dense` takes: a row a result
    flat = moved if rank > 1 else op.expand_dims(moved, 0)
    out = nn.dense(flat, g.const(matrix, moved), units=len(matrix))
    out = out if rank > 1 else op.squeeze(out, axis=[0])
    found = op.split(out, 2, axis=rank - 1) if table.shape[3] == 2 else [out]
    return [p if still else op.transpose(p, back) for p in found]


def _in_two_steps(
    g: TorchGraph, two: TwoStepTransform, parts: list[Expr], axis: int, wanted: int, scale: float
) -> list[Expr]:
    """The first `wanted` points of the parts of a transform along an axis."""
    shape = g.shape(parts[0])
    order = [axis, *(a for a in range(len(shape)) if a != axis)]
    rest, back = [shape[a] for a in order[1:]], [order.index(a) for a in range(len(shape))]
    flat = [op.reshape(op.transpose(p, order), (1, two.points, math.prod(rest))) for p in parts]
    found = two.transformed(op.concatenate(flat, axis=0), wanted, scale, g.dtype(parts[0]))
    halves = (op.strided_slice(found, [k], [k + 1], [1], axes=[2]) for k in range(2))
    return [op.transpose(op.reshape(half, (wanted, *rest)), back) for half in halves]


def _scale(g: TorchGraph, sizes: Sequence[int | Expr], normalization: int) -> float | Expr:
    """torch's factor of a transform of so many points along each axis."""
    if not any(isinstance(n, Expr) for n in sizes):
        return _factor(math.prod(n for n in sizes if isinstance(n, int)), normalization)
    many = reduce(op.multiply, (op.cast(g.to(n, "int64"), "float64") for n in sizes))
    one = g.const(1, "float64")
    return (1.0, op.divide(one, op.sqrt(many)), op.divide(one, many))[normalization]


def _along(
    g: TorchGraph, node: AtenNode, x: ComplexParts | Expr, dims: Sequence[int], inverse: bool, scale: float | Expr,
    points: int | Expr = 0, first: bool = False,
) -> list[Expr]:  # fmt: skip
    """The parts of a transform along some axes, one after another; `points` are those of a real signal along the first
    or else the last of them."""
    number, real = (1, scale) if isinstance(scale, Expr) else (scale, None)
    for k, axis in enumerate(dims):
        half = k == (0 if first else len(dims) - 1) and (isinstance(points, Expr) or points > 0)
        part = x.real if isinstance(x, ComplexParts) else x
        n = points if half else g.size(part, axis)
        if isinstance(n, Expr) or not isinstance(g.size(part, axis), int):
            found = _openly(g, node, x, g.axis(axis, g.rank(part)), n, half, inverse)
            found = found if k or number == 1 else [op.multiply(v, g.const(number, v)) for v in found]
        else:
            found = _turned(g, node, x, axis, inverse, 1 if k else number, n if half else 0)
        x = ComplexParts(*found) if len(found) == 2 else found[0]
    parts = [x.real, x.imag] if isinstance(x, ComplexParts) else [x]
    return parts if real is None else [op.multiply(v, op.cast(real, g.dtype(v))) for v in parts]


def _openly(
    g: TorchGraph, node: AtenNode, x: ComplexParts | Expr, axis: int, n: int | Expr, half: bool, inverse: bool
) -> list[Expr]:
    """A transform of a number of points that only run time knows."""
    parts = [x.real, x.imag] if isinstance(x, ComplexParts) else [x]
    size: Any = g.known_dim(n)
    extent = g.dims(parts[0])[axis]
    if size is None or extent != (size // 2 + 1 if half and inverse else size):
        raise node.error(f"a transform of {size or 'unknown'} points of {extent}", "import.shape", g.remedy)
    return open_transform(g, parts, axis, g.to(n, "int64"), size, half, inverse)


@converts("fft_fftfreq", "fft_rfftfreq")
def frequencies(g: TorchGraph, node: AtenNode, n: int, step: float = 1.0) -> Expr:
    return g.const((np.fft.rfftfreq if "rfft" in node.name else np.fft.fftfreq)(n, step), node.dtype)


@converts("_fft_r2c")
def fft_r2c(
    g: TorchGraph, node: AtenNode, x: Expr, dim: Sequence[int], normalization: int, onesided: bool
) -> ComplexParts:
    """Real to complex: the last of the axes first, of whose bins one side says all."""
    sizes = [g.size(x, d) for d in dim]
    scale, points = _scale(g, sizes, normalization), sizes[-1] if onesided else 0
    return ComplexParts(*_along(g, node, x, [dim[-1], *dim[:-1]], False, scale, points, True))


@of_any("_fft_c2c")
def fft_c2c(
    g: TorchGraph, node: AtenNode, x: ComplexParts, dim: Sequence[int], normalization: int, forward: bool
) -> ComplexParts:
    scale = _scale(g, [g.size(x.real, d) for d in dim], normalization)
    return ComplexParts(*_along(g, node, x, dim, not forward, scale))


@of_any("_fft_c2r")
def fft_c2r(
    g: TorchGraph, node: AtenNode, x: ComplexParts, dim: Sequence[int], normalization: int, size: int | Expr
) -> Expr:
    """Complex to real: the last of the axes last; a bin of it stands for its mirror image too."""
    scale = _scale(g, [*(g.size(x.real, d) for d in dim[:-1]), size], normalization)
    return _along(g, node, x, dim, True, scale, size)[0]
