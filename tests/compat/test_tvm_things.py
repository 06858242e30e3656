"""What TVM's names mean: records, registered operators, base values, the virtual machine, JSON, Python, importers."""

from __future__ import annotations

import ast
import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import OPERATORS
from relaylab.compat import install_as_tvm, uninstall_tvm
from relaylab.support.errors import DiagnosticError, RelayError, RelayValueError
from relaylab.transform.quantized.fake_quantization_rules import RULES

X = relay.var("x", shape=(2, 3))
ONES = np.ones((2, 3), "float32")


@pytest.fixture(scope="module")
def tvm() -> Iterator[Any]:
    yield install_as_tvm()
    uninstall_tvm()


# ---- records of attributes


def test_a_call_has_the_record_of_its_kind(tvm: Any) -> None:
    from tvm.relay.op.op_attrs import Conv2DAttrs, Conv2DWinogradAttrs, DenseAttrs, MaxPool2DAttrs

    conv = relay.nn.conv2d(X, X, channels=4, kernel_size=(3, 3), groups=1)
    assert isinstance(conv.attrs, Conv2DAttrs) and not isinstance(conv.attrs, (DenseAttrs, Conv2DWinogradAttrs))
    assert conv.attrs.type_key == Conv2DAttrs.type_key and conv.attrs.get_int("channels") == 4
    assert "data_layout" in conv.attrs.keys() and "nn.max_pool2d" in MaxPool2DAttrs.operators
    assert DenseAttrs(units=3) == relay.nn.dense(X, X, units=3).attrs


# ---- operators that a program registers


@pytest.fixture
def scaled(tvm: Any) -> Iterator[Any]:
    from tvm.relay.op import op

    op.register("test.scaled", "data times k")
    made = op.get("test.scaled")
    made.set_num_inputs(1)
    made.add_argument("data", "Tensor", "what is scaled")
    made.set_attrs_type_key("DictAttrs")
    made.add_type_rel("scaled", lambda types, attrs: relay.TensorType(types[0].shape, "float32"))
    made.set_support_level(1)
    op.register_pattern("test.scaled", relay.op.OpPattern.ELEMWISE)
    op.register_compute("test.scaled", lambda attrs, inputs, out: [inputs[0] * np.float32(attrs["k"])])
    yield lambda x, k=3: relay.Call(made, [x], tvm.ir.make_node("DictAttrs", k=k))
    OPERATORS.remove("test.scaled")


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_a_registered_operator_is_evaluated(scaled: Any, kind: str) -> None:
    mod = relay.IRModule.from_expr(relay.Function([X], relay.exp(scaled(relay.negative(X)))))
    mod = relay.fromtext(mod.astext())
    typed = relay.transform.InferType()(mod)["main"]
    assert typed.ret_type == relay.TensorType((2, 3))
    found = relay.create_executor(kind, mod).evaluate()(ONES)
    np.testing.assert_allclose(found.numpy(), np.exp(-3 * ONES), rtol=1e-6)


def test_a_registered_operator_has_no_loops(scaled: Any) -> None:
    with pytest.raises(RelayError, match='create_executor\\("vm"\\)'):
        relay.build(relay.IRModule.from_expr(relay.Function([X], scaled(X))), "llvm")


def test_a_registered_operator_is_none_of_relaylabs(scaled: Any) -> None:
    """Tables of its operators leave it out, and kernels with it are not kept for other programs."""
    assert not relay.op.get("test.scaled").definition.__module__.startswith("relaylab.")


def test_a_registered_gradient_is_asked_first(tvm: Any, scaled: Any) -> None:
    relay.op.op.register_gradient("test.scaled", lambda call, grad: [grad * relay.const(float(call.attrs["k"]))])
    grad = relay.transform.gradient(relay.Function([X], scaled(X, 5)))
    _, (dx,) = relay.create_executor("debug").evaluate(grad)(ONES)
    np.testing.assert_array_equal(dx.numpy(), 5 * ONES)


def test_a_registered_gradient_may_be_a_tuple_in_one_piece(tvm: Any) -> None:
    """As TVM's own of concatenate is: it takes the call of split for what it gives."""
    halves = lambda call, grad: [relay.split(grad, 2, axis=0).astuple()]
    func = relay.Function([X], relay.concatenate([X, relay.exp(X)], axis=0))
    with relay.testing.TempOpAttr("concatenate", "FPrimalGradient", halves):
        grad = relay.transform.gradient(func)
    _, (dx,) = relay.create_executor("debug").evaluate(grad)(ONES)
    np.testing.assert_allclose(dx.numpy(), 1 + np.exp(ONES), rtol=1e-6)


