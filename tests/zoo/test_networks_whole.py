"""Networks in their full size, with parameters that let every layer be seen in the result, against the interpreter.

Small forms have other kernels: fewer channels than a vector has lanes, fewer pixels than a tile.
"""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.bench.variants import lively
from relaylab.interp import Interpreter, random_inputs
from relaylab.ir import Call, Function, IRModule
from relaylab.runtime import cpu, graph_executor
from relaylab.transform import InferType, PassContext
from relaylab.zoo.catalog import NETWORKS

pytestmark = pytest.mark.slow

NAMES = ("mobilenet", "resnet18", "resnet50", "squeezenet1.1", "densenet121", "inception_v3", "dcgan", "unet")


def without_softmax(mod: IRModule) -> IRModule:
    """The network without its last softmax, which would hide errors."""
    main = mod["main"]
    if isinstance(main.body, Call) and main.body.op.name == "nn.softmax":
        mod = IRModule.from_expr(Function(main.params, main.body.args[0]))
    return InferType()(mod)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_networks_agree_with_the_interpreter(name: str) -> None:
    mod, params = lively(NETWORKS[name].build())
    mod = without_softmax(mod)
    every = dict(zip((p.name_hint for p in mod["main"].params), random_inputs(mod["main"], 1)))
    every |= {k: v.numpy() for k, v in params.items()}
    expected = np.asarray(Interpreter(mod).evaluate()(*every.values()))
    assert expected.std() > 1e-3 * np.abs(expected).max(), "the result would be the same whatever was computed"
    for level in (2, 3):  # scales of normalization are numbers beside a kernel, and parts of its weights
        with PassContext(opt_level=level):
            lib = relay.build(mod, params=params)
        module = graph_executor.GraphModule(lib["default"](cpu(0)))
        module.run(**{k: v for k, v in every.items() if k not in params})
        found = module.get_output(0).numpy()
        assert np.abs(found - expected).max() < 2e-4 * np.abs(expected).max(), f"level {level}"
