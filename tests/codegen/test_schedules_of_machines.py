"""Schedules of programs that the virtual machine runs: several networks, control flow, kernels for all sizes."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.vm import VirtualMachine
from relaylab.ir.dims import SizeVar
from relaylab.support.errors import RelayError
from relaylab.transform import PassContext

RNG = np.random.default_rng(2)
WEIGHTS = RNG.standard_normal((14, 10)).astype("float32")


def machine(body, *params, **schedules):
    """A machine with schedules of kernels."""
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function(list(params), body)))
    with PassContext(opt_level=3, config={"relay.codegen.schedules": schedules}):
        return VirtualMachine(relay.vm.compile(mod, target="llvm"))


def dense(x):
    return relay.nn.relu(relay.nn.dense(x, relay.const(WEIGHTS)))


STEPS = ["parallel i0", "vectorize i1", "reorder i1 i0", "fission i1\nvectorize i1", "pack in0 i0 k\nunroll i1"]
STEPS += ["split i1 7\nreorder i1o i0\nparallel i1o", "pack in1 once k i1 as p\nconstant p", "prefetch in0 k 2"]


@pytest.mark.parametrize("steps", [*STEPS, "from picked"])
def test_a_kernel_for_all_sizes_has_the_loops_of_its_schedule(steps):
    """They were built as they are picked, whatever the schedule said."""
    x = relay.var("x", shape=(SizeVar("n"), 10))
    vm = machine(dense(x), x, nn_dense_nn_relu=steps)
    for rows in (7, 1, 0, 33):
        given = RNG.standard_normal((rows, 10)).astype("float32")
        wanted = np.maximum(given @ WEIGHTS.T, 0)
        np.testing.assert_allclose(vm.invoke("main", given).numpy(), wanted, rtol=1e-5, atol=1e-5)
    form = vm.exe.specializations.open
    (kernel,) = form.planned.kernels.values()
    text = str(kernel.program)
    assert ("registers acc" in text) == (steps == "from picked")
    assert steps != "parallel i0" or "parallel i0 in $n" in text


REFUSED = {
    "split i0 2": "how many turns `i0` has, `$n`, is known when the kernel runs",
    "from picked rows=2": "a product of open rows has no choices",
    "vectorise i1": "did you mean `vectorize`",
}


@pytest.mark.parametrize("steps", REFUSED)
def test_what_may_not_be_taken_for_all_sizes_is_said_at_the_first_call(steps):
    x = relay.var("x", shape=(SizeVar("n"), 10))
    vm = machine(dense(x), x, nn_dense_nn_relu=steps)
    with pytest.raises(RelayError) as error:
        vm.invoke("main", np.ones((3, 10), "float32"))
    assert REFUSED[steps] in str(error.value)


def test_the_name_of_no_kernel_is_said():
    x = relay.var("x", shape=(SizeVar("n"), 10))
    vm = machine(dense(x), x, nn_dnse_nn_relu="vectorize i1")
    with pytest.raises(RelayError, match="there is no kernel `nn_dnse_nn_relu`"):
        vm.invoke("main", np.ones((3, 10), "float32"))


def branches():
    """Each side of an `if` has a kernel of its own."""
    x, c = relay.var("x", shape=(6, 10)), relay.var("c", shape=(), dtype="bool")
    return relay.If(c, dense(x), relay.exp(relay.nn.dense(x, relay.const(WEIGHTS)))), c, x


@pytest.mark.parametrize("name", ["nn_dense_nn_relu", "nn_dense_exp"])
def test_a_schedule_may_be_that_of_a_kernel_on_one_side_of_an_if(name):
    """It was refused by the side that has no such kernel."""
    vm = machine(*branches(), **{name: "split i0 2\nvectorize i1"})
    given = RNG.standard_normal((6, 10)).astype("float32")
    product = given @ WEIGHTS.T
    for side, wanted in ((True, np.maximum(product, 0)), (False, np.exp(product))):
        got = vm.invoke("main", np.array(side), given).numpy()
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_what_no_side_of_an_if_has_is_said():
    given = np.array(True), np.ones((6, 10), "float32")
    wrong = {
        "nn_conv2d": ("split i0 2", "there is no kernel `nn_conv2d`"),
        "nn_dense_exp": ("split i0 5", "5 does not"),
    }
    for name, (steps, words) in wrong.items():
        with pytest.raises(RelayError, match=words):
            machine(*branches(), **{name: steps}).invoke("main", *given)