def test_names_of_relations_and_of_operators_are_checked(tvm: Any, scaled: Any) -> None:
    with pytest.raises(RelayValueError, match="Identity"):
        relay.op.get("test.scaled").add_type_rel("Identty")
    with pytest.raises(RelayValueError, match="exists already"):
        relay.op.op.register("nn.relu")
    with pytest.raises(RelayError, match="fixed"):
        relay.op.get("nn.relu").set_num_inputs(3)


def test_what_a_type_relation_asserts_is_an_error_about_the_call(tvm: Any, scaled: Any) -> None:
    def one_row(types, attrs):
        assert types[0].shape[0] == 1, "one row is taken"

    relay.op.get("test.scaled").add_type_rel("one row", one_row)
    with pytest.raises(tvm.TVMError, match=r"test.scaled cannot take \(.*\): one row is taken"):
        relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([X], scaled(X))))


def test_fusion_asks_the_registered_pattern(tvm: Any) -> None:
    y = relay.nn.relu(relay.exp(X))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([X], y)))
    with relay.testing.TempOpAttr("nn.relu", "TOpPattern", relay.op.OpPattern.OPAQUE):
        assert relay.transform.FuseOps(2)(mod).astext().count("Primitive=1") == 2
    assert relay.transform.FuseOps(2)(mod).astext().count("Primitive=1") == 1


def test_mixed_precision_asks_registered_functions(tvm: Any) -> None:
    from tvm.relay.transform.mixed_precision import generic_never_op, register_func_to_op_list

    dense = relay.Function([X], relay.nn.dense(X, relay.const(np.ones((4, 3), "float32"))))
    mod = relay.transform.InferType()(relay.IRModule.from_expr(dense))
    convert = lambda: relay.transform.InferType()(relay.transform.ToMixedPrecision()(mod))["main"]
    assert convert().body.checked_type.dtype == "float16"
    key = "FTVMMixedPrecisionConversionType"
    with relay.testing.TempOpAttr("nn.dense", key, lambda call, dtype: [0, "float32", "float16"]):
        assert convert().body.op.name == "cast" and convert().body.args[0].attrs.out_dtype == "float32"
    with relay.testing.TempOpAttr("nn.dense", key, lambda call, dtype: [7]), pytest.raises(RelayError, match="gave"):
        convert()
    register_func_to_op_list(list_op=["nn.dense"])(generic_never_op)
    assert convert().body.checked_type.dtype == "float32"
    assert relay.op.get("nn.dense").has_attr(key)
    relay.op.get("nn.dense").reset_attr(key)
    assert not relay.op.get("nn.dense").has_attr(key)


def test_a_registered_binary_rule_computes_on_integers(tvm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tvm.relay.transform import fake_quantization_to_integer as fq

    monkeypatch.setitem(RULES, "power", None)
    fq.register_binary_identity("power", lambda a, b: relay.maximum(a, b))
    real = lambda x: relay.qnn.op.dequantize(x, relay.const(0.5), relay.const(0))
    a, b = (relay.var(n, shape=(4,), dtype="int8") for n in "ab")
    body = relay.qnn.op.quantize(relay.power(real(a), real(b)), relay.const(0.5), relay.const(0), out_dtype="int8")
    mod = relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([a, b], body)))
    after = relay.transform.FakeQuantizationToInteger(hard_fail=True)(mod)
    assert relay.analysis.list_op_freqs(after) == {"maximum": 1}
    call = relay.transform.InferType()(relay.IRModule.from_expr(relay.reshape(a, (2, 2))))["main"].body
    found, affine = fq.broadcast_to(call, {call.args[0]: fq.TensorAffineType(relay.const(0.5), relay.const(0), "int8")})
    assert found.op.name == "reshape" and affine.dtype == "int8" and affine.axis == -1


# ---- base values


