"""Products of a few rows by a right side that is an input and lies transposed: lanes run along what is summed."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import Expr

TARGETS = ["llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"]
rng = np.random.default_rng(0)


def drawn(*shape: int, dtype: str = "float32") -> np.ndarray:
    return rng.standard_normal(shape).astype(dtype)


def variable(name: str, x: np.ndarray) -> Expr:
    return relay.var(name, shape=x.shape, dtype=x.dtype.name)


def built(result: Expr, target: str = "llvm"):
    with relay.transform.PassContext(opt_level=3):
        return relay.build(relay.IRModule.from_expr(result), target=target)


def gathers(lib) -> bool:
    return any("panel" in lib.inspect("loop", kernel) for kernel in lib.kernels())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 2, 4, 5])
def test_a_row_by_weights_that_are_an_input(rows: int, dtype: str, target: str) -> None:
    """They were gathered, panel by panel, for the one row: 2048 x 2048 took 1.3 ms, which are 0.2."""
    x, w, bias, other = (drawn(*shape, dtype=dtype) for shape in ((rows, 96), (130, 96), (130,), (rows, 130)))
    product = relay.nn.dense(variable("x", x), variable("w", w)) + variable("bias", bias)
    lib = built(relay.nn.relu(product) * variable("other", other), target)
    want = np.maximum(x.astype("float64") @ w.T + bias, 0) * other
    np.testing.assert_allclose(lib.run(x=x, w=w, bias=bias, other=other), want, rtol=1e-4, atol=1e-4)
    assert len(lib.kernels()) == 1 and (rows > 4 or target == TARGETS[2] or not gathers(lib))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("left", "right"), [((6, 1), 6), ((6, 3), 1), ((1, 2), 6)])
def test_batches(left: tuple[int, int], right: int, target: str) -> None:
    x, w = drawn(*left, 64), drawn(right, 77, 64)
    lib = built(relay.nn.batch_matmul(variable("x", x), variable("w", w)), target)
    np.testing.assert_allclose(lib.run(x=x, w=w), x @ np.swapaxes(w, 1, 2), rtol=1e-4, atol=1e-4)


def test_what_is_summed_may_be_shorter_than_a_vector_or_apart() -> None:
    for depth in (1, 5, 17):
        x, w = drawn(2, depth), drawn(40, depth)
        got = built(relay.nn.dense(variable("x", x), variable("w", w))).run(x=x, w=w)
        np.testing.assert_allclose(got, x @ w.T, rtol=1e-4, atol=1e-5)
    x, w = drawn(64, 2), drawn(40, 64)
    product = relay.nn.matmul(variable("x", x), variable("w", w), transpose_a=True, transpose_b=True)
    np.testing.assert_allclose(built(product).run(x=x, w=w), x.T @ w.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_keys_that_are_turned_and_scaled_are_read_where_they_lie(rows: int) -> None:
    """As torch writes attention: each step of a decoder copied all keys that it keeps."""
    q, k = drawn(1, 12, rows, 64), drawn(1, 12, 200, 64)
    turned = relay.transpose(variable("k", k), axes=[0, 1, 3, 2]) * relay.const(0.25, "float32")
    product = relay.nn.batch_matmul(
        relay.reshape(variable("q", q), (12, rows, 64)), relay.reshape(turned, (12, 64, 200)), transpose_b=False
    )
    lib = built(product)
    want = q[0].astype("float64") @ np.swapaxes(k[0], 1, 2) * 0.25
    np.testing.assert_allclose(lib.run(q=q, k=k), want, rtol=1e-4, atol=1e-4)
    assert rows > 4 or not any("transpose" in kernel for kernel in lib.kernels())


def test_other_axes_that_move_stay() -> None:
    q, k = drawn(12, 1, 64), drawn(1, 200, 12, 64)
    turned = relay.reshape(relay.transpose(variable("k", k), axes=[0, 2, 3, 1]), (12, 64, 200))
    lib = built(relay.nn.batch_matmul(variable("q", q), turned, transpose_b=False))
    np.testing.assert_allclose(lib.run(q=q, k=k), q @ k[0].transpose(1, 2, 0), rtol=1e-4, atol=1e-4)
