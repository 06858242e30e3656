"""For each operator a function that nobody here wrote: numpy's, Python's or ONNX's reference, with its attributes.

A judge gets the record of attributes and the arrays of a sample (floats in float64) and returns what it gives, or
NotImplemented where the other function has no such attribute. numpy judges where one of its functions means the very
same; `FITTED` makes the inputs of a sample fit what the other one can say.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

Judge = Callable[..., Any]
JUDGES: dict[str, Judge] = {}
FITTED: dict[str, Callable[..., tuple]] = {}
LOOSE: dict[str, float] = {"fast_exp": 1e-4, "fast_erf": 1e-4, "fast_tanh": 1e-4, "nn.fast_softmax": 1e-4}


def judge(*names: str) -> Callable[[Judge], Judge]:
    def register(function: Judge) -> Judge:
        JUDGES.update(dict.fromkeys(names, function))
        return function

    return register


def same(names: str, functions: str = "") -> None:
    """Operators without attributes that a function of numpy of this name means."""
    for name, function in zip(names.split(), (functions or names).split(), strict=True):
        JUDGES[name] = lambda a, *xs, f=getattr(np, function): f(*xs)


def each(function: Callable[..., Any], otypes: str = "d") -> Judge:
    """A function of Python's library, element by element."""
    return lambda a, *xs: np.vectorize(function, otypes=[otypes])(*xs)


same("abs ceil copy cos cosh exp floor isfinite isinf isnan log log2 log10 logical_not negative sign sin sinh sqrt tan")
same("tanh trunc ones_like zeros_like add subtract multiply maximum minimum power logical_and logical_or logical_xor")
same("bitwise_and bitwise_or bitwise_xor left_shift right_shift equal not_equal less less_equal greater greater_equal")
same("acos acosh asin asinh atan atanh", "arccos arccosh arcsin arcsinh arctan arctanh")
same("bitwise_not floor_mod floor_divide mod trunc_mod where", "invert mod floor_divide fmod fmod where")
same("fast_exp fast_tanh full_like argwhere", "exp tanh full_like argwhere")


@judge("padded_argwhere")
def padded_argwhere(a: Any, x: np.ndarray) -> Any:
    found = np.argwhere(x)
    return np.pad(found, ((0, x.size - len(found)), (0, 0))), np.array([len(found)])


@judge("padded_sparse_fill_empty_rows")
def padded_sparse_fill_empty_rows(a: Any, at: np.ndarray, values: np.ndarray, default: np.ndarray) -> Any:
    room = len(at) + a.rows
    if at[:, 0].max() >= a.rows:
        return np.zeros((room, at.shape[1])), np.zeros(room), np.zeros(a.rows), np.full(3, -1)
    empty = [r not in at[:, 0] for r in range(a.rows)]
    new = [((r, *[0] * (at.shape[1] - 1)), default.item()) for r in range(a.rows) if empty[r]]
    rows = sorted([*zip(map(tuple, at.tolist()), values.tolist()), *new], key=lambda row: row[0][0])
    n = len(rows)
    places, filled = np.zeros((room, at.shape[1])), np.zeros(room)
    places[:n], filled[:n] = [place for place, _ in rows], [value for _, value in rows]
    return places, filled, np.array(empty), np.array([n, n, a.rows])


JUDGES["erf"] = JUDGES["fast_erf"] = each(math.erf)
JUDGES["round"] = each(lambda v: float(Decimal(float(v)).quantize(Decimal(1), ROUND_HALF_UP)))
JUDGES["rsqrt"] = lambda a, x: np.power(x, -0.5)
JUDGES["clip"] = lambda a, x: np.clip(x, *(np.array(v).astype(x.dtype) for v in (a.a_min, a.a_max)))
JUDGES["reinterpret"] = lambda a, x: NotImplemented if x.dtype.kind == "f" else x.view(a.dtype)


@judge("divide", "trunc_divide")
def divide(a: Any, x: np.ndarray, y: np.ndarray) -> Any:
    if x.dtype.kind == "f":
        return np.divide(x, y) if a is None or "trunc" not in type(a).op_name else np.trunc(np.divide(x, y))
    return NotImplemented if not y.all() else each(lambda p, q: math.trunc(Fraction(int(p), int(q))), "q")(a, x, y)


