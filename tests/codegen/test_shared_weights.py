"""Layers that share a weight share what is packed of it, if they take its axes alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.vm import VirtualMachine
from relaylab.codegen.operations.constant_pool import PREFETCHED
from relaylab.ir import Expr
from relaylab.ir.dims import SizeVar

RNG = np.random.default_rng(0)
WEIGHT = RNG.standard_normal((64, 64), "float32")
X = RNG.standard_normal((5, 64), "float32")


def products(x: Expr) -> tuple[Expr, list[np.ndarray]]:
    weight = relay.const(WEIGHT)
    taken = relay.nn.dense(x, weight), relay.nn.matmul(x, weight), relay.nn.dense(x, weight)
    return relay.Tuple(taken), [X @ WEIGHT.T, X @ WEIGHT, X @ WEIGHT.T]


def test_products_of_a_weight_and_of_its_transpose() -> None:
    x = relay.var("x", shape=X.shape)
    body, wanted = products(x)
    lib = relay.build(relay.IRModule.from_expr(relay.Function([x], body)), "llvm")
    for found, expected in zip(lib.run(x=X), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert lib.executable.constants.nbytes < 3 * WEIGHT.nbytes + PREFETCHED


def test_products_of_open_rows() -> None:
    x = relay.var("x", shape=(SizeVar("n"), 64))
    body, wanted = products(x)
    vm = VirtualMachine(relay.vm.compile(relay.IRModule.from_expr(relay.Function([x], body)), "llvm"))
    for found, expected in zip(vm.invoke("main", X), wanted, strict=True):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("groups", [1, 16])
def test_convolutions_that_take_the_axes_otherwise(groups: int) -> None:
    x = relay.var("x", shape=(1, 16, 9, 9))
    kernel = RNG.standard_normal((16, 16, 3, 3) if groups == 1 else (16, 1, 3, 3), "float32")
    convolved: Callable[[Expr, str], Expr] = lambda weight, layout: relay.nn.conv2d(
        x, weight, channels=16, kernel_size=(3, 3), padding=(1, 1), groups=groups, kernel_layout=layout
    )
    layouts = ("OIHW", "IOHW" if groups == 1 else "OIWH")
    lib, apart = (
        relay.build(
            relay.IRModule.from_expr(relay.Function([x], relay.Tuple([convolved(w, k) for w, k in zip(ws, layouts)]))),
            "llvm",
        )
        for ws in ([relay.const(kernel)] * 2, [relay.const(kernel), relay.const(kernel)])
    )
    data = RNG.standard_normal((1, 16, 9, 9), "float32")
    for found, expected in zip(lib.run(x=data), apart.run(x=data), strict=True):
        np.testing.assert_array_equal(found, expected)
