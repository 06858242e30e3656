"""What other compilers fused: recorded dumps of small programs (made by `tests/data/compilers/make.py`), and live."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.cli import main
from relaylab.frontend.told_sizes import OpenSizeWarning
from relaylab.study.compilers import inductor, xla
from relaylab.study.compilers.inductor import FILE
from relaylab.support.errors import RelayError

DUMPS = Path(__file__).parents[1] / "data/compilers"
SMALL, OPTIMIZED, TRACE = DUMPS / "small.onnx", DUMPS / "small_optimized.onnx", DUMPS / "inductor.json"
HLO = DUMPS / "net.hlo.txt"


@pytest.fixture(scope="module")
def onnx():
    return pytest.importorskip("onnx")


@pytest.fixture(scope="module")
def net() -> study.Program:
    """The program that the trace is of, with parameters."""
    mod = study.read(DUMPS / "net.relay")
    rng = np.random.default_rng(0)
    shapes = {p.name_hint: p.type_annotation.concrete_shape for p in mod["main"].params[1:]}
    return study.Program("net", mod, {name: rng.random(shape, "float32") for name, shape in shapes.items()})


@pytest.fixture(scope="module")
def recorded(onnx) -> study.CompilerComparison:
    return study.compare_compilers(SMALL, OPTIMIZED)


def test_a_node_of_onnxruntime_stands_for_what_it_replaced(recorded, onnx):
    """The counts follow from the optimized model itself: its nodes, and what their operators say."""
    nodes = onnx.load(OPTIMIZED).graph.node
    made = {k.name: [recorded.program.by_name[m].kind for m in k.members] for k in recorded.b.kernels}
    assert made["FusedConv"] == ["Conv", "BatchNormalization", "Relu"]  # ConvBnFusion, and the attribute `activation`
    assert made["Gelu"] == ["Div", "Erf", "Add", "Mul", "Mul"]
    assert Counter(k.name for k in recorded.b.kernels) == Counter(n.op_type for n in nodes)
    alone = [k for k in recorded.b.kernels if k.name not in ("FusedConv", "Gelu")]
    assert all([recorded.program.by_name[m].kind for m in k.members] == [k.name] for k in alone)
    assert {m for k in recorded.b.kernels for m in k.members} == recorded.program.by_name.keys()


def test_what_only_one_of_two_fused(recorded):
    found = recorded.found
    assert found["fused by both"] == Counter(
        {"Conv → BatchNormalization": 1, "BatchNormalization → Relu": 1, "Div → Erf": 1, "Erf → Add": 1,
         "Add → Mul": 1, "Mul → Mul": 1}
    )  # fmt: skip
    assert found["fused by {a} only"]["Add → Relu"] == found["fused by {a} only"]["Conv → Add"] == 1
    assert not found["fused by {b} only"] and not found["gone in both"]
    words = str(recorded)
    assert "onnxruntime: 9 kernels" in words and "1 × Conv + BatchNormalization + Relu" in words


def test_the_picture_has_the_roles_of_our_own_differences(recorded, tmp_path):
    difference = recorded.difference()
    roles = {n.id: n.role for n in difference.merged.nodes}
    assert roles["Conv_3"] == roles["Add_4"] == roles["Relu_5"] == "moved"  # out of one kernel
    assert roles["Conv_0"] == roles["Softmax_14"] == ""
    (gelu,) = [g for g in difference.merged.groups if g.role == "merged"]
    assert gelu.title == "Div + Erf + Add + Mul + 1 more" and gelu.detail == "Gelu"
    assert recorded.save(tmp_path / "x.svg").stat().st_size > 3000 and "text/html" in recorded._repr_mimebundle_()


def test_inductors_kernels_have_the_operators_of_their_names(net):
    """A C++ kernel of TorchInductor is named after the ATen operators in it."""
    found = study.compare_compilers(net, TRACE)
    (large,) = [k for k in found.b.kernels if len(k.members) > 5]
    assert large.name == "cpp_fused__native_batch_norm_legit_no_training__softmax_addmm_gelu_mean_mul_relu_sigmoid_t_1"
    kinds = Counter(found.program.by_name[m].kind for m in large.members)
    gelu = {"multiply": 3 + 1, "erf": 1, "add": 1}  # and the gate's product
    rest = dict.fromkeys(("nn.batch_norm", "nn.relu", "sigmoid", "mean", "nn.dense", "nn.bias_add", "nn.softmax"), 1)
    assert kinds == Counter(rest | gelu)
    assert found.found["fused by {b} only"] == Counter(
        {"multiply → mean": 1, "mean → nn.dense": 1, "multiply → nn.softmax": 1}
    )
    assert found.found["fused by {a} only"] == Counter({"nn.bias_add → nn.batch_norm": 1})
    assert not any(found.found[row] for row in found.found if row.startswith("gone"))
    assert "aligned by operators" in str(found)


def test_a_folder_of_a_trace_is_read(net, tmp_path):
    (tmp_path / "model__0").mkdir()
    (tmp_path / "model__0" / FILE).write_bytes(TRACE.read_bytes())
    assert study.compare_compilers(net, tmp_path).b == study.compare_compilers(net, TRACE).b


@pytest.mark.parametrize(
    "text", ["", "[]", '{"preToPost": 3}', "import os", '{"cppCodeToPost": {"a": 1}, "preToPost": {}}']
)
def test_what_is_no_trace_is_refused(text, tmp_path, net):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(RelayError, match="no trace of TorchInductor"):
        inductor.read(tmp_path / "x.json", study.compare_compilers(net, TRACE).program)


def test_xlas_kernels_are_the_instructions_of_its_entry(net):
    """What is in a kernel follows from the text: the fusion's name, and what its lines say they are of."""
    text = HLO.read_text()
    found = study.compare_compilers(net, HLO)
    entry = text[text.index("\nENTRY") :].splitlines()[1:]
    lines = {line.split()[line.split().index("=") - 1].lstrip("%"): line for line in entry if " = " in line}
    kernels = {name for name, line in lines.items() if not re.search(r" (parameter|bitcast|constant)\(", line)}
    inside = {k.name: [found.program.by_name[m].kind for m in k.members] for k in found.b.kernels}
    idle = next(int(n.split()[0]) for n in found.b.notes if "kernels more" in n)
    assert inside.keys() <= kernels and len(kernels) - len(inside) == idle
    assert inside["convolution"] == ["nn.conv2d"] and inside["dot_add_fusion"] == ["nn.dense", "nn.bias_add"]
    large = ["nn.bias_add", "nn.batch_norm", "nn.relu", "sigmoid", "multiply", "mean"]
    assert inside["multiply_bitcast_fusion"] == large
    assert found.found["fused by {b} only"] == Counter({"multiply → mean": 1, "multiply → nn.softmax": 1})
    assert not any(found.found[row] for row in found.found if row.startswith("gone"))