def test_converted_values(tvm: Any) -> None:
    found = tvm.runtime.convert([1, 2.5, "a", {"k": (True,)}, None])
    assert (
        isinstance(found, tvm.ir.Array) and found[0].value == 1 and found[0].dtype == "int32" and found[1].value == 2.5
    )
    assert (
        isinstance(found[2], tvm.runtime.String)
        and isinstance(found[3], tvm.ir.Map)
        and found[3]["k"][0].dtype == "bool"
    )
    assert tvm.runtime.convert(lambda a, b: a + b)(1, 2) == 3
    with pytest.raises(RelayError, match="nothing that a program holds"):
        tvm.runtime.convert(object())
    for value in (float("nan"), float("inf"), 2.5, 2**31):
        with pytest.raises(RelayError, match="is no int32"):
            tvm.tir.const(value, "int32")
    for dtype, value in (("int8", 128), ("int8", -129), ("uint8", -1), ("uint8", 256), ("bool", 2), ("float32", 1)):
        with pytest.raises(RelayError, match=f"{value} is no {dtype}"):
            tvm.tir.IntImm(dtype, value)
    with pytest.raises(RelayError, match="no type of floats"):
        tvm.tir.FloatImm("int32", 1)
    assert tvm.runtime.const(2**40).dtype == "int64" and tvm.tir.IntImm("int8", -128) == -128
    for made in (tvm.tir.FloatImm("float16", 2.5), tvm.tir.IntImm("int64", 3)):
        again = pickle.loads(pickle.dumps(copy.deepcopy(made)))
        assert again == made and again.dtype == made.dtype and type(again) is type(made)
    assert tvm.ir.make_node("IntImm", dtype="int64", value=10, span=None).dtype == "int64"
    assert tvm.tir.const(3, "int64").dtype == "int64" and tvm.tir.IntImm("uint8", 4).dtype == "uint8"
    assert isinstance(X.checked_type.shape, tvm.ir.container.Array) and isinstance(
        X.checked_type.shape[0], tvm.ir.PrimExpr
    )
    assert isinstance(X, tvm.runtime.Object) and isinstance(X, tvm.ir.BaseExpr) and not isinstance(X, tvm.ir.PrimExpr)
    kind = tvm.DataType("float16x4")
    assert (kind.bits, kind.lanes, kind.type_code, kind.itemsize) == (16, 4, 2, 8) and kind == "float16x4"
    assert tvm.ir.Range(2, 5).extent == 3 and tuple(tvm.runtime.ShapeTuple([1, 2])) == (1, 2)


def test_a_code_generator_of_others_is_told_that_it_is_not_called(tvm: Any) -> None:
    with pytest.warns(UserWarning, match="relaylab compiles what is partitioned for `mycc` itself"):
        tvm.register_func("relay.ext.mycc", lambda func: None, override=True)


def test_functions_by_their_global_names(tvm: Any) -> None:
    @tvm._ffi.register_func("test.twice", override=True)
    def twice(x: int) -> int:
        return 2 * x

    assert tvm.get_global_func("test.twice")(4) == 8 == tvm.ir.EnvFunc.get("test.twice")(4)
    assert isinstance(tvm.get_global_func("test.twice"), tvm.runtime.PackedFunc)
    assert tvm._ffi.get_global_func("test.none", allow_missing=True) is None
    relation = tvm.ir.TypeRelation(tvm.ir.EnvFunc.get("test.twice"), [relay.TensorType((1,))], 1)
    assert relation.num_inputs == 1 and tvm.ir.PrimType("int32") == tvm.ir.PrimType("int32")


def test_what_lies_below_relay_is_refused_where_it_is_used(tvm: Any) -> None:
    from tvm.relay.backend.aot import AOTLowerMain
    from tvm.relay.op.op import OpStrategy

    for name in (AOTLowerMain, OpStrategy):
        with pytest.raises(RelayError, match="is not kept"):
            name()


def test_names_for_c(tvm: Any) -> None:
    from tvm.relay.backend import name_transforms as c
    from tvm.relay.backend.utils import mangle_module_name

    assert c.to_c_function_style("TVM_woof_Woof") == "TVMWoofWoof" and c.to_c_variable_style("TVM_Woof") == "tvm_woof"
    assert c.to_c_constant_style("TVM_Woof") == "TVM_WOOF" and c.prefix_name(["a", "b"]) == "TVM_a_b"
    assert c.prefix_generated_name("a") == "TVMGen_a" and c.sanitize_name("+_+ ") == "____"
    assert mangle_module_name("default") == "tvmgen_default" and mangle_module_name(None) == "tvmgen"
    with pytest.raises(ValueError, match="contains invalid characters"):
        mangle_module_name("\u018e")
    for wrong in (lambda: c.to_c_function_style("Cake"), lambda: c.prefix_name([]), lambda: c.sanitize_name("")):
        with pytest.raises(ValueError):
            wrong()


def test_the_way_to_a_difference(tvm: Any) -> None:
    other = relay.Function([X], relay.add(X, relay.const(2.0)))
    left, right = tvm.ir.base.get_first_structural_mismatch(relay.Function([X], relay.add(X, relay.const(1.0))), other)
    assert str(left) == "<root>.body.args[1]" == str(right)
    root = tvm.runtime.ObjectPath.root()
    assert str(root.map_value("foo").map_value(3)) == '<root>["foo"][3]'
    assert root.attr("body").is_prefix_of(left) and left.get_prefix(1) == root and len(left) == 4
    assert tvm.ir.base.get_first_structural_mismatch(other, other) is None