@judge("fixed_point_multiply")
def fixed_point_multiply(a: Any, x: np.ndarray) -> Any:
    """The rational product, halves upward (gemmlowp's description of it)."""
    scale = Fraction(a.multiplier, 2**31) * Fraction(2) ** a.shift
    return each(lambda v: math.floor(int(v) * scale + Fraction(1, 2)), "q")(a, x)


@judge("cast", "cast_like")
def cast(a: Any, x: np.ndarray, *like: np.ndarray) -> Any:
    return x.astype(like[0].dtype if like else a.dtype)


# ---- reductions and running sums


def axes_of(a: Any, x: np.ndarray) -> tuple[int, ...]:
    every = range(x.ndim)
    chosen = [d % x.ndim for d in a.axis or every]
    return tuple(d for d in every if d not in chosen) if a.exclude and a.axis else tuple(chosen)


for _name in ("sum", "prod", "max", "min", "all", "any"):
    JUDGES[_name] = lambda a, x, f=getattr(np, _name): f(x, axis=axes_of(a, x), keepdims=a.keepdims)


@judge("mean")
def mean(a: Any, x: np.ndarray) -> Any:
    return NotImplemented if x.dtype.kind != "f" else np.mean(x, axis=axes_of(a, x), keepdims=a.keepdims)


FITTED["variance"] = lambda a, x, m: (x, np.mean(x, axis=axes_of(a, x), keepdims=True).astype(x.dtype))
JUDGES["variance"] = lambda a, x, m: np.var(x, axis=axes_of(a, x), keepdims=a.keepdims, ddof=int(a.unbiased))


@judge("argmax", "argmin")
def argmax(a: Any, x: np.ndarray) -> Any:
    axes = axes_of(a, x)
    if a.select_last_index or len(axes) not in (1, x.ndim):
        return NotImplemented
    find = np.argmax if type(a).op_name == "argmax" else np.argmin
    return find(x, axis=axes[0] if len(axes) == 1 else None, keepdims=a.keepdims)


@judge("cumsum", "cumprod")
def running(a: Any, x: np.ndarray) -> Any:
    found = getattr(np, type(a).op_name)(x, axis=a.axis, dtype=a.dtype)
    if a.exclusive:
        return NotImplemented if type(a).op_name == "cumprod" else found - x.astype(found.dtype)
    return found


# ---- shapes


@judge("reshape", "dyn.reshape", "vm.reshape_tensor")
def reshape(a: Any, x: np.ndarray, *shape: np.ndarray) -> Any:
    target = tuple(map(int, shape[0] if shape else a.newshape))
    return NotImplemented if any(n < -1 or n == 0 for n in target) else np.reshape(x, target)


JUDGES["reshape_like"] = lambda a, x, y: (
    np.reshape(x, y.shape)
    if not a.lhs_begin and not a.rhs_begin and (a.lhs_end is None and a.rhs_end is None)
    else NotImplemented
)
JUDGES["nn.batch_flatten"] = lambda a, x: np.reshape(x, (len(x), -1))
JUDGES["transpose"] = lambda a, x: np.transpose(x, a.axes or None)
JUDGES["squeeze"] = lambda a, x: np.squeeze(x, None if a.axis is None else tuple(a.axis))
JUDGES["dyn.squeeze"] = lambda a, x, axis: np.squeeze(x, tuple(np.ravel(axis)))
JUDGES["broadcast_to"] = lambda a, x: np.broadcast_to(x, a.shape)
JUDGES["dyn.broadcast_to"] = lambda a, x, shape: np.broadcast_to(x, tuple(shape))
JUDGES["broadcast_to_like"] = lambda a, x, y: np.broadcast_to(x, y.shape)
JUDGES["shape_of"] = JUDGES["vm.shape_of"] = lambda a, x: np.array(np.shape(x))
JUDGES["ndarray_size"] = lambda a, x: np.size(x)
JUDGES["concatenate"] = lambda a, xs: np.concatenate(xs, a.axis)
JUDGES["stack"] = lambda a, xs: np.stack(xs, a.axis)
JUDGES["meshgrid"] = lambda a, xs: tuple(np.meshgrid(*xs, indexing=a.indexing))
JUDGES["tile"] = lambda a, x: np.tile(x, a.reps)
JUDGES["dyn.tile"] = lambda a, x, reps: np.tile(x, tuple(reps))
JUDGES["repeat"] = lambda a, x: np.repeat(x, a.repeats, a.axis)
JUDGES["reverse"] = lambda a, x: np.flip(x, a.axis)
JUDGES["zeros"] = JUDGES["ones"] = lambda a: getattr(np, type(a).op_name)(a.shape, a.dtype or "float32")
JUDGES["dyn.zeros"] = JUDGES["dyn.ones"] = lambda a, shape: getattr(np, type(a).op_name[4:])(tuple(shape))
JUDGES["full"] = lambda a, x: np.full(a.shape, x, a.dtype or x.dtype)
JUDGES["dyn.full"] = lambda a, x, shape: np.full(tuple(shape), x, a.dtype or x.dtype)
JUDGES["arange"] = lambda a, *limits: np.arange(*(v.item() for v in limits))
JUDGES["einsum"] = lambda a, xs: np.einsum(a.equation, *xs)
JUDGES["nn.pad"] = lambda a, x, v: padded(x, a.pad_width, a.pad_mode, v)
JUDGES["dyn.nn.pad"] = lambda a, x, w, v: padded(x, w, a.pad_mode, v)
JUDGES["nn.mirror_pad"] = lambda a, x: np.pad(x, a.pad_width, a.mode.lower())


