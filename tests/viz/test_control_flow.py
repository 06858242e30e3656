"""The control flow of a kernel as a picture."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.codegen.inspection.control_flow import flows
from relaylab.ir import IRModule
from relaylab.support.errors import RelayValueError
from relaylab.viz import show
from relaylab.viz.graph.control_flow import control_flow

SAMPLE = """
define void @sample(ptr %args, i64 %begin, i64 %end, i64 %thread) #0 {
entry:
  %v1 = load ptr, ptr %args, align 8
  %v2 = icmp slt i64 %begin, %end
  br i1 %v2, label %loop3, label %done4
loop3:
  %v5 = phi i64 [%begin, %entry], [%v15, %join14]
  br label %loop6
loop6:
  %v8 = phi i64 [0, %loop3], [%v11, %loop6]
  %v9 = phi <8 x float> [zeroinitializer, %loop3], [%v10, %loop6]
  ; @1
  %x = load <8 x float>, ptr %v1, align 4
  %v10 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %x, <8 x float> %x, <8 x float> %v9)
  ; @0
  %v11 = add nsw i64 %v8, 2
  %v12 = icmp slt i64 %v11, 24
  br i1 %v12, label %loop6, label %done7
done7:
  %v13 = icmp slt i64 %v5, 7
  br i1 %v13, label %then13, label %join14
then13:
  ; @2
  store <8 x float> %v10, ptr %v1, align 4
  ; @0
  br label %join14
join14:
  %v15 = add nsw i64 %v5, 1
  %v16 = icmp slt i64 %v15, %end
  br i1 %v16, label %loop3, label %done4
done4:
  ret void
}
"""
TITLES = ("loops and addresses", "nn.dense", "nn.relu")


@pytest.mark.parametrize("form", ["svg", "dot", "txt"])
def test_picture(form: str, golden) -> None:
    (flow,) = flows(SAMPLE)
    golden(f"viz/control_flow.{form}", show(control_flow(flow, TITLES.__getitem__)).data(form))


def test_blocks_show_their_instructions() -> None:
    (flow,) = flows(SAMPLE)
    blocks = {n.title: n for n in control_flow(flow).nodes}
    assert blocks["join14"].rows == ("%v15 = add nsw i64 %v5, 1", "%v16 = icmp slt i64 %v15, %end")
    assert blocks["loop6"].rows[2] == "%x = load <8 x float>, ptr %v1, align 4"  # and no remark of ours
    assert blocks["loop6"].rows[3].endswith("…") and "llvm.fmuladd" in blocks["loop6"].text
    assert [a.value for a in blocks["loop6"].attrs] == ["7", "1 load <8 x float>, 1 multiply-add <8 x float>"]


def test_loops_are_boxes_and_the_way_back_is_marked() -> None:
    (flow,) = flows(SAMPLE)
    assert [(loop.head, loop.turns, loop.parent) for loop in flow.loops] == [("loop3", None, None), ("loop6", 12, 0)]
    view = control_flow(flow)
    assert {n.id: n.group for n in view.nodes}["block:loop6"] == "loop1" and view.group_by_id["loop1"].parent == "loop0"
    back = {(e.source, e.target) for e in view.edges if e.kind == "recursion"}
    assert back == {("block:loop6", "block:loop6"), ("block:join14", "block:loop3")}
    assert "12 turns" in view.group_by_id["loop1"].title


@pytest.fixture(scope="module")
def library():
    x, w = relay.var("x", shape=(1, 32)), relay.var("w", shape=(40, 32))
    mod = IRModule.from_expr(relay.Function([x, w], relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, w)))))
    with relay.transform.PassContext(opt_level=3):
        return relay.build(mod, "llvm")


def test_blocks_name_their_operators(library, tmp_path) -> None:
    picture = study.control_flow(library, "dense")
    assert any("nn.dense" in n.note for n in picture.view.nodes)
    assert picture.save(tmp_path / "flow.svg").read_text().startswith("<svg")
    with pytest.raises(RelayValueError, match="name one"):
        study.control_flow(library)


def test_a_call_that_takes_several_kernels_is_one_call() -> None:
    image, weight = relay.var("image", shape=(1, 3, 32, 32)), relay.const(np.ones((16, 3, 3, 3), "float32"))
    conv = relay.nn.conv2d(image, weight, padding=(1, 1))
    lib = relay.build(relay.IRModule.from_expr(conv), target="llvm -mcpu=x86-64-v4")
    counted = [line.split()[1] for line in lib.summary().splitlines() if line.startswith("tvmgen")]
    assert lib.summary().splitlines()[-1].startswith(f"{len(counted)} kernel, {sum(map(int, counted))} call, ")


def test_summary_lists_what_the_kernels_compute(library) -> None:
    text = library.summary()
    line = next(line for line in text.splitlines() if "dense" in line)
    assert "nn.dense nn.relu" in line and "1x40 float32" in line and "gemm" in line
    small = next(line for line in text.splitlines() if "softmax" in line)
    assert "0.00020" in small.split() and "0.00032" in small.split()  # 200 operations, 320 bytes: not 0.00
    assert "2 kernels, 2 calls" in text
