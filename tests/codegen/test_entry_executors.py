"""create_executor("graph"): arguments in every form, nested results, bad arguments."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import IRModule
from relaylab.runtime import ADT, array, cpu, cuda
from relaylab.support.errors import RelayTypeError, RelayValueError

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32], %p: (Tensor[(2), float32], Tensor[(3), float32])) {
  ((add(%x, %p.0), %p.1), negative(%x))
}"""
ONE, TWO, THREE = np.ones(2, "float32"), np.full(2, 2, "float32"), np.full(3, 3, "float32")


def run(*args: object, **kwargs: object) -> object:
    return relay.create_executor("graph", relay.transform.InferType()(relay.fromtext(TEXT))).evaluate()(*args, **kwargs)


@pytest.mark.parametrize(
    "call",
    [
        lambda: run(ONE, (TWO, THREE)),
        lambda: run(p=(TWO, THREE), x=ONE),
        lambda: run(array(ONE), p=ADT(0, [TWO, THREE])),
        lambda: run([1, 1], (TWO, array(THREE))),
    ],
)
def test_arguments_and_nested_results(call: object) -> None:
    (added, kept), negative = call()
    assert (added.numpy().tolist(), kept.numpy().tolist(), negative.numpy().tolist()) == ([3, 3], [3, 3, 3], [-1, -1])


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: run(ONE), "no value is given for p"),
        (lambda: run(ONE, TWO, THREE), "takes 2 arguments"),
        (lambda: run(ONE, q=TWO), "no further input `q`"),
        (lambda: run(ONE, (TWO, TWO)), "shape"),
    ],
)
def test_bad_arguments(call: object, word: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert word in str(caught.value)


def test_parameters_of_one_name_are_told_apart() -> None:
    a, b = relay.var("x", shape=(2,)), relay.var("x", shape=(2,))
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function([a, b], relay.subtract(a, b))))
    for kind in ("graph", "debug", "vm"):
        got = relay.create_executor(kind, mod).evaluate()(ONE, TWO)
        assert np.asarray(got.numpy()).tolist() == [-1, -1]


def test_expressions_are_evaluated() -> None:
    value = relay.create_executor("graph").evaluate(relay.add(relay.const(1.0), relay.const(2.0)))
    assert float(value.numpy()) == 3


def test_a_virtual_machine_takes_its_inputs_and_devices_that_are_here() -> None:
    mod = relay.transform.InferType()(relay.fromtext(TEXT))
    executable = relay.vm.compile(mod, "llvm")
    set_input = relay.vm.VirtualMachine(executable, cpu(0)).set_input
    runs = [relay.create_executor(kind, mod).evaluate() for kind in ("graph", "debug", "vm")]
    for take in (partial(set_input, "main"), *runs):
        with pytest.raises(RelayTypeError, match="2 arguments, 3 are given") as caught:
            take(ONE, (TWO, THREE), ONE)
        assert caught.value.code == "interp.too-many-arguments"
    with pytest.raises(RelayValueError, match="does not exist here"):
        relay.vm.VirtualMachine(executable, cuda(0))
