"""An einsum of three operands or more is products of two, where these are fewer."""

import numpy as np
import pytest

from relaylab import relay

RNG = np.random.default_rng(0)


def built(equation: str, shapes, dtype: str = "float32"):
    xs = [relay.var(f"x{k}", shape=shape, dtype=dtype) for k, shape in enumerate(shapes)]
    with relay.transform.PassContext(opt_level=3):
        return relay.build(relay.IRModule.from_expr(relay.Function(xs, relay.einsum(xs, equation))), "llvm")


def values(shapes, dtype: str = "float32") -> dict[str, np.ndarray]:
    return {f"x{k}": RNG.normal(size=shape).astype(dtype) for k, shape in enumerate(shapes)}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("equation", "shapes", "products"),
    [
        ("ij,jk,kl->il", ((30, 40), (40, 50), (50, 20)), 64_000),
        ("ij,jk,kl,lm->mi", ((9, 8), (8, 7), (7, 6), (6, 5)), 850),
        ("abc,ad,be,cf->def", ((8, 9, 10), (8, 11), (9, 12), (10, 13)), 40_000),
        ("...ij,...jk,...kl->...il", ((2, 3, 9, 8), (2, 3, 8, 7), (2, 3, 7, 6)), 6 * 768),
        ("ai,bj,ck->", ((5, 6), (7, 8), (9, 10)), 12_000),
    ],
)
def test_as_numpy_with_few_products(equation, shapes, products, dtype) -> None:
    lib, given = built(equation, shapes, dtype), values(shapes, dtype)
    want = np.einsum(equation, *(x.astype("float64") for x in given.values()))
    np.testing.assert_allclose(lib.run(**given), want, rtol=1e-3, atol=1e-5 * np.abs(want).max())
    assert sum(step.flops for step in lib.executable.plan.steps) <= 2 * products


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("i,j,k->ijk", ((9,), (8,), (7,))),
        ("bi,bj,ij->b", ((6, 30), (6, 40), (30, 40))),
        ("ii,ij,j->i", ((5, 5), (5, 6), (6,))),
        ("ij,jk,kl->il", ((4, 1), (5, 6), (6, 7))),
        ("ij,jk,kl->il", ((4, 0), (0, 6), (6, 7))),
    ],
)
def test_what_pairs_do_not_help(equation, shapes) -> None:
    """Outer products, weighted ones, diagonals, what is broadcast, and nothing."""
    given = values(shapes)
    want = np.einsum(equation, *given.values())
    np.testing.assert_allclose(built(equation, shapes).run(**given), want, rtol=1e-4, atol=1e-5)


def test_an_operand_twice() -> None:
    x, w = relay.var("x0", shape=(30, 40)), relay.var("x1", shape=(40, 50))
    call = relay.einsum([x, w, x, w], "ij,jk,il,lk->i")
    with relay.transform.PassContext(opt_level=3):
        lib = relay.build(relay.IRModule.from_expr(relay.Function([x, w], call)), "llvm")
    given = values(((30, 40), (40, 50)))
    want = ((given["x0"] @ given["x1"]) ** 2).sum(1)
    np.testing.assert_allclose(lib.run(**given), want, rtol=1e-4)
