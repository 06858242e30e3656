"""Ways of writing that programs for TVM rely on: results, calls with several results, hooks, options, equality."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import importlib
import numpy as np
import pytest

from relaylab import relay
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.network.network import network_of
from relaylab.codegen.operations.records import RecordStore, TuningRecord, current_version, kernel_key
from relaylab.compat import install_as_tvm, uninstall_tvm
from relaylab.runtime.threads import num_threads
from relaylab.support.foreign import FOREIGN
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError

X = relay.var("x", shape=(4,))


@pytest.fixture(scope="module")
def tvm() -> Iterator[Any]:
    yield install_as_tvm()
    uninstall_tvm()


def test_a_call_with_several_results_stands_wherever_an_expression_does() -> None:
    halves = relay.split(X, 2)
    for made in (
        relay.Function([X], halves).body,
        relay.TupleGetItem(halves, 1).tuple_value,
        relay.Let(relay.Var("v"), halves, X).value,
        relay.Call(relay.Var("f"), [X, halves]).args[1],
        relay.Tuple([halves]).fields[0],
        relay.IRModule.from_expr(halves)["main"].body,
        relay.If(relay.const(True), halves, halves).true_branch,
    ):
        assert made is halves.astuple()
    assert relay.testing.run_infer_type(halves).checked_type == relay.TupleType([relay.TensorType((2,))] * 2)
    two = relay.create_executor("debug").evaluate(relay.split(relay.const([1, 2]), 2))
    assert [int(half.numpy()[0]) for half in two] == [1, 2]


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_results_are_tuples_with_a_tag_and_are_taken_as_arguments(tvm: Any, kind: str) -> None:
    mod = relay.IRModule()
    prelude = relay.prelude.Prelude(mod)
    cons, nil = (prelude.get_ctor("List", n) for n in ("Cons", "Nil"))
    mod["main"] = relay.Function([X], relay.Tuple([X, relay.Tuple([X + X])]))
    values = relay.create_executor(kind, mod).evaluate()(np.ones(4, "float32"))
    assert isinstance(values, tvm.runtime.container.ADT) and isinstance(values, tuple)
    assert (len(values), values.tag, values[-1].tag) == (2, 0, 0) and values[1][0].numpy().sum() == 8
    with pytest.raises(IndexError):
        values[2]
    mod["main"] = relay.Function([], cons(relay.const(7), nil()))
    made = relay.create_executor(kind, mod).evaluate()()
    assert made.tag == cons.tag and int(made.fields[0].numpy()) == 7 and made.constructor is cons
    items = relay.var("l", prelude.get_type("List")(relay.scalar_type("int32")))
    mod["main"] = relay.Function([items], prelude.length(items))
    assert int(relay.create_executor(kind, mod).evaluate()(made).numpy()) == 1
    adt = tvm.runtime.container.ADT(cons.tag, [np.int32(1), tvm.runtime.container.ADT(nil.tag, [])])
    assert int(relay.create_executor(kind, mod).evaluate()(adt).numpy()) == 1


@pytest.mark.parametrize("kind", ["debug", "vm", "graph"])
def test_arrays_are_bound_to_variables(kind: str) -> None:
    found = relay.create_executor(kind).evaluate(X + X, {X: np.arange(4, dtype="float32")})
    assert found.numpy().tolist() == [0, 2, 4, 6]


def test_text_as_a_method_of_the_class() -> None:
    assert "nn.relu" in relay.Expr.astext(relay.nn.relu(X)) and "fn" in relay.Expr.astext(relay.Function([X], X))


def test_what_a_functor_does_not_say_is_not_implemented() -> None:
    class Names(relay.ExprFunctor):
        def visit_var(self, var: relay.Var) -> str:
            return var.name_hint

        def visit_call(self, call: relay.Call) -> list[str]:
            return [self.visit(arg) for arg in call.args]

    assert Names().visit(X + X) == ["x", "x"]
    for node in (relay.Tuple([X]), relay.Let(X, X, X), relay.Function([X], X), relay.op.get("add"), relay.const(1)):
        with pytest.raises(NotImplementedError):
            Names().visit(node)
    with pytest.raises(NotImplementedError):
        relay.type_functor.TypeFunctor().visit(relay.TensorType((1,)))


def test_functions_of_the_prelude_have_types() -> None:
    mod = relay.IRModule()
    prelude = relay.prelude.Prelude(mod)
    assert str(mod[prelude.length].checked_type).endswith("-> int32")
    mod.import_from_std("nat.rly")
    assert all(func.checked_type for func in mod.functions.values())


def test_errors_of_options_read_as_tvms(tvm: Any) -> None:
    executor, runtime = relay.backend.Executor, relay.backend.Runtime
    for make, text in (
        (lambda: executor("woof"), 'Executor "woof" is not defined'),
        (lambda: executor("graph", {"woof": "bark"}), 'Attribute "woof" is not available on this Executor'),
        (
            lambda: executor("aot", {"interface-api": True}),
            'Attribute "interface-api" should have type "runtime.String" but instead found "IntImm"',
        ),
        (lambda: runtime("woof"), 'Runtime "woof" is not defined'),
        (
            lambda: runtime("crt", {"system-lib": "woof"}),
            'Attribute "system-lib" should have type "IntImm" but instead found "runtime.String"',
        ),
    ):
        with pytest.raises(tvm.TVMError, match=text):
            make()
    assert executor.list_registered_options("aot")["interface-api"] == "runtime.String"
    assert executor("aot", {"unpacked-api": 1})["unpacked-api"] is True  # a number is what TVM keeps


@pytest.mark.parametrize("hook", ["enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass"])
def test_what_a_hook_raises_is_tvms_error_with_its_cause(tvm: Any, hook: str) -> None:
    def broken(*args: object) -> None:
        raise KeyError("mine")

    watch = tvm.instrument.pass_instrument(type("Watch", (), {hook: broken}))()
    with pytest.raises(tvm.TVMError, match=f"{hook} raised KeyError: 'mine'") as caught:
        with tvm.transform.PassContext(instruments=[watch]):
            relay.transform.InferType()(relay.IRModule.from_expr(X))
    assert isinstance(caught.value.__cause__, KeyError) and "test_tvm_ways.py" in caught.value.place


def test_equality_and_hashes(tvm: Any) -> None:
    a, b = relay.Var("a"), relay.Var("b")
    hashed = tvm.ir.structural_hash
    assert hashed(a) != hashed(b) and hashed(a) == hashed(a) and hashed(a, True) == hashed(b, True)
    assert hashed(a + a) != hashed(b + b) and hashed(relay.Function([a], a)) == hashed(relay.Function([b], b))
    assert tvm.ir.structural_equal((1, 2), [1, 2]) and tvm.ir.structural_equal([a, b], (a, b))
    assert not tvm.ir.structural_equal([a], [b]) and tvm.ir.structural_equal([a, a], [b, b], map_free_vars=True)
    assert not tvm.ir.structural_equal([a, a], [a, b], map_free_vars=True) and not tvm.ir.structural_equal([a], [a, a])
    assert tvm.ir.structural_equal(X.checked_type.shape, [4])
    assert tvm.ir.structural_equal(
        relay.PatternTuple([relay.PatternWildcard()]), relay.PatternTuple([relay.PatternWildcard()])
    )


def test_attributes_of_a_function_as_members(tvm: Any) -> None:
    attrs = tvm.ir.load_json(tvm.ir.save_json(tvm.ir.make_node("DictAttrs", x=1, name="n", padding=(0, 0))))
    assert attrs.x.value == 1 and attrs["x"].value == 1 and attrs.name == "n" and "name" in attrs and len(attrs) == 3
    with pytest.raises(AttributeError):
        _ = attrs.nothing


def test_regions_and_calibration_data(tvm: Any) -> None:
    begin, end = relay.op.annotation.compiler_begin, relay.op.annotation.compiler_end
    body = end(relay.nn.relu(begin(X, "mine")), "mine")
    (region,) = relay.analysis.AnnotatedRegionSet(
        body, relay.op.get("annotation.compiler_begin"), relay.op.get("annotation.compiler_end")
    )
    assert region.args == [body.args[0].args[0]] and region.rets == [body] and len(region.nodes) == 3
    mod = relay.transform.PartitionGraph()(relay.transform.InferType()(relay.IRModule.from_expr(body)))
    ((_, data),) = relay.analysis.get_calibration_data(mod, {"x": -np.ones(4, "float32")}).items()
    assert data["inputs"][0].numpy().sum() == -4 and isinstance(data["outputs"][0], tvm.nd.NDArray)


def test_tables_of_quantized_functions(tvm: Any) -> None:
    from tvm.relay.qnn.op.canonicalizations import create_integer_lookup_op, run_const_expr

    data = np.array([-128, -3, 0, 5, 127], "int8")
    params = [relay.const(v) for v in (0.05, 3, 0.01, -100)]
    op = create_integer_lookup_op(relay.const(data), np.tanh, *params, in_dtype="int8", out_dtype="int8")
    exact = np.clip(np.rint(np.tanh((data - 3.0) * 0.05) / 0.01) - 100, -128, 127)
    np.testing.assert_allclose(run_const_expr(op), exact, atol=1)
    with pytest.raises(RelayError, match="too large"):
        create_integer_lookup_op(relay.const(data), np.tanh, *params, in_dtype="int32")


def test_how_requantizations_round(tvm: Any) -> None:
    qnn = tvm.relay.qnn.op
    assert qnn.current_requantize_config().rounding == "UPWARD"
    with qnn.requantize_config(rounding="TONEAREST") as config:
        assert isinstance(config, qnn.RequantizeConfig) and qnn.current_requantize_config().rounding == "TONEAREST"
    with pytest.raises(RelayValueError, match="rounding"):
        qnn.requantize_config(rounding="sideways")


def test_tuples_of_tensors_as_lists(tvm: Any) -> None:
    from tvm.relay.op.memory import flatten_tuple_type, from_tuple_type, to_tuple_type

    one = relay.TensorType((1,))
    kind = relay.TupleType([one, relay.TupleType([one, one])])
    value = relay.var("t", kind)
    parts = from_tuple_type(kind, value)
    assert flatten_tuple_type(kind) == [one] * 3 and len(parts) == 3
    assert relay.testing.run_infer_type(to_tuple_type(kind, parts)).checked_type == kind
    func = relay.op.annotation.function_on_device(relay.Function([X], X + X), [tvm.cpu()], tvm.cpu())
    assert relay.create_executor("vm").evaluate(func)(np.ones(4, "float32")).numpy().sum() == 8


def test_targets_and_devices_as_records(tvm: Any) -> None:
    target, host = tvm.target.Target.canon_target_and_host("llvm", "llvm")
    assert target == tvm.target.Target("llvm") and host == target
    assert tvm.target.Target.canon_target_and_host(None) == (None, None)
    device = tvm.target.VirtualDevice(tvm.cpu(0), "llvm", "global")
    assert device == tvm.target.VirtualDevice(tvm.cpu(0), "llvm", "global") != tvm.target.VirtualDevice()
    assert device.device_type_int == 1 and str(tvm.target.VirtualDevice()) == "VirtualDevice(?)"


def test_a_module_with_the_name_of_its_function(tvm: Any) -> None:
    module = importlib.import_module("tvm.relay.transform.recast")
    assert module.recast is tvm.relay.transform.recast is relay.transform.recast and callable(module.recast)
    assert "recast" in dir(tvm.relay.transform)
    with pytest.raises(RelayError, match="no `RecastMutator`") as caught:
        _ = module.RecastMutator
    assert "recast(expr" in str(caught.value.help)


def test_regions_around_three_operators(tvm: Any) -> None:
    """TVM's program for several regions of one compiler; the add and the subtract of the last part stay outside."""
    from tvm.relay.testing.byoc import CcompilerAnnotator

    x, *w = (relay.var(name, shape=(2, 2)) for name in ["x", *(f"w{i}" for i in range(8))])
    parts = [relay.subtract(relay.add(x, w[i]), w[i + 1]) for i in (0, 3, 6)]
    parts[:2] = [relay.multiply(part, w[i]) for part, i in zip(parts, (2, 5))]
    func = relay.Function([x, *w], relay.concatenate(parts, axis=0))
    before = relay.transform.InferType()(relay.IRModule.from_expr(func))
    after = relay.transform.PartitionGraph()(relay.IRModule.from_expr(CcompilerAnnotator().visit(func)))
    # a number for each border that opens: x, w0, w1 and w2 are four
    assert [gv.name_hint for gv in after.functions] == ["main", *(f"tvmgen_default_ccompiler_main_{i}" for i in (0, 4))]
    data = [np.full((2, 2), i, "float32") for i in range(9)]
    run = [relay.create_executor("debug", mod).evaluate()(*data).numpy() for mod in (before, after)]
    np.testing.assert_array_equal(*run)
    plain = CcompilerAnnotator().visit(relay.multiply(x, w[0]))
    assert plain.op.name == "multiply" and "compiler_end" not in str(plain)


