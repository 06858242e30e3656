"""No pass recurses on the depth of a program, and none takes much more than linear time: these would not end.

Each pass alone takes ten thousand levels; the default pipeline takes a hundred thousand operators and twenty thousand
lets, fusion alone forty thousand of them, a build a hundred thousand operators. How times grow: tests/bench/growth.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import Call, Function, IRModule, Let, Op, TensorType, Var, walk
from relaylab.transform import PASSES, PassContext, default_passes, run_pipeline

pytestmark = pytest.mark.slow

T = TensorType((4,), "float32")


def chain(depth: int) -> IRModule:
    """tanh and relu in turn, `depth` times."""
    x = Var("x", T)
    body, ops = x, [Op.get("tanh"), Op.get("nn.relu")]
    for i in range(depth):
        body = Call(ops[i % 2], [body])
    return IRModule.from_expr(Function([x], body, T))


def lets(depth: int) -> IRModule:
    """`depth` lets, each used by the next."""
    x = Var("x", T)
    names = [x, *(Var("y", T) for _ in range(depth))]
    body = names[-1]
    for before, after in zip(reversed(names[:-1]), reversed(names[1:])):
        body = Let(after, Call(Op.get("tanh"), [before]), body)
    return IRModule.from_expr(Function([x], body, T))


def diamonds(depth: int) -> IRModule:
    """tanh(x) + exp(x) thirty times: a billion paths, ninety nodes."""
    x = Var("x", T)
    body = x
    for _ in range(30):
        body = Call(Op.get("add"), [Call(Op.get("tanh"), [body]), Call(Op.get("exp"), [body])])
    return IRModule.from_expr(Function([x], body, T))


SHAPES = [chain, lets, diamonds]


@pytest.fixture(scope="module")
def modules() -> dict[str, IRModule]:
    return {made.__name__: PASSES["InferType"].make()(made(10_000)) for made in SHAPES}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", sorted(n for n in PASSES if n != "PrintIR"))
def test_every_pass_takes_deep_programs(modules: dict[str, IRModule], name: str, shape) -> None:
    with PassContext(opt_level=4):
        after = PASSES[name].make()(modules[shape.__name__])
    assert "main" in after


def test_the_default_pipeline_takes_a_hundred_thousand_operators() -> None:
    history = run_pipeline(chain(100_000), default_passes(3), PassContext(opt_level=3))
    assert history.error is None
    assert history["FuseOps"].changed


def test_the_default_pipeline_and_both_normal_forms_take_twenty_thousand_lets() -> None:
    passes = [*default_passes(3), "ToANormalForm", "ToGraphNormalForm"]
    history = run_pipeline(lets(20_000), passes, PassContext(opt_level=3))
    assert history.error is None
    assert history["ToGraphNormalForm"].changed


def test_fusion_makes_forty_thousand_kernels_of_as_many_lets() -> None:
    history = run_pipeline(lets(40_000), ["InferType", "FuseOps", "LabelOps"], PassContext(opt_level=3))
    assert history.error is None
    assert sum(isinstance(n, Function) and n.is_primitive for n in walk((history.mod["main"],))) == 40_000


def test_a_hundred_thousand_operators_are_built_and_run() -> None:
    lib = relay.build(chain(100_000), target="llvm")
    x = np.linspace(-1, 1, 4, dtype="float32")
    want = x
    for _ in range(50_000):
        want = np.maximum(np.tanh(want), 0)
    np.testing.assert_allclose(lib.run(x=x), want, rtol=50_000 * 2**-24)  # half a unit in the last place for each tanh