@judge("sliding_window")
def sliding_window(a: Any, x: np.ndarray) -> Any:
    lead = a.axis % x.ndim
    found = np.lib.stride_tricks.sliding_window_view(x, a.window_shape, tuple(range(lead, x.ndim)))
    return found[(slice(None),) * lead + tuple(slice(None, None, n) for n in a.strides)]


@judge("expand_dims", "dyn.expand_dims")
def expand_dims(a: Any, x: np.ndarray, *axis: np.ndarray) -> Any:
    at, n = int(axis[0].reshape(()) if axis else a.axis), a.num_newaxis
    at = at if at >= 0 else at + x.ndim + 1
    return np.expand_dims(x, tuple(range(at, at + n)))


@judge("split")
def split(a: Any, x: np.ndarray) -> Any:
    how = a.indices_or_sections
    return tuple(np.split(x, how if isinstance(how, int) else list(how), a.axis))


def padded(x: np.ndarray, widths: Any, mode: str, value: np.ndarray) -> Any:
    widths = np.asarray(widths).reshape(-1, 2)
    if (widths < 0).any():
        return NotImplemented
    more = {"constant_values": value.reshape(())} if mode == "constant" else {}
    return np.pad(x, widths, mode, **more)


@judge("layout_transform")
def layout_transform(a: Any, x: np.ndarray) -> Any:
    plain = a.src_layout.isalpha() and a.dst_layout.isalpha()
    return np.einsum(f"{a.src_layout}->{a.dst_layout}", x) if plain else NotImplemented


@judge("auto_scheduler_layout_transform")
def auto_scheduler_layout_transform(a: Any, x: np.ndarray) -> Any:
    """Element by element: a position along an axis has its digits along the axes of its name, the highest first."""
    src, dst = (re.findall(r"(\d+)(\D+)", text.lower()) for text in (a.src_layout, a.dst_layout))
    out = np.empty([int(n) for n, _ in dst], x.dtype)
    for at in np.ndindex(out.shape):
        digits = [[(d, int(n)) for d, (n, other) in zip(at, dst) if other == name] for _, name in src]
        out[at] = x[tuple(reduce(lambda high, digit: high * digit[1] + digit[0], ds, 0) for ds in digits)]
    return out


# ---- choosing elements


@judge("take")
def take(a: Any, x: np.ndarray, at: np.ndarray) -> Any:
    return NotImplemented if a.batch_dims else np.take(x, at, a.axis, mode="wrap" if a.mode == "wrap" else "clip")


@judge("gather")
def gather(a: Any, x: np.ndarray, at: np.ndarray) -> Any:
    shape = [m if d == a.axis % x.ndim else n for d, (n, m) in enumerate(zip(x.shape, at.shape))]
    return np.take_along_axis(x, at, a.axis) if shape == list(at.shape) else NotImplemented


JUDGES["adv_index"] = lambda a, xs: xs[0][tuple(xs[1:])]
JUDGES["sort"] = lambda a, x: np.sort(x, a.axis) if a.is_ascend else np.flip(np.sort(x, a.axis), a.axis)
JUDGES["invert_permutation"] = lambda a, x: np.argsort(x)
JUDGES["unravel_index"] = lambda a, x, shape: np.stack(np.unravel_index(x, tuple(shape)))
JUDGES["argsort"] = lambda a, x: np.argsort(x, a.axis, kind="stable") if a.is_ascend else NotImplemented
PARTS = {"unique", "vision.all_class_non_max_suppression"}  # nothing is said of what lies behind what is found
JUDGES["slice_like"] = lambda a, x, y: x[tuple(map(slice, y.shape))] if not a.axes else NotImplemented


