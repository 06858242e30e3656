"""What is said of a pass that is nearly named, or made with a program in place of options."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.relay.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard
from relaylab.support.errors import RelayTypeError, RelayValueError

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


@pytest.mark.parametrize("instrument", [3, "PrintAfterAll", relay.transform.PassInstrument, None])
def test_what_has_no_hooks_is_no_instrument(instrument):
    with pytest.raises(RelayTypeError, match="is no instrument"):
        relay.transform.PassContext(instruments=[instrument])
    with relay.transform.PassContext(instruments=[relay.transform.PassInstrument()]) as ctx:
        with pytest.raises(RelayTypeError, match="is no instrument"):
            ctx.override_instruments([instrument])


def _dense():
    x, weight = relay.var("x", shape=(1, 4)), relay.var("fc_weight", shape=(3, 4))
    return relay.Function([x, weight], relay.nn.dense(x, weight))


ONES = np.ones((3, 4), "float32")


def test_a_parameter_that_is_nearly_named_is_told():
    with pytest.warns(UserWarning, match="no parameter `fc_wieght`: did you mean `fc_weight`"):
        relay.build_module.bind_params_by_name(_dense(), {"fc_wieght": ONES})
    with pytest.warns(UserWarning, match="no parameter `fc_weights`"):
        relay.build(relay.IRModule.from_expr(_dense()), "llvm", params={"fc_weights": ONES})


@pytest.mark.filterwarnings("error")
def test_parameters_that_are_bound_already_may_be_given_again():
    params = {"fc_weight": ONES, "fc_bias": ONES}
    bound = relay.build_module.bind_params_by_name(_dense(), params)
    lib = relay.build(relay.IRModule.from_expr(bound), "llvm", params=params)
    np.testing.assert_array_equal(lib.run(x=np.ones((1, 4), "float32")), np.full((1, 3), 4))


CONV = relay.nn.conv2d(relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3)))
CONVOLUTION = relay.transform.InferType()(relay.IRModule.from_expr(CONV))


def test_layouts_for_operators_that_the_program_does_not_have_are_told():
    with pytest.warns(UserWarning, match="finds no nn.conv3d in the program, which has nn.conv2d"):
        relay.transform.ConvertLayout({"nn.conv3d": ["NDHWC", "default"]})(CONVOLUTION)


@pytest.mark.filterwarnings("error")
def test_layouts_for_operators_of_other_programs_may_be_asked_for_too():
    asked = {"qnn.conv2d": ["NHWC", "default"], "nn.conv2d": ["NHWC", "default"]}
    assert "HWIO" in relay.transform.ConvertLayout(asked)(CONVOLUTION).astext()
    relay.transform.ConvertLayout(asked)(MOD)


@pytest.mark.parametrize("layouts", [[], ["NHWC", "HWIO", "NHWC"]])
def test_layouts_are_as_many_as_an_operator_has(layouts):
    with pytest.raises(RelayValueError, match=f"{len(layouts)} layouts are asked for nn.conv2d"):
        relay.transform.ConvertLayout({"nn.conv2d": layouts})
