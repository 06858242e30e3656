"""Every network in its small form prints and parses back, keeps its meaning in passes, compiles to equal numbers."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay, study
from relaylab.interp import Interpreter, random_inputs
from relaylab.ir import structural_equal
from relaylab.zoo.catalog import NETWORKS

pytestmark = pytest.mark.slow

# the deep ones run through the pipeline too, but only their end is compared: the interpreter takes seconds a run
BIG = {
    name
    for name in NETWORKS
    if name.startswith(("densenet", "inception", "vgg1", "resnet10", "resnet15", "resnet5", "resnet3"))
}


@pytest.mark.parametrize("name", NETWORKS)
def test_prints_and_parses_back(name: str) -> None:
    mod, _ = NETWORKS[name].small()
    again = relay.parse(mod.astext())
    assert structural_equal(again, mod)
    assert again.astext() == mod.astext()


@pytest.mark.parametrize("name", sorted(set(NETWORKS) - BIG))
def test_every_pass_keeps_the_numbers(name: str) -> None:
    mod, params = NETWORKS[name].small()
    history = study.explore(study.Program(name, mod, params)).history
    assert history.error is None
    inputs = random_inputs(history.source["main"], 1)
    want = study.leaves(Interpreter(history.source).evaluate()(*inputs))
    for stage in history:
        if stage.changed:
            got = study.leaves(Interpreter(relay.transform.InferType()(stage.result)).evaluate()(*inputs))
            assert all(study.relative_error(g, w) < 1e-4 for g, w in zip(got, want, strict=True)), stage.name


# the next deeper network of the kind has every fused function of these (compared by structural hash), and more of each
CONTAINED = {"resnet18", "resnet50", "resnet101", "vgg11", "vgg13", "vgg16", "vgg13_bn", "vgg16_bn"}


@pytest.mark.parametrize("name", sorted(set(NETWORKS) - CONTAINED))
def test_compiled_code_agrees_with_the_interpreter(name: str) -> None:
    mod, params = NETWORKS[name].small()
    found = study.check(mod, params)
    assert found.agrees, found
    assert all(np.isfinite(v) for v in found.head)
