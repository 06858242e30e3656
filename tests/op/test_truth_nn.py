"""Operators of neural networks against numbers that do not come from here: TVM 0.10's formulas told again, and torch's.

Every number is asked of the interpreter and of the compiled program.
"""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import IRModule, SizeVar, TensorType
from relaylab.loop.parse import parse
from relaylab.loop.program import For, inside
from relaylab.support.errors import RelayError

pytestmark = pytest.mark.slow

LOWEST = np.finfo("float32").min


def both(build, *arrays):
    """What the interpreter and the compiled program say of `build` applied to variables with these values."""
    variables = [relay.var(f"x{k}", shape=a.shape, dtype=str(a.dtype)) for k, a in enumerate(arrays)]
    mod = IRModule.from_expr(relay.Function(variables, build(*variables)))
    for kind in ("debug", "graph"):
        found = relay.create_executor(kind, mod).evaluate()(*arrays)
        yield [f.numpy() for f in found] if isinstance(found, (list, tuple)) else found.numpy()


def agree(wanted, build, *arrays):
    for found in both(build, *arrays):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
        assert found.dtype == arrays[0].dtype


def agree_exactly(wanted, build, *arrays):
    for found in both(build, *arrays):
        np.testing.assert_array_equal(found, wanted, strict=True)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def type_of(expr: relay.Expr):
    mod = relay.transform.InferType()(IRModule.from_expr(expr))
    return mod["main"].body.checked_type


# ---- pools


