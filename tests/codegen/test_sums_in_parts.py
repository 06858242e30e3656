"""Long sums are sums of parts: every length of reduction, in every family, beside torch in float64."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay

torch = pytest.importorskip("torch")
nn = torch.nn.functional
DEPTHS = (60, 64, 65, 85, 86, 100, 127, 128, 129, 190, 192, 193, 255, 256, 257, 300, 383, 520)


def compiled(body: relay.Expr, x: np.ndarray) -> np.ndarray:
    """The result of code whose weights are constants, without minimal products."""
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body)))
    with relay.transform.PassContext(opt_level=3, config={"relay.codegen.winograd": False}):
        return relay.create_executor("graph", mod).evaluate()(x).numpy()


def drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype("float32")


def check(found: np.ndarray, exact: torch.Tensor) -> None:
    want = exact.numpy()
    np.testing.assert_allclose(found, want, rtol=0, atol=2e-6 * np.abs(want).max())


@pytest.mark.parametrize("depth", DEPTHS)
def test_products(depth: int) -> None:
    x, w = drawn(7, depth), drawn(20, depth)
    body = relay.nn.dense(relay.var("x", shape=x.shape), relay.const(w))
    check(compiled(body, x), nn.linear(torch.tensor(x).double(), torch.tensor(w).double()))


@pytest.mark.parametrize("kernel", [(1, 1), (3, 1), (2, 3), (5, 5)])
@pytest.mark.parametrize("depth", DEPTHS)
def test_convolutions(depth: int, kernel: tuple[int, int]) -> None:
    x, w = drawn(1, depth, 6, 5), drawn(9, depth, *kernel)
    body = relay.nn.conv2d(
        relay.var("x", shape=x.shape), relay.const(w), padding=(2, 2), kernel_size=kernel, channels=9
    )
    check(compiled(body, x), nn.conv2d(torch.tensor(x).double(), torch.tensor(w).double(), padding=2))


@pytest.mark.parametrize("strides", [1, 2])
@pytest.mark.parametrize("depth", DEPTHS)
def test_transposed_convolutions(depth: int, strides: int) -> None:
    x, w = drawn(1, depth, 4, 4), drawn(depth, 6, 4, 4)
    body = relay.nn.conv2d_transpose(
        relay.var("x", shape=x.shape), relay.const(w), channels=6, kernel_size=(4, 4), strides=(strides, strides),
        padding=(1, 1),
    )  # fmt: skip
    want = nn.conv_transpose2d(torch.tensor(x).double(), torch.tensor(w).double(), stride=strides, padding=1)
    check(compiled(body, x), want)
