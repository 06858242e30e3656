"""No pass recurses on the depth of a program, and none takes more than near-linear time: if one did, these would not end."""

from __future__ import annotations

import pytest

import relaylab.op  # noqa: F401
from relaylab.ir import Call, Function, IRModule, Let, Op, TensorType, Var
from relaylab.transform import PASSES, PassContext

DEPTH = 100_000
T = TensorType((4,), "float32")


def chain() -> IRModule:
    """x + x, then 100,000 operators one after the other."""
    x = Var("x", T)
    body, ops = x, [Op.get("tanh"), Op.get("nn.relu")]
    for i in range(DEPTH):
        body = Call(ops[i % 2], [body])
    return IRModule.from_expr(Function([x], body, T))


def lets() -> IRModule:
    """100,000 lets, each used by the next."""
    x = Var("x", T)
    names = [x, *(Var("y", T) for _ in range(DEPTH))]
    body = names[-1]
    for before, after in zip(reversed(names[:-1]), reversed(names[1:])):
        body = Let(after, Call(Op.get("tanh"), [before]), body)
    return IRModule.from_expr(Function([x], body, T))


def diamonds() -> IRModule:
    """x + x thirty times: a billion paths, thirty nodes."""
    x = Var("x", T)
    body = x
    for _ in range(30):
        body = Call(Op.get("add"), [Call(Op.get("tanh"), [body]), Call(Op.get("exp"), [body])])
    return IRModule.from_expr(Function([x], body, T))


@pytest.fixture(scope="module")
def modules() -> dict[str, IRModule]:
    return {made.__name__: PASSES["InferType"].make()(made()) for made in (chain, lets, diamonds)}


@pytest.mark.parametrize("shape", ["chain", "lets", "diamonds"])
@pytest.mark.parametrize("name", sorted(set(PASSES) - {"PrintIR"}))
def test_every_pass_takes_deep_programs(modules: dict[str, IRModule], name: str, shape: str) -> None:
    with PassContext(opt_level=4):
        after = PASSES[name].make()(modules[shape])
    assert "main" in after