def test_a_renderer_of_ones_own_is_shown_errors(tvm: Any) -> None:
    seen: list[str] = []
    tvm.ir.diagnostics.override_renderer(lambda ctx: seen.extend(d.message for d in ctx.diagnostics))
    try:
        with pytest.raises(DiagnosticError):
            relay.transform.InferType()(relay.IRModule.from_expr(relay.nn.dense(X, X) + relay.const(1)))
        with pytest.raises(DiagnosticError):
            relay.fromtext("def @main( { 1 }")
    finally:
        tvm.ir.diagnostics.override_renderer(None)
    assert len(seen) >= 2


# ---- running


BRANCH = """def @main(%x: Tensor[(2, 3), float32], %c: bool) { if (%c) { nn.relu(%x + 1f) } else { %x * 2f } }"""


def test_an_executable_is_saved_and_loaded(tvm: Any, tmp_path: Any) -> None:
    compiler = tvm.relay.backend.vm.VMCompiler()
    compiler.lower(relay.fromtext(f'#[version = "0.0.5"]\n{BRANCH}'), "llvm")
    with pytest.raises(RelayValueError, match="codegen"):
        compiler.get_exec()
    compiler.codegen()
    code, lib = compiler.get_exec().save()
    lib.export_library(tmp_path / "lib.so")
    loaded = tvm.runtime.vm.Executable.load_exec(code, tvm.runtime.load_module(tmp_path / "lib.so"))
    assert loaded.bytecode == compiler.get_exec().bytecode
    assert loaded.bytecode.count("invoke_packed") == 2 and "if $1 then $2 else $3" in loaded.bytecode
    vm = tvm.runtime.vm.VirtualMachine(loaded, tvm.cpu())
    vm.set_one_input("main", 0, ONES)
    vm.set_one_input("main", c=False)
    vm.invoke_stateful("main")
    np.testing.assert_array_equal(vm.get_outputs()[0].numpy(), 2 * ONES)
    with pytest.raises(RelayValueError, match="inputs: x, c"):
        vm.set_one_input("main", 5, ONES)
    with pytest.raises(RelayError):
        tvm.runtime.vm.Executable.load_exec(b"\xff", lib)


def test_the_virtual_machine_is_measured(tvm: Any) -> None:
    exe = relay.vm.compile(relay.fromtext(f'#[version = "0.0.5"]\n{BRANCH}'), "llvm")
    report = tvm.runtime.profiler_vm.VirtualMachineProfiler(exe, tvm.cpu()).profile(ONES, True)
    assert [row["Name"] for row in report.rows()] == exe.primitive_ops[:1]


def test_networks_for_the_executor_aot(tvm: Any) -> None:
    mod = relay.IRModule.from_expr(relay.Function([X], relay.nn.relu(X)))
    lib = relay.build(mod, "llvm", executor=relay.backend.Executor("aot"), mod_name="mine")
    assert isinstance(lib, tvm.relay.backend.executor_factory.AOTExecutorFactoryModule) and lib.mod_name == "mine"
    run = tvm.runtime.executor.AotModule(lib["default"](tvm.cpu()))
    run.set_input("x", -ONES)
    run.run()
    assert run.get_output(0).numpy().sum() == 0 and run.get_input_name(0) == "x"
    builder = relay.build_module.BuildModule()
    graph, _, params = builder.build(mod, "llvm")
    assert graph == builder.get_module().graph_json and params == {}


# ---- other forms


def test_a_program_as_python(tvm: Any) -> None:
    from tvm.relay.testing.py_converter import run_as_python, to_python

    prelude = relay.prelude.Prelude(relay.IRModule())
    cons, nil = (prelude.get_ctor("List", n) for n in ("Cons", "Nil"))
    items = cons(relay.const(1), cons(relay.const(2), nil()))
    assert int(run_as_python(prelude.length(items), prelude.mod).numpy()) == 2
    cell, unit = relay.Var("r"), relay.Var("u")
    write = relay.Let(unit, relay.RefWrite(cell, relay.const(5)), relay.RefRead(cell))
    assert int(run_as_python(relay.Let(cell, relay.RefCreate(relay.const(1)), write)).numpy()) == 5
    func = relay.Function([X], relay.Tuple([relay.nn.softmax(X, axis=0), relay.const(ONES * 3)]))
    assert "relay_op('nn.softmax', x, axis=0)" in ast.unparse(to_python(func))
    soft, three = run_as_python(func)(ONES)
    np.testing.assert_allclose(soft.numpy(), ONES / 2)
    np.testing.assert_allclose(three.numpy(), ONES * 3)
    with pytest.raises(RelayValueError, match="%x has no value"):
        run_as_python(relay.nn.relu(X))


