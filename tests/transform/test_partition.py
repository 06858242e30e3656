"""Bring your own code generator: annotate, merge, partition, and what becomes of the parts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.programs import programs
from support.values import assert_same_results

from relaylab import relay
from relaylab.analysis import well_formed
from relaylab.compat.registry import register_op_attr
from relaylab.ir import Expr, GlobalVar, IRModule, Op, walk
from relaylab.ir.op import is_call_to
from relaylab.relay.dataflow_pattern import is_op, wildcard
from relaylab.support.errors import RelayError
from relaylab.transform import Pass, Sequential, run_pipeline

pytestmark = pytest.mark.slow

t = relay.transform
BORDERS = ("annotation.compiler_begin", "annotation.compiler_end")
TAKEN = (
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "nn.relu",
    "tanh",
    "sum",
    "concatenate",
    "split",
    "negative",
)


@pytest.fixture(autouse=True)
def compiler() -> Iterator[None]:
    """The compiler `dnn` takes some operators."""
    for name in TAKEN:
        register_op_attr(name, "target.dnn", lambda call: True)
    yield
    for name in TAKEN:
        Op.get(name).reset_attr("target.dnn")


def steps(**how: bool) -> list[Pass]:
    return [t.AnnotateTarget(["dnn"], **how), t.MergeCompilerRegions(), t.PartitionGraph()]


def foreign(mod: IRModule) -> list[GlobalVar]:
    return [gv for gv, f in mod.functions.items() if f.attr("Compiler")]


@pytest.mark.parametrize("calls_only", [False, True])
def test_partitioned_programs_compute_the_same(calls_only: bool) -> None:
    parts = 0
    for mod in programs(30):
        history = run_pipeline(mod, steps(include_non_call_ops=not calls_only))
        assert history.error is None, history.error
        assert not any(stage.unaccounted() for stage in history)
        for stage in history:
            assert all(well_formed(f) for f in stage.result.functions.values())
        after = history.mod
        assert not any(is_call_to(n, *BORDERS) for f in after.functions.values() for n in walk((f,)))
        assert_same_results(mod, after, 1e-6)
        back = t.InlineCompilerFunctionsBoundTo(foreign(after))(after)
        assert not foreign(back)
        assert_same_results(mod, back, 1e-6)
        parts += len(foreign(after))
    assert parts > 20


def test_a_second_annotation_keeps_the_regions_of_the_first() -> None:
    x = relay.var("x", shape=(2, 3))
    mod = IRModule.from_expr(relay.exp(relay.nn.relu(relay.add(x, x))))
    register_op_attr("exp", "target.second", lambda call: True)
    after = Sequential([t.AnnotateTarget(["dnn"]), t.AnnotateTarget(["second"]), *steps()[1:]])(mod)
    Op.get("exp").reset_attr("target.second")
    assert [gv.name_hint for gv in foreign(after)] == ["tvmgen_default_dnn_main_0", "tvmgen_default_second_main_2"]


def border(kind: str, *values: Expr) -> list[Expr]:
    """Each value behind a border of its own."""
    op = relay.op.annotation.compiler_begin if kind == "begin" else relay.op.annotation.compiler_end
    return [op(value, "test") for value in values]


def test_names_and_order_of_the_functions_are_those_of_tvm() -> None:
    """TVM's tests of lifting and of several outputs: a number for each border that opens a region."""
    shapes = {"data": (1, 3, 16, 16), "weight": (16, 3, 3, 3)} | dict.fromkeys(("gamma", "beta", "mean", "var"), (16,))
    data, weight, *stats = (relay.var(name, relay.TensorType(shape)) for name, shape in shapes.items())
    conv = relay.nn.conv2d(*border("begin", data, weight), kernel_size=(3, 3), channels=16, padding=(1, 1))
    (end,) = border("end", conv)
    batch_norm = relay.nn.batch_norm(*border("begin", end, *stats)).astuple()
    (out,) = border("end", batch_norm)
    first = GlobalVar("before")
    mod = IRModule({first: relay.Function([], relay.const(1.0))})
    mod["main"] = relay.Function([data, weight, *stats], relay.TupleGetItem(out, 0))
    mod[GlobalVar("zlast")] = relay.Function([], relay.const(2.0))
    after = t.PartitionGraph()(mod)
    want = ["before", "main", "zlast", "tvmgen_default_test_main_0", "tvmgen_default_test_main_2"]
    assert [gv.name_hint for gv in after.functions] == want
    lifted = after["tvmgen_default_test_main_2"]
    assert [p.name_hint for p in lifted.params] == [f"test_2_i{k}" for k in range(5)]
    assert str(after["main"].body.tuple_value.op) == "@tvmgen_default_test_main_2"
    assert len(after["main"].checked_type.ret_type.shape) == 4 and len(lifted.checked_type.ret_type.fields) == 3


