"""Equal calls become one, but for those that a user names and those that have an effect."""

from __future__ import annotations

from relaylab import relay
from relaylab.ir import Call, post_order
from relaylab.op.base import OPERATORS
from relaylab.op.custom import register, register_stateful
from relaylab.transform import EliminateCommonSubexpr

X = relay.var("x", shape=(2,))


def _calls(expr, name):
    mod = relay.transform.InferType()(relay.IRModule.from_expr(expr))
    return lambda **options: sum(
        isinstance(n, Call) and n.op.name == name for n in post_order(EliminateCommonSubexpr(**options)(mod)["main"])
    )


def test_only_calls_for_which_fskip_holds_are_left_alone():
    program = relay.Tuple([relay.exp(X), relay.exp(X), relay.tanh(X), relay.tanh(X)])
    exponentials, tangents = _calls(program, "exp"), _calls(program, "tanh")
    assert exponentials() == tangents() == 1
    skip = lambda call: call.op.name == "exp"
    assert (exponentials(fskip=skip), tangents(fskip=skip)) == (2, 1)


def test_calls_with_an_effect_are_not_merged():
    made = register("merging.drawn")
    made.set_num_inputs(1)
    made.add_argument("data", "Tensor", "what is drawn from")
    made.add_type_rel("Identity")
    for effect, left in ((True, 2), (False, 1)):
        register_stateful("merging.drawn", effect)
        calls = [Call(relay.op.get("merging.drawn"), [X]) for _ in range(2)]
        assert _calls(relay.Tuple(calls), "merging.drawn")() == left
    OPERATORS.remove("merging.drawn")
