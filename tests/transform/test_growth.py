"""How the work of passes grows with the size of a program, counted in calls of Python functions: always the same."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest

from bench.growth import T, lets
from relaylab import analysis, relay, viz
from relaylab.interp import Interpreter, random_inputs
from relaylab.ir import Call, Constant, Function, GlobalVar, IRModule, Let, Op, Var, post_order
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
"""Each function of a short row with all that it calls is written out (of a long one see below), or refused."""


@pytest.mark.parametrize("shape", ("adds", "lets", "functions", "nested"))
@pytest.mark.parametrize("name", STEPS)
def test_twice_the_program_is_hardly_more_than_twice_the_work(modules, name: str, shape: str) -> None:
    if (name, shape) in LEFT_OUT:
        return
    with PassContext(opt_level=4):
        assert grown(STEPS[name], *modules[shape]) < DOUBLING


def captured(count: int) -> IRModule:
    """Functions that capture all that was computed before them, each called once."""
    x = body = Var("x", T)
    for _ in range(count // 4):
        z = Var("z", T)
        body = Call(Function([z], Call(Op.get("add"), [z, body]), T), [x])
    return IRModule.from_expr(Function([x], body, T))


def chained(count: int) -> IRModule:
    """One function that captures a chain and is called again and again."""
    x = chain = y = Var("x", T)
    for _ in range(count // 4):
        chain = Call(Op.get("tanh"), [chain])
    z = Var("z", T)
    func = Function([z], Call(Op.get("add"), [z, chain]), T)
    for _ in range(count // 4):
        y = Call(func, [y])
    return IRModule.from_expr(Function([x], y, T))


@pytest.mark.parametrize("shape", (captured, chained))
def test_what_functions_capture_is_not_looked_at_for_each_call(shape: Callable[[int], IRModule]) -> None:
    small, large = (relay.transform.InferType()(shape(n)) for n in (SIZE, 2 * SIZE))
    step = PASSES["FirstOrderGradient"].make()
    assert grown(step, small, small, large) < DOUBLING
    one = random_inputs(small["main"], 0)
    value, (grad,) = Interpreter(step(small)).evaluate()(*one)
    assert np.allclose(value, Interpreter(small).evaluate()(*one))
    nudged = [one[0] + np.float32(1e-2)]
    more = Interpreter(small).evaluate()(*nudged) - value
    assert np.allclose(more / 1e-2, grad, rtol=5e-2)


def test_a_long_row_of_functions_is_not_written_out_for_each_of_them() -> None:
    small, large = (relay.transform.InferType()(functions(n)) for n in (3 * 150, 3 * 300))
    step = PASSES["PartialEvaluate"].make()
    assert grown(step, functions(30), small, large) < DOUBLING
    after = step(large)
    assert not any(isinstance(n, GlobalVar) for n in post_order(after["main"]))  # written out first
    x = random_inputs(large["main"], 0)
    for name in ("main", "f7", "f299"):
        want, got = (Interpreter(mod).evaluate(mod.get_global_var(name))(*x) for mod in (large, after))
        assert np.array_equal(want, got)