def test_one_region_with_one_output_and_one_with_several() -> None:
    data = relay.var("data", shape=(10, 10))
    first = relay.abs(*border("begin", data))
    (one,) = border("end", first)
    (two,) = border("end", relay.nn.relu(first))
    (out,) = border("end", relay.add(*border("begin", two, relay.tanh(one))))
    after = t.PartitionGraph(mod_name="unit-test")(IRModule.from_expr(relay.Function([data], out)))
    names = ["tvmgen_unit_test_test_main_0", "tvmgen_unit_test_test_main_1"]
    assert [gv.name_hint for gv in foreign(after)] == names
    pair = after[names[0]].body
    assert [f.op.name for f in pair.fields] == ["nn.relu", "abs"]


def test_arguments_are_named_by_the_borders_behind_which_they_stand() -> None:
    x, y = relay.var("x", shape=(2, 3)), relay.var("y", shape=(2, 3))
    scaled = relay.multiply(*border("begin", x, relay.const(2.0)))
    (out,) = border("end", relay.add(scaled, relay.add(*border("begin", x, y))))
    (gv,) = foreign(after := t.PartitionGraph()(IRModule.from_expr(relay.Function([x, y], out))))
    assert [p.name_hint for p in after[gv].params] == ["test_0_i0", "test_0_i3"]


def test_outlined_functions_come_last_in_the_order_of_their_calls() -> None:
    mod = relay.fromtext("""#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  let %g = fn (%a: Tensor[(2, 3), float32], Compiler="test", global_symbol="second") { exp(%a) };
  let %f = fn (%b: Tensor[(2, 3), float32], Compiler="test", global_symbol="first") { tanh(%b) };
  let %y = %f(%x);
  %g(%f(%g(%y)))
}
def @other() { 1f }""")
    after = t.InferType()(t.OutlineCompilerFunctionsWithExistingGlobalSymbols()(t.InferType()(mod)))
    assert [gv.name_hint for gv in after.functions] == ["main", "other", "first", "second"]
    assert after["main"].astext().count("let") == 1 and "Compiler" not in after["main"].astext()
    assert_same_results(mod, after, 1e-6)


def test_a_second_annotation_takes_programs_of_lets() -> None:
    for mod in programs(10):
        lets = Sequential([t.AnnotateTarget(["dnn"]), t.ToANormalForm()])(mod)
        assert_same_results(mod, Sequential(steps())(lets), 1e-6)


def test_checks_see_the_typed_call() -> None:
    seen = []
    register_op_attr("exp", "target.dnn", lambda call: seen.append(call.args[0].checked_type.concrete_shape) or False)
    x = relay.var("x", shape=(2, 3))
    after = Sequential(steps())(IRModule.from_expr(relay.exp(x)))
    Op.get("exp").reset_attr("target.dnn")
    assert seen == [(2, 3)] and not foreign(after)


def network() -> IRModule:
    weight = np.random.default_rng(0).normal(size=(4, 4, 3, 3)).astype("float32")
    x = relay.var("x", shape=(1, 4, 8, 8))
    conv = lambda y: relay.nn.relu(relay.nn.conv2d(y, relay.const(weight), padding=(1, 1)))
    return t.InferType()(IRModule.from_expr(relay.Function([x], relay.exp(conv(conv(x))))))


def test_executors_compile_what_nobody_else_does() -> None:
    pattern = is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))
    parted = Sequential([t.MergeComposite([("dnn.conv_relu", pattern)]), *steps()])(network())
    (gv,) = foreign(parted)
    func = parted[gv]
    assert (gv.name_hint, func.attr("Compiler"), func.attr("global_symbol")) == (
        "tvmgen_default_dnn_main_0",
        "dnn",
        gv.name_hint,
    )
    assert (int(func.attr("Primitive")), int(func.attr("Inline"))) == (1, 1)
    assert parted.astext(False).count('Composite="dnn.conv_relu"') == 2
    data = np.random.default_rng(1).normal(size=(1, 4, 8, 8)).astype("float32")
    wanted = relay.create_executor("debug", network()).evaluate()(data).numpy()
    np.testing.assert_allclose(relay.create_executor("debug", parted).evaluate()(data).numpy(), wanted, rtol=1e-4)
    for kind in ("graph", "vm"):
        with pytest.warns(UserWarning, match="no code generator is registered for `dnn`"):
            found = relay.create_executor(kind, parted).evaluate()(data).numpy()
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)


def test_regions_in_a_circle_are_refused() -> None:
    mod = relay.fromtext("""#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = add(annotation.compiler_begin(%x, compiler="dnn"), 1f);
  %1 = exp(annotation.compiler_end(%0, compiler="dnn"));
  %2 = multiply(%0, annotation.compiler_begin(%1, compiler="dnn"));
  annotation.compiler_end(%2, compiler="dnn")
}""")
    with pytest.raises(RelayError, match="depends on the region's own results"):
        t.PartitionGraph()(mod)
    with pytest.raises(RelayError, match="names of compilers"):
        t.AnnotateTarget([3])


def test_the_type_of_one_expression() -> None:
    x = relay.var("x", shape=(2, 3), dtype="int8")
    call = relay.add(x, x)
    assert str(t.InferTypeLocal(call)) == "Tensor[(2, 3), int8]" == str(call.checked_type)
