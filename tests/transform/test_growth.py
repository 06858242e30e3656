"""How the work of passes grows with the size of a program, counted in calls of Python functions: always the same."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

from bench.growth import T, lets
from relaylab import analysis, relay, viz
from relaylab.ir import Call, Constant, Function, GlobalVar, IRModule, Let, Op, Var
from relaylab.transform import PASSES, PassContext

SIZE = 150
DOUBLING = 2.6


def adds(count: int) -> IRModule:
    """Additions of constants and what is computed of them, in turn."""
    x = body = Var("x", T)
    for i in range(count // 2):
        body = Call(Op.get("tanh"), [Call(Op.get("add"), [body, Constant(np.float32(i % 7 + 1))])])
    return IRModule.from_expr(Function([x], body, T))


def functions(count: int) -> IRModule:
    """Functions that call each other in a row."""
    names = [GlobalVar(f"f{k}") for k in range(count // 3)]
    made: dict[GlobalVar, Function] = {}
    for before, name in zip([None, *names], [*names, GlobalVar("main")]):
        x = Var("x", T)
        body = Call(Op.get("tanh"), [x])
        made[name] = Function([x], body if before is None else Call(before, [body]), T)
    return IRModule(made)


def nested(count: int) -> IRModule:
    """Lets in the values of lets."""
    x = body = Var("x", T)
    for _ in range(count // 4):
        outer, inner = Var("outer", T), Var("inner", T)
        value = Let(inner, Call(Op.get("tanh"), [body]), Call(Op.get("add"), [inner, inner]))
        body = Let(outer, value, Call(Op.get("exp"), [outer]))
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


def grown(step: Callable[[IRModule], object], first: IRModule, small: IRModule, large: IRModule) -> float:
    step(first)  # what is looked up once is there from now on
    return calls(lambda: step(large)) / max(calls(lambda: step(small)), 1000)


STEPS: dict[str, Callable[[IRModule], object]] = {
    **{name: lambda mod, name=name: PASSES[name].make()(mod) for name in sorted(PASSES) if name != "PrintIR"},
    "print and parse": lambda mod: relay.fromtext(mod.astext()),
    "kernels": lambda mod: relay.transform.LabelOps()(relay.transform.FuseOps(0)(mod)),
    "features": analysis.detect_feature,
    "draw": lambda mod: viz.show(mod).data("svg"),
}


@pytest.fixture(scope="module")
def modules() -> dict[str, list[IRModule]]:
    typed = relay.transform.InferType()
    return {f.__name__: [typed(f(SIZE)), typed(f(SIZE)), typed(f(2 * SIZE))] for f in (adds, lets, functions, nested)}


LEFT_OUT = {("PartialEvaluate", "functions"), ("FirstOrderGradient", "functions")}
"""Each function of a row with all that it calls is written out, or refused."""


@pytest.mark.parametrize("shape", ("adds", "lets", "functions", "nested"))
@pytest.mark.parametrize("name", STEPS)
def test_twice_the_program_is_hardly_more_than_twice_the_work(modules, name: str, shape: str) -> None:
    if (name, shape) in LEFT_OUT:
        return
    with PassContext(opt_level=4):
        assert grown(STEPS[name], *modules[shape]) < DOUBLING
