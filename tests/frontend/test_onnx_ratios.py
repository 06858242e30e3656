"""Sizes that a model computes with floats on the way: they stay exact, and shapes are known by them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from onnx_tools import compare, evaluated, helper, imported, model, numpy_helper, run

from relaylab.frontend.onnx.ratios import SizeRatio, fraction, made
from relaylab.ir import SizeVar
from relaylab.ir.dims import UndecidedSize

node, F, I = helper.make_node, 1, 7


def constants(**values):
    return {k: np.array(v, "float32" if isinstance(v, float) or "f" in k else "int64") for k, v in values.items()}


def padded(*between, fixed):
    """`x` (1, n) with as many zeros behind it as `between` computes of n, both called `n` and `pads`."""
    nodes = [
        node("Shape", ["x"], ["dims"]), node("Gather", ["dims", "one"], ["n"]), *between,
        node("Unsqueeze", ["more", "zero"], ["behind"]),
        node("ConstantOfShape", ["three"], ["none"], value=numpy_helper.from_array(np.array([0]))),
        node("Concat", ["none", "behind"], ["pads"], axis=0), node("Pad", ["x", "pads"], ["y"]),
    ]  # fmt: skip
    given = {"one": np.array(1), "zero": np.array([0]), "three": np.array([3]), **constants(**fixed)}
    x = np.arange(7, dtype="float32")[None]
    return model(nodes, {"x": x}, ["y"], given, shapes={"x": (1, "n")})


CEILED = padded(  # to the next multiple of 4, as `math.ceil(n / 4) * 4 - n` is exported
    node("Cast", ["n"], ["nf"], to=F), node("Div", ["nf", "f4"], ["q"]), node("Ceil", ["q"], ["c"]),
    node("Cast", ["c"], ["k"], to=I), node("Mul", ["k", "i4"], ["whole"]), node("Sub", ["whole", "n"], ["more"]),
    fixed={"f4": 4.0, "i4": 4},
)  # fmt: skip
HALVED = padded(  # floor(n * 0.5) + 1, at least 2
    node("Cast", ["n"], ["nf"], to=F), node("Mul", ["nf", "fhalf"], ["q"]), node("Floor", ["q"], ["c"]),
    node("Add", ["c", "f1"], ["d"]), node("Cast", ["d"], ["k"], to=I), node("Max", ["k", "i2"], ["more"]),
    fixed={"fhalf": 0.5, "f1": 1.0, "i2": 2},
)  # fmt: skip
THIRDS = padded(  # a third is no float: the size is found when the program runs
    node("Cast", ["n"], ["nf"], to=F), node("Mul", ["nf", "fthird"], ["q"]), node("Ceil", ["q"], ["c"]),
    node("Cast", ["c"], ["more"], to=I), fixed={"fthird": 1 / 3},
)  # fmt: skip


@pytest.mark.parametrize(("proto", "told"), [(CEILED, True), (HALVED, True), (THIRDS, False)])
def test_shapes_by_way_of_floats(proto, told):
    mod = imported(proto)
    assert ("?" not in str(mod["main"].ret_type)) == told
    for count in (1, 2, 7, 8, 13):
        x = np.arange(count, dtype="float32")[None]
        for executor in ("debug", "vm"):
            compare(run(mod, {"x": x}, executor), evaluated(proto, {"x": x}))


def test_widths_in_pairs_that_are_turned_around():
    """As torch pads: pairs of widths from the last axis on become all those before and all those behind."""
    nodes = [
        node("Shape", ["x"], ["dims"]), node("Slice", ["dims", "two", "three"], ["n"]),
        node("Sub", ["eight", "n"], ["more"]), node("Concat", ["zero", "more", "none"], ["flat"], axis=0),
        node("Reshape", ["flat", "pairs"], ["table"]),
        node("Slice", ["table", "last", "far", "zero", "back"], ["turned"]),
        node("Transpose", ["turned"], ["sides"], perm=[1, 0]), node("Reshape", ["sides", "line"], ["pads"]),
        node("Pad", ["x", "pads"], ["y"]),
    ]  # fmt: skip
    given = {"two": [2], "three": [3], "eight": [8], "zero": [0], "none": [0] * 4, "pairs": [-1, 2], "last": [-1],
             "far": [-(2**63) + 1], "back": [-1], "line": [-1]}  # fmt: skip
    x = np.arange(10, dtype="float32").reshape(1, 2, 5)
    fixed = {k: np.array(v) for k, v in given.items()}
    mod = imported(model(nodes, {"x": x}, ["y"], fixed, shapes={"x": (1, 2, "n")}))
    assert str(mod["main"].ret_type) == "Tensor[(1, 2, 8), float32]"
    np.testing.assert_array_equal(run(mod, {"x": x}, "vm")[0], np.pad(x, ((0, 0), (0, 0), (0, 3))))


def test_ratios_count_as_fractions_do():
    n = SizeVar("n")
    r = (made(n, 1) + 3) / 2 * 0.25 - 1
    assert r == SizeRatio(n - 5, 8) and -r + 1 == SizeRatio(13 - n, 8) and made(n - n, 4) == 0.0
    assert fraction(0.375).denominator == 8
    for wrong in (lambda: fraction(1 / 3), lambda: r / 0, lambda: fraction(math.pi)):
        with pytest.raises(UndecidedSize):
            wrong()
