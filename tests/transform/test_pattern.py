"""Dataflow patterns: matching, rewriting with callbacks, partitioning, and rules as data."""

from __future__ import annotations

import pytest

import relaylab.op  # noqa: F401
from relaylab import relay
from relaylab.ir import Function, If, IRModule, Let, Op, Tuple, TupleGetItem, const, post_order, structural_equal, var
from relaylab.op.base import call_operator as call
from relaylab.support.errors import RelayError
from relaylab.transform import RuleSet, apply_rules, create, rule, run_pipeline
from relaylab.transform import FunctionPass, PassInfo, SimplifyExpr
from relaylab.transform.pattern import (
    DFPatternCallback,
    FunctionPattern,
    dominates,
    has_attr,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    match,
    rewrite,
    wild,
    wildcard,
)
from relaylab.transform.pattern.match import Matcher
from relaylab.transform.pattern.possible import may_fit, root_ops
from relaylab.zoo.catalog import NETWORKS

x, y, z = (var(n, shape=(2, 2)) for n in "xyz")


def typed(expr):
    return create("InferType")(IRModule.from_expr(expr))["main"].body


MATCHING = [
    (is_var(), x, True),
    (is_var("x"), y, False),
    (is_constant(), const(1.0), True),
    (is_expr(call("add", x, y)), call("add", x, y), True),
    (is_op("add")(is_var("y"), is_var("x")), call("add", x, y), True),
    (is_op("subtract")(is_var("y"), is_var("x")), call("subtract", x, y), False),
    (is_op("add")(None), call("add", x, y), True),
    (is_op("add")(wildcard()), call("add", x, y), False),
    (wildcard() + wildcard(), call("add", x, y), True),
    (is_op("tanh")(wildcard()) | is_op("exp")(wildcard()), call("exp", x), True),
    (is_tuple([is_var("x"), wildcard()]), Tuple([x, y]), True),
    (is_tuple(), Tuple([x]), True),
    (is_tuple([wildcard()]), Tuple([x, y]), False),
    (is_tuple_get_item(wildcard(), 1), TupleGetItem(Tuple([x, y]), 1), True),
    (is_tuple_get_item(wildcard(), 0), TupleGetItem(Tuple([x, y]), 1), False),
    (is_tuple_get_item(wildcard()), TupleGetItem(Tuple([x, y]), 1), True),
    (is_op("nn.conv2d")(None).has_attr({"groups": 1}), call("nn.conv2d", x, y), True),
    (is_op("nn.conv2d")(None).has_attr({"groups": 2}), call("nn.conv2d", x, y), False),
    (has_attr({"TOpPattern": 0}), Op.get("tanh"), True),
    (FunctionPattern([wildcard()], wildcard() * wildcard()), Function([x], call("multiply", x, x)), True),
    (is_let(is_var(), is_op("exp")(wildcard()), wildcard()), Let(y, call("exp", x), y), True),
    (is_if(is_var(), wildcard(), wildcard()), If(var("c", "bool"), x, y), True),
    ((wildcard() * wildcard()) / wildcard(), call("multiply", x, call("divide", y, z)), True),
    (wildcard() * (wildcard() / wildcard()), call("divide", call("multiply", x, y), z), True),
]


@pytest.mark.parametrize(("pattern", "expr", "expected"), MATCHING, ids=[repr(m[0]) for m in MATCHING])
def test_matching(pattern, expr, expected):
    assert pattern.match(expr) is expected


def searched(pattern, expr):
    """Whether the pattern fits, found by the search alone: it keeps its misses, so nothing comes before it."""
    return Matcher(expr, keep_misses=True).first(pattern, expr) is not None


@pytest.mark.parametrize("pattern", [m[0] for m in MATCHING], ids=[repr(m[0]) for m in MATCHING])
def test_what_may_fit_is_all_that_fits(pattern):
    for _, expr, _ in MATCHING:
        assert match(pattern, expr) is None or may_fit(pattern, expr)
        assert (match(pattern, expr) is not None) is searched(pattern, expr)


@pytest.mark.parametrize("network", ["lstm", "bert", "resnet18", "unet"])
def test_rules_fit_where_the_search_alone_says_so(network):
    main = create("InferType")(NETWORKS[network].small()[0])["main"]
    fitting = refused = 0
    for node in post_order(main):
        for r in SimplifyExpr.rules:
            fits = searched(r.pattern, node)
            assert (Matcher(node).first(r.pattern, node) is not None) is fits
            fitting, refused = fitting + fits, refused + (not may_fit(r.pattern, node))
    assert refused > 20 * fitting  # else it would be worth nothing