def test_recurrent_cells_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    from relaylab.frontend import common

    rng = np.random.default_rng(0)
    steps, batch, size, hidden = 3, 2, 4, 5
    data = rng.standard_normal((steps, batch, size)).astype("float32")
    for kind, cell, gates in (("RNN", common.rnn_cell, 1), ("GRU", common.gru_cell, 3), ("LSTM", common.lstm_cell, 4)):
        model = getattr(torch.nn, kind)(size, hidden)
        weights = [relay.const(p.detach().numpy()) for p in model.parameters()]
        zeros = [relay.const(np.zeros((batch, hidden), "float32"))] * (1 + (kind == "LSTM"))
        outputs, last, *_ = cell([relay.const(x) for x in data], *zeros, *weights)
        found = relay.create_executor("debug").evaluate(relay.Tuple([*outputs, last]))
        expected = model(torch.from_numpy(data))[0].detach().numpy()
        assert model.weight_ih_l0.shape[0] == gates * hidden
        for step in range(steps):
            np.testing.assert_allclose(found[step].numpy(), expected[step], rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(found[-1].numpy(), found[-2].numpy())


def test_what_importers_share() -> None:
    from relaylab.frontend import common

    image = relay.var("d", shape=(1, 3, 7, 8))
    assert common.infer_shape(common.autopad(image, (2, 2), (3, 3))) == (1, 3, 9, 9)
    assert common.infer_shape(common.autopad(image, (1, 1), (3, 3), (2, 2))) == (1, 3, 11, 12)
    table = common.ExprTable()
    weight = table.new_const(np.ones(3, "float32"))
    table.set_expr("w", weight)
    assert table.get_expr("w") is weight and list(table.params) == [weight.name_hint]
    with pytest.raises(RelayError, match="did you mean"):
        table.get_expr("ww")
    convert = common.AttrCvt("conv2d", {"kernel_shape": "kernel_size", "group": ("groups", 1)}, ignores=["name"])
    call = convert([image, relay.var("k", shape=(4, 3, 3, 3))], {"kernel_shape": (3, 3), "name": "c", "channels": 4})
    assert call.op.name == "nn.conv2d" and call.attrs.kernel_size == (3, 3) and call.attrs.groups == 1
    assert common.Renamer("relu")([image], {}).op.name == "nn.relu"
    assert common.infer_value(relay.add(weight, weight), {weight.name_hint: np.ones(3, "float32")}).tolist() == [
        2,
        2,
        2,
    ]
    assert common.try_infer_value(relay.nn.relu(image))[1] is False
    assert common.shape_of(image).data.tolist() == [1, 3, 7, 8]
    assert [common.infer_shape(x) for x in common.unbind(image, 1)] == [(1, 7, 8)] * 3
    attrs = common.StrAttrsDict({"k": "(1, 2)", "b": "True"})
    assert attrs.get_int_tuple("k") == (1, 2) and attrs.get_bool("b") and attrs.get_int("n", 3) == 3
    with pytest.raises(RelayError, match="is missing"):
        attrs.get_int("n")


def test_an_executable_is_exported_as_one_file(tvm: Any, tmp_path: Path) -> None:
    """`exe.mod` was the program, which has no `export_library`."""
    exe = relay.vm.compile(relay.IRModule.from_expr(relay.Function([X], relay.exp(X) + X)), "llvm")
    exe.mod.export_library(tmp_path / "vm.so")
    loaded = tvm.runtime.load_module(tmp_path / "vm.so")
    for device in (tvm.cpu(), [tvm.cpu()], None):
        machine = tvm.runtime.vm.VirtualMachine(loaded, device, memory_cfg="naive")
        np.testing.assert_allclose(machine.invoke("main", ONES).numpy(), np.exp(ONES) + ONES, rtol=1e-6)
    assert tvm.runtime.profiler_vm.VirtualMachineProfiler(loaded, [tvm.cpu()]).profile(ONES).rows()
    assert exe.module.kernels == exe.primitive_ops and "device type 1" in exe.virtual_devices
    with pytest.raises(RelayError, match=r"needs it: Executable.load_exec\(code, lib\)"):
        tvm.runtime.vm.VirtualMachine(exe.lib)
