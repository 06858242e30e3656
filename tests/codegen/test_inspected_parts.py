"""What the virtual machine runs can be looked at as what `relay.build` gives: every form, every stage."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.codegen.vm import VirtualMachine, VMExecutable
from relaylab.codegen.vm_profiler import VirtualMachineProfiler
from relaylab.ir import SizeVar
from relaylab.runtime.module import STAGES
from relaylab.support.errors import RelayError
from relaylab.transform import PassContext

RNG = np.random.default_rng(0)
WEIGHT = RNG.normal(size=(32, 64)).astype("float32")
FILTER = RNG.normal(size=(8, 3, 3, 3)).astype("float32")


def floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype("float32")


def rows() -> relay.Function:
    x = relay.var("x", shape=(SizeVar("n"), 64))
    return relay.Function([x], relay.nn.softmax(relay.nn.relu(relay.nn.dense(x, relay.const(WEIGHT)))))


def images(*shape: object) -> relay.Function:
    x = relay.var("x", shape=shape)
    return relay.Function([x], relay.nn.relu(relay.nn.conv2d(x, relay.const(FILTER), padding=(1, 1))))


FOUND = """
def @main(%x: Tensor[(128, 64), float32], %w: Tensor[(32, 64), float32], %t: Tensor[(128), bool]) {
  %0 = take(%x, squeeze(argwhere(%t), axis=[1]), axis=0);
  nn.relu(nn.dense(%0, %w, units=32))
}"""
LOOP = """
def @main(%i: int32, %x: Tensor[(n, 8), float32]) -> Tensor[(n, 8), float32] {
  if (less(%i, 10)) { @main(add(%i, 1), nn.relu(multiply(%x, 1.5f))) } else { %x }
}"""
TREE = """
type Tree { Leaf(float32), Node(Tree, Tree), }
def @sum(%t: Tree) -> float32 { match (%t) { Leaf(%v) => { tanh(%v) }, Node(%a, %b) => { @sum(%a) + @sum(%b) }, } }
def @main(%v: float32) -> float32 { @sum(Node(Leaf(%v), Leaf(2f))) }"""
CASES = {
    "open rows": (rows, [(5, 64)], "for all sizes, figures for n = 5", ("nn_dense_nn_relu", "nn_softmax")),
    "open images": (
        lambda: images(1, 3, SizeVar("h"), SizeVar("w")),
        [(1, 3, 9, 7)],
        "h = 9",
        ("nn_pad", "nn_conv2d_nn_relu"),
    ),
    "open batch": (lambda: images(SizeVar("n"), 3, 9, 7), [(4, 3, 9, 7)], "one example", ("nn_conv2d_nn_relu",)),
    "found sizes": (
        lambda: relay.parse(FOUND),
        [(128, 64), (32, 64), None],
        "part 2 of 2",
        ("padded_argwhere", "take"),
    ),
    "loop": (lambda: relay.parse(LOOP), ["i", (4, 8)], "block 2 of 2", ("less", "multiply_nn_relu")),
    "data types": (lambda: relay.parse(TREE), ["v"], "1 kernel", ("tanh",)),
}


def made(case: str) -> tuple[VMExecutable, list[np.ndarray]]:
    program, shapes, *_ = CASES[case]
    kinds = {
        "i": lambda: np.array(2, "int32"),
        "v": lambda: np.array(0.5, "float32"),
        None: lambda: RNG.random(128) < 0.3,
    }
    args = [kinds[s]() if s in kinds else floats(*s) for s in shapes]
    mod = program()
    exe = relay.vm.compile(mod if isinstance(mod, relay.IRModule) else relay.IRModule.from_expr(mod), "llvm")
    VirtualMachine(exe).invoke("main", *args)
    return exe, args


@pytest.mark.parametrize("case", CASES)
def test_every_form_has_every_stage_of_its_kernels(case: str) -> None:
    exe, _ = made(case)
    _, _, title, operators = CASES[case]
    names = exe.kernels()
    assert title in exe.summary() and all(any(o in n for n in names) for o in operators), exe.summary()
    for name in names:
        for stage in STAGES:
            assert exe.inspect(stage, name).strip(), (name, stage)
        assert "fn (" in exe.inspect("relay", name) and study.control_flow(exe, name).view.nodes
    assert study.listing(exe) == exe.summary() and study.llvm_steps(exe, names[0])


@pytest.mark.parametrize("case", [c for c in CASES if c not in ("loop", "data types")])
def test_kernels_are_those_that_run(case: str) -> None:
    exe, args = made(case)
    ran = {c["Name"] for c in VirtualMachineProfiler(exe).profile(*args).calls}
    assert ran <= {lib_name for _, lib in exe.parts().parts for lib_name in lib.kernels()}
    report = study.profile(exe, inputs=dict(zip(exe.get_function_params("main"), args)), number=2)
    assert {c["Name"] for c in report.calls} == ran and set(report.relay) <= ran and report.relay
    assert sum(c["Percent"].value for c in report.calls) == pytest.approx(100)
    assert "fn (" in report.hot(1) and "A whole call (us)" in report.table()


def test_figures_are_those_of_the_last_call() -> None:
    exe, _ = made("open rows")
    step = next(s for s in exe.parts().parts[0][1].executable.plan.steps if "dense" in s.name)
    assert step.flops == pytest.approx(2 * 5 * 64 * 32, rel=0.1), "the memory that is planned is for more rows"


def test_why_says_what_open_rows_were_chosen_from() -> None:
    exe, _ = made("open rows")
    text = exe.inspect("why", "dense")
    assert "how many rows there are a run says" in text and "-> tiles of" in text and "cycles" in text
    assert "sizes say how many items" in exe.inspect("why", "softmax")
    found, _ = made("found sizes")
    assert "has a template where its weight is a constant" in found.inspect("why", "dense")
    assert "a line of pixels at a time" in made("open images")[0].inspect("why", "conv2d")


def test_a_form_for_shapes_that_come_often_is_beside_that_for_all() -> None:
    x = relay.var("x", shape=(SizeVar("n"), 64))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.nn.dense(x, relay.const(WEIGHT))))
    with PassContext(opt_level=3, config={"relay.codegen.open": False}):
        exe = relay.vm.compile(mod, "llvm")
    VirtualMachine(exe).invoke("main", floats(6, 64))
    assert "for x: (6, 64):" in exe.summary() and "6x32 float32" in exe.summary()


def test_a_kernel_that_two_parts_have_is_called_by_its_part() -> None:
    branches = "if (%c) { nn.softmax(%x) } else { nn.softmax(exp(%x)) }"
    exe = relay.vm.compile(relay.parse(f"def @main(%c: bool, %x: Tensor[(n, 8), float32]) {{ {branches} }}"), "llvm")
    VirtualMachine(exe).invoke("main", np.array(True), floats(3, 8))
    names = exe.kernels()
    assert len(names) == len({*names}) == sum(len(lib.kernels()) for _, lib in exe.parts().parts)
    alike = [n for n in names if n.endswith("nn_softmax")]
    assert [n.partition("/")[0].isdigit() for n in alike] == [True] * 2, names
    assert all("n, 8" in exe.inspect("relay", n) for n in alike)
    with pytest.raises(RelayError, match=r"there is no kernel `conv`"):
        exe.inspect("asm", "conv")
    with pytest.raises(RelayError, match="there is no stage"):
        exe.inspect("asms", names[0])


def test_a_loaded_executable_is_looked_at_too() -> None:
    exe, args = made("open rows")
    again = VMExecutable.load_exec(*exe.save())
    assert again.kernels() == exe.kernels() and "nn.dense" in again.inspect("relay", "dense")


def test_an_open_input_has_to_be_given_to_be_measured() -> None:
    exe, _ = made("open rows")
    with pytest.raises(RelayError, match="the input `x` has open sizes"):
        study.profile(exe)
    with pytest.raises(RelayError, match="no input `y`"):
        study.profile(exe, inputs={"y": floats(1, 64)})


def test_results_that_are_too_large_are_said_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    exe, args = made("open batch")
    assert exe.specializations is not None and exe.specializations.open is not None

    def run(leaves: object) -> None:
        raise MemoryError("Unable to allocate 4.00 TiB")

    monkeypatch.setattr(exe.specializations.open, "run", run)
    with pytest.raises(
        RelayError, match="the results for these sizes need too much memory: Unable to allocate 4.00 TiB"
    ):
        VirtualMachine(exe).invoke("main", *args)


def test_a_program_without_a_form_says_why() -> None:
    exe = relay.vm.compile(relay.IRModule.from_expr(rows()), "llvm -mtriple=aarch64-linux-gnu")
    assert exe.summary().startswith("no form for all sizes: the module does not run on this machine")


def test_a_kernel_that_finds_says_where_it_is_asked_for() -> None:
    text = '#[version = "0.0.5"]\ndef @main(%c: Tensor[(9), bool]) { exp(cast(argwhere(%c), dtype="float32")) }\n'
    exe = relay.vm.compile(relay.fromtext(text))
    (found,) = (name for name in exe.kernels() if "argwhere" in name)
    assert f"from_string:2:{text.splitlines()[1].index('argwhere') + 1}" in exe.inspect("relay", found)
