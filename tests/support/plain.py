"""What operators mean in plain numpy, written for the search and by nobody's loop or reference form.

    values = evaluate(body, {var: array}, wide="longdouble")

`wide` is the dtype of floats whatever the program's types say: the results that exact arithmetic comes close to.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from codegen.conv_reference import conv, conv_transpose
from numpy.lib.stride_tricks import sliding_window_view

from relaylab.op.rounding import evaluated
from relaylab.ir import Call, Constant, Expr, Let, TensorType, Tuple, TupleGetItem, TupleType, Var, facets, post_order

Meaning = Callable[..., Any]
erf = np.vectorize(math.erf, otypes=["float64"])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def away(x: np.ndarray) -> np.ndarray:
    """The nearest whole number, halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole)


def trunc_divide(a: np.ndarray, b: np.ndarray) -> Any:
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    if not b.all():
        return NotImplemented
    signs = (np.sign(a) * np.sign(b)).astype(object)
    whole = signs * (np.abs(a.astype(object)) // np.abs(b.astype(object)))
    return np.asarray((whole + 2**63) % 2**64 - 2**63).astype("int64")  # the least number over -1 wraps


ELEMENTS: dict[str, Meaning] = {
    **{n: getattr(np, n) for n in "abs exp log tanh sin cos tan sqrt floor ceil trunc negative add subtract".split()},
    **{n: getattr(np, n) for n in "multiply maximum minimum equal not_equal less less_equal greater".split()},
    **{n: getattr(np, n) for n in "greater_equal logical_not logical_and logical_or logical_xor power".split()},
    **{n: getattr(np, n) for n in "bitwise_and bitwise_or bitwise_xor floor_divide isnan isinf isfinite".split()},
    **{n: getattr(np, n) for n in "sinh cosh log2 log10 left_shift right_shift".split()},
    **{"a" + n[3:]: getattr(np, n) for n in "arcsin arccos arctan arcsinh arccosh arctanh".split()},
    "bitwise_not": np.invert,
    "sign": lambda x: (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype),  # 0 of NaN
    "round": away,
    "sigmoid": sigmoid,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": erf,
    "copy": lambda x: x,
    "nn.dropout": lambda x: (x, np.ones_like(x)),
    "nn.relu": lambda x: np.where(x < 0, 0, x),
    "divide": lambda a, b: a / b if a.dtype.kind == "f" else trunc_divide(a, b),
    "trunc_divide": trunc_divide,
    "floor_mod": np.mod,
    "mod": np.fmod,
    "trunc_mod": np.fmod,
    "zeros_like": np.zeros_like,
    "ones_like": np.ones_like,
    "where": lambda c, x, y: np.where(c != 0, x, y),
}
"""Operators without attributes."""


def along(a: Any, x: np.ndarray) -> tuple[int, ...]:
    """The axes that a reduction takes away."""
    given = (a.axis,) if isinstance(a.axis, int) else a.axis
    axes = tuple(range(x.ndim)) if not given and given != () else tuple(k % x.ndim for k in given)
    return tuple(k for k in range(x.ndim) if k not in axes) if a.exclude else axes


def reduction(f: Meaning) -> Meaning:
    return lambda a, x: f(x, axis=along(a, x), keepdims=a.keepdims)


def mean(a: Any, x: np.ndarray) -> Any:
    if x.dtype.kind != "f":
        return NotImplemented
    return np.sum(x, axis=along(a, x), keepdims=a.keepdims) / math.prod(x.shape[k] for k in along(a, x))


def variance(a: Any, x: np.ndarray, m: np.ndarray) -> np.ndarray:
    axes = along(a, x)
    count = math.prod(x.shape[k] for k in axes) - bool(a.unbiased)
    return np.sum(np.square(x - m), axis=axes, keepdims=a.keepdims) / count


def position(pick: Meaning) -> Meaning:
    def of(a: Any, x: np.ndarray) -> Any:
        axes = along(a, x)
        if len(axes) != 1:
            return NotImplemented
        line = np.flip(x, axes[0]) if a.select_last_index else x
        found = pick(line, axis=axes[0], keepdims=a.keepdims)
        return x.shape[axes[0]] - 1 - found if a.select_last_index else found

    return of


def clipped(a: Any, x: np.ndarray) -> Any:
    if x.dtype.kind == "f":
        return np.clip(x, *(x.dtype.type(b) for b in (a.a_min, a.a_max)))
    return (
        np.clip(x.astype("int64"), math.ceil(a.a_min), math.floor(a.a_max)) if x.dtype != "uint64" else NotImplemented
    )


def channel(v: np.ndarray, axis: int, ndim: int) -> np.ndarray:
    """A vector along an axis of a tensor."""
    return v.reshape([-1 if k == axis % ndim else 1 for k in range(ndim)])


def softmax(a: Any, x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=a.axis, keepdims=True))
    return e / e.sum(axis=a.axis, keepdims=True)