def test_one_pattern_stands_for_one_node():
    p = wildcard()
    assert (p + p).match(call("add", x, x))
    assert not (p + p).match(call("add", x, y))
    assert (is_op("tanh")(p) + p).match(call("add", y, call("tanh", y)))


def test_types_shapes_and_data_types():
    e = typed(call("add", x, y))
    assert wildcard().has_shape((2, 2)).match(e) and not wildcard().has_shape((2,)).match(e)
    assert wildcard().has_dtype("float32").match(e) and not wildcard().has_dtype("int8").match(e)
    assert wildcard().has_type(x.type_annotation).match(e)


def test_optional_and_named_parts():
    conv = is_op("nn.conv2d")(wild("data"), wild("weight"))
    pattern = conv.optional(lambda p: is_op("nn.relu")(p))
    for e in (call("nn.conv2d", x, y), call("nn.relu", call("nn.conv2d", x, y))):
        assert match(pattern, e).named() == {"data": x, "weight": y}


def test_dominance():
    unary = has_attr({"TOpPattern": 0})(wildcard())
    pattern = dominates(is_op("nn.conv2d")(None), unary, is_op("add")(wildcard(), wildcard()))
    conv = call("nn.conv2d", x, y)
    diamond = call("add", call("nn.relu", call("nn.relu", conv)), call("tanh", conv))
    assert pattern.match(diamond)
    assert not pattern.match(call("add", call("nn.relu", conv), call("tanh", z)))
    assert not pattern.match(call("add", call("nn.relu", conv), call("sum", conv)))


def test_a_value_used_outside_dominance_is_refused():
    unary = has_attr({"TOpPattern": 0})(wildcard())
    pattern = dominates(is_op("nn.conv2d")(None), unary, is_op("add")(wildcard(), wildcard()))
    conv = call("nn.conv2d", x, y)
    inside = call("nn.relu", conv)
    found = call("add", inside, call("tanh", conv))
    whole = Tuple([found, inside])
    assert pattern.partition(whole) is whole


class Fewer(DFPatternCallback):
    """exp(log(x)) is x."""

    def __init__(self):
        super().__init__()
        self.x = wildcard()
        self.pattern = is_op("exp")(is_op("log")(self.x))

    def callback(self, pre, post, node_map):
        return node_map[self.x][0]


def test_rewriting_to_the_end():
    e = x
    for _ in range(3):
        e = call("exp", call("log", e))
    assert rewrite(Fewer(), call("tanh", e)).args[0] is x
    untouched = call("tanh", x)
    assert Fewer().rewrite(untouched) is untouched


def test_shared_inner_values_are_not_rewritten():
    log = call("log", x)
    e = Tuple([call("exp", log), log])
    assert rewrite(Fewer(), e) is e


def test_ways_that_differ_where_nothing_depends_on_them_are_not_all_tried():
    """Each sum fits in two orders; the last field refused 2^n combinations of them, one after the other."""
    sums = [wildcard() + wildcard() for _ in range(40)]
    pattern = is_tuple([*sums, is_op("nn.relu")(wildcard())])
    fields = [call("add", x, y) for _ in range(40)]
    assert not pattern.match(Tuple([*fields, call("tanh", x)]))
    assert pattern.match(Tuple([*fields, call("nn.relu", x)]))


class Growing(DFPatternCallback):
    """tanh(x) is exp(tanh(x)): there is no end to it."""

    def __init__(self):
        super().__init__()
        self.pattern = is_op("tanh")(is_var())

    def callback(self, pre, post, node_map):
        return call("exp", post)


def test_endless_rewriting_names_the_callback():
    with pytest.raises(RelayError, match="still change the program: Growing") as e:
        rewrite([Fewer(), Growing()], call("tanh", x))
    assert e.value.code == "rewrite.endless"


class Doubling(Growing):
    """tanh(x) is tanh(x) of tanh(x): each round would leave twice as many."""

    def __init__(self):
        super().__init__()
        self.pattern = is_op("tanh")(wildcard())

    def callback(self, pre, post, node_map):
        return call("tanh", post)


