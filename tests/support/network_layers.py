"""The table of the steps of random networks, and those that are layers: convolutions, products, pools, norms.

Each step takes the maker, an expression and its value; gives a new expression or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylab import relay
from relaylab.ir import Expr
from support.networks import LARGEST, Maker

Step = Callable[[Maker, Expr, np.ndarray], Any]
STEPS: dict[str, list[Step]] = {}
FLOATS = ("float32", "float64", "float16")
LAYOUTS = {1: ("NCW", "NWC", "OIW"), 2: ("NCHW", "NHWC", "OIHW"), 3: ("NCDHW", "NDHWC", "OIDHW")}


def step(kind: str, often: int = 1) -> Callable[[Step], Step]:
    """Registers a step, `often` times as likely as others."""

    def register(f: Step) -> Step:
        STEPS.setdefault(kind, []).extend([f] * often)
        return f

    return register


def is_float(v: np.ndarray) -> bool:
    return v.dtype.kind == "f"


def axis_of(m: Maker, v: np.ndarray) -> int:
    """An axis, counted from either end."""
    return int(m.rng.integers(-v.ndim, v.ndim))


# ---- convolutions and products


def image(m: Maker, v: np.ndarray) -> tuple[int, str, int, list[int]] | None:
    """(spatial rank, layout, channels, spatial extents) of a tensor taken as an image."""
    n = v.ndim - 2
    if n not in LAYOUTS or v.size == 0 or v.size > LARGEST // 2:
        return None
    last = m.channels_last != m.chance(0.15)
    spatial = list(v.shape[1:-1] if last else v.shape[2:])
    return n, LAYOUTS[n][last], v.shape[-1 if last else 1], spatial


def windows(m: Maker, spatial: list[int]) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """(kernel, strides, dilation, padding before, padding after) that fit the extents."""
    square = m.chance(0.6)
    chosen = [
        m.draw(
            (
                (1, 1, 1),
                (3, 1, 1),
                (3, 1, 1),
                (3, 2, 1),
                (5, 1, 1),
                (2, 2, 1),
                (3, 1, 2),
                (7, 2, 1),
                (1, 2, 1),
                (4, 3, 1),
            )
        )
    ]
    rows = []
    for extent in spatial:
        k, s, d = chosen[0] if square else m.draw(((1, 1, 1), (3, 1, 1), (2, 1, 1), (3, 2, 2), (5, 3, 1)))
        reach = (k - 1) * d + 1
        low, high = m.draw(((0, 0), (reach // 2, reach // 2), (reach // 2, reach // 2), (1, 0), (0, 2)))
        short = max(reach - extent - low - high, 0)
        rows.append((k, s, d, low + short, high))
    return tuple(map(list, zip(*rows)))  # type: ignore[return-value]


@step("heavy", 5)
def conv(m: Maker, x: Expr, v: np.ndarray) -> Any:
    found = image(m, v)
    if found is None or v.dtype == "bool":
        return None
    n, layout, channels, spatial = found
    kernel, strides, dilation, low, high = windows(m, spatial)
    divisors = [g for g in (1, 2, 3, 4, channels) if channels % g == 0]
    groups = m.draw(divisors) if m.chance(0.4) else 1
    per = channels // groups
    outs = groups * m.draw((1, 1, 2) if groups > 1 else (1, 3, 8, 16, 17))
    weight_layout = LAYOUTS[n][2]
    shape = [outs, per, *kernel]
    if groups > 1 and groups == channels:
        shape = [channels, outs // channels, *kernel]
    if m.chance(0.3) or layout[-1] == "C":
        order = list(range(2, n + 2)) + m.draw(([1, 0], [0, 1]))
        weight_layout, shape = "".join(weight_layout[k] for k in order), [shape[k] for k in order]
    dtype = v.dtype.name
    more = {"out_dtype": "int32"} if dtype in ("int8", "uint8") and m.chance(0.8) else {}
    w = m.leaf(shape, dtype, 1 / np.sqrt(per * np.prod(kernel)))
    made = getattr(relay.nn, f"conv{n}d")(
        x,
        w,
        strides=strides,
        padding=[*low, *high],
        dilation=dilation,
        groups=groups,
        channels=outs,
        kernel_size=kernel,
        data_layout=layout,
        kernel_layout=weight_layout,
        **more,
    )
    return tail(m, made, layout.index("C"))


def tail(m: Maker, made: Expr, axis: int) -> Expr:
    """What often follows a convolution or a product: bias or batch norm, an activation, a residual."""
    v = m.array(made)
    if v.size == 0 or v.size > LARGEST:
        return made
    if m.chance(0.35):
        made = relay.nn.bias_add(made, m.leaf((v.shape[axis],), v.dtype.name), axis=m.draw((axis, axis - v.ndim)))
    elif m.chance(0.4) and is_float(v):
        made = normed(m, made, v, axis)
    if m.chance(0.3):
        made = relay.add(m.like(v.shape, v.dtype.name), made)
    return active(m, made) if m.chance(0.6) else made


def active(m: Maker, x: Expr) -> Expr:
    v = m.array(x)
    if not is_float(v):
        return m.draw((relay.nn.relu, lambda y: relay.clip(y, -3.0, 100.0)))(x)
    return m.draw(
        (
            relay.nn.relu,
            relay.nn.relu,
            relay.sigmoid,
            relay.tanh,
            lambda y: relay.nn.leaky_relu(y, 0.1),
            lambda y: relay.clip(y, -0.5, 6.0),
            lambda y: relay.multiply(y, relay.sigmoid(y)),
        )
    )(x)


def normed(m: Maker, x: Expr, v: np.ndarray, axis: int) -> Any:
    c, d = (v.shape[axis],), v.dtype.name
    spread = np.abs(m.numbers(c, d)) + v.dtype.type(0.5)
    flags = {"scale": m.chance(0.8), "center": m.chance(0.8)}
    made = relay.nn.batch_norm(
        x,
        m.leaf(c, d),
        m.leaf(c, d),
        m.leaf(c, d),
        m.leaf(c, values=spread),
        axis=-1 if axis == v.ndim - 1 or axis == -1 else axis % v.ndim,
        **flags,
    )
    return made[0]


@step("heavy")
def conv_transpose(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim not in (3, 4, 5) or v.size > 3000 or not is_float(v) or v.size == 0:
        return None
    n, channels = v.ndim - 2, v.shape[1]
    groups = m.draw([g for g in (1, 1, 2, channels) if channels % g == 0])
    k, s, d = m.draw(((3, 2, 1), (2, 2, 1), (3, 1, 1), (4, 2, 1), (3, 1, 2), (1, 3, 1)))
    pad = m.draw((0, 0, k // 2)) if min(v.shape[2:]) > 1 else 0
    w = m.leaf((channels, m.draw((1, 3, 8)), *[k] * n), v.dtype.name, 1 / np.sqrt(channels * k))
    more = {"kernel_layout": "IOHW"} if n == 2 else {}
    made = getattr(relay.nn, f"conv{n}d_transpose")(
        x,
        w,
        strides=[s] * n,
        padding=[pad] * 2 * n,
        dilation=[d] * n,
        groups=groups,
        channels=m.array(w).shape[1] * groups,
        kernel_size=[k] * n,
        output_padding=[m.draw((0, s - 1))] * n,
        **more,
    )
    return tail(m, made, 1)


@step("heavy", 2)
def dense(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim < 2 or v.dtype == "bool" or v.size == 0:
        return None
    units, k = m.draw((1, 3, 8, 16, 33, 64)), v.shape[-1]
    more = {"out_dtype": "int32"} if v.dtype in ("int8", "uint8") and m.chance(0.8) else {}
    scale = 1 / np.sqrt(k)
    if m.chance(0.6) or v.ndim > 2:
        made = relay.nn.dense(
            x, m.leaf((units, k), v.dtype.name, scale), units=units if m.chance(0.5) else None, **more
        )
        return tail(m, made, v.ndim - 1)
    ta, tb = m.chance(0.4), m.chance(0.5)
    k = v.shape[0] if ta else k
    w = m.leaf((units, k) if tb else (k, units), v.dtype.name, scale)
    return tail(m, relay.nn.matmul(x, w, transpose_a=ta, transpose_b=tb, units=None, **more), 1)


@step("heavy", 2)
def batch_matmul(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim != 3 or v.dtype == "bool" or v.size == 0:
        return None
    ta, tb, n = m.chance(0.4), m.chance(0.5), m.draw((1, 4, 9, 16))
    k, batch = v.shape[1 if ta else 2], m.draw((v.shape[0], v.shape[0], 1))
    shape = (batch, n, k) if tb else (batch, k, n)
    y = m.like(shape, v.dtype.name) if m.chance(0.5) else m.leaf(shape, v.dtype.name, 1 / np.sqrt(k))
    if m.chance(0.2) and ta != tb:
        y = x  # a product with itself
    return relay.nn.batch_matmul(x, y, transpose_a=ta, transpose_b=tb)


# ---- pooling, normalisation


@step("pool", 2)
def pool(m: Maker, x: Expr, v: np.ndarray) -> Any:
    found = image(m, v)
    if found is None or v.dtype == "bool":
        return None
    n, layout, _, spatial = found
    kernel, strides, dilation, low, high = windows(m, spatial)
    low, high = [min(p, k - 1) for p, k in zip(low, kernel)], [min(p, k - 1) for p, k in zip(high, kernel)]
    if any((k - 1) * d + 1 > e + a + c for k, d, e, a, c in zip(kernel, dilation, spatial, low, high)):
        return None
    kind = m.draw(("max", "avg"))
    more = {"count_include_pad": m.chance(0.5)} if kind == "avg" else {}
    return getattr(relay.nn, f"{kind}_pool{n}d")(
        x,
        pool_size=kernel,
        strides=strides,
        dilation=dilation,
        padding=[*low, *high],
        layout=layout,
        ceil_mode=m.chance(0.4),
        **more,
    )


@step("pool")
def global_pool(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim != 4 or v.size == 0 or v.dtype == "bool":
        return None
    layout = m.draw(("NCHW", "NHWC"))
    if m.chance(0.5):
        return m.draw((relay.nn.global_avg_pool2d, relay.nn.global_max_pool2d))(x, layout=layout)
    size = m.draw(((1, 1), (2, 3), (3, 3)))
    return m.draw((relay.nn.adaptive_avg_pool2d, relay.nn.adaptive_max_pool2d))(x, output_size=size, layout=layout)


@step("pool")
def resize(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim != 4 or v.size == 0 or v.size > 4000 or v.dtype != "float32":
        return None
    if m.chance(0.3):
        return relay.nn.upsampling(
            x,
            scale_h=m.draw((1.5, 2, 3)),
            scale_w=2,
            layout=m.draw(("NCHW", "NHWC")),
            method=m.draw(("nearest_neighbor", "bilinear", "bicubic")),
        )
    mode = m.draw(("half_pixel", "align_corners", "asymmetric"))
    return relay.image.resize2d(
        x,
        size=(m.extent(), m.extent()),
        layout=m.draw(("NCHW", "NHWC")),
        method=m.draw(("linear", "cubic")),
        coordinate_transformation_mode=mode,
    )


@step("norm")
def norm(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim < 2 or v.size == 0 or not is_float(v):
        return None
    axis = axis_of(m, v)
    c, d, more = (v.shape[axis],), v.dtype.name, {"scale": m.chance(0.8), "center": m.chance(0.8), "epsilon": 1e-2}
    kind = m.draw(("batch", "layer", "layer", "instance", "group", "l2", "lrn"))
    if kind == "l2":
        return relay.nn.l2_normalize(x, eps=1e-2, axis=[axis % v.ndim])
    if kind == "lrn":
        return relay.nn.lrn(x, size=3, axis=axis % v.ndim) if v.ndim == 4 else None
    if kind == "batch":
        return normed(m, x, v, axis)
    if kind == "group":
        groups = m.draw([g for g in (1, 2, 4, c[0]) if c[0] % g == 0])
        return relay.nn.group_norm(x, m.leaf(c, d), m.leaf(c, d), num_groups=groups, axis=axis % v.ndim, **more)
    if kind == "instance":
        return (
            relay.nn.instance_norm(x, m.leaf(c, d), m.leaf(c, d), axis=axis % v.ndim, **more)
            if v.ndim > 2 and axis % v.ndim
            else None
        )
    return relay.nn.layer_norm(x, m.leaf(c, d), m.leaf(c, d), axis=axis, **more)


@step("norm", 2)
def softmax(m: Maker, x: Expr, v: np.ndarray) -> Any:
    if v.ndim == 0 or v.size == 0 or not is_float(v):
        return None
    return m.draw((relay.nn.softmax, relay.nn.softmax, relay.nn.log_softmax))(x, axis=axis_of(m, v))