@judge("searchsorted")
def searchsorted(a: Any, x: np.ndarray, v: np.ndarray) -> Any:
    side = "right" if a.right else "left"
    if x.ndim == 1:
        return np.searchsorted(x, v, side)
    return np.stack([np.searchsorted(p, q, side) for p, q in zip(x, v)])


@judge("sparse_reshape")
def sparse_reshape(a: Any, at: np.ndarray, old: np.ndarray, new: np.ndarray) -> Any:
    if -1 in new:
        new = np.array(np.empty(tuple(old), bool).reshape(tuple(new)).shape)
    return np.stack(np.unravel_index(np.ravel_multi_index(tuple(at.T), tuple(old)), tuple(new)), -1), new


# ---- products


def exact(x: np.ndarray) -> np.ndarray:
    return x.astype("int64") if x.dtype.kind in "iu" else x


def full(width: int, data: np.ndarray, columns: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The dense matrix that CSR or BSR writes: block k is of the last row whose start is not behind k."""
    data = data.reshape(len(data), *(data.shape[1:] or (1, 1)))
    (high, wide), rows = data.shape[1:], np.searchsorted(starts, np.arange(len(data)), "right") - 1
    out = np.zeros((len(starts) - 1, width // wide, high, wide), data.dtype)
    np.add.at(out, (rows, columns), data)
    return out.transpose(0, 2, 1, 3).reshape(-1, width)


@judge("nn.sparse_dense", "nn.internal.sparse_dense_padded")
def sparse_dense(a: Any, x: np.ndarray, *parts: np.ndarray) -> Any:
    s = full(x.shape[1], *parts)
    return np.inner(s, x) if a.sparse_lhs else np.inner(x, s)


@judge("nn.sparse_conv2d")
def sparse_conv2d(a: Any, x: np.ndarray, *parts: np.ndarray) -> Any:
    """Tap by tap; a row of the matrix is [C, y, x] for images NCHW, [y, x, C] for NHWC."""
    k, nchw = a.kernel_size, a.layout == "NCHW"
    x = x if nchw else np.moveaxis(x, -1, 1)
    w = full(x.shape[1] * k * k, *parts)
    w = w.reshape(len(w), -1, k, k) if nchw else np.moveaxis(w.reshape(len(w), k, k, -1), -1, 1)
    wide = np.pad(x, ((0, 0), (0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    cut = lambda i, j: wide[:, :, i : i + x.shape[2], j : j + x.shape[3]]
    out = sum(np.einsum("nchw,oc->nohw", cut(i, j), w[:, :, i, j]) for i in range(k) for j in range(k))
    return out if nchw else np.moveaxis(out, 1, -1)


JUDGES["nn.sparse_add"] = lambda a, x, *parts: x + full(x.shape[1], *parts)


@judge("nn.sparse_transpose")
def sparse_transpose(a: Any, data: np.ndarray, columns: np.ndarray, starts: np.ndarray) -> Any:
    """Read off the transpose row by row; none of the elements is 0 or there twice."""
    there = full(len(starts) - 1, np.ones(len(data)), columns, starts).T
    rows, found = np.nonzero(there)
    values = full(len(starts) - 1, data, columns, starts).T[rows, found]
    return values, found, np.searchsorted(rows, np.arange(len(starts)))


JUDGES["nn.dense"] = lambda a, x, w: np.inner(*map(exact, (x, w)))
JUDGES["nn.bias_add"] = lambda a, x, v: np.moveaxis(np.moveaxis(x, a.axis, -1) + v, -1, a.axis)
JUDGES["nn.contrib_dense_pack"] = lambda a, x, w: np.einsum("bk,ukv->buv", x, w).reshape(len(x), -1)


@judge("nn.contrib_dense_uint4")
def dense_uint4(a: Any, x: np.ndarray, weight: np.ndarray, scales: np.ndarray, zeros: np.ndarray) -> Any:
    """Bytes hold two numbers each; every column on its own."""
    halves = weight.view("uint8").reshape(*weight.shape, 4)
    numbers = np.stack([halves & 15, halves >> 4], -1).reshape(*weight.shape, 8)
    columns = []
    for unit in range(a.units):
        panel, lane = divmod(unit, weight.shape[2])
        each = weight.shape[1] * 8 // scales.shape[1]
        z, s = (np.broadcast_to(v, scales.shape)[panel, :, lane].repeat(each) for v in (zeros, scales))
        if a.rounded and not unit:
            blocks = x.astype("float32").reshape(*x.shape[:-1], -1, each)
            step = np.abs(blocks).max(-1, keepdims=True) / np.float32(127)
            x = (np.round(blocks / step) * step).reshape(x.shape).astype("float64")
        columns.append(x @ ((numbers[panel, :, lane].ravel() - z.astype("float64")) * s))
    return np.stack(columns, -1)


@judge("nn.grouped_matmul")
def grouped_matmul(a: Any, x: np.ndarray, weight: np.ndarray, ends: np.ndarray) -> Any:
    """Row by row: the first group that ends behind it."""
    x, weight = map(exact, (x, weight))
    found = np.searchsorted(ends, np.arange(len(x)), "right")
    return np.stack([row @ weight[g] if g < len(weight) else np.zeros(weight.shape[2]) for row, g in zip(x, found)])


@judge("nn.matmul", "nn.batch_matmul")
def matmul(a: Any, x: np.ndarray, y: np.ndarray) -> Any:
    x, y = map(exact, (x, y))
    return np.matmul(np.swapaxes(x, -1, -2) if a.transpose_a else x, np.swapaxes(y, -1, -2) if a.transpose_b else y)


@judge("qnn.dense")
def qnn_dense(a: Any, x: np.ndarray, w: np.ndarray, zx: np.ndarray, zw: np.ndarray, *scales: np.ndarray) -> Any:
    return np.inner(x.astype("int64") - zx, w.astype("int64") - np.reshape(zw, (-1, 1)))


@judge("qnn.batch_matmul")
def qnn_batch_matmul(a: Any, x: np.ndarray, y: np.ndarray, zx: np.ndarray, zy: np.ndarray, *scales: np.ndarray) -> Any:
    return matmul(a, x.astype("int64") - zx, y.astype("int64") - zy)


@judge("cholesky")
def cholesky(a: Any, x: np.ndarray) -> Any:
    return np.linalg.cholesky(x)


@judge("solve_triangular")
def solve_triangular(a: Any, x: np.ndarray, right: np.ndarray) -> Any:
    half = (np.triu if a.upper else np.tril)(x, (1 if a.upper else -1) if a.unit else 0)
    return np.linalg.solve(half + np.eye(x.shape[-1]) * a.unit, right)


@judge("qr")
def qr(a: Any, x: np.ndarray) -> Any:
    return np.linalg.qr(x, "complete" if a.complete else "reduced")


@judge("one_sided_svd")
def one_sided_svd(a: Any, x: np.ndarray) -> Any:
    u, sizes, v = np.linalg.svd(x, full_matrices=False)
    most = np.take_along_axis(v, np.abs(v).argmax(axis=-1, keepdims=True), axis=-1)
    return u * sizes[..., None, :] * np.swapaxes(np.sign(most), -1, -2), sizes, v * np.sign(most)


@judge("gcd")
def gcd(a: Any, x: np.ndarray, y: np.ndarray) -> Any:
    return np.reshape([math.gcd(int(i), int(k)) for i, k in zip(x.ravel(), y.ravel())], x.shape)


@judge("lu")
def lu(a: Any, x: np.ndarray) -> Any:
    """Each number is a quotient of minors (Gantmacher, The Theory of Matrices, 1959, II)."""
    triangles, order = np.zeros(x.shape), np.zeros(x.shape[:-1], "int32")
    for at in np.ndindex(x.shape[:-2]):
        rows, n = list(range(x.shape[-1])), x.shape[-1]
        minor = lambda of, m=x[at]: np.linalg.det(m[np.ix_(*of)])
        for k in range(n):
            front = list(range(k + 1))
            best = k + int(np.argmax([abs(minor(([*rows[:k], r], front))) for r in rows[k:]]))
            rows[k], rows[best] = rows[best], rows[k]
        for k in range(n):
            front, before = rows[: k + 1], list(range(k))
            for j in range(k, n):
                triangles[(*at, k, j)] = minor((front, [*before, j])) / minor((front[:-1], before))
            for i in range(k + 1, n):
                triangles[(*at, i, k)] = minor(([*front[:-1], rows[i]], [*before, k])) / minor((front, [*before, k]))
        order[at] = rows
    return triangles, order