def test_rewriting_that_doubles_is_endless_long_before_a_hundred_rounds():
    with pytest.raises(RelayError, match="still change the program: Doubling") as e:
        rewrite(Doubling(), call("tanh", x))
    assert e.value.code == "rewrite.endless"


class Asking(Growing):
    """Asks for a part that is not in the pattern."""

    def callback(self, pre, post, node_map):
        assert is_var() not in node_map and node_map[self.pattern] == [post]
        return node_map[is_op("exp")][0]


def test_a_part_that_was_not_matched_is_told():
    with pytest.raises(RelayError, match="`exp` stands for nothing here") as e:
        rewrite(Asking(), call("tanh", x))
    assert e.value.code == "pattern.no-part"


def test_an_operator_alone_is_not_partitioned():
    """A function was made that gives the operator, and inference refused the result."""
    with pytest.raises(RelayError, match="the operator `tanh` itself, not a call of it"):
        is_op("tanh").partition(call("tanh", x))


class Once(Growing):
    def __init__(self):
        super().__init__()
        self.rewrite_once = True


def test_rewriting_once():
    assert structural_equal(rewrite(Once(), call("tanh", x)), call("exp", call("tanh", x)))


def test_partition_names_and_parameters():
    pattern = is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), is_constant())
    bias = const([1.0, 2.0])
    out = pattern.partition(call("nn.relu", call("nn.bias_add", call("nn.conv2d", x, y), bias)), {"Composite": "c"})
    func = out.args[0].op
    assert [p.name_hint for p in func.params] == ["FunctionVar_0_0", "FunctionVar_0_1"]
    assert func.attrs["PartitionedFromPattern"] == "nn.conv2d_nn.bias_add_" and func.attrs["Composite"] == "c"
    assert out.args[0].args == (x, y) and func.body.args[1] is bias
    assert pattern.partition(out, check=lambda e: False) is out


a, b = wild("a"), wild("b")


@rule(is_op("exp")(a) * is_op("exp")(b))
def exp_product(a, b):
    """exp(a) * exp(b) is exp(a + b)."""
    return call("exp", call("add", a, b))


@rule(is_op("tanh")(a), when=lambda types, root: types(root) is not None)
def tanh_to_exp(a):
    return call("exp", a)


@rule(is_op("exp")(a))
def exp_to_tanh(a):
    return call("tanh", a)


def rules_pass(*rules):
    return FunctionPass(PassInfo(0, "rules"), lambda func, mod, ctx: apply_rules(func, rules, mod))


def test_rules_fire_until_none_fits_and_leave_steps():
    e = call("multiply", call("multiply", call("exp", x), call("exp", y)), call("exp", z))
    mod = IRModule.from_expr(e)
    history = run_pipeline(mod, rules_pass(exp_product))
    assert history.error is None
    body = history.mod["main"].body
    assert structural_equal(body, typed(call("exp", call("add", call("add", x, y), z))), map_free_vars=True)
    steps = history[0].steps
    assert [s.rule for s in steps] == ["exp_product"] * 2
    assert all(s.location.startswith("test_pattern.py:") and s.note.endswith(".") for s in steps)
    assert not history[0].unaccounted()


def test_endless_rules_are_named():
    mod = IRModule.from_expr(call("tanh", x))
    history = run_pipeline(mod, rules_pass(tanh_to_exp, exp_to_tanh))
    assert history.error.code == "rewrite.endless" and "exp_to_tanh" in str(history.error)


def test_rule_sets_compose():
    both = RuleSet([exp_product]) + [tanh_to_exp]
    assert [r.name for r in both] == ["exp_product", "tanh_to_exp"]
    assert [r.name for r in both.without("exp_product")] == ["tanh_to_exp"]


def test_a_rule_that_asks_for_an_unknown_part_is_refused_where_it_is_written():
    with pytest.raises(RelayError, match="asks for `c`"):

        @rule(is_op("exp")(a))
        def wrong(c):
            return c


