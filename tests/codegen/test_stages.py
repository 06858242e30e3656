"""What can be looked at: texts that agree with the emitted code, reasons, nodes of instructions, control flow."""

from __future__ import annotations

import re

import numpy as np
import pytest
from kernel_runner import framed

from relaylab import relay
from relaylab.codegen.inspection.control_flow import flows, outline
from relaylab.codegen.kernels.kernel import MemoryView
from relaylab.codegen.inspection.source_map import coverage
from relaylab.codegen.inspection.llvm_passes import llvm_passes, optimized
from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.templates import DIRECT, ConvSpec, Epilogue, GemmSpec, gemm
from relaylab.loop.expr import Const, Local, apply
from relaylab.ir import Call, IRModule, post_order
from relaylab.runtime import load_module
from relaylab.runtime.module import STAGES
from relaylab.support.errors import RelayError, RelayValueError
from relaylab.zoo.catalog import NETWORKS

HOST = CpuTarget.host()


def convolution(size: int, channels: int, kernel: int, out: int):
    pad = kernel // 2
    data = framed((1, size, size, channels), ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    result = MemoryView.dense((1, size, size, out))
    (kernel_,) = DIRECT.build(ConvSpec(data, result, (kernel,) * 2, (1, 1), (1, 1), (pad, pad)), HOST).kernels
    return kernel_


def test_the_loops_name_the_bias_and_the_epilogue() -> None:
    data, out = MemoryView.dense((1, 40, 24)), MemoryView.dense((1, 40, 70))
    x = Local("x", "float32")
    epilogue = Epilogue(apply("max", x, Const(0.0, "float32")), x, operands=("side0",), bias="side0")
    text = str(gemm(GemmSpec(data, MemoryView.dense((1, 24, 70)), out), HOST, epilogue).program)
    assert re.search(r"acc\[.*\] = .*side0\[", text) and re.search(r"out0\[.*\] = max\(acc\[.*\], 0f\)", text)


def test_flow_of_a_nest() -> None:
    (flow,) = flows(convolution(9, 17, 3, 40).text)
    assert flow.loops[0].parent is None and all(loop.parent is not None for loop in flow.loops[1:])
    assert any(flow.back(b.label, t) for b in flow.blocks for t in b.targets)
    text = outline(flow)
    assert "3 turns" in text and "multiply-add" in text and text.count("\n") > 5


@pytest.fixture(scope="module")
def mobilenet():
    mod, params = NETWORKS["mobilenet"].small()
    with relay.transform.PassContext(opt_level=3):
        return relay.build(mod, "llvm", params=params)


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_of_every_kernel_is_there(mobilenet, stage: str) -> None:
    for name in mobilenet.kernels()[:6]:
        assert mobilenet.inspect(stage, name).strip()


def test_instructions_know_their_nodes(mobilenet) -> None:
    found = [k for name in mobilenet.kernels() for k in mobilenet.linked(name)]
    known, total = map(int, re.match(r"(\d+) of (\d+)", coverage(found)).groups())
    assert 0.7 * total < known < total
    for kernel in found:
        named = {kernel.title(part) for line, part in kernel.asm if "fmadd" in line}
        if kernel.kernel.name.startswith(("conv", "depthwise", "gemm")):
            assert named <= {"nn.conv2d", "nn.dense", "no place"}


def test_parts_are_the_nodes_of_the_function(mobilenet) -> None:
    for name in mobilenet.kernels():
        calls = {n for n in post_order(mobilenet.compiled_function(name).body) if isinstance(n, Call)}
        for kernel in mobilenet.linked(name):
            assert {n for n in kernel.nodes if isinstance(n, Call)} <= calls


def test_constants_do_not_shift_the_parts() -> None:
    x = relay.var("x", shape=(4, 32))
    body = relay.exp(relay.const(2.0) * x) + relay.sqrt(relay.abs(x))
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(IRModule.from_expr(relay.Function([x], body)), "llvm")
    (kernel,) = lib.linked(lib.kernels()[0])
    assert {kernel.title(part) for line, part in kernel.asm if "sqrt" in line} == {"sqrt"}
    assert {"exp", "abs", "add"} <= set(kernel.counts())


def test_the_reason_is_that_of_the_choice() -> None:
    x, w = relay.var("x", shape=(1, 64, 56, 56)), relay.var("w", shape=(64, 64, 3, 3))
    call = relay.nn.conv2d(x, w, padding=(1, 1), channels=64, kernel_size=(3, 3))
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function([x, w], call)))
    params = {"w": np.zeros((64, 64, 3, 3), "float32")}
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm", params=params)
    name = next(n for n in lib.kernels() if "conv2d" in n)
    chosen = re.search(r"-> (\w+) +[\d,]+ cycles", lib.inspect("why", name))[1]
    assert ("winograd" in lib.inspect("loop", name)) == chosen.startswith("winograd")