def test_what_xla_computes_twice_is_one_operation_in_two_kernels(net, tmp_path):
    head = "HloModule m, is_scheduled=true\n"
    exp = '  e = f32[4]{0} exponential(p), metadata={op_name="jit(f)/exp"}\n'
    first = f"%a (p: f32[4]) -> f32[4] {{\n  p = f32[4]{{0}} parameter(0)\n{exp}  ROOT r = f32[4]{{0}} sqrt(e)\n}}\n"
    second = first.replace("%a", "%b").replace("sqrt", "tanh")
    entry = """ENTRY %main (x: f32[4]) -> (f32[4], f32[4]) {
  %x = f32[4]{0} parameter(0)
  %one = f32[4]{0} fusion(f32[4]{0} %x), kind=kLoop, calls=%a
  %two = f32[4]{0} fusion(f32[4]{0} %x), kind=kLoop, calls=%b
  ROOT %t = (f32[4]{0}, /*index=1*/f32[4]{0}) tuple(%one, %two)
}
"""
    (tmp_path / "m.txt").write_text(head + first + second + entry)
    program = study.Program(
        "p",
        relay.parse('#[version = "0.0.5"] def @main(%x: Tensor[(4), float32]) { %0 = exp(%x); (sqrt(%0), tanh(%0)) }'),
    )
    found = study.compare_compilers(program, tmp_path / "m.txt").b
    assert [(k.name, [m.split()[0] for m in k.members]) for k in found.kernels] == [
        ("one", ["exp", "sqrt"]), ("two", ["exp", "tanh"]),
    ]  # fmt: skip