def log_softmax(a: Any, x: np.ndarray) -> np.ndarray:
    d = x - x.max(axis=a.axis, keepdims=True)
    return d - np.log(np.exp(d).sum(axis=a.axis, keepdims=True))


def centred(x: np.ndarray, axes: tuple[int, ...], epsilon: float) -> np.ndarray:
    d = x - x.mean(axis=axes, keepdims=True)
    return d / np.sqrt(np.square(d).mean(axis=axes, keepdims=True) + epsilon)


def scaled(a: Any, d: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    d = d * channel(gamma, a.axis, d.ndim) if a.scale else d
    return d + channel(beta, a.axis, d.ndim) if a.center else d


def batch_norm(a: Any, x: Any, gamma: Any, beta: Any, m: Any, v: Any) -> Any:
    d = (x - channel(m, a.axis, x.ndim)) / np.sqrt(channel(v, a.axis, x.ndim) + a.epsilon)
    return scaled(a, d, gamma, beta), m, v


def group_norm(a: Any, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    k = a.axis % x.ndim
    parts = x.reshape(*x.shape[:k], a.num_groups, x.shape[k] // a.num_groups, *x.shape[k + 1 :])
    axes = tuple(range(k + 1, parts.ndim))  # those before the channels stay apart, as in SimplifyInference
    return scaled(a, centred(parts, axes, a.epsilon).reshape(x.shape), gamma, beta)


def instance_norm(a: Any, x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    axes = tuple(j for j in range(1, x.ndim) if j != a.axis % x.ndim)
    return scaled(a, centred(x, axes, a.epsilon), gamma, beta)


def convolved(a: Any, x: np.ndarray, w: np.ndarray, out: TensorType) -> Any:
    layout, kernel = a.data_layout, a.kernel_layout
    spatial = [c for c in layout if c not in "NC"]
    x = np.moveaxis(x, [layout.index(c) for c in ["N", *spatial, "C"]], range(x.ndim))
    w = np.moveaxis(w, [kernel.index(c) for c in ["O", "I", *spatial]], range(w.ndim))
    if a.groups > 1 and a.groups == x.shape[-1] == w.shape[0]:
        w = w.reshape(w.shape[0] * w.shape[1], 1, *w.shape[2:])
    extents = tuple(out.concrete_shape[layout.index(c)] for c in spatial)
    low = a.padding[: len(spatial)]
    kind = x.dtype if x.dtype.kind == "f" else "int64"  # whole numbers wrap
    found = conv(x, w, extents, a.strides, a.dilation, low, a.groups, kind)
    return np.moveaxis(found, range(x.ndim), [layout.index(c) for c in ["N", *spatial, "C"]])


def transposed(a: Any, x: np.ndarray, w: np.ndarray, out: TensorType) -> Any:
    n = x.ndim - 2
    if a.data_layout[:2] != "NC" or x.dtype.kind != "f":
        return NotImplemented
    found = conv_transpose(
        np.moveaxis(x, 1, -1), w, out.concrete_shape[2:], a.strides, a.dilation, a.padding[:n], a.groups, x.dtype
    )
    return np.moveaxis(found, -1, 1)


def pooled(kind: str) -> Meaning:
    """Pools, from the windows of a tensor that is padded as far as the last window reaches."""

    def of(a: Any, x: np.ndarray, out: TensorType) -> Any:
        if kind == "avg" and x.dtype.kind != "f":
            return NotImplemented
        places = [a.layout.index(c) for c in a.layout if c not in "NC"]
        x, n = np.moveaxis(x, places, range(-len(places), 0)), len(places)
        extents = [out.concrete_shape[p] for p in places]
        windows = [(k - 1) * d + 1 for k, d in zip(a.pool_size, a.dilation)]
        low, high = a.padding[:n], a.padding[n:]

        def parts(v: np.ndarray, fill: float, edge: float) -> np.ndarray:
            v = np.pad(v, [(0, 0)] * 2 + list(zip(low, high)), constant_values=edge)
            more = [max((e - 1) * s + k - m, 0) for e, s, k, m in zip(extents, a.strides, windows, v.shape[2:])]
            v = np.pad(v, [(0, 0)] * 2 + [(0, m) for m in more], constant_values=fill)
            found = sliding_window_view(v, windows, axis=tuple(range(2, 2 + n)))
            steps = [slice(None, (e - 1) * s + 1, s) for e, s in zip(extents, a.strides)]
            return found[(slice(None), slice(None), *steps, *(slice(None, None, d) for d in a.dilation))]

        axes = tuple(range(-n, 0))
        if kind == "max":
            least = np.finfo(out.dtype).min if x.dtype.kind == "f" else np.iinfo(x.dtype).min
            found = parts(x, least, least).max(axis=axes)
        else:
            ones = parts(np.ones_like(x), 0, float(a.count_include_pad))
            found = parts(x, 0, 0).sum(axis=axes) / np.maximum(ones.sum(axis=axes), 1)
        return np.moveaxis(found, range(-n, 0), places)

    return of


def globally(f: Meaning) -> Meaning:
    def of(a: Any, x: np.ndarray) -> Any:
        if f is np.mean and x.dtype.kind != "f":
            return NotImplemented
        return f(x, axis=tuple(a.layout.index(c) for c in "HW"), keepdims=True)

    return of


def adaptive(f: Meaning) -> Meaning:
    def of(a: Any, x: np.ndarray, out: TensorType) -> Any:
        if f is np.mean and x.dtype.kind != "f":
            return NotImplemented
        for c in "HW":
            k = a.layout.index(c)
            n, m = x.shape[k], out.concrete_shape[k]
            cuts = [np.arange(i * n // m, -((-(i + 1) * n) // m)) for i in range(m)]
            x = np.concatenate([f(np.take(x, cut, k), axis=k, keepdims=True) for cut in cuts], k)
        return x

    return of


def matmul(a: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    x, y = wider(a, x), wider(a, y)
    return (np.swapaxes(x, -1, -2) if a.transpose_a else x) @ (np.swapaxes(y, -1, -2) if a.transpose_b else y)


def wider(a: Any, x: np.ndarray) -> np.ndarray:
    """Integers as wide as the operator adds them up."""
    return x.astype(a.out_dtype or x.dtype) if x.dtype.kind in "iu" else x


def padded(a: Any, x: np.ndarray, value: np.ndarray) -> np.ndarray:
    if a.pad_mode == "constant":
        return np.pad(x, a.pad_width, constant_values=value)
    return np.pad(x, a.pad_width, mode=a.pad_mode)


def taken(a: Any, x: np.ndarray, at: np.ndarray) -> Any:
    if a.batch_dims or a.mode not in ("clip", "wrap"):
        return NotImplemented
    return np.take(x, at.astype("int64"), a.axis, mode=a.mode)


def one_hot(a: Any, at: np.ndarray, on: np.ndarray, off: np.ndarray) -> Any:
    return np.where(at[..., None] == np.arange(a.depth), on, off) if a.axis == -1 else NotImplemented


def placed(add: bool) -> Meaning:
    def of(a: Any, x: np.ndarray, at: np.ndarray, updates: np.ndarray) -> np.ndarray:
        result = x.copy()
        for where in np.ndindex(*updates.shape):
            to = list(where)
            to[a.axis] = int(at[where])
            result[tuple(to)] = result[tuple(to)] + updates[where] if add else updates[where]
        return result

    return of


def summed(a: Any, x: np.ndarray) -> np.ndarray:
    flat, axis = (x.reshape(-1), 0) if a.axis is None else (x, a.axis)
    dtype = None if x.dtype.kind == "f" else a.dtype or x.dtype
    total = np.cumsum(flat, axis=axis, dtype=dtype)
    return total - flat if a.exclusive else total


def sliced(a: Any, x: np.ndarray) -> Any:
    if a.slice_mode != "end" or a.axes is not None:
        return NotImplemented
    strides = a.strides if len(a.strides) == len(a.begin) else a.strides * len(a.begin)
    return x[tuple(slice(*part) for part in zip(a.begin, a.end, strides))]


def split(a: Any, x: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.split(x, a.indices_or_sections, a.axis))


def moved(a: Any, x: np.ndarray) -> np.ndarray:
    """nn.space_to_depth, channels by rows of a block, then its columns."""
    k = a.block_size
    x = x if a.layout == "NCHW" else np.moveaxis(x, -1, 1)
    parts = [x[:, :, i::k, j::k] for i, j in itertools.product(range(k), range(k))]
    found = np.concatenate(parts, 1)
    return found if a.layout == "NCHW" else np.moveaxis(found, 1, -1)


ATTRIBUTES: dict[str, Meaning] = {
    "sum": reduction(np.sum),
    "prod": reduction(np.prod),
    "max": reduction(np.max),
    "min": reduction(np.min),
    "all": reduction(np.all),
    "any": reduction(np.any),
    "mean": mean,
    "variance": variance,
    "argmax": position(np.argmax),
    "argmin": position(np.argmin),
    "clip": clipped,
    "cast": lambda a, x: x if x.dtype.kind != "f" or a.dtype.startswith(("float", "bool")) else NotImplemented,
    "nn.leaky_relu": lambda a, x: np.where(x > 0, x, x * a.alpha),
    "nn.prelu": lambda a, x, w: np.where(x > 0, x, x * channel(w, a.axis, x.ndim)),
    "nn.bias_add": lambda a, x, b: x + channel(b, a.axis, x.ndim),
    "nn.softmax": softmax,
    "nn.log_softmax": log_softmax,
    "nn.batch_norm": batch_norm,
    "nn.layer_norm": lambda a, x, g, b: scaled(a, centred(x, (a.axis,), a.epsilon), g, b),
    "nn.group_norm": group_norm,
    "nn.instance_norm": instance_norm,
    "nn.l2_normalize": lambda a, x: x / np.sqrt(np.maximum(np.square(x).sum(a.axis, keepdims=True), a.eps)),
    "nn.dense": lambda a, x, w: wider(a, x) @ wider(a, w).T,
    "nn.matmul": matmul,
    "nn.batch_matmul": matmul,
    "nn.global_avg_pool2d": globally(np.mean),
    "nn.global_max_pool2d": globally(np.max),
    "transpose": lambda a, x: np.transpose(x, a.axes),
    "concatenate": lambda a, xs: np.concatenate(xs, a.axis),
    "stack": lambda a, xs: np.stack(xs, a.axis),
    "split": split,
    "strided_slice": sliced,
    "nn.pad": padded,
    "nn.mirror_pad": lambda a, x: np.pad(x, a.pad_width, mode=a.mode.lower()),
    "repeat": lambda a, x: np.repeat(x, a.repeats, a.axis),
    "tile": lambda a, x: np.tile(x, a.reps),
    "reverse": lambda a, x: np.flip(x, a.axis),
    "take": taken,
    "gather": lambda a, x, at: np.take_along_axis(x, at.astype("int64"), a.axis),
    "scatter": placed(False),
    "scatter_add": placed(True),
    "one_hot": one_hot,
    "cumsum": summed,
    "sort": lambda a, x: np.sort(x, a.axis) if a.is_ascend else np.flip(np.sort(x, a.axis), a.axis),
    "nn.space_to_depth": moved,
}  # fmt: skip
"""Operators by their attributes; NotImplemented where there is no plain meaning."""

TYPED: dict[str, Meaning] = {
    **{f"nn.conv{n}d": convolved for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": transposed for n in (1, 2, 3)},
    **{f"nn.{kind}_pool{n}d": pooled(kind) for kind in ("max", "avg") for n in (1, 2, 3)},
    "nn.adaptive_avg_pool2d": adaptive(np.mean),
    "nn.adaptive_max_pool2d": adaptive(np.max),
    **{n: lambda a, x, out: x.reshape(out.concrete_shape) for n in ("reshape", "expand_dims", "squeeze")},
    "nn.batch_flatten": lambda a, x, out: x.reshape(out.concrete_shape),
    "broadcast_to": lambda a, x, out: np.broadcast_to(x, out.concrete_shape),
}
"""Operators whose result's shape is taken from its type."""


def meaning(call: Call, args: list[Any]) -> Any:
    """What a call gives, before it is made its type; NotImplemented if no meaning is written here."""
    name = call.op.name  # type: ignore[attr-defined]
    if name in ELEMENTS:
        return ELEMENTS[name](*args)
    if name in ATTRIBUTES:
        return ATTRIBUTES[name](facets(call), *args)
    return TYPED[name](facets(call), *args, call.checked_type) if name in TYPED else NotImplemented


def as_type(value: Any, t: Any, wide: str) -> Any:
    """A result in the dtype of a type; floats in the dtype `wide`, if that is not empty."""
    if isinstance(t, TupleType):
        return tuple(as_type(v, f, wide) for v, f in zip(value, t.fields))
    return np.asarray(value).astype(wide if wide and t.dtype.startswith("float") else t.dtype)


class Values:
    """The values of expressions, found as they are asked for."""

    def __init__(self, inputs: Mapping[Var, np.ndarray], wide: str):
        self.made = lambda value, t: as_type(value, t, wide)
        self.done: dict[Expr, Any] = {v: self.made(x, v.checked_type) for v, x in inputs.items()}

    def call(self, call: Call, args: list[Any]) -> Any:
        """What a call gives; by the operator's own reference where no meaning is written here."""
        found = meaning(call, args)
        return self.made(evaluated(facets(call), args) if found is NotImplemented else found, call.checked_type)

    def of(self, root: Expr) -> Any:
        done = self.done
        for node in post_order(root):
            if node in done or not isinstance(node, Constant | Tuple | TupleGetItem | Call):
                continue
            match node:
                case Constant():
                    done[node] = self.made(node.data.numpy(), node.checked_type)
                case Tuple():
                    done[node] = tuple(done[f] for f in node.fields)
                case TupleGetItem():
                    done[node] = done[node.tuple_value][node.index]
                case Call():
                    done[node] = self.call(node, [done[a] for a in node.args])
        return done[root]


def evaluate(body: Expr, inputs: Mapping[Var, np.ndarray], wide: str = "") -> Any:
    """The value of a body of lets, tuples and operators."""
    values = Values(inputs, wide)
    while isinstance(body, Let):
        values.done[body.var] = values.of(body.value)
        body = body.body
    return values.of(body)
