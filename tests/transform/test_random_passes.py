"""Random programs through every pass alone: meaning, scopes and types hold. Sequences are searched in tests/fuzz."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import pytest
from support.compiled import difference, interpreted
from support.networks import Network, random_network
from support.sequences import EXACT, apply
from support.values import results

from relaylab import relay
from relaylab.ir import IRModule
from relaylab.transform import PASSES

pytestmark = pytest.mark.slow


@lru_cache(maxsize=64)
def network(seed: int) -> tuple[Network, list[np.ndarray]]:
    net = random_network(seed, 14)
    return net, interpreted(net.mod, net.inputs)


def check_network(seed: int, names: Sequence[str]) -> None:
    net, expected = network(seed)
    found = difference(interpreted(apply(net.mod, names), net.inputs), expected, net.tolerance)
    assert not found, (names, found)


def check_program(mod: IRModule, names: Sequence[str]) -> None:
    found = difference(results(apply(mod, names)), results(mod), 1e-4)
    assert not found, (names, found)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_every_pass_keeps_the_meaning_of_networks(name: str) -> None:
    for seed in range(8):
        check_network(2000 + seed, [name])


CELLS = """#[version = "0.0.5"]
def @main(%x: float32) {
  let %f = fn (%y: float32) {
    let %cell = ref(%x);
    let %sum = add(ref_read(%cell), %y);
    let %_ = ref_write(%cell, %sum);
    ref_read(%cell)
  };
  let %a = %f(1f);
  let %b = %f(2f);
  (%a, %b)
}"""
CAPTURED = """#[version = "0.0.5"]
def @main(%x: float32) {
  let %y = tanh(%x);
  let %f = fn (%z: float32) { add(%y, %z) };
  %f(%x)
}"""


@pytest.mark.parametrize(
    "names, text",
    [
        (["PartialEvaluate"], CELLS),  # each call makes a cell of its own
        (["ToBasicBlockNormalForm", "LambdaLift"], CAPTURED),  # variables without types are captured
        (["ToANormalForm", "LambdaLift"], CAPTURED),
        (
            ["ManifestLifetimes"],
            CELLS.replace(
                "let %sum = add(ref_read(%cell), %y)", "let %sum = (let %old = ref_read(%cell); add(%old, %y))"
            ),
        ),
    ],
)
def test_minimal_programs(names: list[str], text: str) -> None:
    check_program(relay.transform.InferType()(relay.fromtext(text)), names)


NUMBERS = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
]


@pytest.mark.parametrize("source", NUMBERS)
@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
def test_two_casts_become_one_only_where_nothing_is_lost(source: str) -> None:
    edges = np.array(
        [0, 1, -1, 100, 200, -200, 40000, 70000, 16777217, 3000000000, 9007199254740993, 1.5, -2.75], "object"
    )
    kept = [
        v
        for v in edges
        if source.startswith("float") or (v == int(v) and np.can_cast(np.min_scalar_type(int(v)), source))
    ]
    x = relay.var("x", shape=(len(kept),), dtype=source)
    twice = [relay.cast(relay.cast(x, middle), target) for middle in NUMBERS for target in NUMBERS]
    mod = relay.transform.InferType()(IRModule.from_expr(relay.Function([x], relay.Tuple(twice))))
    inputs = {"x": np.array(kept).astype(source)}
    assert not difference(interpreted(PASSES["SimplifyExpr"].make()(mod), inputs), interpreted(mod, inputs), 0.0)
