"""What is listed can be taken and computes the same; the model orders what is plainly better and learns the rest."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.operations.records import TuningRecord
from relaylab.loop.run import run
from relaylab.loop.schedule import Schedule
from relaylab.tune.model import CostModel, Features, features_of
from relaylab.tune.space import candidates

sys.path.append(str(Path(__file__).resolve().parents[1] / "loop"))
from schedule_cases import KERNELS, plain  # noqa: E402

AVX2 = CpuTarget.parse("llvm -mcpu=haswell")
PARTS = "arithmetic loads waiting near far spilled".split()


def results(program, arrays, want):
    out = np.zeros(want.size, want.dtype)
    run(program, dict(zip((t for _, t in program.buffers), (*(x.ravel() for x in arrays), out))))
    return out.reshape(want.shape)


@pytest.mark.parametrize("name", KERNELS)
def test_listed_schedules_compute_the_kernel(name):
    program, arrays, want = plain(name)
    found = list(candidates(program, AVX2))
    assert len({str(c.schedule) for c in found}) == len(found) > 0
    for candidate in random.Random(1).sample(found, min(len(found), 6)):
        assert str(candidate.schedule.apply(program)) == str(candidate.program)
        np.testing.assert_allclose(results(candidate.program, arrays, want), want, rtol=1e-4, atol=1e-5)


def test_sums_get_tiles_of_registers_packing_and_threads():
    texts = [str(c.schedule) for c in candidates(plain("matmul")[0], AVX2)]
    assert any("registers sum0" in t and "pack in1" in t and "parallel i1_o" in t for t in texts)
    assert any("registers" not in t and "vectorize k" in t for t in texts)
    guarded = [str(c.schedule) for c in candidates(plain("conv")[0], AVX2)]
    assert any("inline t1" in t and "registers sum0" in t for t in guarded)
    assert any(
        "vectorize" in str(c.schedule) and "parallel i0" in str(c.schedule)
        for c in candidates(plain("softmax")[0], AVX2)
    )


def test_the_model_prefers_tiles_that_fit_to_plain_loops_and_to_tiles_that_spill():
    program, _, _ = plain("matmul")
    model = CostModel(AVX2, 1)
    steps = """
        split i0 {rows} as io ii
        split i1 {columns} as jo ji
        reorder jo io ii ji
        fission ji ii
        reorder k ii ji
        vectorize ji ji_init ji_out
        unroll ii ii_init ii_out
        registers sum0
    """
    features = lambda **tile: features_of(Schedule.parse(steps.format(**tile)).apply(program), AVX2)
    fits, spills = features(rows=6, columns=16), features(rows=12, columns=32)
    assert model.microseconds(fits) < model.microseconds(features_of(program, AVX2))
    assert fits.spilled == 0 < spills.spilled
    assert fits.waiting < features(rows=1, columns=8).waiting


def test_threads_divide_what_can_be_divided():
    features = Features(1e6, 0, 0, 0, 0, 0, 3)
    whole, half = (CostModel(AVX2, n).microseconds(features) for n in (1, 2))
    assert math.isclose((half - 2) / (whole - 2), 2 / 3)  # two of three items are one thread's


def test_the_correction_is_learned_from_records():
    """A machine on which loads cost ten times what the model says."""
    draw = random.Random(0)
    model, records = CostModel(AVX2, 1), []
    for k in range(40):
        features = Features(draw.uniform(1e5, 1e6), draw.uniform(1e4, 1e6), 0, 0, 0, 0, 4)
        truth = 2 + (features.arithmetic + 10 * features.loads) / 2500
        records.append(TuningRecord("k", "cpu", "v", 1, str(k), "ok", truth, 1, 0, "k", features.text()))
    wrong = lambda: np.median([abs(math.log(model.microseconds(Features.parse(r.features)) / r.us)) for r in records])
    before = wrong()
    model.learn(records[:4])
    assert wrong() == before  # too few
    numbers = (
        "[damaged",
        "[1, 1, 1, 1, 1, 1, Infinity]",
        "[NaN, 1, 1, 1, 1, 1, 1]",
        "[-5, 1, 1, 1, 1, 1, 1]",
        "[1]",
        "{}",
    )
    damaged = [TuningRecord("k", "cpu", "v", 1, "x", "ok", 1.0, 1, 0, "k", text) for text in numbers]
    endless = TuningRecord("k", "cpu", "v", 1, "x", "ok", math.inf, 1, 0, "k", features.text())
    model.learn([*records, *damaged, endless])
    assert wrong() < before / 4


def test_other_numbers_of_a_template_are_tried():
    """They are read by the template, and only kernels of templates have them."""
    from relaylab.codegen.templates.schedule import choices_of
    from relaylab.tune.space import chosen

    for isa in ("llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64"):
        texts = chosen(CpuTarget.parse(isa))
        assert len(texts) == len(set(texts)) > 10
        for text in texts:
            schedule = Schedule.parse(text)
            assert schedule.picked and str(schedule) == text and choices_of(schedule.begins[1:])
