"""Products of an open program: what is multiplied by a number after one is multiplied before it, if that is fewer."""

import numpy as np
import pytest
from test_specializations import RNG, forms, machine

from relaylab import relay
from relaylab.ir.dims import SizeVar

SCALED = {
    "divide": (lambda x, c: relay.divide(x, c), lambda x, c: x / c),
    "multiply": (lambda x, c: relay.multiply(x, c), lambda x, c: x * c),
    "multiply from the left": (lambda x, c: relay.multiply(c, x), lambda x, c: c * x),
}


def scores(scaled, number, dtype="float32", queries=2, both=False):
    """What `scaled` makes of the products of queries and open keys, and a number; with `both` the products as well."""
    n = SizeVar("n")
    q, k = relay.var("q", shape=(3, queries, 5), dtype=dtype), relay.var("k", shape=(3, n, 5), dtype=dtype)
    product = relay.nn.batch_matmul(q, k)
    made = scaled(relay.reshape(product, (1, 3, queries, n)), relay.const(number, dtype))
    return machine(relay.Function([q, k], relay.Tuple([made, product]) if both else made), open=True)


def compare(vm, number, of, dtype="float32", queries=2):
    """The results for several lengths are numpy's; the names of the kernels that gave them."""
    for length in (0, 1, 3, 16, 17, 65):
        q, k = (RNG.standard_normal((3, m, 5)).astype(dtype) for m in (queries, length))
        out = vm.invoke("main", q, k)
        wanted = q @ k.transpose(0, 2, 1)
        with np.errstate(all="ignore"):
            results = [of(wanted, np.asarray(number, dtype))[None], wanted]
        for got, value in zip(out if isinstance(out, tuple) else [out], results):
            np.testing.assert_allclose(got.numpy(), value, rtol=1e-5, atol=1e-6)
    return [step.kernel for step in forms(vm).open.planned.plan.steps]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SCALED)
def test_the_queries_are_scaled(name, dtype):
    scaled, of = SCALED[name]
    kernels = compare(scores(scaled, 3.5, dtype), 3.5, of, dtype)
    assert [kernel.rpartition("_")[0] for kernel in kernels] == [name.split()[0], "nn_batch_matmul"]


def test_products_that_are_read_elsewhere_stay():
    kernels = compare(scores(*SCALED["divide"][:1], 3.5, both=True), 3.5, SCALED["divide"][1])
    assert "nn_batch_matmul" in kernels[0]


@pytest.mark.parametrize("number", [0.0, np.inf])
def test_numbers_that_make_infinite_queries_stay(number):
    kernels = compare(scores(SCALED["divide"][0], number), number, SCALED["divide"][1])
    assert "nn_batch_matmul" in kernels[0]