def test_a_folder_that_xla_dumped_is_read_and_broken_texts_are_refused(net, tmp_path):
    text = HLO.read_text()
    (tmp_path / "module_0001.jit_net.cpu_after_optimizations.txt").write_text(text)
    (tmp_path / "module_0000.jit_stage.cpu_after_optimizations.txt").write_text(text[:300])
    assert study.compare_compilers(net, tmp_path).b == study.compare_compilers(net, HLO).b
    file = tmp_path / "x.txt"
    for broken in (text.replace("is_scheduled=true, ", ""), text[: text.index("ENTRY")], "HloModule"):
        file.write_text(broken)
        with pytest.raises(RelayError, match="not compiled"):
            study.compare_compilers(net, file)
    program = study.compare_compilers(net, HLO).program
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith("ENTRY"))
    for k in range(1, start, 9):  # whatever is missing or cut, what is left is read
        xla.read("\n".join([lines[0], *lines[k:]]), program)
        xla.read("\n".join([lines[0], *(line[: 10 + 7 * k % 80] for line in lines[1:start]), *lines[start:]]), program)
    file.write_text("HloModule m, is_scheduled=true\nENTRY main {\n  ROOT x = f32[] parameter(0)\n}\n")
    with pytest.raises(RelayError, match="no operation of this module"):
        study.compare_compilers(net, file)


def test_what_is_no_dump_of_this_program_is_refused(onnx, tmp_path):
    with pytest.raises(RelayError, match="no compiler and no dump"):
        study.compare_compilers(SMALL, "onnxruntimes")
    model = onnx.load(OPTIMIZED)
    model.graph.node[0].domain = "com.microsoft.nchwc"
    onnx.save(model, tmp_path / "layout.onnx")
    with pytest.raises(RelayError, match="blocked layouts"):
        study.compare_compilers(SMALL, tmp_path / "layout.onnx")
    for node in model.graph.node:
        node.domain = ""
        node.output[:] = [f"other {name}" for name in node.output]
    onnx.save(model, tmp_path / "other.onnx")
    with pytest.raises(RelayError, match="no tensor of the optimized model"):
        study.compare_compilers(SMALL, tmp_path / "other.onnx")


def test_the_command_compares(onnx, tmp_path, capsys):
    with pytest.raises(SystemExit) as done:
        main(["compare", str(SMALL), "--with", str(OPTIMIZED), "-o", str(tmp_path / "k.svg"), "--json"])
    data = json.loads(capsys.readouterr().out)
    assert done.value.code == 0 and (tmp_path / "k.svg").exists()
    assert ["Conv_0", "BatchNormalization_1", "Relu_2"] in data["kernels"]["relaylab"]
    assert sum(data["fused by relaylab only"].values()) == 4
    assert ["GlobalAveragePool_6"] in data["kernels"]["relaylab"], "its layout is undone in the kernel of the reshape"


def test_sizes_that_a_model_leaves_open_are_told_behind_its_name(onnx, tmp_path):
    helper = onnx.helper
    nodes = [helper.make_node("Exp", ["x"], ["e"], name="e"), helper.make_node("Relu", ["e"], ["y"], name="r")]
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["batch", 4]) for n in "xy")
    path = tmp_path / "open.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "g", [x], [y])), path)
    told = study.compare_compilers(f"{path}:batch=3", path)
    assert [k.members for k in told.a.kernels] == [("e", "r")]
    with pytest.warns(OpenSizeWarning, match=re.escape(f"`{path}:batch=…` says more")):
        study.compare_compilers(path, path)


def test_onnxruntime_live(onnx):
    runtime = pytest.importorskip("onnxruntime")
    live = study.compare_compilers("resnet8")
    assert live.b.compiler == "onnxruntime" and runtime.__version__
    fused = live.kernels(live.b)
    assert fused["Conv + BatchNormalization + Relu"] >= 3 and len(live.b.kernels) < len(live.program.operations)
