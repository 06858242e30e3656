"""FlattenAtrousConv: the dilated convolution computes what the three operators did, with padding of their own too."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import is_call_to


def atrous(padding: tuple[int, ...], crops: tuple[int, int], x: relay.Expr, w: relay.Expr) -> relay.IRModule:
    grid = relay.nn.space_to_batch_nd(x, (2, 2), ((2, 3), (0, 1)))
    attrs = {"groups": 4, "channels": 4, "kernel_size": (3, 3), "data_layout": "NHWC", "kernel_layout": "HWOI"}
    conv = relay.nn.conv2d(grid, w, padding=padding, **attrs)
    return relay.IRModule.from_expr(relay.nn.batch_to_space_nd(conv, (2, 2), (crops, crops)))


@pytest.mark.parametrize("crops", [(0, 1), (1, 0)])
@pytest.mark.parametrize("padding", [(1, 1, 1, 1), (1, 2, 0, 1), (2, 1)])
def test_padding_of_the_convolution_becomes_that_of_all_phases(padding, crops) -> None:
    rng = np.random.default_rng(3)
    data, weight = rng.random((1, 5, 5, 4), "float32"), rng.random((3, 3, 4, 1), "float32")
    mod = atrous(padding, crops, relay.var("x", shape=data.shape), relay.var("w", shape=weight.shape))
    flat = relay.transform.FlattenAtrousConv()(mod)
    assert is_call_to(flat["main"].body, "nn.conv2d")
    before, after = (relay.create_executor("debug", m).evaluate()(data, weight).numpy() for m in (mod, flat))
    np.testing.assert_allclose(after, before, rtol=1e-5)
