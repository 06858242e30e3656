"""What every pass promises: meaning, an untouched input, the same object when nothing changes, a complete trail."""

from __future__ import annotations

from functools import cache

import pytest
from support.programs import FEATURES, programs
from support.values import assert_same_results

import relaylab.text  # noqa: F401  (some passes print or read)
from relaylab import relay
from relaylab.ir import GlobalVar, IRModule, Op, RefWrite, structural_equal, walk
from relaylab.support.errors import RelayValueError
from relaylab.support.source import AnySpan
from relaylab.transform import PASSES, PassContext, default_passes, run_pipeline

pytestmark = pytest.mark.slow

APPROXIMATE = {"FastMath": 2e-2, "ToMixedPrecision": 5e-2}
"""Passes that change results a little, on purpose."""
made = cache(programs)
PURE = FEATURES - {"ref"}


def places(mod: IRModule) -> list[AnySpan | None]:
    """Where the nodes come from, which some passes change."""
    return [n.span for n in walk(mod.functions.values()) if not isinstance(n, (Op, GlobalVar))]


@pytest.mark.parametrize("name", sorted(n for n, e in PASSES.items() if e.preserves))
def test_every_pass_keeps_its_promises(name: str) -> None:
    for mod in made(14) if PASSES[name].effects else made(14, features=PURE):
        functions = dict(mod.functions)
        history = run_pipeline(mod, PASSES[name].make(), PassContext(opt_level=4))
        assert history.error is None, (name, history.error)
        assert mod.functions == functions, "the input was changed"
        for stage in history:
            assert not stage.unaccounted(), [type(n).__name__ for n in stage.unaccounted()]
        after = history.mod
        same = structural_equal(mod, after) and places(mod) == places(after)
        assert after is mod or not same, "an equal program must be the same object"
        assert_same_results(mod, after, APPROXIMATE.get(name, 1e-4))


@pytest.mark.parametrize("name", sorted(n for n, e in PASSES.items() if e.idempotent))
def test_idempotent_passes_change_nothing_the_second_time(name: str) -> None:
    for mod in made(14, features=PURE)[:6]:
        with PassContext(opt_level=4):
            once = PASSES[name].make()(mod)
            assert PASSES[name].make()(once) is once


def writes(mod: IRModule) -> bool:
    return any(isinstance(n, RefWrite) for n in walk(mod.functions.values()))


@pytest.mark.parametrize("name", sorted(n for n, e in PASSES.items() if not e.effects))
def test_a_pass_that_loses_effects_refuses_them(name: str) -> None:
    refused = [mod for mod in made(30) if writes(mod)]
    assert len(refused) > 5
    for mod in refused:
        with pytest.raises(RelayValueError, match="does not keep the order of effects") as caught:
            PASSES[name].make()(mod)
        assert caught.value.code == "pass.effects" and caught.value.help and "in @" in caught.value.place
        apart = mod.with_functions({gv: f.with_attr("SkipOptimization", 1) for gv, f in mod.functions.items()})
        assert writes(PASSES[name].make()(apart))
    for mod in made(30):
        if not writes(mod):
            PASSES[name].make()(mod)


def test_dropouts_may_change_places() -> None:
    x = relay.var("x", shape=(2, 3))
    mod = IRModule.from_expr(relay.nn.relu(relay.nn.dropout(x)))
    for name in (n for n, e in PASSES.items() if not e.effects):
        assert "nn.dropout" in PASSES[name].make()(mod).astext()


@pytest.mark.parametrize("vm", [False, True])
def test_the_default_pipelines_refuse_no_effects(vm: bool) -> None:
    assert all(PASSES[p.info.name].effects for p in default_passes(4, vm) if p.info.name in PASSES)
