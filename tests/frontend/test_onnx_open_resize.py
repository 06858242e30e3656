"""Resize of ONNX by factors that are fractions along open axes, held against onnx's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay

onnx = pytest.importorskip("onnx")
helper, reference = onnx.helper, pytest.importorskip("onnx.reference")
RNG = np.random.default_rng(0)
NEAREST = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
MODES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
CASES = [({"mode": "nearest", "nearest_mode": n}, m) for m in MODES[:3] for n in NEAREST]
CASES += [({"mode": how}, m) for m in MODES for how in ("linear", "cubic")]


def resize(scales: list[float], opset: int = 18, **attrs):
    names = ["b", 2, "h", "w"]
    given = onnx.numpy_helper.from_array(np.array(scales, "float32"), "s")
    inputs = ["x", "", "s"] if opset > 10 else ["x", "s"]
    graph = helper.make_graph(
        [helper.make_node("Resize", inputs, ["y"], **attrs)],
        "g",
        [helper.make_tensor_value_info("x", 1, names)],
        [helper.make_tensor_value_info("y", 1, [None] * 4)],
        [given],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def machine(model):
    mod, params = relay.frontend.from_onnx(model)
    return relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))


@pytest.mark.parametrize("scales", [[1, 1, 0.5, 1.5], [1, 1, 2.25, 0.75], [1, 1, 0.5, 2]], ids=str)
def test_fractions(scales: list[float]) -> None:
    for attrs, mode in CASES:
        model = resize(scales, coordinate_transformation_mode=mode, **attrs)
        vm, judge = machine(model), reference.ReferenceEvaluator(model)
        for height, width in ((4, 6), (5, 7), (2, 4), (9, 31)):
            x = RNG.standard_normal((1, 2, height, width)).astype("float32")
            got, wanted = vm.invoke("main", x).numpy(), judge.run(None, {"x": x})[0]
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5, err_msg=f"{attrs} {mode} {x.shape}")
        assert "one form for all sizes" in vm.exe.stats and vm.exe.specializations.open is not None


def test_a_factor_that_no_expression_has() -> None:
    """0.3 is no sum of a few halves: how many there are is found when it runs."""
    model = resize([1, 1, 1, 0.3], mode="linear", coordinate_transformation_mode="half_pixel")
    vm = machine(model)
    for width in (10, 7, 40):
        x = RNG.standard_normal((2, 2, 3, width)).astype("float32")
        wanted = reference.ReferenceEvaluator(model).run(None, {"x": x})[0]
        np.testing.assert_allclose(vm.invoke("main", x).numpy(), wanted, rtol=1e-4, atol=1e-5)
    assert "one form for all sizes" in vm.exe.stats


@pytest.mark.parametrize("name", ["open", "known"])
def test_an_axis_of_which_nothing_is_left(name: str) -> None:
    model = resize([1, 1, 0.5, 1], mode="nearest", coordinate_transformation_mode="asymmetric")
    shape = {} if name == "open" else {"shape": {"x": (1, 2, 1, 3)}}
    mod, params = relay.frontend.from_onnx(model, **shape)
    vm = relay.vm.VirtualMachine(relay.vm.compile(mod, "llvm", params=params))
    assert vm.invoke("main", np.ones((1, 2, 1, 3), "float32")).shape == (1, 2, 0, 3)


def test_the_first_resize_takes_what_is_behind_in_smaller_images() -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = resize([1, 1, 0.4, 1.5], 10, mode="nearest")
    vm = machine(model)
    judge = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for height, width in ((10, 6), (5, 7), (15, 2)):
        x = RNG.standard_normal((1, 2, height, width)).astype("float32")
        np.testing.assert_array_equal(vm.invoke("main", x).numpy(), judge.run(None, {"x": x})[0])


@pytest.mark.parametrize("how", ["linear", "cubic"])
def test_without_patterns_to_sizes_that_are_known(how: str) -> None:
    """As torch writes it down: every step of getting an image ready that is as large as it happens to be."""
    attrs = {"mode": how, "antialias": 1, "exclude_outside": 1, "axes": [2, 3]}
    given = onnx.numpy_helper.from_array(np.array([5, 8]), "to")
    info = [helper.make_tensor_value_info(k, 1, ["b", 2, *hw]) for k, hw in (("x", ["h", "w"]), ("y", [5, 8]))]
    node = helper.make_node("Resize", ["x", "", "", "to"], ["y"], **attrs)
    graph = helper.make_graph([node], "g", info[:1], info[1:], [given])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    vm, judge = machine(model), reference.ReferenceEvaluator(model)
    for height, width in ((13, 9), (4, 30), (6, 8)):
        x = RNG.standard_normal((2, 2, height, width)).astype("float32")
        np.testing.assert_allclose(vm.invoke("main", x).numpy(), judge.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)
    assert vm.exe.specializations.open is not None
