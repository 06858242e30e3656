"""Windows at the border: their loops turn only inside of the data, and interiors of images have loops of their own."""

import math

import numpy as np
import pytest

from relaylab import relay
from relaylab.relay.transform import PassContext

NAN = math.nan


def built(name, x, **attrs):
    var = relay.var("x", shape=x.shape, dtype=str(x.dtype))
    mod = relay.IRModule.from_expr(getattr(relay.nn, name)(var, **attrs))
    with PassContext(opt_level=3, config={"relay.codegen.verify": True}):
        return relay.build(mod, target="llvm").run(x=x)


def windows(x, size, stride, dilation, pad, ceil):
    """Of each result: the elements of its window that are there, and how many are there or in the padding."""
    axes = range(x.ndim - len(size), x.ndim)
    reach = [d * (k - 1) + 1 for k, d in zip(size, dilation)]
    spare = [s - 1 if ceil else 0 for s in stride]
    out = [(x.shape[a] + 2 * p - r + e) // s + 1 for a, p, r, s, e in zip(axes, pad, reach, stride, spare)]
    for at in np.ndindex(*x.shape[: axes[0]], *out):
        places = [
            [i * s - p + t * d for t in range(k)] for i, s, p, d, k in zip(at[axes[0] :], stride, pad, dilation, size)
        ]
        there = [[q for q in line if 0 <= q < x.shape[a]] for line, a in zip(places, axes)]
        padded = [[q for q in line if -p <= q < x.shape[a] + p] for line, a, p in zip(places, axes, pad)]
        yield at, x[at[: axes[0]]][np.ix_(*there)], math.prod(map(len, padded))


CASES = [
    ((1, 2, 9), (3,), (1,), (1,), (1,), False),
    ((2, 3, 9, 70), (3, 3), (1, 1), (1, 1), (1, 1), False),
    ((1, 17, 9, 8), (3, 3), (2, 2), (1, 1), (1, 1), False),
    ((1, 17, 9, 8), (3, 2), (2, 1), (2, 3), (1, 1), True),
    ((1, 3, 10, 131), (3, 3), (2, 2), (1, 1), (1, 1), True),
    ((1, 1, 2, 3), (3, 3), (1, 1), (2, 2), (2, 2), False),
    ((1, 2, 5, 6, 7), (3, 3, 3), (2, 2, 2), (1, 1, 1), (1, 1, 1), False),
    ((1, 2, 19, 20), (7, 6), (1, 1), (1, 1), (3, 2), True),
    ((1, 2, 9, 8, 10), (5, 4, 6), (1, 1, 2), (1, 1, 1), (2, 1, 0), False),
    ((1, 2, 5, 6, 20), (2, 3, 3), (1, 1, 1), (1, 2, 1), (1, 1, 1), True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("ends", [(), (NAN,), (-math.inf,), (NAN, math.inf, -math.inf)], ids=str)
def test_a_window_takes_what_is_there(case, ends):
    shape, size, stride, dilation, pad, ceil = case
    x = np.random.default_rng(3).standard_normal(shape).astype("float32")
    for k, end in enumerate(ends):
        x.reshape(-1)[k :: max(x.size // 7, 2) if len(ends) > 1 else 4] = end
    names = [f"nn.{kind}_pool{len(size)}d" for kind in ("max", "avg")]
    attrs = {"pool_size": size, "strides": stride, "dilation": dilation, "padding": pad, "ceil_mode": ceil}
    most = built(names[0].removeprefix("nn."), x, **attrs)
    mean = built(names[1].removeprefix("nn."), x, **attrs)
    whole = built(names[1].removeprefix("nn."), x, count_include_pad=True, **attrs)
    low = np.finfo("float32").min
    with np.errstate(invalid="ignore"):
        for at, seen, padded in windows(x, size, stride, dilation, pad, ceil):
            every = [*seen.reshape(-1), *[low] * (seen.size < math.prod(size))]
            np.testing.assert_equal(most[at], np.max(every))
            total = seen.astype("float64").sum()
            np.testing.assert_allclose(mean[at], total / max(seen.size, 1), rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(whole[at], total / max(padded, 1), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float16"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_other_dtypes_and_channels_last(dtype, layout):
    x = np.random.default_rng(5).integers(0, 100, (2, 18, 11, 13)).astype(dtype)
    data = x if layout == "NCHW" else np.ascontiguousarray(x.transpose(0, 2, 3, 1))
    found = built("max_pool2d", data, pool_size=(3, 3), strides=(2, 1), padding=(1, 1), layout=layout)
    found = found if layout == "NCHW" else found.transpose(0, 3, 1, 2)
    low = np.iinfo(dtype).min if x.dtype.kind in "iu" else np.finfo(dtype).min
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=low)
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::2]
    np.testing.assert_array_equal(found, views.max(axis=(4, 5)))


def test_sums_end_where_their_guard_does():
    """No condition is left in the loops of a padded mean, and none but those of lanes."""
    x = relay.var("x", shape=(1, 32, 9, 9))
    mod = relay.IRModule.from_expr(relay.nn.avg_pool2d(x, pool_size=(3, 3), padding=(1, 1)))
    with PassContext(opt_level=3):
        lib = relay.build(mod, target="llvm")
    assert "guard" not in lib.inspect("loop", "avg_pool2d")
