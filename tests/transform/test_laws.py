"""What every pass promises: meaning, an untouched input, the same object when nothing changes, a complete trail."""

from __future__ import annotations

import pytest
from support.programs import FEATURES, programs
from support.values import assert_same_results

from relaylab.ir import structural_equal
from relaylab.transform import PASSES, PassContext, run_pipeline

NO_EFFECTS = {"ToGraphNormalForm"}
"""Passes that give up the order of effects: tried on programs without cells."""
APPROXIMATE = {"FastMath": 2e-2, "ToMixedPrecision": 5e-2}
"""Passes that change results a little, on purpose."""
MODULES = programs(14)
PURE = programs(14, features=FEATURES - {"ref"})


@pytest.mark.parametrize("name", sorted(n for n, e in PASSES.items() if e.preserves))
def test_every_pass_keeps_its_promises(name: str) -> None:
    for mod in PURE if name in NO_EFFECTS else MODULES:
        functions = dict(mod.functions)
        history = run_pipeline(mod, PASSES[name].make(), PassContext(opt_level=4))
        assert history.error is None, (name, history.error)
        assert mod.functions == functions, "the input was changed"
        for stage in history:
            assert not stage.unaccounted(), [type(n).__name__ for n in stage.unaccounted()]
        after = history.mod
        assert after is mod or not structural_equal(mod, after), "an equal program must be the same object"
        assert_same_results(mod, after, APPROXIMATE.get(name, 1e-4))


@pytest.mark.parametrize("name", sorted(n for n, e in PASSES.items() if e.idempotent))
def test_idempotent_passes_change_nothing_the_second_time(name: str) -> None:
    for mod in PURE[:6]:
        with PassContext(opt_level=4):
            once = PASSES[name].make()(mod)
            assert PASSES[name].make()(once) is once