def test_merge_composite_goes_through_its_table_in_order():
    conv = is_op("nn.conv2d")(wildcard(), wildcard())
    table = [("a.conv_relu", is_op("nn.relu")(conv)), ("a.conv", conv, lambda e: e.attrs.groups == 1)]
    d, w = var("d", shape=(1, 2, 4, 4)), var("w", shape=(2, 2, 1, 1))
    inner = call("nn.conv2d", d, w)
    mod = IRModule.from_expr(call("nn.conv2d", call("nn.relu", inner), w))
    after = create("MergeComposite", table)(mod)
    outer = after["main"].body
    assert outer.op.attrs["Composite"] == "a.conv"
    assert outer.args[0].op.attrs["Composite"] == "a.conv_relu"
    assert outer.args[0].op.attrs["PartitionedFromPattern"] == "nn.conv2d_nn.relu_"
    with pytest.raises(RelayError, match="row of a pattern table"):
        create("MergeComposite", [("name",)])


def test_types_are_inferred_while_matching() -> None:
    x = relay.var("x", shape=(2, 3))
    deep = relay.nn.relu(relay.expand_dims(x, axis=0))
    relu = is_op("nn.relu")(wildcard())
    for pattern in (
        relu.has_dtype("float32"),
        relu.has_shape((1, 2, 3)),
        relu.has_type(relay.TensorType((1, 2, 3), "float32")),
        is_op("nn.relu")(wildcard().has_shape((1, 2, 3))),
    ):
        assert deep.inferred is None
        assert pattern.match(deep)
    assert not relu.has_shape((2, 3)).match(deep)
    assert not relu.has_dtype("float16").match(deep)
    assert not relu.has_dtype("float32").match(relay.nn.relu(relay.Tuple([x])))  # has no type


def test_a_pattern_of_a_variable_has_its_name() -> None:
    assert (is_var("x").name, is_var().name) == ("x", "")


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("parent", ["wildcard", "variable", "operator"])
def test_a_dominator_does_not_depend_on_the_order_of_arguments(parent: str, swapped: bool) -> None:
    x = relay.var("x", shape=(2, 3))
    source = {"wildcard": x, "variable": x, "operator": relay.tanh(x)}[parent]
    found = {"wildcard": wildcard(), "variable": is_var("x"), "operator": is_op("tanh")(wildcard())}[parent]
    for steps in (1, 2):
        way = source
        for _ in range(steps):
            way = relay.nn.relu(way)
        both = relay.add(source, way) if swapped else relay.add(way, source)
        pattern = dominates(found, is_op("nn.relu")(wildcard()), is_op("add")(wildcard(), wildcard()))
        assert pattern.match(both)
        assert not pattern.match(relay.add(way, relay.exp(source)))


def test_what_was_partitioned_is_not_looked_into() -> None:
    a, b = relay.var("a", shape=(3,)), relay.var("b", shape=(3,))
    mod = relay.IRModule.from_expr(relay.abs(relay.nn.relu(relay.abs(relay.add(a, b)))))
    whole = is_op("nn.relu")(is_op("abs")(is_op("add")(wildcard(), wildcard())))
    merged = relay.transform.MergeComposite([("whole", whole), ("part", is_op("abs")(wildcard()))])(mod)
    call = merged["main"].body
    assert [call.op.attr("Composite"), call.args[0].op.attr("Composite")] == ["part", "whole"]
    assert merged.astext().count("Composite=") == 2


def test_a_pattern_that_holds_itself_says_where_it_goes_too_deep():
    x = var("x", shape=(2,))
    chain = wildcard()
    chain.redirect_to(is_op("nn.relu")(chain) | is_var("x"))
    expr = x
    for depth in range(5000):
        if depth == 20:
            assert chain.match(expr)
        expr = call("nn.relu", expr)
    with pytest.raises(RelayError, match="goes too deep into the program at `nn.relu`"):
        chain.match(expr)


def test_factors_are_taken_in_another_order_only_where_a_pattern_has_them():
    quotient, product = wildcard() / is_op("sqrt")(wildcard()), (wildcard() * wildcard()) / wildcard()
    assert root_ops(quotient) == {"divide"} and root_ops(product) == {"divide", "multiply"}
    assert not may_fit(quotient, call("multiply", x, call("sqrt", y)))
    assert may_fit(product, call("multiply", x, call("divide", y, z))) and product.match(
        call("multiply", x, call("divide", y, z))
    )


def test_the_test_of_a_deep_pattern_needs_no_stack():
    pattern = wildcard()
    for _ in range(5000):
        pattern = is_op("tanh")(pattern)
    assert may_fit(pattern, call("exp", x)) is False
