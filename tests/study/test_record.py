"""Recorded runs: written, read again, compared, judged by limits."""

from __future__ import annotations

import json
import zipfile

import pytest

try:
    import resource
except ImportError:  # not on every system
    resource = None

from relaylab import relay, study
from relaylab.ir import structural_equal
from relaylab.support.errors import RelayError

TEXT = (
    '#[version = "0.0.5"] def @main(%x: Tensor[(2, 3), float32]) '
    "{ reshape(reshape(add(%x, add(1f, 2f)), newshape=[3, 2]), newshape=[6]) }"
)


@pytest.fixture
def found():
    return study.explore(relay.parse(TEXT), passes=["FoldConstant", "SimplifyExpr", "FuseOps"])


def test_what_is_written_is_read_again(found, tmp_path):
    back = study.reopen(study.record(found, tmp_path / "a.rlab"))
    assert [p["name"] for p in back.run["passes"]] == ["FoldConstant", "SimplifyExpr", "FuseOps"]
    for frame, mod in enumerate(found.pipeline.modules):
        assert structural_equal(back.module(frame), mod)
    assert [(s["frame"], s["rule"]) for s in back.trace] == [(2, "two_reshapes")]
    assert back.figures["operator calls"] == 2 and str(back.module()) == str(back.module(3))
    assert str(back.module(-4)) == str(back.module(0)) != str(back.module())
    for frame in (9, -5):
        with pytest.raises(RelayError, match=f"there is no stage {frame}"):
            back.module(frame)


def test_runs_are_compared_and_judged(found, tmp_path):
    a = study.reopen(study.record(found, tmp_path / "a.rlab"))
    b = study.reopen(study.record(study.explore(relay.parse(TEXT), passes=[]), tmp_path / "b.rlab"))
    quantities = study.compare_recordings(a, b)
    assert {q.name for q in quantities} >= {"MACs", "bytes moved", "operator calls", "IR text"}
    assert study.exceeded(quantities, ["flops+5%"]) == []
    assert "operator calls grew from 2 to 4" in study.exceeded(quantities, ["operators+50%"])[0]
    for limit, words in (
        ("flop+5%", "did you mean `flops`"),
        ("flops", "for example flops"),
        ("flops+x%", "is not a limit"),
    ):
        with pytest.raises(RelayError, match=words.replace("+", r"\+")):
            study.exceeded(quantities, [limit])


def test_other_files_are_refused(found, tmp_path):
    (tmp_path / "x.rlab").write_text("nothing")
    with zipfile.ZipFile(tmp_path / "y.rlab", "w") as archive:
        archive.writestr("run.json", '{"version": 99}')
        archive.writestr("trace.jsonl", "")
    for name in ("x", "y", "none"):
        with pytest.raises(RelayError, match="is no recorded run"):
            study.reopen(tmp_path / f"{name}.rlab")
    with pytest.raises(RelayError, match="does not end in .rlab"):
        study.record(found, tmp_path / "a.zip")


def test_named_views_go_with_a_run(found, tmp_path):
    views = {"here": {"before": 0, "after": 1, "selected": "main/add"}}
    assert study.reopen(study.record(found, tmp_path / "v.rlab", views)).views == views
    assert study.reopen(study.record(found, tmp_path / "w.rlab")).views == {}


def rewritten(source, path, change):
    """The archive at `source` with other entries, well packed."""
    with zipfile.ZipFile(source) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    change(entries)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, data in entries.items():
            new.writestr(name, data)
    return path


def run_with(place, value):
    def change(entries):
        run = json.loads(entries["run.json"])
        *way, last = place
        at = run
        for key in way:
            at = at[key]
        at[last] = value
        entries["run.json"] = json.dumps(run)

    return change


WRONG = {
    "passes": (run_with(["passes"], None), "`passes` is None, not a list"),
    "a pass": (run_with(["passes", 0], []), r"`passes.0` is \[\], not a table"),
    "ran": (run_with(["passes", 0, "ran"], 1), "`passes.0.ran` is 1, not true or false"),
    "ms": (run_with(["passes", 0, "ms"], float("nan")), "`passes.0.ms` is nan"),
    "views": (run_with(["views"], []), "`views` is"),
    "program": (run_with(["program"], {}), "`program` is {}, not a text"),
    "fewer passes": (run_with(["passes"], []), "its programs are not those"),
    "deep": (lambda e: e.update({"run.json": "[" * 100_000}), "nested too deeply"),
    "no JSON": (lambda e: e.update({"run.json": "{"}), "not JSON"),
    "no text": (lambda e: e.update({"run.json": b"\xff"}), "it is not UTF-8"),
    "no entry": (lambda e: e.pop("trace.jsonl"), "the entry 'trace.jsonl' is missing"),
    "no first program": (lambda e: e.pop("stages/000.relay"), "its programs are not those"),
    "a trace": (lambda e: e.update({"trace.jsonl": "[]\n"}), r"is \[\], not a table"),
    "a trace of numbers": (lambda e: e.update({"trace.jsonl": "1" * 5000}), "recorded run"),
    "zeros": (lambda e: e.update({"stages/001.relay": bytes(100 << 20)}), "it would unpack"),
    "many": (lambda e: e.update({f"x{k}": b"" for k in range(10_001)}), "10000 are read at most"),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_archives_that_say_what_cannot_be_are_refused_in_words(found, tmp_path, change, words):
    path = rewritten(study.record(found, tmp_path / "a.rlab"), tmp_path / "b.rlab", change)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource else 0
    with pytest.raises(RelayError, match=words) as caught:
        study.reopen(path)
    assert caught.value.code == "record.unreadable" and str(path) in str(caught.value)
    assert not resource or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 80 << 10, "it was unpacked"


def test_every_changed_byte_is_read_or_refused_in_words(found, tmp_path):
    data = study.record(found, tmp_path / "a.rlab").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.rlab") as archive:
        starts = [i.header_offset for i in archive.infolist()] + [archive.start_dir]
    refused = 0
    for at in {*range(0, len(data), len(data) // 400 + 1), *(s + d for s in starts for d in range(60)), *range(-30, 0)}:
        for bit in (1, 128):
            changed = bytearray(data)
            changed[min(at, len(data) - 1)] ^= bit
            (tmp_path / "b.rlab").write_bytes(changed)
            try:
                assert study.reopen(tmp_path / "b.rlab").figures
            except RelayError as error:
                refused += error.code == "record.unreadable"
    assert refused > 100


def test_what_is_no_exploration_is_told_by_the_parameter(tmp_path):
    with pytest.raises(RelayError, match="record: `exploration` must be an Exploration"):
        study.record("mlp", tmp_path / "a.rlab")
