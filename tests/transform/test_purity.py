"""Effects that come by functions which a function takes out of what it is given: no pass may drop them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relaylab import relay
from relaylab.ir import Expr, FuncType, Function, RefType, TensorType, TupleType, Type, Var

I32 = TensorType((), "int32")
STEP = FuncType([I32], I32)


def program(held: Type, wrapped: Callable[[Expr], Expr], taken: Callable[[Expr], Expr]) -> relay.IRModule:
    """`@main(%n)` makes a cell of n and a function that writes 41 more than its argument into it; `@call` gets that
    function wrapped, takes it out and calls it with 1; nobody uses what it returns. The result is the cell's content.
    """
    mod = relay.IRModule()
    box, call = Var("box", held), relay.GlobalVar("call")
    mod[call] = Function([box], relay.Call(taken(box), [relay.const(1)]), I32)
    n, cell, step, x, unused = Var("n", I32), Var("cell"), Var("step"), Var("x", I32), Var("unused")
    write = relay.Let(Var("u"), relay.RefWrite(cell, relay.add(x, relay.const(41))), x)
    body = relay.Let(unused, relay.Call(call, [wrapped(step)]), relay.RefRead(cell))
    body = relay.Let(step, Function([x], write, I32), body)
    mod["main"] = Function([n], relay.Let(cell, relay.RefCreate(n), body), I32)
    return relay.transform.InferType()(mod)


def chosen(f: Expr) -> Expr:
    return relay.If(relay.const(True), f, f)


def named(f: Expr) -> Expr:
    var = Var("f")
    return relay.Let(var, f, var)


CASES = {
    "a parameter": (STEP, lambda f: f, lambda box: box),
    "a tuple": (TupleType([STEP]), lambda f: relay.Tuple([f]), lambda box: relay.TupleGetItem(box, 0)),
    "a cell": (RefType(STEP), relay.RefCreate, relay.RefRead),
    "a branch": (STEP, lambda f: f, chosen),
    "a name": (TupleType([STEP]), lambda f: relay.Tuple([f]), lambda box: named(relay.TupleGetItem(box, 0))),
}


PASSES = ("DeadCodeElimination", "EliminateCommonSubexpr", "PartialEvaluate", "FoldConstant", "")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    "name", ["DeadCodeElimination", "EliminateCommonSubexpr", "PartialEvaluate", "FoldConstant", ""]
)
def test_an_effect_of_a_function_that_is_taken_out_stays(case: str, name: str) -> None:
    """Found by reading: only functions called as parameters were taken for unknown, so these calls were dropped."""
    mod = program(*CASES[case])
    if name:
        mod = relay.transform.InferType()(getattr(relay.transform, name)()(mod))
    kind = "debug" if name else "vm"
    assert int(relay.create_executor(kind, mod=mod).evaluate()(7).numpy()) == 42
