"""How the work of passes grows with the size of a program, counted in calls of Python functions: always the same."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

from bench.growth import T, lets
from relaylab import relay, viz
from relaylab.ir import Call, Constant, Function, IRModule, Op, Var
from relaylab.transform import PASSES, PassContext

SIZE = 150
DOUBLING = 2.6


def adds(count: int) -> IRModule:
    """Additions of constants and what is computed of them, in turn."""
    x = body = Var("x", T)
    for i in range(count // 2):
        body = Call(Op.get("tanh"), [Call(Op.get("add"), [body, Constant(np.float32(i % 7 + 1))])])
    return IRModule.from_expr(Function([x], body, T))


def calls(work: Callable[[], object]) -> int:
    """How many Python functions are entered."""
    found = 0

    def count(frame: object, event: str, arg: object) -> None:
        nonlocal found
        found += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


def grown(step: Callable[[IRModule], object], small: IRModule, large: IRModule) -> float:
    step(small)  # what is looked up once is there from now on
    return calls(lambda: step(large)) / max(calls(lambda: step(small)), 1000)


STEPS: dict[str, Callable[[IRModule], object]] = {
    **{name: lambda mod, name=name: PASSES[name].make()(mod) for name in sorted(PASSES) if name != "PrintIR"},
    "print and parse": lambda mod: relay.fromtext(mod.astext()),
    "kernels": lambda mod: relay.transform.LabelOps()(relay.transform.FuseOps(0)(mod)),
    "draw": lambda mod: viz.show(mod).data("svg"),
}


@pytest.fixture(scope="module")
def modules() -> dict[str, list[IRModule]]:
    typed = relay.transform.InferType()
    return {f.__name__: [typed(f(SIZE)), typed(f(2 * SIZE))] for f in (adds, lets)}


@pytest.mark.parametrize("shape", ("adds", "lets"))
@pytest.mark.parametrize("name", STEPS)
def test_twice_the_program_is_hardly_more_than_twice_the_work(modules, name: str, shape: str) -> None:
    with PassContext(opt_level=4):
        assert grown(STEPS[name], *modules[shape]) < DOUBLING
