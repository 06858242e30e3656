"""Sizes with names in attributes: types, interpreter and virtual machine agree, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir.dims import SizeVar
from relaylab.op.shapes import floormod, rounded
from relaylab.support.errors import RelayError

N = SizeVar("n")
X = relay.var("x", shape=(N, 4))
FAR = 2**31 - 1


def cut(begin: int, end: int, stride: int = 1) -> Any:
    return relay.strided_slice(X, [begin], [end], [stride], axes=[0])


PROGRAMS = [
    (relay.reshape(X, (N, -1)), "(n, 4)", lambda x: x),
    (relay.reshape(X, (2 * N, 2)), "(2 * n, 2)", lambda x: x.reshape(-1, 2)),
    (relay.reshape(X, (-1, N)), "(4, n)", lambda x: x.reshape(4, -1)),
    (relay.full(relay.const(2.0), (N, 4)) + X, "(n, 4)", lambda x: x + 2),
    (relay.broadcast_to(relay.const(2.0), (N, 4)) * X, "(n, 4)", lambda x: x * 2),
    (relay.zeros((N, 4), "float32") + X, "(n, 4)", lambda x: x),
    (relay.tile(X, (N, 1)), "(n * n, 4)", lambda x: np.tile(x, (len(x), 1))),
    (cut(1, FAR) - cut(0, -1), "(n - 1, 4)", lambda x: x[1:] - x[:-1]),
    (cut(0, FAR, 2), "((n + 1) // 2, 4)", lambda x: x[::2]),
    (cut(1, FAR, 3), "((n + 1) // 3, 4)", lambda x: x[1::3]),
    (cut(-1, -FAR - 2, -1), "(n, 4)", lambda x: x[::-1]),
    (cut(-2, FAR), "(n - max(n - 2, 0), 4)", lambda x: x[-2:]),
    (cut(0, 7), "(n - max(n - 7, 0), 4)", lambda x: x[:7]),
    (cut(1, 3), "(max(n - 1, 0) - max(n - 3, 0), 4)", lambda x: x[1:3]),
    (cut(-3, -1), "(max(n - 1, 0) - max(n - 3, 0), 4)", lambda x: x[-3:-1]),
    (cut(3, 1), "(0, 4)", lambda x: x[3:1]),
    (cut(-3, 2), "(max(n - max(n - 2, 0) - max(n - 3, 0), 0), 4)", lambda x: x[-3:2]),
    (cut(0, 5, 2), "((max(n - 5, 0) + n + 1) // 2 - max(n - 5, 0), 4)", lambda x: x[:5:2]),
]


@pytest.mark.parametrize(("expr", "shape", "expected"), PROGRAMS)
@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_the_arguments_say_what_a_size_is(expr: Any, shape: str, expected: Any, kind: str) -> None:
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([X], expr)))
    assert str(mod["main"].ret_type) == f"Tensor[{shape}, float32]"
    run = relay.create_executor(kind, mod=mod).evaluate()
    for n in (2, 5, 6):
        x = np.random.default_rng(n).normal(size=(n, 4)).astype("float32")
        np.testing.assert_allclose(run(x).numpy(), expected(x), rtol=1e-6)


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_each_call_has_its_own_size(kind: str) -> None:
    """f(x) = x.sum() + f(x[1:]): the size in the inner call does not change that of the outer one."""
    text = """#[version = "0.0.5"]
    def @f(%x: Tensor[(meta[tir.SizeVar][0]), float32], %k: int32) -> float32 {
      %0 = strided_slice(%x, begin=[1], end=[100], strides=[1]);
      if (%k == 0) { 0f } else { @f(%0, %k - 1) + sum(broadcast_to(1f, shape=[meta[tir.SizeVar][0]])) }
    }
    def @main(%x: Tensor[(meta[tir.SizeVar][0]), float32]) -> float32 { @f(%x, 3) }
    """
    run = relay.create_executor(kind, mod=relay.parse(text)).evaluate()
    assert float(run(np.ones(5, "float32")).numpy()) == 5 + 4 + 3


def test_one_size_has_one_value() -> None:
    y = relay.var("y", shape=(N,))
    run = relay.create_executor("debug", mod=relay.IRModule.from_expr(relay.Function([X, y], X))).evaluate()
    with pytest.raises(RelayError, match="`n` is 2 and 3"):
        run(np.ones((2, 4), "float32"), np.ones(3, "float32"))


def test_remainders_of_sizes() -> None:
    assert (4 * N) % 4 == 0 and (2 * N + 3) % 2 == 1 and floormod(7, 4) == 3
    assert rounded(N) is N and rounded(2.6) == 3
    assert floormod(N, 3) == N - 3 * (N // 3)
