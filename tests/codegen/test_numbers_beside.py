"""Several numbers a channel beside a convolution: each is read from its own operand, at the same place in all."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import IRModule
from relaylab.runtime import cpu, graph_executor
from relaylab.transform import InferType, PassContext

KINDS = {
    "depthwise": lambda x, w, c: relay.nn.conv2d(x, w, padding=(1, 1), groups=c, channels=c, kernel_size=(3, 3)),
    "direct": lambda x, w, c: relay.nn.conv2d(x, w, padding=(1, 1), channels=c, kernel_size=(3, 3)),
    "transposed": lambda x, w, c: relay.nn.conv2d_transpose(x, w, strides=(2, 2), channels=c, kernel_size=(3, 3)),
}


@pytest.mark.parametrize("target", ["llvm", "llvm -mattr=-avx512f", "llvm -mcpu=x86-64"])
@pytest.mark.parametrize("channels", [16, 32, 48, 64, 96])
@pytest.mark.parametrize("kind", KINDS)
def test_scale_shift_and_slope_of_each_channel(kind: str, channels: int, target: str) -> None:
    rng = np.random.default_rng(0)
    side = 112 if kind == "depthwise" else 14  # large ones walk the channels within a tile of pixels
    x = rng.normal(size=(1, channels, side, side)).astype("float32")
    w = rng.normal(size=(channels, 1 if kind == "depthwise" else channels, 3, 3)).astype("float32")
    sides = [rng.normal(size=(channels, 1, 1)).astype("float32") for _ in range(3)]
    data = relay.var("data", shape=x.shape)
    product = KINDS[kind](data, relay.const(w), channels)
    scaled = product * relay.const(sides[0]) + relay.const(sides[1])
    module = InferType()(
        IRModule.from_expr(relay.Function([data], relay.Tuple([product, scaled * relay.const(sides[2])])))
    )
    fused = InferType()(IRModule.from_expr(relay.Function([data], scaled * relay.const(sides[2]))))
    with PassContext(opt_level=2, disabled_pass=["FoldScaleAxis"]):
        plain, result = (outputs(m, target, x)[0] for m in (module, fused))
    assert np.allclose(result, (plain * sides[0] + sides[1]) * sides[2], rtol=1e-4, atol=1e-3)


def outputs(module: IRModule, target: str, x: np.ndarray) -> list[np.ndarray]:
    built = graph_executor.GraphModule(relay.build(module, target)["default"](cpu(0)))
    built.run(data=x)
    return [built.get_output(k).numpy() for k in range(built.get_num_outputs())]
