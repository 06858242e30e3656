"""More attributes than the samples of operators have, for their judges: products of what an attribute can be."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from relaylab.ir import TensorType
from relaylab.op.base import Sample, sample

INTS = ("int8", "uint8", "int16", "int32", "int64")
DTYPES = (*INTS, "float16", "float32", "float64")


def variants(shapes: list[tuple], fixed: dict[str, Any] | None = None, **choices: tuple) -> list[Sample]:
    """One sample for each combination of the choices."""
    return [
        sample(*shapes, **(fixed or {}), **dict(zip(choices, values, strict=True)))
        for values in product(*choices.values())
    ]


def typed(count: int, dtypes: tuple[str, ...], low: float, high: float, shape: tuple = (4, 5)) -> list[Sample]:
    """Samples of `count` tensors of each data type."""
    least = {d: max(low, 0) if d[0] == "u" else low for d in dtypes}
    return [sample(*[TensorType(shape, d)] * count, low=least[d], high=high) for d in dtypes]


TIES = np.array([[3, 1, 3, 0, 1], [2, 2, 2, 2, 2]], "float32")
CONV = {"strides": ((1, 1), (3, 2)), "padding": ((0, 0), (1, 2), (1, 0, 2, 1)), "dilation": ((1, 1), (2, 1))}
LINE = {"strides": ((1,), (2,)), "padding": ((0,), (2,), (1, 2)), "dilation": ((1,), (3,))}
POOL = {
    "pool_size": ((2, 2), (3, 2)),
    "strides": ((1, 1), (2, 3)),
    "padding": ((0, 0), (1, 1)),
    "ceil_mode": (False, True),
}
POOL1 = {"pool_size": ((2,), (3,)), "strides": ((1,), (2,)), "padding": ((0,), (1,)), "ceil_mode": (False, True)}
AXES = {"axis": (None, 0, -1, (0, 2), (1, -1)), "keepdims": (False, True), "exclude": (False, True)}
RESIZED = {
    "size": ((7, 9), (2, 3), (8, 4)),
    "coordinate_transformation_mode": ("half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"),
}
NEAREST = {"rounding_method": ("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")}
VARIANTS: dict[str, list[Sample]] = {
    **{n: typed(2, DTYPES, -100, 100) for n in ("add", "subtract", "multiply", "maximum", "minimum")},
    **{n: typed(2, INTS, -100, 100) for n in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    **{n: typed(2, DTYPES, -9, 9) for n in ("less", "greater_equal", "equal", "not_equal")},
    **{n: typed(2, ("float32", "float64"), -9, 9) for n in ("divide", "floor_divide", "floor_mod", "mod", "trunc_mod")},
    **{n: typed(2, INTS, 1, 100) for n in ("trunc_divide",)},
    **{n: typed(1, DTYPES, -100, 100) for n in ("abs", "negative", "sign", "copy", "logical_not")},
    **{n: typed(1, ("float16", "float32", "float64"), -9, 9) for n in ("round", "floor", "ceil", "trunc", "exp")},
    **{n: variants([(2, 3, 4)], None, **AXES) for n in ("sum", "prod", "max", "min", "mean")},
    **{n: [sample(TIES, axis=axis) for axis in (None, 0, 1, -1)] for n in ("argmax", "argmin")},
    **{n: variants([(2, 3, 4)], None, axis=(None, 0, 1, -1), exclusive=(False,)) for n in ("cumsum", "cumprod")},
    **{n: variants([(2, 3, 4)], None, axis=(0, 1, -1)) for n in ("nn.softmax", "nn.log_softmax")},
    "sort": [sample(TIES, axis=d, is_ascend=up) for d in (0, 1, -1) for up in (True, False)],
    "argsort": [sample(TIES, axis=d, dtype=t) for d in (0, 1, -1) for t in ("int32", "int64", "float32")],
    "topk": [sample(TIES, k=k, axis=1, is_ascend=up) for k in (1, 3, 5) for up in (True, False)],
    "cast": [sample(TensorType((9,), a), dtype=b, low=0, high=100) for a, b in product(DTYPES, DTYPES) if a[0] != "f"],
    "transpose": variants([(2, 3, 4)], None, axes=(None, (0, 1, 2), (2, 0, 1), (-1, 0, -2))),
    "strided_slice": [
        sample((5, 6), begin=b, end=e, strides=s)
        for b, e, s in [
            ((0, 1), (5, 6), (2, 3)),
            ((-1, -1), (0, -7), (-1, -2)),
            ((4, 5), (-6, 0), (-2, -1)),
            ((1, 2), (9, -1), (1, 1)),
            ((-9, -3), (3, 99), (1, 2)),
        ]
    ],
    "take": [
        sample((4, 5), np.array([[-7, -1, 0], [3, 4, 9]], "int32"), axis=axis, mode=mode)
        for axis in (None, 0, 1, -1)
        for mode in ("clip", "wrap")
    ],
    "one_hot": [
        sample(np.array([[0, 2, 1], [3, 3, 0]], "int32"), (), (), depth=4, axis=axis, dtype=dtype)
        for axis in (-1, 0, 1)
        for dtype in ("float32", "int8")
    ],
    "repeat": variants([(2, 3)], None, repeats=(1, 3), axis=(None, 0, 1, -1)),
    "tile": variants([(2, 3)], None, reps=((2,), (1, 2), (2, 1, 2))),
    "trilu": [sample((4, 5), np.array(k, "int32"), upper=up) for k in (-5, -1, 0, 2, 6) for up in (True, False)],
    "nn.pad": variants(
        [(3, 4), np.float32(1.5)],
        None,
        pad_width=(((1, 2), (0, 1)), ((2, 0), (3, 3))),
        pad_mode=("constant", "edge", "reflect"),
    )[:5],
    "nn.conv1d": variants([(2, 4, 9), (6, 2, 3)], {"groups": 2}, **LINE),
    "nn.conv2d": variants([(1, 4, 7, 6), (4, 2, 3, 2)], {"groups": 2}, **CONV)
    + variants([(1, 7, 6, 2), (3, 2, 2, 3)], {"data_layout": "NHWC", "kernel_layout": "HWIO"}, **CONV),
    "nn.conv3d": variants(
        [(1, 2, 5, 6, 4), (3, 2, 2, 3, 2)], None, strides=((1, 1, 1), (2, 1, 2)), padding=((0, 0, 0), (1, 0, 1))
    ),
    "nn.conv1d_transpose": variants(
        [(2, 3, 5), (3, 4, 3)], None, strides=((1,), (3,)), padding=((0,), (1,)), output_padding=((0,),)
    ),
    "nn.conv2d_transpose": variants(
        [(2, 4, 4, 5), (4, 3, 3, 2)],
        {"kernel_layout": "IOHW"},
        strides=((1, 1), (2, 3)),
        padding=((0, 0), (1, 1)),
        groups=(1, 2),
        dilation=((1, 1), (2, 1)),
    ),
    "nn.max_pool1d": variants([(1, 2, 9)], None, **POOL1),
    "nn.max_pool2d": variants([(1, 2, 7, 6)], None, **POOL),
    "nn.avg_pool1d": variants([(1, 2, 9)], None, **POOL1, count_include_pad=(False, True)),
    "nn.avg_pool2d": variants([(1, 2, 7, 6)], None, **POOL, count_include_pad=(False, True)),
    "nn.adaptive_avg_pool2d": variants([(1, 2, 7, 5)], None, output_size=((1, 1), (3, 2), (7, 5), (4, 4), (9, 6))),
    "nn.adaptive_max_pool2d": variants([(1, 2, 7, 5)], None, output_size=((1, 1), (3, 2), (7, 5), (4, 4), (9, 6))),
    "nn.layer_norm": variants([(2, 3, 4), (4,), (4,)], None, axis=(-1, 2), epsilon=(1e-5, 0.1)),
    "nn.batch_norm": [
        sample((2, 3, 4), (3,), (3,), (3,), (3,), axis=1, center=c, scale=s, epsilon=1e-3, low=0.1, high=2.0)
        for c in (False, True)
        for s in (False, True)
    ],
    "nn.depth_to_space": variants([(2, 12, 2, 3)], {"block_size": 2}, mode=("DCR", "CRD")),
    "image.resize2d": variants([(1, 2, 4, 5)], {"method": "linear"}, **RESIZED)
    + variants([(1, 2, 4, 5)], {"method": "nearest_neighbor"}, **RESIZED, **NEAREST)
    + variants([(1, 2, 4, 5)], {"method": "cubic"}, **RESIZED, cubic_alpha=(-0.5, -0.75), cubic_exclude=(0, 1)),
}
