"""Logarithms of one number of each row are taken for some rows together: a number costs as much as a vector of them."""

from __future__ import annotations

import numpy as np
import pytest
from native_group import TARGETS

from relaylab import relay

SHAPES = [(128, 17), (625, 32), (1176, 3), (131, 5), (96, 7), (4, 40, 9), (200, 1)]


def built(body: relay.Expr, target: str):
    with relay.transform.PassContext(opt_level=3, config={"relay.codegen.verify": True}):
        return relay.build(relay.IRModule.from_expr(body), target=target)


@pytest.mark.parametrize("isa", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", SHAPES)
def test_log_softmax_of_short_rows(shape: tuple[int, ...], dtype: str, isa: str) -> None:
    x = (np.random.default_rng(2).normal(size=shape) * 4).astype(dtype)
    x[0, 0] = -np.inf
    lib = built(relay.nn.log_softmax(relay.var("x", shape=shape, dtype=dtype)), TARGETS[isa])
    wide = x.astype("float64")
    with np.errstate(all="ignore"):
        want = wide - wide.max(-1, keepdims=True)
        want = want - np.log(np.exp(want).sum(-1, keepdims=True))
    digits = {"float32": 2e-6, "float64": 1e-14, "float16": 4e-3}[dtype]
    np.testing.assert_allclose(lib.run(x=x).astype("float64"), want, rtol=digits, atol=digits)


def test_a_block_of_rows_takes_its_logarithms_side_by_side() -> None:
    text = built(relay.nn.log_softmax(relay.var("x", shape=(1176, 17))), "llvm").inspect("loop")
    lines = [line.strip() for line in text.splitlines()]
    assert "parallel i0o in 84:" in lines
    [at] = [k for k, line in enumerate(lines) if " = log(" in line]
    assert lines[at - 1].endswith("in 14 vectorized:")


def test_few_rows_stay_items_of_their_own() -> None:
    text = built(relay.nn.log_softmax(relay.var("x", shape=(96, 17))), "llvm").inspect("loop")
    assert "parallel i0 in 96:" in text and "row0" not in text
