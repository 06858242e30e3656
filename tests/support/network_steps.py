"""The steps of random networks that are no layers: moving and picking elements, reductions, pairs, data types."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab import relay
from relaylab.ir import Expr
from support.network_layers import STEPS, axis_of, is_float, step, active
from support.networks import LARGEST, Maker

__all__ = ["STEPS"]


# ---- moving elements


@step("move", 2)
def transpose(m: Maker, x: Expr, v: np.ndarray) -> Any:
    return relay.transpose(x, axes=[int(a) for a in m.rng.permutation(v.ndim)]) if m.chance(0.8) else relay.transpose(x)


@step("move", 2)
def reshape(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.size == 0:
        return None
    sizes, left = [], v.size
    for _ in range(int(m.rng.integers(0, 4))):
        sizes.append(m.draw([d for d in range(1, min(left, 40) + 1) if left % d == 0]))
        left //= sizes[-1]
    sizes.insert(int(m.rng.integers(0, len(sizes) + 1)), left)
    return relay.reshape(x, newshape=sizes)


@step("move", 2)
def concatenate(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim == 0 or v.size > LARGEST // 3:
        return None
    axis, parts = axis_of(m, v), [x]
    for _ in range(m.draw((1, 1, 2, 3))):
        fits = lambda u: (
            u.ndim == v.ndim
            and u.dtype == v.dtype
            and all(a == c for k, (a, c) in enumerate(zip(u.shape, v.shape)) if k != axis % v.ndim)
        )
        shape = list(v.shape)
        shape[axis] = m.extent()
        other = m.pick(fits)
        parts.append(other if other is not None and m.chance(0.8) else m.leaf(shape, v.dtype.name))
    made = relay.concatenate([parts[k] for k in m.rng.permutation(len(parts))], axis=axis)
    return made if sum(m.array(p).size for p in parts) < LARGEST else None


@step("move")
def stack(m: Maker, x: Expr, v: np.ndarray) -> Any:
    return (
        relay.stack([x, m.like(v.shape, v.dtype.name)], axis=int(m.rng.integers(-v.ndim - 1, v.ndim + 1)))
        if v.size < LARGEST // 3 and v.ndim < 5
        else None
    )


@step("move", 2)
def split(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim == 0:
        return None
    axis = axis_of(m, v)
    n = v.shape[axis]
    if n > 1 and m.chance(0.5):
        cuts = sorted({int(c) for c in m.rng.integers(1, n, 2)})
        return relay.split(x, cuts, axis=axis)
    parts = [d for d in (1, 2, 3, 4) if n and n % d == 0]
    return relay.split(x, m.draw(parts), axis=axis) if parts else None


@step("move", 2)
def strided_slice(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim == 0 or v.size == 0:
        return None
    begin, end, strides = [], [], []
    for n in v.shape:
        a, c = sorted(int(k) for k in m.rng.integers(0, n + 1, 2)) if m.chance(0.5) else (0, n)
        a, c = (a, c) if c > a else (0, n)
        s = m.draw((1, 1, 2, 3, -1))
        begin.append(c - 1 if s < 0 else a)
        end.append((a - 1 if a > 0 else -n - 1) if s < 0 else c if m.chance(0.8) else n + 7)
        strides.append(s)
    return relay.strided_slice(x, begin=begin, end=end, strides=strides)


@step("move", 2)
def pad(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.size == 0 or v.size > 4000 or v.ndim == 0:
        return None
    width = [[m.draw((0, 0, 1, 2)), m.draw((0, 0, 1, 3))] for _ in v.shape]
    if m.chance(0.3) and min(v.shape) > 3 and v.dtype != "bool":
        return relay.nn.mirror_pad(x, pad_width=width, mode=m.draw(("SYMMETRIC", "REFLECT")))
    mode = m.draw(("constant", "constant", "constant", "edge", "reflect" if min(v.shape) > 3 else "edge"))
    return relay.nn.pad(x, pad_width=width, pad_value=0 if v.dtype == "bool" else m.draw((0, 0, 1)), pad_mode=mode)


@step("move", 2)
def spread(m: Maker, x: Expr, v: np.ndarray) -> Any:
    kind = m.draw(("expand_dims", "squeeze", "broadcast_to", "repeat", "tile", "reverse", "batch_flatten"))
    if kind == "expand_dims":
        return (
            relay.expand_dims(x, axis=int(m.rng.integers(-v.ndim - 1, v.ndim + 1)), num_newaxis=m.draw((1, 1, 2)))
            if v.ndim < 4
            else None
        )
    if kind == "squeeze":
        return relay.squeeze(x)
    if v.size > 2000 or (kind != "broadcast_to" and v.ndim == 0):
        return None
    if kind == "broadcast_to":
        return (
            relay.broadcast_to(x, [m.draw((1, 2, 3)), *(m.extent() if n == 1 else n for n in v.shape)])
            if v.ndim < 5
            else None
        )
    if kind == "repeat":
        return relay.repeat(x, repeats=m.draw((1, 2, 3)), axis=axis_of(m, v))
    if kind == "tile":
        return relay.tile(x, [m.draw((1, 2, 3)) for _ in range(int(m.rng.integers(1, v.ndim + 1)))])
    if kind == "reverse":
        return relay.reverse(x, axis=axis_of(m, v))
    return relay.nn.batch_flatten(x) if v.ndim > 1 else None


@step("move")
def blocks(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim != 4 or v.size == 0:
        return None
    layout = m.draw(("NCHW", "NHWC"))
    c, h, w = (v.shape[layout.index(a)] for a in "CHW")
    if h % 2 == 0 and w % 2 == 0:
        return relay.nn.space_to_depth(x, 2, layout=layout)
    return relay.nn.depth_to_space(x, 2, layout=layout, mode=m.draw(("DCR", "CRD"))) if c % 4 == 0 else None


# ---- picking elements


@step("pick", 2)
def take(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.size == 0 or v.ndim == 0:
        return None
    axis = axis_of(m, v)
    shape = m.draw(((), (1,), (3,), (2, 2)))
    kind = m.draw(("clip", "wrap"))
    picks = m.leaf(shape, values=m.rng.integers(-2, v.shape[axis] + 2, shape).astype(m.draw(("int32", "int64"))))
    return relay.take(x, picks, axis=axis, mode=kind) if v.size < 4000 and v.ndim < 5 else None


@step("pick")
def gather(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.size == 0 or v.ndim == 0:
        return None
    axis = axis_of(m, v)
    shape = list(v.shape)
    shape[axis] = m.draw((1, 3, 5))
    data = m.rng.integers(0, v.shape[axis], shape).astype(m.draw(("int32", "int64")))
    return relay.gather(x, axis % v.ndim, m.leaf(shape, values=data)) if data.size < LARGEST else None


@step("pick", 2)
def where(m: Maker, x: Expr, v: np.ndarray) -> Any:
    cond = m.pick(lambda u: u.dtype == "bool" and broadcasts(u, v))
    if cond is None:
        cond = m.leaf([n if m.chance(0.7) else 1 for n in v.shape], "bool")
    return relay.where(cond, x, m.like(v.shape, v.dtype.name))


@step("pick")
def scatter(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.size == 0 or v.ndim == 0 or v.dtype == "bool":
        return None
    axis = axis_of(m, v)
    shape = list(v.shape)
    shape[axis] = min(2, v.shape[axis])
    adds = m.chance(0.5)
    line = (
        m.rng.integers(0, v.shape[axis], shape)
        if adds
        else np.broadcast_to(
            np.arange(shape[axis]).reshape([-1 if k == axis % v.ndim else 1 for k in range(v.ndim)]), shape
        )
    )
    index, updates = m.leaf(shape, values=line.astype("int64")), m.like(shape, v.dtype.name)
    return (relay.scatter_add if adds else relay.scatter)(x, index, updates, axis=axis)


@step("pick")
def one_hot(m: Maker, x: Expr, v: np.ndarray) -> Any:
    ints = m.pick(lambda u: u.dtype in ("int32", "int64") and u.ndim < 4 and u.size < 500, exact=True)
    dtype = m.draw(("float32", "int32"))
    if ints is None:
        return None
    return relay.one_hot(
        ints, relay.const(1, dtype), relay.const(0, dtype), depth=m.draw((1, 4, 7)), axis=-1, dtype=dtype
    )


# ---- reductions, pairs, elementwise


@step("reduce", 3)
def reduce(m: Maker, x: Expr, v: np.ndarray) -> Any:
    kind = m.draw(("sum", "mean", "max", "min", "sum", "mean", "prod", "all", "any", "variance", "std"))
    if v.ndim == 0 or v.size == 0 or (kind in ("all", "any")) != (v.dtype == "bool"):
        return None
    if (kind in ("variance", "std", "prod") and not is_float(v)) or (kind in ("variance", "std") and v.size < 2):
        return None
    axes = (
        None
        if m.chance(0.15)
        else sorted(
            int(a) - v.ndim * m.chance(0.2)
            for a in m.rng.choice(v.ndim, int(m.rng.integers(1, v.ndim + 1)), replace=False)
        )
    )
    how = {
        "axis": axes,
        "keepdims": m.chance(0.5),
        "exclude": axes is not None and len(axes) < v.ndim and m.chance(0.15),
    }
    return getattr(relay, kind)(relay.add(x, relay.const(0.5, v.dtype.name)) if kind == "prod" else x, **how)


@step("reduce")
def arg(m: Maker, x: Expr, v: np.ndarray) -> Any:
    x = m.pick(lambda u: u.ndim > 0 and u.size > 0 and u.dtype != "bool", exact=True)
    if x is None:
        return None
    return m.draw((relay.argmax, relay.argmin))(
        x, axis=axis_of(m, m.array(x)), keepdims=m.chance(0.5), select_last_index=m.chance(0.3)
    )


def broadcasts(u: np.ndarray, v: np.ndarray, largest: int = LARGEST) -> bool:
    try:
        shape = np.broadcast_shapes(u.shape, v.shape)
    except ValueError:
        return False
    return len(shape) <= 5 and np.prod(shape) <= largest


@step("pair", 5)
def binary(m: Maker, x: Expr, v: np.ndarray) -> Any:
    y = m.pick(lambda u: u.dtype == v.dtype and broadcasts(u, v))
    if y is None or m.chance(0.3):
        y = m.leaf([n if m.chance(0.7) else 1 for n in v.shape][m.draw((0, 0, 1)) :], v.dtype.name)
    if v.dtype == "bool":
        return m.draw((relay.logical_and, relay.logical_or, relay.logical_xor))(x, y)
    simple = (relay.add, relay.add, relay.subtract, relay.multiply, relay.maximum, relay.minimum)
    whole = (relay.floor_divide, relay.trunc_divide, relay.floor_mod, relay.mod, relay.bitwise_and, relay.bitwise_xor)
    a, c = (x, y) if m.chance(0.5) else (y, x)
    if is_float(v) and m.chance(0.1):
        return relay.divide(a, relay.add(relay.abs(c), relay.const(0.5, v.dtype.name)))
    return m.draw(simple if is_float(v) else simple + whole)(a, c)


@step("whole", 3)
def unary(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.dtype == "bool":
        return relay.logical_not(x)
    if not is_float(v):
        return m.draw(
            (
                relay.nn.relu,
                relay.abs,
                relay.negative,
                relay.copy,
                lambda y: relay.clip(y, 0, 3),
                relay.bitwise_not,
                relay.sign,
            )
        )(x)
    positive = lambda f: lambda y: f(relay.add(relay.abs(y), relay.const(0.3, v.dtype.name)))
    return m.draw(
        (
            relay.exp,
            relay.tanh,
            relay.sigmoid,
            relay.erf,
            relay.nn.relu,
            relay.negative,
            relay.abs,
            relay.sin,
            relay.cos,
            positive(relay.log),
            positive(relay.sqrt),
            positive(relay.rsqrt),
            relay.copy,
            relay.atan,
            relay.nn.dropout,
            lambda y: relay.clip(y, -0.5, 0.25),
            lambda y: relay.multiply(y, y),
            lambda y: active(m, y),
            lambda y: relay.zeros_like(y),
        )
    )(x)


@step("whole")
def prelu(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim < 2 or not is_float(v):
        return None
    axis = int(m.rng.integers(v.ndim))
    return relay.nn.prelu(x, m.leaf((v.shape[axis],), v.dtype.name), axis=axis)


@step("dtype", 2)
def cast(m: Maker, x: Expr, v: np.ndarray) -> Any:
    dtype = m.draw(("float32", "float32", "float64", "float16", "int32", "int8", "uint8", "int64", "int16", "bool"))
    if not dtype.startswith("float") and is_float(v):
        x = m.pick(is_float, exact=True)
        if x is None:
            return None
        x = (
            relay.multiply(x, relay.const(4.0, m.array(x).dtype.name))
            if m.chance(0.5) and m.array(x).dtype != "float16"
            else x
        )
    return relay.cast(x, dtype)


@step("dtype", 2)
def compare(m: Maker, x: Expr, v: np.ndarray) -> Any:
    x = m.pick(lambda u: u.dtype != "bool" and u.size < LARGEST, exact=True)
    if x is None:
        return None
    v = m.array(x)
    y = m.pick(lambda u: u.dtype == v.dtype and broadcasts(u, v), exact=True)
    y = y if y is not None and m.chance(0.6) else m.leaf([n if m.chance(0.7) else 1 for n in v.shape], v.dtype.name)
    return m.draw((relay.less, relay.greater, relay.equal, relay.not_equal, relay.less_equal, relay.greater_equal))(
        x, y
    )


@step("dtype")
def rounding(m: Maker, x: Expr, v: np.ndarray) -> Any:
    x = m.pick(is_float, exact=True)
    return None if x is None else m.draw((relay.floor, relay.ceil, relay.round, relay.trunc, relay.sign))(x)


@step("scan")
def scan(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim == 0 or v.size == 0 or v.size > 4000 or v.dtype == "bool":
        return None
    return relay.cumsum(x, axis=axis_of(m, v), exclusive=m.chance(0.3))


@step("sort", 3)
def sort(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim == 0 or v.size == 0 or v.size > 4000 or v.dtype == "bool":
        return None
    axis, ascend = axis_of(m, v), m.chance(0.5)
    kind = m.draw(("sort", "topk", "argsort"))
    if kind == "sort":
        return relay.sort(x, axis=axis, is_ascend=ascend)
    if kind == "topk":
        return relay.topk(
            x, k=int(m.rng.integers(1, v.shape[axis] + 1)), axis=axis, ret_type="values", is_ascend=ascend
        )
    x = m.pick(lambda u: u.ndim > 0 and 0 < u.size < 4000 and u.dtype != "bool", exact=True)
    return None if x is None else relay.argsort(x, axis=axis_of(m, m.array(x)), is_ascend=ascend, dtype="int32")
