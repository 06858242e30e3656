"""Parts of programs as programs, and ways through pictures."""

from __future__ import annotations

import numpy as np
import pytest
from programs import SOURCES, program

from relaylab import relay
from relaylab.interp import random_inputs
from relaylab.ir import Call, If, IRModule, Op, post_order
from relaylab.support.errors import RelayValueError
from relaylab.viz import extract, path, view
from relaylab.zoo.catalog import NETWORKS


def operators(mod: IRModule) -> list[str]:
    return [e.op.name for e in post_order(mod["main"].body) if isinstance(e, Call) and isinstance(e.op, Op)]


def run(mod: IRModule, *inputs: object) -> object:
    return relay.create_executor("debug", mod).evaluate()(*inputs)


@pytest.mark.parametrize("name", SOURCES)
def test_the_whole_is_the_whole(name):
    mod = program(name)
    part = extract(mod, list(post_order(mod["main"].body)))
    inputs = random_inputs(mod["main"], 0) if name != "dynamic" else [np.ones((3, 16), "float32")]
    given = dict(zip((p.name_hint for p in mod["main"].params), inputs))
    whole, ours = (run(m, *(given[p.name_hint] for p in m["main"].params)) for m in (mod, part))
    if name == "closure":  # the value of its effect, which nothing uses, is a result too
        assert len(ours) == 2
        ours = ours[1]
    assert str(whole) == str(ours) and sorted(operators(part)) == sorted(operators(mod))


def test_two_layers_of_a_network_run_alone():
    mod, _ = NETWORKS["lstm"].small()
    part = extract(mod, "op:nn.dense | op:nn.bias_add")
    assert set(operators(part)) == {"nn.dense", "nn.bias_add"}
    result = run(part, *random_inputs(part["main"], 1))
    assert len(result) == operators(part).count("nn.bias_add")


def test_what_flows_in_is_a_parameter_and_values_agree():
    x = relay.var("x", shape=(2, 3))
    middle = relay.exp(x)
    mod = relay.transform.InferType()(
        IRModule.from_expr(relay.Function([x], relay.tanh(relay.nn.relu(middle) + middle)))
    )
    part = extract(mod, "op:nn.relu | op:add")
    assert [p.name_hint for p in part["main"].params] == ["exp"]
    value = np.random.RandomState(0).randn(2, 3).astype("float32")
    np.testing.assert_array_equal(run(part, value).numpy(), np.maximum(value, 0) + value)


def test_two_ifs_that_are_selected_share_what_they_shared():
    """The inner one is a value of its own, and part of the outer one: a function in both is one function."""
    mod = relay.transform.InferType()(
        relay.parse("""#[version = "0.0.5"]
def @main(%y: float32, %c: bool) {
  %0 = fn (%p: float32) { add(%p, %y) };
  %1 = %0(%y);
  %2 = if (%c) { exp(%1) } else { tanh(%1) };
  %3 = if (%c) { %1 } else { add(%1, %2) };
  (%3, %2)
}""")
    )
    part = extract(mod, [e for e in post_order(mod["main"].body) if isinstance(e, If)])
    for c in (True, False):
        given = {"c": np.array(c), "y": np.float32(2)}
        ours, whole = (run(m, *(given[p.name_hint] for p in m["main"].params)) for m in (part, mod))
        assert [v.numpy() for v in ours] == [v.numpy() for v in whole]


def test_nothing_selected_is_said():
    with pytest.raises(RelayValueError, match="nothing in @main") as error:
        extract(program("fused"), "op:nn.dense")
    assert error.value.code == "viz.nothing-selected"


def test_a_path_and_no_path():
    made = view(program("closure"))
    start, end = (next(n.id for n in made.nodes if n.operator == op) for op in ("nn.dense", "subtract"))
    found = path(made, start, end)
    assert found[0] == start and found[-1] == end
    assert all(any(e.target == b for e in made.outgoing[a]) for a, b in zip(found, found[1:]))
    assert path(made, end, start) == () and path(made, start, start) == (start,)
    with pytest.raises(RelayValueError, match="no node"):
        path(made, "nowhere", start)
