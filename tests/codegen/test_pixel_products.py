"""1x1 convolutions of images that lie channel by channel: the weight times the image, nothing transposed."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import Call

SHAPES = [(4, 17, (20, 20)), (1, 30, (7, 9)), (2, 5, (33,)), (3, 16, (2, 3, 5)), (1, 200, (1, 1)), (2, 24, (64, 16))]
TARGETS = ["llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"]
rng = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype("float32")


def conv(x: Call, weight: np.ndarray) -> Call:
    make = getattr(relay.nn, f"conv{weight.ndim - 2}d")
    return make(x, relay.const(weight), kernel_size=weight.shape[2:], channels=weight.shape[0])


def built(result: Call, target: str):
    return relay.build(relay.IRModule.from_expr(result), target=target)


def product(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.einsum("oi,ni...->no...", weight.reshape(weight.shape[:2]).astype("float64"), x.astype("float64"))


def close(got: np.ndarray, want: np.ndarray) -> None:
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("batch", "channels", "space"), SHAPES, ids=str)
def test_no_image_is_transposed(target: str, batch: int, channels: int, space: tuple[int, ...]) -> None:
    x, weight = drawn(batch, channels, *space), drawn(21, channels, *(1 for _ in space))
    bias, scale = drawn(21, *(1 for _ in space)), drawn(21, *(1 for _ in space))
    residual, row = drawn(batch, 21, *space), drawn(space[-1])
    data, other = relay.var("data", shape=x.shape), relay.var("other", shape=residual.shape)
    made = relay.nn.relu(conv(data, weight) + relay.const(bias)) + other * relay.const(scale)
    want = np.maximum(product(x, weight) + bias, 0) + residual * scale
    lib = built(made, target)
    close(lib.run(data=x, other=residual), want)
    if np.prod(space) > 1 and target != TARGETS[2]:
        assert "single pixels" in lib.inspect("why", lib.kernels()[0]) and len(lib.kernels()) == 1
    close(built(made * relay.const(row), target).run(data=x, other=residual), want * row)  # pixels do not lie evenly


def test_channels_that_share_a_set_of_the_cache_are_not_stored_pixel_by_pixel() -> None:
    """1024 pixels are 4 KiB: storing tiles of pixels took three times as long as the product."""
    x, weight = drawn(1, 64, 1024), drawn(128, 64, 1)
    lib = built(conv(relay.var("data", shape=x.shape), weight), "llvm")
    close(lib.run(data=x), product(x, weight))
    assert len(lib.kernels()) == 1 and "single pixels" in lib.inspect("why", lib.kernels()[0])


@pytest.mark.parametrize("target", TARGETS)
def test_beside_other_layouts(target: str) -> None:
    """Its data, its result and what is added may be others' too, with channels last; parts of one tensor."""
    x, w1, w3, last = drawn(2, 20, 10, 12), drawn(18, 20, 1, 1), drawn(18, 20, 3, 3), drawn(9, 36, 1, 1)
    data = relay.var("data", shape=x.shape)
    one, three = conv(data, w1), relay.nn.conv2d(data, relay.const(w3), kernel_size=(3, 3), padding=(1, 1))
    both = relay.concatenate([one, three], axis=1)
    lib = built(relay.Tuple([one + three, relay.nn.relu(both), conv(both, last)]), target)
    seen = np.pad(x.astype("float64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = [(i, j) for i in range(3) for j in range(3)]
    want3 = sum(product(seen[:, :, i : i + 10, j : j + 12], w3[:, :, i, j]) for i, j in taps)
    want1 = product(x, w1)
    wide = np.concatenate([want1, want3], axis=1)
    for got, want in zip(lib.run(data=x), (want1 + want3, np.maximum(wide, 0), product(wide, last))):
        close(got, want)


def test_a_layer_between_others_stays_with_channels_last() -> None:
    """The result of the first is read by a convolution of windows: a transform of it would cost more."""
    x, w1, w3 = drawn(1, 32, 14, 14), drawn(32, 32, 1, 1), drawn(32, 32, 3, 3)
    first = relay.nn.relu(conv(relay.var("data", shape=x.shape), w1))
    made = relay.nn.conv2d(first, relay.const(w3), kernel_size=(3, 3), padding=(1, 1))
    with relay.transform.PassContext(opt_level=3):
        mod = relay.optimize(relay.IRModule.from_expr(made), target="llvm")[0]
    assert str(mod).count('data_layout="NHWC"') == 2


def test_strides_padding_groups_and_integers_are_no_product_of_pixels() -> None:
    x = relay.var("data", shape=(1, 16, 8, 8))
    for weight, kwargs in (((16, 16), {"strides": (2, 2)}), ((16, 16), {"padding": (1, 1)}), ((16, 8), {"groups": 2})):
        values = drawn(*weight, 1, 1)
        lib = built(relay.nn.conv2d(x, relay.const(values), kernel_size=(1, 1), channels=16, **kwargs), "llvm")
        assert not any("single pixels" in lib.inspect("why", kernel) for kernel in lib.kernels())
