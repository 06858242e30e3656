"""Recorded runs: written, read again, compared, judged by limits."""

from __future__ import annotations

import zipfile

import pytest

from relaylab import relay, tour
from relaylab.ir import structural_equal
from relaylab.support.errors import RelayError

TEXT = '#[version = "0.0.5"] def @main(%x: Tensor[(2, 3), float32]) { reshape(reshape(add(%x, add(1f, 2f)), newshape=[3, 2]), newshape=[6]) }'


@pytest.fixture
def found():
    return tour.explore(relay.parse(TEXT), passes=["FoldConstant", "SimplifyExpr", "FuseOps"])


def test_what_is_written_is_read_again(found, tmp_path):
    back = tour.reopen(tour.record(found, tmp_path / "a.rlab"))
    assert [p["name"] for p in back.run["passes"]] == ["FoldConstant", "SimplifyExpr", "FuseOps"]
    for frame, mod in enumerate(found.pipeline.modules):
        assert structural_equal(back.module(frame), mod)
    assert [(s["frame"], s["rule"]) for s in back.trace] == [(2, "two_reshapes")]
    assert back.figures["operator calls"] == 2 and str(back.module()) == str(back.module(3))
    with pytest.raises(RelayError, match="there is no stage 9"):
        back.module(9)


def test_runs_are_compared_and_judged(found, tmp_path):
    a = tour.reopen(tour.record(found, tmp_path / "a.rlab"))
    b = tour.reopen(tour.record(tour.explore(relay.parse(TEXT), passes=[]), tmp_path / "b.rlab"))
    quantities = tour.compare_recordings(a, b)
    assert {q.name for q in quantities} >= {"MACs", "bytes moved", "operator calls", "IR text"}
    assert tour.exceeded(quantities, ["flops+5%"]) == []
    assert "operator calls grew from 2 to 4" in tour.exceeded(quantities, ["operators+50%"])[0]
    for limit, words in (("flop+5%", "did you mean `flops`"), ("flops", "for example flops"), ("flops+x%", "is not a limit")):
        with pytest.raises(RelayError, match=words.replace("+", r"\+")):
            tour.exceeded(quantities, [limit])


def test_other_files_are_refused(found, tmp_path):
    (tmp_path / "x.rlab").write_text("nothing")
    with zipfile.ZipFile(tmp_path / "y.rlab", "w") as archive:
        archive.writestr("run.json", '{"version": 99}')
        archive.writestr("trace.jsonl", "")
    for name in ("x", "y", "none"):
        with pytest.raises(RelayError, match="is no recorded run"):
            tour.reopen(tmp_path / f"{name}.rlab")
    with pytest.raises(RelayError, match="does not end in .rlab"):
        tour.record(found, tmp_path / "a.zip")


def test_named_views_go_with_a_run(found, tmp_path):
    views = {"here": {"before": 0, "after": 1, "selected": "main/add"}}
    assert tour.reopen(tour.record(found, tmp_path / "v.rlab", views)).views == views
    assert tour.reopen(tour.record(found, tmp_path / "w.rlab")).views == {}