def averages(x, size, stride, dilation, pad, ceil, include):
    """Means of windows over all axes but the first two; end = min(end, extent + pad - 1), as topi/nn/pooling.h."""
    rank = x.ndim - 2
    outs = []
    for n, (low, high) in zip(x.shape[2:], pad):
        room = n + low + high - (size - 1) * dilation - 1
        outs.append((math.ceil(room / stride) if ceil else room // stride) + 1)
    out = np.zeros((*x.shape[:2], *outs))
    for cell in np.ndindex(*outs):
        places = []
        for y, n, (low, high) in zip(cell, x.shape[2:], pad):
            taps = [y * stride - low + t * dilation for t in range(size)]
            places.append([t for t in taps if (t < n + high if include else 0 <= t < n)])
        inside = [p for p in itertools.product(*places) if all(0 <= k < n for k, n in zip(p, x.shape[2:]))]
        total = sum((x[(slice(None), slice(None), *p)] for p in inside), np.zeros(x.shape[:2]))
        out[(slice(None), slice(None), *cell)] = total / max(math.prod(map(len, places)), 1)
    assert out.ndim == rank + 2
    return out


def test_a_last_window_is_divided_by_what_lies_inside_data_and_padding():
    x = np.ones((1, 1, 8, 8), "float32")
    build = lambda x: relay.nn.avg_pool2d(x, (3, 3), (2, 2), padding=(1, 1), ceil_mode=True, count_include_pad=True)
    for found in both(build, x):
        np.testing.assert_allclose(found[0, 0, 0, 4], 1 / 3, rtol=1e-6)


@pytest.mark.parametrize("include", (True, False))
@pytest.mark.parametrize("ceil", (True, False))
@pytest.mark.parametrize("size, stride, dilation, pad", [(3, 2, 1, (1, 1)), (2, 3, 1, (0, 1)), (3, 2, 2, (1, 2))])
def test_average_pools(size, stride, dilation, pad, ceil, include):
    how = {"dilation": dilation, "ceil_mode": ceil, "count_include_pad": include}
    shapes = [(2, 3, 10), (1, 2, 8, 9), (1, 2, 8, 7, 10)]
    for pool, shape in zip((relay.nn.avg_pool1d, relay.nn.avg_pool2d, relay.nn.avg_pool3d), shapes):
        x, n = normal(*shape), len(shape) - 2
        padding = (pad[0],) * n + (pad[1],) * n
        wanted = averages(x.astype("float64"), size, stride, dilation, [pad] * n, ceil, include)
        agree(wanted, partial(pool, pool_size=size, strides=stride, padding=padding, **how), x)


def test_means_of_integers_divide_by_the_same():
    x = np.full((1, 8, 8, 1), 7, "int32")
    how = {"padding": (1, 1), "layout": "NHWC", "ceil_mode": True, "count_include_pad": True}
    wanted = np.trunc(averages(np.full((1, 1, 8, 8), 7), 3, 2, 1, [(1, 1)] * 2, True, True)).transpose(0, 2, 3, 1)
    agree(wanted, lambda x: relay.nn.avg_pool2d(x, (3, 3), (2, 2), **how), x)


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_means_of_large_integers_are_exact(dtype):
    x = np.array([2**62 + 7, 2**61, 2**59 + 1, 2**60 + 3], dtype).reshape(1, 1, 4)
    if dtype == "uint64":
        x = x * np.array([2], dtype)
    total = lambda *k: sum(int(x[0, 0, j]) for j in k)
    pairs = np.array([[[total(0, 1) // 2, total(2, 3) // 2]]], dtype)
    agree_exactly(pairs, lambda x: relay.nn.avg_pool1d(x, 2, 2), x)
    agree_exactly(pairs, lambda x: relay.nn.adaptive_avg_pool1d(x, 2), x)
    agree_exactly(np.array([[total(0, 1, 2, 3) // 4]], dtype), lambda x: relay.mean(x, axis=2), x)
    grad, square = x.reshape(1, 1, 2, 2), np.zeros((1, 1, 4, 2), dtype)
    grown = np.repeat(grad // np.array(2, dtype), 2, axis=2)
    agree_exactly(grown, lambda g, x: relay.nn.avg_pool2d_grad(g, x, (2, 1), (2, 1)), grad, square)


def test_a_maximum_over_padding_only_is_the_lowest_finite_number():
    for found in both(lambda x: relay.nn.max_pool2d(x, (1, 1), padding=(1, 1)), normal(1, 2, 3, 3)):
        assert found.shape == (1, 2, 5, 5) and (found[:, :, 0] == LOWEST).all() and (found[:, :, :, -1] == LOWEST).all()
        assert np.abs(found[:, :, 1:-1, 1:-1]).max() < 10
    for found in both(lambda x: relay.nn.max_pool1d(x, 1, padding=1), np.array([[[3, -4]]], "int8")):
        assert found.tolist() == [[[-128, 3, -4, -128]]]


def test_folding_a_pad_into_a_maximum_keeps_its_numbers():
    x = relay.var("x", shape=(1, 1, 3, 3))
    padded = relay.nn.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), float(LOWEST))
    mod = relay.transform.InferType()(IRModule.from_expr(relay.nn.max_pool2d(padded, (2, 2))))
    folded = relay.transform.FoldExplicitPadding()(mod)
    assert "nn.pad" not in str(folded)
    data = normal(1, 1, 3, 3)
    before, after = (relay.create_executor("debug", m).evaluate()(data).numpy() for m in (mod, folded))
    np.testing.assert_array_equal(before, after)


def test_the_gradient_of_a_window_in_the_padding_goes_nowhere():
    grad, x = np.ones((1, 1, 6, 6), "float32"), normal(1, 1, 4, 4)
    agree(np.ones((1, 1, 4, 4)), lambda g, x: relay.nn.max_pool2d_grad(g, x, (1, 1), padding=(1, 1)), grad, x)


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_the_gradient_of_overlapping_windows_looks_at_each_once(layout):
    """NaN is the largest element, of equal ones the first is; each element beside all its windows took their square."""
    x, grad = np.random.default_rng(2).integers(-3, 4, (2, 3, 12, 12)).astype("float32"), normal(2, 3, 5, 8)
    x[0, 1, 4:7, 5], wanted = np.nan, np.zeros_like(x)
    for n, c, i, j in np.ndindex(grad.shape):
        window = x[n, c, 2 * i : 2 * i + 4, j : j + 5]
        row, column = np.unravel_index(window.argmax(), window.shape)
        wanted[n, c, 2 * i + row, j + column] += grad[n, c, i, j]
    order = ["NCHW".index(axis) for axis in layout]
    pool = lambda g, x: relay.nn.max_pool2d_grad(g, x, (4, 5), (2, 1), layout=layout)
    agree(wanted.transpose(order), pool, grad.transpose(order), x.transpose(order))
    shapes = (tuple(grad.shape[axis] for axis in order), tuple(x.shape[axis] for axis in order))
    lib = relay.build(IRModule.from_expr(pool(*map(relay.var, "gx", map(relay.TensorType, shapes)))), "llvm")
    assert done(parse(lib.inspect("loop")).loops) < 9 * grad.size * 4 * 5


def done(body) -> int:
    """How many statements are done, where all conditions hold."""
    return sum((s.axis.extent if isinstance(s, For) else 1) * (done(inside(s)) or 1) for s in body)


def test_gradients_of_pools_take_integers():
    grad = np.array([[[[10, 20], [30, 47]]]], "int32")
    x = np.arange(16, dtype="int32").reshape(1, 1, 4, 4)
    shares = np.kron([[2, 5], [7, 11]], np.ones((2, 2)))[None, None]
    agree(shares, lambda g, x: relay.nn.avg_pool2d_grad(g, x, (2, 2), (2, 2)), grad, x)
    largest = np.kron([[10, 20], [30, 47]], [[0, 0], [0, 1]])[None, None]
    agree(largest, lambda g, x: relay.nn.max_pool2d_grad(g, x, (2, 2), (2, 2)), grad, x)


# ---- places between elements


def deformed(x, offset, w, stride, pad, groups):
    """A deformable convolution, NCHW: each of the four neighbours of a place counts 0 if it lies outside."""
    n, _, height, width = x.shape
    outs, reads, kh, kw = w.shape
    out = np.zeros((n, outs, *offset.shape[2:]))

    def pixel(b, c, y, x_):
        return x[b, c, y, x_] if 0 <= y < height and 0 <= x_ < width else 0.0

    for b, o, i, j in np.ndindex(*out.shape):
        for k, p, q in np.ndindex(reads, kh, kw):
            c, at = o // (outs // groups) * reads + k, 2 * (p * kw + q)
            y = i * stride - pad + p + float(offset[b, at, i, j])
            z = j * stride - pad + q + float(offset[b, at + 1, i, j])
            low, left = math.floor(y), math.floor(z)
            for dy, dx in np.ndindex(2, 2):
                share = (y - low if dy else 1 - y + low) * (z - left if dx else 1 - z + left)
                out[b, o, i, j] += w[o, k, p, q] * share * pixel(b, c, low + dy, left + dx)
    return out


@pytest.mark.parametrize("shape, kernel, stride, pad, groups", [(5, 1, 1, 0, 1), (6, 3, 1, 1, 2), (7, 3, 2, 2, 1)])
def test_each_neighbour_of_a_deformed_place_counts_on_its_own(shape, kernel, stride, pad, groups):
    cells = (shape + 2 * pad - kernel) // stride + 1
    x, w = normal(1, 4, shape, shape), normal(2, 4 // groups, kernel, kernel, seed=1)
    offset = 1.5 * normal(1, 2 * kernel * kernel, cells, cells, seed=2)
    how = {"strides": (stride, stride), "padding": (pad, pad), "groups": groups, "channels": 2}
    build = lambda x, o, w: relay.nn.deformable_conv2d(x, o, w, kernel_size=(kernel, kernel), **how)
    agree(deformed(x, offset, w, stride, pad, groups), build, x, offset, w)


def test_what_lies_outside_of_a_deformed_image_is_0_whatever_is_at_its_edge():
    x, offset = np.full((1, 1, 2, 2), np.inf, "float32"), np.full((1, 2, 2, 2), 9.0, "float32")
    agree(np.zeros((1, 1, 2, 2)), relay.nn.deformable_conv2d, x, offset, np.ones((1, 1, 1, 1), "float32"))


@pytest.mark.parametrize("weight, how", [((1, 2, 2, 2), {"groups": 2}), ((2, 4, 2, 2), {"deformable_groups": 3})])
def test_a_deformable_convolution_refuses_groups_that_do_not_divide(weight, how):
    x, w = relay.var("x", shape=(1, 4, 3, 3)), relay.var("w", shape=weight)
    with pytest.raises(RelayError, match="do not split into"):
        type_of(relay.nn.deformable_conv2d(x, relay.var("o"), w, **how))


@pytest.mark.parametrize("extent, scale, wanted", [(3, 1.5, 4), (1, 2.5, 2), (5, 0.5, 2), (2, 1.25, 2), (3, 2, 6)])
def test_extents_of_enlarged_images_round_halves_to_even(extent, scale, wanted):
    image, volume = normal(1, 2, extent, extent), normal(1, 2, extent, 4, extent)
    for found in both(lambda x: relay.nn.upsampling(x, scale, scale), image):
        assert found.shape == (1, 2, wanted, wanted)
    for found in both(lambda x: relay.nn.upsampling3d(x, scale, 1, scale), volume):
        assert found.shape == (1, 2, wanted, 4, wanted)


# ---- types and arguments


@pytest.mark.parametrize("n", (1, 2, 3))
def test_transposed_convolutions_take_groups_before_channels(n):
    build = (relay.nn.conv1d_transpose, relay.nn.conv2d_transpose, relay.nn.conv3d_transpose)[n - 1]
    one, size = (1,) * n, (3,) * n
    x, w = normal(1, 4, *(5,) * n), normal(4, 3, *size, seed=1)
    call = build(relay.const(x), relay.const(w), one, one, one, 2, 6, size)
    assert (call.attrs.groups, call.attrs.channels, tuple(call.attrs.kernel_size)) == (2, 6, size)
    assert type_of(call) == TensorType((1, 6, *(5,) * n))
    named = lambda x, w: build(x, w, padding=one, groups=2, channels=6, kernel_size=size)
    (found, *_), (wanted, *_) = both(lambda x, w: build(x, w, one, one, one, 2, 6, size), x, w), both(named, x, w)
    np.testing.assert_array_equal(found, wanted)


def test_a_quantized_transposed_convolution_takes_groups_before_channels():
    data, w = relay.var("x", shape=(1, 4, 5, 5), dtype="int8"), relay.var("w", shape=(4, 3, 3, 3), dtype="int8")
    zero, scale = relay.const(0), relay.const(1.0)
    call = relay.qnn.op.conv2d_transpose(data, w, zero, zero, scale, scale, (1, 1), (1, 1), (1, 1), 1, 3, (3, 3))
    assert (call.attrs.groups, call.attrs.channels, tuple(call.attrs.kernel_size)) == (1, 3, (3, 3))


def test_a_product_of_batches_keeps_the_size_that_both_share():
    b, other = SizeVar("b"), SizeVar("c")
    product = lambda n: relay.nn.batch_matmul(relay.var("x", shape=(b, 3, 4)), relay.var("y", shape=(n, 5, 4)))
    assert type_of(product(b)).shape[0] is b and list(type_of(product(b)).shape[1:]) == [3, 5]
    assert type_of(product(other)).shape[0] not in (b, other)


# ---- padding


@pytest.mark.parametrize(
    "shape, widths",
    [
        ((1, 1), ((-1, 1), (2, -2))),
        ((1, 2), ((0, 0), (3, -4))),
        ((3, 4), ((-2, 5), (-4, 1))),
        ((2, 2), ((4, -3), (1, 0))),
    ],
)
def test_padding_cuts_the_padded_tensor(shape, widths):
    x = normal(*shape)
    grown = np.pad(x, [(max(low, 0), max(high, 0)) for low, high in widths], constant_values=7)
    wanted = grown[tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(grown.shape, widths))]
    agree(wanted, lambda x: relay.nn.pad(x, widths, 7.0), x)


def test_a_class_that_there_is_not_counts_as_the_nearest():
    x, targets, w = normal(4, 3), np.array([-1, 5, 1, -100]), np.array([1, 2, 4], "float32")
    want = np.array(-x[0, 0] - 4 * x[1, 2] - 2 * x[2, 1], "float32")
    agree(want, lambda x, t, w: relay.nn.nll_loss(x, t, w, reduction="sum"), x, targets, w)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_a_loss_that_is_ignored_is_0_whatever_was_predicted(reduction):
    torch = pytest.importorskip("torch")
    x, targets, w = np.array([[-np.inf, -1, -2], [-1, -2, -3]], "float32"), np.array([2, 1]), np.ones(3, "float32")
    want = torch.nn.functional.nll_loss(*map(torch.tensor, (x, targets, w)), ignore_index=2, reduction=reduction)
    how = {"ignore_index": 2, "reduction": reduction}
    agree(want.numpy(), lambda x, t, w: relay.nn.nll_loss(x, t, w, **how), x, targets, w)
