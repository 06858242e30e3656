"""Where several forms of a program mean the same, passes give the one that Relay programs expect (TVM 0.10)."""

from __future__ import annotations

import numpy as np

from relaylab import relay
from relaylab.ir import Call, Function, If, IRModule, RefCreate, assert_structural_equal, walk
from relaylab.relay import transform
from relaylab.relay.analysis import extract_fused_functions
from relaylab.relay.dataflow_pattern import is_op, wildcard
from relaylab.relay.testing import run_infer_type, run_opt_pass


def test_inlining_replaces_names_that_are_values():
    mod, p = IRModule(), relay.var("p", shape=(), dtype="bool")
    one, two = (Function([], relay.const(v)).with_attr("Inline", 1) for v in (1, 2))
    g1, g2 = relay.GlobalVar("g1"), relay.GlobalVar("g2")
    mod[g1], mod[g2] = one, two
    mod["main"] = Function([p], Call(If(p, g1, g2), []))
    after = transform.Inline()(transform.InferType()(mod))
    want = IRModule.from_expr(Function([p], Call(If(p, one, two), [])))
    assert_structural_equal(transform.InferType()(after), transform.InferType()(want), map_free_vars=True)
    for c in (True, False):
        assert relay.create_executor("debug", mod=after).evaluate()(np.array(c)).numpy() == (1 if c else 2)


def test_a_type_asked_for_locally_stays_at_the_expression():
    x = relay.var("x", shape=(2, 3))
    y = relay.nn.relu(x)
    cell = RefCreate(y)
    found = transform.InferTypeLocal(cell)
    assert cell.checked_type == found and y.checked_type == x.checked_type
    again = run_infer_type(Function([x], relay.exp(y)))
    assert again.body.checked_type == x.checked_type


def test_partitioned_parameters_have_no_types():
    x, b = relay.var("x"), relay.var("b")
    conv = lambda x, w, b: relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(x, w), b))
    pattern = is_op("nn.relu")(is_op("nn.bias_add")(is_op("nn.conv2d")(wildcard(), wildcard()), wildcard()))
    params = [relay.var(f"p{i}") for i in range(3)]
    name = "nn.conv2d_nn.bias_add_nn.relu_"
    inner = Function(params, conv(*params)).with_attr("PartitionedFromPattern", name)
    weight = relay.const(1)
    assert_structural_equal(pattern.partition(conv(x, weight, b)), Call(inner, [x, weight, b]), map_free_vars=True)


def test_kernels_of_a_module_that_is_not_fused():
    x = relay.var("x", shape=(1, 3, 8, 8))
    mod = IRModule.from_expr(relay.nn.relu(relay.nn.max_pool2d(relay.exp(relay.exp(x)), (2, 2))))
    found = extract_fused_functions(mod)
    kernels = sorted([n.op.name for n in walk((f.body,)) if isinstance(n, Call)] for f in found.values())
    assert kernels == [["exp", "exp"], ["nn.max_pool2d", "nn.relu"]]
    assert all(f.is_primitive for f in found.values())


def test_combined_biases_lie_side_by_side_along_the_last_axis():
    x = relay.var("x", shape=(1, 2, 3))
    branch = lambda i: relay.nn.batch_matmul(x, relay.var(f"w{i}", shape=(1, 4, 3))) + relay.var(f"b{i}", shape=(4,))
    out = relay.Tuple([branch(0), branch(1)])
    after = run_opt_pass(Function(relay.analysis.free_vars(out), out), transform.CombineParallelBatchMatmul(2))
    joins = [n for n in walk((after,)) if isinstance(n, Call) and n.op.name == "concatenate"]
    assert sorted(n.attrs.axis for n in joins) == [-1, 1]


def test_shapes_of_sums_are_written_as_by_hand():
    x, y = relay.var("x", shape=(4, 3)), relay.var("y", shape=(3,))
    after = run_opt_pass(Function([x, y], relay.collapse_sum_like(x, y)), transform.SimplifyExpr())
    assert_structural_equal(after, run_infer_type(Function([x, y], relay.collapse_sum_to(x, (3,)))))


class taking:
    """Within the block the compiler `zz` takes these operators."""

    def __init__(self, *names: str):
        self.ops = [relay.op.get(name) for name in names]

    def __enter__(self) -> None:
        for op in self.ops:
            op.set_attr("target.zz", True)

    def __exit__(self, *exc: object) -> None:
        for op in self.ops:
            op.reset_attr("target.zz")


def annotated(expr, **how: bool):
    return run_opt_pass(expr, transform.AnnotateTarget("zz", **how))


def begin(x, target="zz"):
    return relay.annotation.compiler_begin(x, target)


def end(x, target="zz"):
    return relay.annotation.compiler_end(x, target)


def test_every_use_of_a_result_leaves_the_region_by_itself():
    x = relay.var("x", shape=(4, 4))
    r = relay.nn.relu(x)
    with taking("nn.relu"):
        found = annotated(Function([x], relay.add(relay.abs(r), relay.abs(r))))
    r = relay.nn.relu(begin(x))
    a, b = (relay.abs(begin(end(r), "default")) for _ in range(2))
    want = end(relay.add(begin(end(a, "default"), "default"), begin(end(b, "default"), "default")), "default")
    assert_structural_equal(found, run_infer_type(Function([x], want)))


def test_results_without_operands_and_of_branches():
    with taking("nn.relu", "erf"):
        zeros = annotated(Function([], relay.zeros((0,), "float32")))
        assert_structural_equal(zeros, run_infer_type(Function([], end(relay.zeros((0,), "float32"), "default"))))
        c, x = relay.var("c", shape=(), dtype="bool"), relay.var("x", shape=(3,))
        found = annotated(Function([c, x], relay.erf(If(c, relay.nn.relu(x), x))))
    want = relay.erf(begin(If(c, end(relay.nn.relu(begin(x))), x)))
    assert_structural_equal(found, run_infer_type(Function([c, x], end(want))))


def test_cells_belong_to_no_other_compiler():
    x = relay.var("x", shape=(3,))
    with taking("nn.relu"):
        found = annotated(Function([x], RefCreate(x)))
        other = annotated(Function([x], RefCreate(x)), include_non_call_ops=False)
    want = end(RefCreate(begin(x, "default")), "default")
    assert_structural_equal(found, run_infer_type(Function([x], want)))
    assert_structural_equal(other, run_infer_type(Function([x], RefCreate(x))))


def test_simplified_floats_are_numbers():
    """docs/choices.md: zeros keep their sign, constants are added first; NaN and infinities of the data stay."""
    x = relay.var("x", shape=(5,))
    data = np.array([-0.0, 1, np.inf, -np.inf, np.nan], "float32")
    big, none = relay.const(1e8), relay.const(0.0)

    def run(body, *disabled):
        with transform.PassContext(opt_level=3, disabled_pass=list(disabled)):
            return relay.create_executor("graph", IRModule.from_expr(Function([x], body))).evaluate()(data).numpy()

    rest = data[2:]
    for body, simplified, exact in (
        (x + none, [-0.0, 1], [0.0, 1]),
        ((x + big) - big, [0.0, 0], [0.0, 0]),
        ((x + big) + relay.const(-1e8), [0.0, 1], [0.0, 0]),
    ):
        for found, want in ((run(body), simplified), (run(body, "SimplifyExpr"), exact)):
            np.testing.assert_array_equal(found, np.array([*want, *rest], "float32"))
            np.testing.assert_array_equal(np.signbit(found[:2]), np.signbit(want))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run(x * none), data * np.float32(0))
        np.testing.assert_array_equal(run(x - x), data - data)
