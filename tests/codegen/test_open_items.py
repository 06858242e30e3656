"""Kernels of one text that open sizes run over different numbers of items are two kernels."""

import numpy as np

from relaylab import relay
from relaylab.codegen.vm import VirtualMachine
from relaylab.ir.dims import SizeVar

RNG = np.random.default_rng(0)


def test_means_of_rows_and_of_twice_as_many():
    """The loops are the same but for how long they are, which the text of a kernel does not say."""
    n = SizeVar("n")
    shapes = (1, n, 32), (1, n, 2, 32), (1, n, 3, 32), (n, n, 32)
    inputs = [relay.var(f"x{k}", shape=shape) for k, shape in enumerate(shapes)]
    mean = lambda x, rank: relay.mean(relay.multiply(x, x), axis=[rank - 1], keepdims=True)
    body = relay.Tuple([mean(x, len(shape)) for x, shape in zip(inputs, shapes)])
    vm = VirtualMachine(relay.vm.compile(relay.IRModule.from_expr(relay.Function(inputs, body)), "llvm"))
    for count in (7, 1, 0, 20):
        given = [RNG.random([count if d is n else d for d in shape]).astype("float32") for shape in shapes]
        for x, found in zip(given, vm.invoke("main", *given)):
            np.testing.assert_allclose(found.numpy(), (x * x).mean(-1, keepdims=True), rtol=1e-5)
    assert vm.exe.specializations.open is not None
