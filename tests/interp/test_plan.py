"""The plan of an evaluation: what it drops, nobody asks for again, and nothing is computed twice in one activation."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from support.networks import random_network
from support.programs import programs

import relaylab.op  # noqa: F401
from relaylab import relay
from relaylab.interp import Interpreter, random_inputs
from relaylab.interp.machine import Frame, Machine
from relaylab.interp.plan import Plan
from relaylab.ir import Call, Expr, IRModule, Let, Tuple, TupleGetItem, children, walk

ROOT = Path(__file__).resolve().parents[1]


@cache
def random_modules() -> list[IRModule]:
    return programs(60) + [random_network(7100 + k, 12).mod for k in range(8)]


def assert_every_use_is_counted(plan: Plan) -> None:
    """A value that may be dropped is used only where it is taken once, at its own level, and all such uses count."""
    found: dict[Expr, int] = {}
    for node in walk((plan.root,)):
        for place, part in enumerate(children(node)):
            taken = isinstance(node, (Call, Tuple, TupleGetItem)) or (isinstance(node, Let) and place == 1)
            bound = isinstance(node, Let) and place == 0
            if part in plan.uses and not bound:
                assert taken and plan.level[part] == plan.level[node], (type(node).__name__, place)
                found[part] = found.get(part, 0) + 1
    assert plan.root not in plan.uses
    assert found == plan.uses


class Watched(Machine):
    """Refuses to compute a node twice in one activation."""

    def __init__(self, mod: IRModule):
        super().__init__(mod)
        self.done: set[tuple[Frame, Expr]] = set()

    def finish(self, node: Expr, frame: Frame) -> None:
        assert (frame, node) not in self.done, f"a {type(node).__name__} is computed twice"
        self.done.add((frame, node))
        super().finish(node, frame)


class Watching(Interpreter):
    def machine(self) -> Machine:
        return Watched(self.mod)


def test_every_use_is_counted_in_random_programs() -> None:
    for mod in random_modules():
        for func in mod.functions.values():
            assert_every_use_is_counted(Plan(func))


def test_every_use_is_counted_in_the_golden_programs() -> None:
    for page in sorted((ROOT / "golden" / "transform").glob("*/*.relay")):
        for text in page.read_text(encoding="utf-8").split("// ---- after\n"):
            for func in IRModule.from_text(text).functions.values():
                assert_every_use_is_counted(Plan(func))


def test_nothing_is_computed_twice() -> None:
    for mod in random_modules()[:40]:
        Watching(mod).evaluate()(*random_inputs(mod["main"], 3))


@pytest.mark.parametrize(
    "text",
    [
        "let %z = %p; %p",
        "let %x = 4f; let %y = %x; %x",
        "let %x = negative(%p); let %y = %x; let %z = %y; %x",
        "let %x = (let %y = %p; %p); (%x, %x).0",
        "let %x = (%p, %p); let %y = %x; %x.1",
        "let %f = fn (%a: float32) { let %b = %a; %a }; %f(%p)",
    ],
)
def test_a_name_for_a_name_keeps_the_value(text: str) -> None:
    mod = relay.transform.InferType()(relay.fromtext(f'#[version = "0.0.5"]\ndef @main(%p: float32) {{ {text} }}'))
    assert_every_use_is_counted(Plan(mod["main"]))
    wanted = -4.0 if "negative" in text else 4.0
    for kind in ("debug", "vm"):
        assert relay.create_executor(kind, mod).evaluate()(np.float32(4)).numpy() == wanted, kind


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_constants_are_arguments(kind: str) -> None:
    x, y = (relay.var(n, shape=(), dtype="int32") for n in "xy")
    equal = relay.create_executor(kind).evaluate(relay.Function([x, y], relay.equal(x, y)))
    one, two = relay.const(1), relay.const(2)
    assert [bool(equal(a, b).numpy()) for a, b in ((one, one), (one, two), (two, one.data))] == [True, False, False]
    assert bool(equal(one, y=one).numpy())
    pair = relay.var("pair", type_annotation=relay.TupleType([x.type_annotation, y.type_annotation]))
    first = relay.create_executor(kind).evaluate(relay.Function([pair], relay.TupleGetItem(pair, 1)))
    assert first((one, two)).numpy() == 2
