"""What is said of a pass that is nearly named, or made with a program in place of options."""

from __future__ import annotations

import pytest

from relaylab import relay
from relaylab.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard
from relaylab.support.errors import RelayTypeError

X = relay.var("x", shape=(2, 2))
MOD = relay.IRModule.from_expr(relay.nn.relu(X))


@pytest.mark.parametrize("which", ["disabled_pass", "required_pass"])
def test_a_pass_that_is_nearly_named_is_told(which):
    with pytest.warns(
        UserWarning, match=f"{which}: there is no pass named `FoldConstnat`; did you mean `FoldConstant`"
    ):
        relay.transform.PassContext(**{which: ["FoldConstnat"]})


@pytest.mark.filterwarnings("error")
def test_passes_of_programs_and_those_that_are_not_there_yet_may_be_named():
    @relay.transform.function_pass(opt_level=1, name="FoldConstants")
    def own(func, mod, ctx):
        return func

    assert own.info.name == "FoldConstants"
    relay.transform.PassContext(disabled_pass=["FoldConstants", "a_pass_of_tomorrow"])


@pytest.mark.parametrize("name", ["FoldConstant", "InferType", "FuseOps"])
def test_a_pass_that_is_made_of_a_program_says_how_it_is_run(name):
    with pytest.raises(RelayTypeError) as caught:
        getattr(relay.transform, name)(MOD)
    assert caught.value.help == f"a pass is made first, then it is called: {name}()(mod)"


class _WithoutSuper(DFPatternCallback):
    def __init__(self):
        self.pattern = is_op("nn.relu")(wildcard())

    def callback(self, pre, post, node_map):
        return post.args[0]


class _Nothing(_WithoutSuper):
    def callback(self, pre, post, node_map):
        return None


def test_a_callback_that_does_not_call_super_works():
    assert rewrite(_WithoutSuper(), MOD["main"]).body == MOD["main"].params[0]


def test_a_callback_that_returns_nothing_is_told_what_leaves_a_match():
    with pytest.raises(RelayTypeError, match="`post` leaves it as it is"):
        rewrite(_Nothing(), MOD["main"])