def test_names_of_kernels_and_stages(mobilenet) -> None:
    names = mobilenet.kernels()
    assert mobilenet.inspect("loop", "softmax") == mobilenet.inspect("loop", next(n for n in names if "softmax" in n))
    first = next(n for n in names if any(m != n and m.startswith(n) for m in names))
    assert mobilenet.kernel_called(first.removeprefix("tvmgen_default_fused_")) == first, "others begin with it"
    with pytest.raises(RelayValueError, match="kernels have `conv2d`"):
        mobilenet.inspect("loop", "conv2d")
    with pytest.raises(RelayValueError, match="did you mean"):
        mobilenet.inspect("loop", "tvmgen_default_fused_nn_sofmax")
    with pytest.raises(RelayValueError, match="did you mean `flow`"):
        mobilenet.inspect("flo")


def test_a_loaded_module_keeps_the_reasons(mobilenet, tmp_path) -> None:
    mobilenet.export_library(tmp_path / "net.so")
    loaded = load_module(tmp_path / "net.so")
    assert loaded.inspect("why", "softmax") == mobilenet.inspect("why", "softmax")
    with pytest.raises(RelayValueError, match="does not keep"):
        loaded.linked("softmax")


def test_llvm_passes_are_shown_one_by_one() -> None:
    text = "define i32 @f(i32 %x) {\nentry:\n  %a = add i32 %x, 0\n  %p = alloca i32\n"
    text += "  store i32 %a, ptr %p\n  %b = load i32, ptr %p\n  ret i32 %b\n}\n"
    steps = {step.name: step for step in llvm_passes(text, HOST, ("sroa", "instruction_combine", "lcssa"))}
    assert (
        "-  %p = alloca" in steps["sroa"].diff() and steps["instruction_combine"].changed and not steps["lcssa"].changed
    )
    assert "ret i32 %x" in optimized(text, HOST) and "runs no LLVM IR passes" in optimized(text, HOST)
    with pytest.raises(RelayError, match="did you mean `sroa`"):
        list(llvm_passes(text, HOST, ("sroaa",)))


def test_a_kernel_says_for_each_call_where_it_was_written() -> None:
    """Of equal layers there is one kernel: which of them it is slow for is a question that only their names answer."""
    source = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(2, 4), float32], %w: Tensor[(4, 4), float32]) {\n'
    source += "  %0 = nn.relu(nn.dense(%x, %w));\n  %1 = nn.softmax(%0);\n  nn.relu(nn.dense(%1, %w))\n}"
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(relay.parse(source, "net.relay"), "llvm", params={"w": np.ones((4, 4), "float32")})
    (kernel,) = [name for name in lib.kernels() if "dense" in name]
    told = [line for line in lib.inspect("relay", kernel).splitlines() if line.startswith("// from")]
    assert told == ["// from net.relay:3:16, net.relay:3:8", "// from net.relay:5:11, net.relay:5:3"]


def test_a_product_of_bytes_says_how_its_right_side_is_read() -> None:
    x, w = relay.var("x", shape=(1, 64), dtype="uint8"), relay.var("w", shape=(64, 100), dtype="int8")
    lib = relay.build(IRModule.from_expr(relay.nn.matmul(x, w, out_dtype="int32")), "llvm")
    assert "four bytes of its rows are put together" in lib.inspect("why", lib.kernels()[0])
