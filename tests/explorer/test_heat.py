"""The heat map of a pipeline: counts by pass and function, drawn by every writer."""

from __future__ import annotations

import pytest

from relaylab import explorer, relay, study
from relaylab.support.errors import RelayError

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) { @helper(nn.relu(add(%x, add(1f, 2f)))) }
def @helper(%y: Tensor[(2, 3), float32]) { tanh(exp(%y)) }"""


@pytest.fixture
def found():
    return explorer.heat(study.explore(relay.parse(TEXT), passes=["FoldConstant", "FoldConstant", "FuseOps"]))


def test_cells_are_by_pass_and_function(found):
    assert [name for name, _, _ in found.passes] == ["FoldConstant", "FoldConstant", "FuseOps"]
    assert [changed for _, _, changed in found.passes] == [True, False, True]
    assert set(found.counts) == {("@main", 1), ("@main", 3), ("@helper", 3)}
    assert found.counts["@helper", 3] == {"merged": 2}
    assert "@helper" in str(found)


def test_each_cell_is_a_figure_that_says_itself(found):
    cells = {f.id: f for f in found.scene.elements if f.kind == "node"}
    assert len(cells) == 3 * 3 and "3 FuseOps, @helper: 2 merged" in cells["3:@helper"].detail
    assert all(0 <= f.box[0] and f.box[0] + f.box[2] <= found.scene.width for f in cells.values())


def test_rows_may_be_operators(found):
    by = explorer.heat(study.explore(relay.parse(TEXT), passes=["FoldConstant", "FuseOps"]), by="operator")
    assert {"add", "nn.relu", "tanh", "exp"} <= set(by.rows)
    with pytest.raises(RelayError, match="functions or operators"):
        explorer.heat("mlp", by="pass")


@pytest.mark.parametrize(
    "form, start", [("svg", b"<svg"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE"), ("png", b"\x89PNG"), ("txt", b" ")]
)
def test_all_writers_take_it(found, tmp_path, form, start):
    assert found.save(tmp_path / f"heat.{form}").read_bytes().lstrip(b"\n").startswith(start)


def test_other_formats_are_refused(found, tmp_path):
    with pytest.raises(RelayError, match="did you mean `.svg`"):
        found.save(tmp_path / "heat.svgg")


def test_a_pipeline_that_changes_nothing_is_drawn():
    none = explorer.heat(study.explore(relay.parse(TEXT), passes=[]))
    assert none.rows == [] and none.scene.elements
