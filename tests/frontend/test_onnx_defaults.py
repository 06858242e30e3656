"""Attributes that mean nothing where they stand change nothing; those that are not imported are named."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_tools import helper, imported, model, node_model, run
from onnx.reference import ReferenceEvaluator

from relaylab import relay
from relaylab.support.errors import RelayError


X = np.random.default_rng(0).normal(size=(1, 2, 4, 5)).astype("float32")


@pytest.mark.parametrize("alpha", [-0.75, -0.5, 0.0, 0.25, -1.5])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scale", [1.0, 2.0, 0.5])
def test_the_coefficient_of_cubic_resizing_is_read_whatever_the_rest(alpha: float, mode: str, scale: float) -> None:
    scales = np.array([1, 1, scale, scale], "float32")
    attributes = {"mode": mode, "cubic_coeff_a": alpha, "exclude_outside": int(mode == "cubic")}
    proto, given = node_model("Resize", {"x": X, "roi": None, "scales": scales}, constants=("scales",), **attributes)
    (wanted,) = ReferenceEvaluator(proto).run(None, given)
    np.testing.assert_allclose(run(imported(proto), given)[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["half_pixel", "asymmetric", "pytorch_half_pixel"])
@pytest.mark.parametrize("method", ["nearest", "linear", "cubic"])
def test_a_fraction_moves_the_elements_of_an_axis_that_stays_as_long(mode: str, method: str) -> None:
    """2 x 1.3 are 2, and 7 x 1.1 are 7: these axes were left as they are."""
    x = np.random.default_rng(1).normal(size=(1, 2, 2, 7)).astype("float32")
    feed = {"x": x, "roi": None, "scales": np.array([1, 1, 1.3, 1.1], "float32")}
    attributes = {"mode": method, "coordinate_transformation_mode": mode}
    proto, given = node_model("Resize", feed, constants=("scales",), opset=18, **attributes)
    (wanted,) = ReferenceEvaluator(proto).run(None, given)
    np.testing.assert_allclose(run(imported(proto), given)[0], wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("policy", ["stretch", "not_larger"])
def test_what_resizing_keeps_is_read_whether_sizes_or_scales_are_given(policy: str) -> None:
    """Exporters write the policy beside scales too, where it says nothing."""
    proto, given = node_model(
        "Resize",
        {"x": X, "roi": None, "scales": np.array([1, 1, 2, 1.5], "float32")},
        constants=("scales",),
        opset=20,
        keep_aspect_ratio_policy=policy,
    )
    (wanted,) = ReferenceEvaluator(proto).run(None, given)
    np.testing.assert_array_equal(run(imported(proto), given)[0], wanted)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["one"], "the attribute `one` of opset 17 is not imported"),
        (["one", "two"], "the attributes `one`, `two` of opset 17 are not imported"),
    ],
)
def test_what_is_not_imported_is_said_in_a_sentence(names: list[str], words: str) -> None:
    node = helper.make_node("Relu", ["x"], ["y"], **dict.fromkeys(names, 1))
    with pytest.raises(RelayError, match=words):
        relay.frontend.from_onnx(model([node], {"x": X}, ["y"]))


def test_the_first_forms_of_tiling_and_resizing() -> None:
    """Of opset 1: one axis, both numbers of the data's type; images alone, two factors by name."""
    tiles, axis = np.array([3], "float32"), np.array([1], "float32")
    proto, given = node_model("Tile", {"x": X, "t": tiles, "a": axis}, constants=("t", "a"), opset=1)
    np.testing.assert_array_equal(run(imported(proto), given)[0], np.tile(X, (1, 3, 1, 1)))
    proto, given = node_model("Upsample", {"x": X}, opset=1, height_scale=2.0, width_scale=3.0)
    np.testing.assert_array_equal(run(imported(proto), given)[0], X.repeat(2, 2).repeat(3, 3))
