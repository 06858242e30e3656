"""Programs with `if` on data, as networks between choices, held against numpy and the interpreter."""

import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.vm import VirtualMachine
from relaylab.ir.dims import SizeVar

RNG = np.random.default_rng(0)
W = RNG.standard_normal((4, 4)).astype("float32")


def programs():
    x = relay.var("x", shape=(3, 4))
    y = relay.nn.dense(x, relay.const(W))
    total = relay.sum(y)
    first = relay.If(relay.greater(total, relay.const(0.0)), relay.exp(y), relay.nn.dense(y, relay.const(W)))
    second = relay.If(relay.less(relay.max(first), relay.const(2.0)), first + y, relay.nn.relu(first))
    inner = relay.If(relay.greater(relay.min(y), relay.const(-1.0)), y * y, relay.negative(y))
    nested = relay.If(relay.greater(total, relay.const(0.0)), inner, relay.Tuple([y, y]).fields[0])
    pair = relay.If(relay.greater(total, relay.const(0.0)), relay.Tuple([y, x]), relay.Tuple([x, y]))
    return {
        "one": (x, first),
        "one after the other": (x, relay.Tuple([second, first])),
        "one in the other": (x, nested),
        "pairs": (x, relay.TupleGetItem(pair, 0) - relay.TupleGetItem(pair, 1)),
    }


def in_numpy(name, x):
    y = x @ W.T
    up = y.sum() > 0
    first = np.exp(y) if up else y @ W.T
    match name:
        case "one":
            return [first]
        case "one after the other":
            return [first + y if first.max() < 2 else np.maximum(first, 0), first]
        case "one in the other":
            return [(y * y if y.min() > -1 else -y) if up else y]
    return [y - x if up else x - y]


@pytest.mark.parametrize("name", programs())
def test_each_choice_gives_what_numpy_gives(name):
    x, body = programs()[name]
    mod = relay.IRModule.from_expr(relay.Function([x], body))
    vm = VirtualMachine(relay.vm.compile(mod, "llvm"))
    debug = relay.create_executor("debug", mod=mod).evaluate()
    outcomes = set()
    for k in range(12):
        values = (RNG.standard_normal((3, 4)) * (0.2, 1.0, 2.0)[k % 3]).astype("float32")
        got, checked = vm.invoke("main", values), debug(values)
        got, checked = (list(v) if isinstance(v, (tuple, list)) else [v] for v in (got, checked))
        wanted = in_numpy(name, values)
        for g, d, w in zip(got, checked, wanted, strict=True):
            np.testing.assert_allclose(g.numpy(), w, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(d.numpy(), w, rtol=1e-4, atol=1e-5)
        outcomes.add((values @ W.T).sum() > 0)
    assert outcomes == {True, False}
    assert vm.exe.specializations.open is not None and not vm.exe.specializations.closed


def test_values_before_the_choice_are_computed_once():
    x, body = programs()["one"]
    vm = VirtualMachine(relay.vm.compile(relay.IRModule.from_expr(relay.Function([x], body)), "llvm"))
    vm.invoke("main", np.ones((3, 4), "float32"))
    lines = vm.exe.bytecode.splitlines()
    choice = next(k for k, line in enumerate(lines) if "unless" in line)
    assert sum("dense" in line for line in lines[lines.index("") :][: choice - lines.index("")]) == 1
    assert sum("dense" in line for line in lines[choice:]) == 1  # the one in the other branch


def test_open_sizes_and_choices_go_together():
    x = relay.var("x", shape=(SizeVar("n"), 4))
    body = relay.If(relay.greater(relay.sum(x), relay.const(0.0)), relay.exp(x), relay.negative(x))
    vm = VirtualMachine(relay.vm.compile(relay.IRModule.from_expr(relay.Function([x], body)), "llvm"))
    for n, sign in [(2, 1), (5, -1), (2, -1)]:
        values = np.full((n, 4), sign, "float32")
        np.testing.assert_allclose(
            vm.invoke("main", values).numpy(), np.exp(values) if sign > 0 else -values, rtol=1e-6
        )
    assert vm.exe.specializations.open is not None
