"""Windows in two steps: what windows share is combined once and kept, a few lines at a time."""

import numpy as np
import pytest
from kernel_runner import runnable_targets

from relaylab import relay
from relaylab.relay.transform import PassContext

TARGETS = {"generic": "x86-64", "avx2": "x86-64-v3", "avx512": "x86-64-v4"}
CASES = [
    # shape, window, strides, dilation, padding, layout
    ((1, 4, 28, 28), (3, 3), (1, 1), (1, 1), (1, 1), "NCHW"),
    ((2, 3, 31, 47), (5, 5), (1, 1), (1, 1), (2, 2), "NCHW"),
    ((1, 2, 300, 90), (3, 3), (1, 1), (1, 1), (1, 1), "NCHW"),  # lines are kept in parts
    ((1, 1, 40, 33), (3, 4), (2, 1), (1, 2), (1, 3), "NCHW"),
    ((1, 2, 21, 64), (13, 13), (1, 1), (1, 1), (6, 6), "NCHW"),
    ((2, 3, 20, 24), (4, 4), (1, 1), (1, 1), (0, 0), "NCHW"),
    ((1, 3, 20, 40), (7, 7), (1, 2), (1, 1), (3, 3), "NCHW"),
    ((2, 9, 20, 17), (5, 5), (1, 1), (1, 1), (2, 2), "NHWC"),
    ((1, 6, 40, 480), (5, 3), (1, 1), (1, 1), (2, 1), "NHWC"),  # channels are taken in blocks
    ((2, 12, 13, 32), (5, 5), (1, 1), (2, 2), (4, 4), "NHWC"),
    ((1, 2, 11, 10, 16), (3, 5, 5), (1, 1, 1), (1, 1, 1), (1, 2, 2), "NCDHW"),
]


def built(name, x, isa, **attrs):
    var = relay.var("x", shape=x.shape, dtype=str(x.dtype))
    mod = relay.IRModule.from_expr(getattr(relay.nn, name)(var, **attrs))
    with PassContext(opt_level=3, config={"relay.codegen.verify": True}):
        return relay.build(mod, target=f"llvm -mcpu={TARGETS[isa]}")


def windows(x, size, stride, dilation, pad, layout, fill):
    """The elements of all windows along axes more, and how many of each are there."""
    axes = [layout.index(a) for a in layout if a in "DHW"]
    widths = [(pad[axes.index(a)],) * 2 if a in axes else (0, 0) for a in range(x.ndim)]
    found = []
    for values, filled in ((x, fill), (np.ones(x.shape), 0)):
        padded = np.pad(values, widths, constant_values=filled)
        reach = [d * (k - 1) + 1 for k, d in zip(size, dilation)]
        views = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=axes)
        steps = [slice(None, None, stride[axes.index(a)]) if a in axes else slice(None) for a in range(x.ndim)]
        found.append(views[(*steps, *(slice(None, None, d) for d in dilation))])
    return found[0], found[1].sum(axis=tuple(range(x.ndim, x.ndim + len(size))))


@pytest.mark.parametrize("isa", runnable_targets())
@pytest.mark.parametrize("case", CASES, ids=str)
def test_windows_that_share_most_of_what_they_read(case, isa):
    shape, size, stride, dilation, pad, layout = case
    rank = len(size)
    attrs = {"pool_size": size, "strides": stride, "dilation": dilation, "padding": pad, "layout": layout}
    x = np.random.default_rng(3).standard_normal(shape).astype("float32")
    x.reshape(-1)[5::97] = np.nan
    x.reshape(-1)[11::89] = -np.inf
    last = tuple(range(x.ndim, x.ndim + rank))
    lib = built(f"max_pool{rank}d", x, isa, **attrs)
    assert "scratch row0" in lib.inspect("loop", "max_pool")
    seen, _ = windows(x, size, stride, dilation, pad, layout, np.finfo("float32").min)
    np.testing.assert_array_equal(lib.run(x=x), seen.max(axis=last))
    x = np.nan_to_num(x, neginf=0.0)
    seen, there = windows(x, size, stride, dilation, pad, layout, 0)
    means = built(f"avg_pool{rank}d", x, isa, **attrs).run(x=x)
    np.testing.assert_allclose(means, seen.astype("float64").sum(axis=last) / there, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float16", "float64"])
def test_other_dtypes(dtype):
    x = np.random.default_rng(5).integers(0, 5, (2, 3, 19, 40)).astype(dtype)
    attrs = {"pool_size": (5, 5), "padding": (2, 2)}
    low = np.finfo(dtype).min if x.dtype.kind == "f" else np.iinfo(dtype).min
    seen, there = windows(x, (5, 5), (1, 1), (1, 1), (2, 2), "NCHW", low)
    isa = runnable_targets()[-1]
    np.testing.assert_array_equal(built("max_pool2d", x, isa, **attrs).run(x=x), seen.max(axis=(4, 5)))
    seen, _ = windows(x.astype("float64"), (5, 5), (1, 1), (1, 1), (2, 2), "NCHW", 0)
    mean = seen.sum(axis=(4, 5)) / there
    found = built("avg_pool2d", x, isa, **attrs).run(x=x)
    if x.dtype.kind == "f":
        np.testing.assert_allclose(found, mean, rtol=1e-3 if dtype == "float16" else 1e-12)
    else:
        np.testing.assert_array_equal(found, np.trunc(mean + 1e-9))


def test_sums_of_half_floats_are_not_rounded_between():
    """A mean of float16 is summed in one step: what is kept would have eleven bits."""
    x = np.full((1, 1, 32, 32), 1.0, "float16")
    lib = built("avg_pool2d", x, runnable_targets()[-1], pool_size=(5, 5), padding=(2, 2))
    assert "scratch row0" not in lib.inspect("loop", "avg_pool")
    np.testing.assert_array_equal(lib.run(x=x), x)


def test_a_mean_that_is_fused_with_what_follows():
    x = np.random.default_rng(7).standard_normal((1, 3, 20, 50)).astype("float32")
    var = relay.var("x", shape=x.shape)
    mod = relay.IRModule.from_expr(relay.nn.relu(relay.nn.max_pool2d(var, pool_size=(3, 3), padding=(1, 1)) * var))
    seen, _ = windows(x, (3, 3), (1, 1), (1, 1), (1, 1), "NCHW", np.finfo("float32").min)
    np.testing.assert_array_equal(relay.build(mod, "llvm").run(x=x), np.maximum(seen.max(axis=(4, 5)) * x, 0))
