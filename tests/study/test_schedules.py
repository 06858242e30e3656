"""A schedule tried on a kernel: what changed, and what its machine code gives, held against the loop evaluator."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import replace

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.cli import main
from relaylab.loop.expr import Const
from relaylab.loop.program import Define
from relaylab.loop.schedule import PRIMITIVES, primitive
from relaylab.loop.schedule.tree import edited


def product(dtype="float32", rows=6):
    """A dense layer with weights that are known."""
    x, w = relay.var("x", shape=(rows, 10), dtype=dtype), np.random.default_rng(0).standard_normal((14, 10))
    body = relay.nn.relu(relay.nn.dense(x, relay.const(w.astype(dtype))))
    return study.Program("product", relay.transform.InferType()(relay.IRModule.from_expr(relay.Function([x], body))))


STEPS = {
    "plain": "split i1 7 as jo ji\nvectorize ji",
    "constant": "split i1 7 as jo ji\npack in1 once jo ji k as panels\nconstant panels\nparallel i0",
    "scratch": "pack in0 i0 k\nfission i1\nvectorize i1",
    "picked": "from picked rows=2\nprefetch weight0 k 1",
}


@pytest.mark.parametrize("steps", STEPS)
def test_the_machine_code_of_a_schedule_is_what_the_loop_evaluator_gives(steps):
    trial = study.schedule(product(), "dense", STEPS[steps])
    assert trial.evaluated is not None and trial.evaluated < 1e-6 and trial.error < 1e-6


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_floats_are_evaluated_too(dtype):
    trial = study.schedule(product(dtype), "dense", "vectorize i1")
    assert trial.evaluated is not None and trial.evaluated < (1e-3 if dtype == "float16" else 1e-12)


def test_machine_code_that_is_not_that_of_its_loops_is_seen():
    trial = dataclasses.replace(study.schedule(product(), "dense", "split i0 2"))
    trial.__dict__["loops"] = trial.loops.replace("max(sum0, 0f)", "sum0")
    assert trial.evaluated > 0.01


def test_what_has_too_many_turns_is_not_evaluated():
    trial = study.schedule(product(rows=1000), "dense", "split i0 10")
    assert trial.evaluated is None and "too many turns" in trial.measures


def test_before_are_the_loops_that_the_steps_begin_with():
    trial = study.schedule(product(), "dense", "split i0 2 as o i")
    changes = trial.changes
    assert "for i0 in 6:" in trial.before and "-    for i0 in 6:" in changes and "+    for o in 3:" in changes
    assert "registers acc" in study.schedule(product(), "dense", "from picked\nprefetch in0 k 1").before
    assert study.schedule(product(), "dense").changes == trial.before
    assert 0 < trial.share < 100 and "define void @" in trial.llvm and trial.assembly


def test_the_command_gives_the_code_and_the_measures(tmp_path, capsys):
    (tmp_path / "steps.txt").write_text("# stufen – \u968e\nsplit i1 2\n", encoding="utf-8-sig")
    with pytest.raises(SystemExit, match="^0$"):
        main(["schedule", "mlp", "softmax", "-f", str(tmp_path / "steps.txt"), "--code"])
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("--- loops", "+", "--- llvm", "--- asm", "of the roofline"))
    with pytest.raises(SystemExit, match="^0$"):
        main(["schedule", "mlp", "softmax", "-s", "split i1 2", "--code", "--timeline", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [moment["step"] for moment in found["timeline"]] == ["the plain loops", "split i1 2"]
    assert found["evaluated"] < 1e-6 and found["roofline"] > 0 and found["before"] != found["loops"]


def test_the_timeline_has_every_step_with_its_time_and_bisect_finds_the_one_that_changes_results():
    """A step of one's own is not proven: this one starts every sum at one."""

    @primitive("spoil LOOP")
    def spoil(program, words):
        """Every sum starts at one."""
        starts = lambda s: (replace(s, value=Const(1.0, "float32")),) if isinstance(s, Define) else (s,)
        return edited(program, starts)

    try:
        trial = study.schedule(product(), "dense", "split i1 7 as jo ji\nspoil k\nparallel i0")
        timeline = trial.timeline
    finally:
        PRIMITIVES.remove("spoil")
    found = [moment.step for moment in timeline]
    assert found == ["the plain loops", "split i1 7 as jo ji", "spoil k", "parallel i0"]
    assert all(moment.microseconds > 0 for moment in timeline) and "+" in timeline[1].changes
    assert trial.bisect().step == "spoil k" and "= 1f" in trial.bisect().loops
    assert [line.split()[2:] for line in trial.history.splitlines()[1:]] == [step.split() for step in found]
    assert study.schedule(product(), "dense", "from picked\nprefetch in0 k 1").bisect() is None
    assert [m.step for m in study.schedule(product(), "dense", "from picked").timeline] == ["from picked"]
