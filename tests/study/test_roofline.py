"""Kernels under the roof: what a dot's place means, and that every kernel has one."""

from __future__ import annotations

import pytest

from relaylab import study
from relaylab.runtime.peaks import MachinePeaks
from relaylab.study.roofline import Roofline
from relaylab.viz.figures.roofline import Dot, roofline
from relaylab.viz.scene.scene import Path, Rect, Text

FLOPS, MEMORY = 100e9, 10e9


def centre(scene, name: str) -> tuple[float, float]:
    figure = next(f for f in scene.elements if f.id.endswith(f":{name}") and f.kind == "node")
    rect = figure.shapes[0]
    assert isinstance(rect, Rect)
    return rect.x + rect.width / 2, rect.y + rect.height / 2


def test_a_kernel_at_its_limit_lies_on_the_roof_and_others_below() -> None:
    dots = [Dot("memory", 2.0, 20e9, 0.5), Dot("ridge", 10.0, 100e9, 0.1), Dot("slow", 2.0, 1e9, 0.2)]
    scene = roofline(dots, FLOPS, MEMORY, "t")
    path = next(s for f in scene.elements if f.id == "roof" for s in f.shapes if isinstance(s, Path))
    (_, x0, y0), (_, x1, y1), (_, x2, y2) = path.commands
    assert centre(scene, "ridge") == pytest.approx((x1, y1)) and y1 == y2 and x2 > x1
    x, y = centre(scene, "memory")
    assert (y - y0) / (x - x0) == pytest.approx((y1 - y0) / (x1 - x0))  # on the slope
    slow = centre(scene, "slow")
    assert slow[0] == pytest.approx(x) and slow[1] > y


def test_dots_are_numbered_by_their_time_and_idle_ones_left_out() -> None:
    dots = [Dot("b", 1.0, 1e9, 0.1), Dot("a", 2.0, 2e9, 0.3), Dot("copy", 0.0, 0.0, 0.6)]
    scene = roofline(dots, FLOPS, MEMORY, "t")
    assert {f.id for f in scene.elements if f.kind == "node"} == {"1:a", "2:b"}
    assert "30% of the time" in next(f.label for f in scene.elements if f.id == "1:a")


def test_every_name_of_the_list_has_its_number_at_a_dot() -> None:
    dots = [Dot(f"tvmgen_default_fused_nn_dense_{k}", 1.0 + k, 1e9 + 1e8 * k, 0.1) for k in range(12)]
    scene = roofline(dots, FLOPS, MEMORY, "t")
    words = {e.id: [s.text for s in e.shapes if isinstance(s, Text)] for e in scene.elements}
    for k in range(8):
        assert words[f"name:{k + 1}"] == [f"{k + 1}  8%  nn_dense_{k}"]
        assert words[f"{k + 1}:{dots[k].name}"] == [str(k + 1)]


def test_kernels_of_no_program_are_alike_and_claim_no_time() -> None:
    found = Roofline("t", [Dot("b", 1.0, 1e9), Dot("a", 2.0, 2e9)], MachinePeaks(1, FLOPS, MEMORY, MEMORY))
    assert [f.label for f in found.scene.elements if f.kind == "node"] == [
        "a: 2 GFLOP/s, 10% of the roof",
        "b: 1 GFLOP/s, 10% of the roof",
    ]
    assert str(found).splitlines()[2].split() == ["1", "1", "b"]


def test_what_a_program_loses_is_the_time_above_the_least_of_each_kernel() -> None:
    dots = [Dot("near", 1.0, 9e9, 0.6, 0.54), Dot("far", 2.0, 2e9, 0.4, 0.1)]
    found = Roofline("t", dots, MachinePeaks(2, FLOPS, MEMORY, MEMORY))
    _, words, _, *rows = str(found).splitlines()
    assert words == "1000000.0 us, of which 36 % would go if every kernel reached its roof"
    assert [row.split()[3:] for row in rows] == [["90.0", "6.0", "near"], ["25.0", "30.0", "far"]]


def test_no_kernel_takes_less_than_its_roof() -> None:
    for dot in study.roofline("mlp", repeat=1).dots:
        assert 0 <= dot.least <= dot.seconds


def test_nothing_to_place() -> None:
    assert not [f for f in roofline([], FLOPS, MEMORY, "t").elements if f.kind == "node"]


def test_of_a_network(tmp_path) -> None:
    found = study.roofline("mlp", repeat=2)
    assert len(found.dots) == sum(f.kind == "node" for f in found.scene.elements) + sum(
        not d.intensity for d in found.dots
    )
    assert any("dense" in d.name and d.intensity > 0 for d in found.dots)
    assert "nn_dense" in str(found) and "GFLOP/s" in str(found)
    for form in ("svg", "pdf", "html", "txt"):
        assert found.save(tmp_path / f"roof.{form}").stat().st_size > 300
