"""Why a rewrite did not happen: the first failing test of the nearest rules, with the same matcher and grouping."""

from __future__ import annotations

import pytest

from relaylab import relay, study
from relaylab.ir import Call
from relaylab.relay.dataflow_pattern import (
    DFPatternCallback,
    is_constant,
    is_op,
    is_tuple,
    is_var,
    rewrite,
    wild,
    wildcard,
)
from relaylab.support.errors import RelayError
from relaylab.transform.rewriting.rules import apply_rules, rule

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {
  %0 = sqrt(%x);
  %1 = nn.dense(divide(%x, %0), %w, units=4);
  (nn.softmax(%1), nn.relu(%1), add(%0, %0))
}"""


@pytest.fixture(scope="module")
def mod():
    return relay.transform.InferType()(relay.parse(TEXT))


def at(mod, name):
    found = []
    relay.analysis.post_order_visit(
        mod["main"], lambda n: found.append(n) if isinstance(n, Call) and n.op.name == name else None
    )
    return found[0]


dense = is_op("nn.dense")


@pytest.mark.parametrize(
    "pattern, where, why",
    [
        (
            is_op("nn.conv2d")(wildcard(), wildcard()),
            "nn.dense",
            "`nn.conv2d` was expected, the node is `nn.dense` at from_string:4",
        ),
        (
            dense(is_op("nn.relu")(wildcard()), wildcard()),
            "nn.dense",
            "`nn.relu` was expected, the node is `divide` at from_string:4",
        ),
        (dense(wildcard(), is_constant()), "nn.dense", "a constant was expected, the node is %w at from_string:2"),
        (dense(wildcard(), is_var("v")), "nn.dense", "the variable %v was expected, the node is %w at from_string:2"),
        (
            dense(wildcard().has_shape((2, 4)), wildcard()),
            "nn.dense",
            "4 was expected in dimension 1, that of `divide` at from_string:4 is 3",
        ),
        (
            dense(wildcard().has_shape((2,)), wildcard()),
            "nn.dense",
            "1 dimension expected, `divide` at from_string:4 has 2",
        ),
        (
            dense(wildcard().has_dtype("int8"), wildcard()),
            "nn.dense",
            "a tensor of int8 was expected, `divide` at from_string:4 is of float32",
        ),
        (
            dense(wildcard(), wildcard()).has_attr({"units": 8}),
            "nn.dense",
            "units=8 was expected, `nn.dense` at from_string:4 has units=4",
        ),
        (dense(wildcard()), "nn.dense", "1 part was expected, `nn.dense` at from_string:4 has 2"),
        (
            is_op("nn.softmax")(is_tuple([wildcard()])),
            "nn.softmax",
            "a tuple was expected, the node is `nn.dense` at from_string:4",
        ),
        (
            is_op("divide")(wildcard(), is_op("sqrt")(wildcard())),
            "divide",
            "interior node sqrt is used outside the match",
        ),
        (
            is_op("nn.softmax")(dense(wildcard(), wildcard())),
            "nn.softmax",
            "interior node nn.dense is used outside the match",
        ),
        (is_op("nn.relu")(wildcard()), "nn.relu", ""),
    ],
)
def test_the_first_failing_test_is_named(mod, pattern, where, why):
    reason = study.why_not(pattern, mod, at(mod, where)).reasons[0]
    assert reason.why == why and reason.fires == (not why)


def test_one_pattern_twice_is_one_node_twice(mod):
    x = wildcard()
    assert "already, not" in study.why_not(is_op("divide")(x, x), mod, at(mod, "divide")).reasons[0].why
    assert study.why_not(is_op("add")(x, x), mod, at(mod, "add")).reasons[0].fires


def test_the_node_that_comes_nearest_is_found(mod):
    found = study.why_not(dense(wildcard(), is_constant()), mod).reasons
    assert found[0].node is at(mod, "nn.dense") and found[0].near > found[1].near


def test_conditions_and_builders_are_asked(mod):
    x = wildcard().named("x")

    @rule(is_op("nn.relu")(x), when=lambda x: False)
    def never(x):
        return x

    @rule(is_op("nn.relu")(x))
    def nothing(x):
        return None

    assert "the condition of never does not hold" in str(study.why_not(never, mod))
    assert "nothing gave no replacement" in str(study.why_not(nothing, mod))


def test_callbacks_that_change_nothing(mod):
    class Same(DFPatternCallback):
        def __init__(self):
            super().__init__()
            self.pattern = is_op("nn.relu")(wildcard())

        def callback(self, pre, post, node_map):
            return post

    assert study.why_not(Same(), mod, at(mod, "nn.relu")).reasons[0].why == "callback gave the node back unchanged"

    @relay.transform.function_pass(opt_level=0)
    def WithCallback(func, mod, ctx):
        return rewrite(Same(), func)

    assert [type(r) for r in study.rules_of(WithCallback)] == [Same]


def test_rules_of_passes_are_found(mod):
    assert len(study.rules_of(relay.transform.SimplifyExpr())) > 10
    assert study.why_not("SimplifyExpr", mod).reasons[0].why == "interior node sqrt is used outside the match"
    with pytest.raises(RelayError, match="not made of rules"):
        study.why_not("FoldConstant", mod)


def test_what_is_said_to_fire_fires(mod):
    x = wildcard().named("x")

    @rule(is_op("nn.relu")(x))
    def gone(x):
        return x

    reason = study.why_not(gone, mod).reasons[0]
    assert reason.fires and reason.node is at(mod, "nn.relu")
    assert "nn.relu" not in str(apply_rules(mod["main"], [gone], mod))


def test_neighbours_in_two_kernels(mod):
    found = {r.rule: r for r in study.why_not("FuseOps", mod, most=20).reasons}
    assert "used by several operators" in found["nn.dense into nn.softmax"].why
    assert (
        found["divide into nn.dense"].why == "what reads it is a heavy operator, which takes no operand into its kernel"
    )
    fused = relay.transform.FuseOps(2)(mod)
    together = [{n for n in ("sqrt", "add", "divide") if n in str(f)} for f in _kernels(fused)]
    assert found["sqrt into add"].fires == ({"sqrt", "add"} in [t & {"sqrt", "add"} for t in together])


def _kernels(mod):
    found = []
    relay.analysis.post_order_visit(
        mod["main"], lambda n: found.append(n) if isinstance(n, relay.Function) and n.is_primitive else None
    )
    return found


def test_a_depth_limit_is_a_reason():
    chain = "".join(f"%{i} = {'exp' if i % 2 else 'tanh'}(%{i - 1 if i else 'x'});\n" for i in range(6))
    mod = relay.transform.InferType()(
        relay.parse(f'#[version = "0.0.5"] def @main(%x: Tensor[(2), float32]) {{ {chain} abs(%5) }}')
    )
    with relay.transform.PassContext(config={"relay.FuseOps.max_depth": 3}):
        assert "more than 3" in str(study.why_not("FuseOps", mod, most=20))


def test_nodes_of_other_programs_are_refused(mod):
    other = relay.transform.InferType()(relay.parse(TEXT))
    with pytest.raises(RelayError, match="not in this program"):
        study.why_not("SimplifyExpr", mod, at(other, "nn.dense"))


def test_without_a_pass_all_are_tried_and_those_of_ones_own_too(mod):
    @relay.transform.function_pass(opt_level=0, name="Mine")
    def mine(func, mod, ctx):
        return relay.Function(func.params, relay.TupleGetItem(func.body, 0))

    found = study.why(mod, also=[mine])
    names = [s.name for s in found]
    assert "FuseOps" in names and names[-1] == "Mine" and not found.untried
    assert "Mine" in str(found) and "FoldConstant" in found.quiet
    assert "Mine" not in [s.name for s in study.why(mod, first=[mine], also=[mine])]


def test_time_that_is_up_is_told(mod):
    found = study.suggestions(mod, budget=-1.0)
    assert not found and "FuseOps" in found.untried and "not tried" in str(found)


def test_a_query_says_which_nodes_are_meant(mod):
    found = study.why(mod, "FuseOps", "op:sqrt")
    assert {r.rule.split()[0] for r in found.reasons} == {"sqrt"}
    assert study.why(mod, is_op("nn.relu")(wildcard()), "op:nn.relu").reasons[0].fires
    with pytest.raises(RelayError, match="selects no node"):
        study.why(mod, "FuseOps", "op:nn.conv2d")


def test_a_pass_without_rules_is_tried(mod):
    assert "it would change this program" in str(study.why(mod, "ToANormalForm"))
    assert "it changes nothing here" in str(study.why(mod, "FoldConstant"))


def test_the_matcher_is_followed_step_by_step(mod):
    pattern = is_op("nn.relu")(dense(is_op("divide")(wild("a"), wildcard()), is_constant()))
    reason = study.why_not(pattern, mod, at(mod, "nn.relu")).reasons[0]
    assert [str(s) for s in reason.steps] == [
        "✓ `nn.relu` was expected, and is there at from_string:5",
        "✓ `nn.dense` was expected, and is there at from_string:4",
        "✓ `divide` was expected, and is there at from_string:4",
        "✓ `a` stands for %x at from_string:2",
        "✓ anything fits: `sqrt` at from_string:3",
        "✗ a constant was expected, the node is %w at from_string:2",
    ]
    nodes = [s.node for s in reason.steps]
    assert nodes[:3] == [at(mod, n) for n in ("nn.relu", "nn.dense", "divide")] and nodes[-1] is reason.at
    fits = study.why_not(is_op("nn.relu")(wildcard()), mod, at(mod, "nn.relu")).reasons[0]
    assert all(s.holds for s in fits.steps) and fits.steps[-1].words.endswith("the rule fires")


def test_kinds_of_operators_are_words_not_numbers(mod):
    wanted = wildcard().has_attr({"TOpPattern": 1})
    reason = study.why_not(dense(wanted, wildcard()), mod, at(mod, "nn.dense")).reasons[0]
    assert reason.fires  # divide is one
    reason = study.why_not(is_op("nn.relu")(wanted), mod, at(mod, "nn.relu")).reasons[0]
    assert reason.why == "a broadcasting operator was expected, `nn.dense` at from_string:4 is a heavy operator"


def test_only_what_begins_at_the_node_is_a_near_miss(mod):
    found = study.why_not("SimplifyExpr", mod, at(mod, "nn.dense"))
    assert not found.reasons and "none of its 18 rules begins with a node like `nn.dense`" in str(found)
    assert "zeros_like" not in {r.rule for r in study.why_not("SimplifyExpr", mod, most=50).reasons}
    near = [r.near for r in study.why_not("SimplifyExpr", mod, most=50).reasons]
    assert near == sorted(near, reverse=True) and 0 < near[-1] < 1


def test_of_alternatives_the_one_that_was_tried_counts(mod):
    one = is_op("divide")(wildcard(), is_op("sqrt")(is_constant()))
    many = one | is_op("add")(is_op("exp")(wildcard()), is_op("log")(is_op("tanh")(wildcard())))
    near = [study.why_not(p, mod, at(mod, "divide")).reasons[0].near for p in (one, many)]
    assert near == [0.5, 0.5], "two of three tests held, and a fourth would be that it fires"


def test_fusion_is_told_step_by_step(mod):
    found = study.why(mod, "FuseOps", "op:nn.dense")
    apart = {r.rule: [str(s) for s in r.steps] for r in found.reasons}["divide into nn.dense"]
    assert apart == [
        "✓ `divide` at from_string:4 is a broadcasting operator",
        "✓ `nn.dense` at from_string:4 is a heavy operator",
        "✗ what reads it is a heavy operator, which takes no operand into its kernel",
    ]