def test_small_answers(tvm: Any) -> None:
    mod = tvm.parser.fromtext("""#[version = "0.0.5"]
def @g() { 1f }
def @f() { @g() + @g() }""")
    graph = relay.analysis.CallGraph(mod)
    assert "#refs = 2" in graph.print_var("g") and "#refs = 0" in graph["f"]
    assert graph.print_var("f").count("<f> calls g") == 2
    mod._add(mod.get_global_var("g"), relay.Function([], relay.const(2.0)), True)
    with pytest.raises(RelayError, match="has a function named `g`"):
        mod._add(mod.get_global_var("g"), relay.Function([], relay.const(3.0)), False)
    assert mod["g"].body.data.numpy() == 2
    with pytest.raises(AttributeError) as caught:
        _ = relay.nn.Constant
    assert "relay.Constant" in str(caught.value.help)


class Carrier:
    """What numpy takes an array from: a capsule, and where its memory is."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: object) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0  # kDLCPU


def test_capsules_of_arrays_are_taken(tvm: Any) -> None:
    given = np.ones(3, "float32")
    taken = tvm.nd.from_dlpack(given.__dlpack__())
    assert np.from_dlpack(Carrier(taken.to_dlpack())).tolist() == [1, 1, 1]
    capsule = taken.to_dlpack()
    assert tvm.nd.from_dlpack(capsule).numpy().sum() == 3
    with pytest.raises(RelayValueError):
        tvm.nd.from_dlpack(capsule)  # a capsule gives its memory once


def test_capsules_of_torch_share_their_memory(tvm: Any) -> None:
    torch = pytest.importorskip("torch")
    capsules = torch.utils.dlpack
    tensor = torch.ones(3)
    taken = tvm.nd.from_dlpack(capsules.to_dlpack(tensor))
    tensor[0] = 5  # seen where the memory is shared; torch's is aligned
    assert taken.numpy().tolist() == [5, 1, 1]
    assert capsules.from_dlpack(taken.to_dlpack()).tolist() == [5, 1, 1]


def test_records_of_tuning_are_named_as_the_log_of_a_tuner(tvm: Any, tmp_path: Any) -> None:
    from tvm import autotvm

    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.nn.softmax(relay.var("x", shape=(7, 33)))))
    (operation,) = network_of(relay.optimize(mod, "llvm")[0]["main"]).operations
    machine = {"cpu": CpuTarget.parse("llvm").key, "version": current_version(), "threads": num_threads()}
    steps = "vectorize k k2 i1\nparallel i0"
    store = RecordStore(tmp_path / "log", create=True)
    store.add([TuningRecord(kernel_key(operation), **machine, schedule=steps, status="ok", us=1, picked_us=2)])

    def loops() -> str:
        lib = relay.build(mod, "llvm")
        return lib.inspect("loop", lib.kernels()[0])

    with autotvm.apply_history_best(str(store.path)), tvm.transform.PassContext(opt_level=3):
        taken = loops()
    assert "parallel i0 in 7" in taken != loops()


def test_a_machine_is_timed_as_a_module(tvm: Any) -> None:
    machine = tvm.runtime.vm.VirtualMachine(relay.vm.compile(relay.IRModule.from_expr(X + X)), tvm.cpu())
    machine.set_input("main", np.ones(4, "float32"))
    assert len(machine.module.time_evaluator("invoke", tvm.cpu(), number=1, repeat=2)("main").results) == 2
    machine.module["invoke_stateful"]("main")
    assert machine.module["get_num_outputs"]() == 1 and machine.module["get_output"](0).numpy().sum() == 8
    assert machine.module["get_input_index"]("x") == 0


@pytest.mark.filterwarnings("ignore:.*read as this CPU")
@pytest.mark.parametrize(
    "text, keys, attrs",
    [
        ("llvm", ["cpu"], {}),
        (
            "llvm -mcpu=haswell -mattr=+fma -num-cores=4",
            ["cpu"],
            {"mcpu": "haswell", "mattr": ["+fma"], "num-cores": 4},
        ),
        ("llvm -device=arm_cpu -libs=mkl,cblas", ["arm_cpu", "cpu"], {"device": "arm_cpu", "libs": ["mkl", "cblas"]}),
        ("cuda -keys=tensorcore,cuda -arch=sm_75", ["tensorcore", "cuda"], {"arch": "sm_75"}),
        ("c --system-lib", ["cpu"], {"system-lib": 1}),
    ],
)
def test_a_target_has_the_options_that_were_given(tvm: Any, text: str, keys: list[str], attrs: dict[str, Any]) -> None:
    target = tvm.target.Target(text)
    for made in (target, tvm.target.Target(target), tvm.target.Target(target.export())):
        assert (made.kind.name, made.keys, made.attrs) == (text.split()[0], keys, attrs) and made == target


@pytest.mark.filterwarnings("ignore:.*read as this CPU")
def test_targets_of_other_devices_take_a_model_and_options(tvm: Any) -> None:
    made = tvm.target.cuda("1080ti", options=["-libs=cublas,cudnn", "-arch=sm_61"])
    assert (made.model, made.libs, made.attrs["arch"]) == ("1080ti", ["cublas", "cudnn"], "sm_61")
    assert tvm.target.cuda(options="-libs=cublas").libs == ["cublas"] and tvm.target.cuda().model == "unknown"
    assert tvm.target.mali().device_name == "mali" and tvm.target.arm_cpu("rasp4b").keys == ["arm_cpu", "cpu"]
    with pytest.raises(RelayTypeError, match="`model` must be a text, not a ndarray"):
        tvm.target.arm_cpu(np.zeros((0, 3)))


def test_a_program_for_two_devices_runs_on_the_one_and_the_warning_says_where_it_asked(tvm: Any) -> None:
    FOREIGN.switch(as_cpu=True)  # it warns once
    copied = relay.annotation.on_device(X + X, tvm.cuda(0))
    mod = relay.IRModule.from_expr(relay.Function([X], relay.exp(copied)))
    with pytest.warns(UserWarning, match="read as this CPU") as told:
        lib = relay.build(mod, target={"cpu": "llvm", "cuda": "nvidia/geforce-rtx-3070"})
    assert told[0].filename == __file__
    np.testing.assert_allclose(lib.run(x=np.ones(4, "float32")), np.exp(np.full(4, 2.0)), rtol=1e-6)


def test_the_weights_that_tutorials_of_pruned_networks_ask_for(tvm: Any) -> None:
    mod, _ = relay.testing.mlp.get_workload(batch_size=1)
    assert tvm.relay.analysis.sparse_dense._search_dense_op_weight(mod["main"]) == [f"fc{n}_weight" for n in (1, 2, 3)]


def test_the_target_of_the_block(tvm: Any) -> None:
    with tvm.target.Target("llvm") as target:
        assert tvm.target.Target.current(allow_none=False) is target
    assert tvm.target.Target.current() is None
    with pytest.raises(ValueError, match="no target is set"):
        tvm.target.Target.current(allow_none=False)


def test_small_names(tvm: Any) -> None:
    from tvm.relay.analysis import count_layers
    from tvm.relay.testing import run_as_python, to_python

    assert count_layers(relay.nn.relu(X), valid_ops=["nn.relu"]) == 1
    assert run_as_python(relay.const(2)).numpy() == 2 and to_python(relay.const(2)).body
    target = tvm.target.Target({"kind": "llvm", "mcpu": "skylake"}, "llvm")
    assert target.export()["kind"] == "llvm" and target.export()["mcpu"] == "skylake"
    assert tvm.target.Target(target.export()) == target
    for text in ("x", b"x", ["x"]):
        with pytest.raises(ValueError, match="takes numbers"):
            relay.const(text)
    for made in (
        lambda: relay.concatenate([], 0),
        lambda: relay.stack((), 0),
        lambda: relay.meshgrid([]),
        lambda: relay.einsum([], "i"),
    ):
        with pytest.raises(ValueError, match="non-empty"):
            made()
