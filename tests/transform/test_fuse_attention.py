"""FuseAttention and its operator: torch's attention, the program it stands for, masks, lengths that no tile divides."""

from __future__ import annotations

import math

import numpy as np
import pytest

from relaylab import relay
from relaylab.ir import OPERATORS, Expr, IRModule, walk
from relaylab.ir.op import is_call_to
from relaylab.loop.builder import OutSpec
from relaylab.loop.procedure import perform
from relaylab.transform import PassContext, optimize

RNG = np.random.default_rng(12)
INF = math.inf


def decomposed(shapes, dtype="float32", factor=0.25, masks=1, empty=False) -> IRModule:
    """(heads, m, d) x (heads, n, d), a mask in four dimensions, softmax, values."""
    names = ["q", "k", "v", "mask"][: len(shapes)]
    q, k, v, *mask = (relay.var(n, shape=s, dtype=dtype) for n, s in zip(names, shapes))
    (heads, m, _), n = shapes[0], shapes[1][1]
    scores = relay.nn.batch_matmul(q, k) * relay.const(factor, dtype)
    if mask:
        scores = relay.reshape(scores, (1, heads, m, n)) + mask[0]
    weights = relay.nn.softmax(scores)
    if empty:
        seen = relay.any(relay.logical_not(relay.equal(scores, relay.const(-INF, dtype))), axis=-1, keepdims=True)
        weights = relay.where(relay.logical_not(seen), relay.const(0.0, dtype), weights)
    weights = relay.reshape(weights, (heads, m, n))
    return IRModule.from_expr(relay.nn.batch_matmul(weights, v, transpose_b=False))


def fused(mod: IRModule, least: int = 0) -> IRModule:
    typed = relay.transform.InferType()(mod)
    return relay.transform.FuseAttention(min_bytes=least, min_queries=1)(typed)


def has_attention(mod: IRModule) -> bool:
    return any(is_call_to(e, "nn.attention") for e in walk((mod["main"],)))


def compiled(mod: IRModule, inputs: dict[str, np.ndarray]) -> np.ndarray:
    with PassContext(opt_level=3, disabled_pass=["FuseAttention"], config={"relay.codegen.verify": True}):
        return relay.build(mod, target="llvm").run(**inputs)


def interpreted(mod: IRModule, inputs: dict[str, np.ndarray]) -> np.ndarray:
    return relay.create_executor("debug", mod).evaluate()(*(inputs[p.name_hint] for p in mod["main"].params)).numpy()


def arrays(shapes, dtype="float32") -> dict[str, np.ndarray]:
    return {n: RNG.standard_normal(s).astype(dtype) for n, s in zip(("q", "k", "v", "mask"), shapes)}


def by_torch(inputs: dict[str, np.ndarray], factor: float) -> np.ndarray:
    torch = pytest.importorskip("torch")
    q, k, v = (torch.tensor(inputs[n].astype("float64"))[None] for n in "qkv")
    mask = torch.tensor(inputs["mask"].astype("float64")) if "mask" in inputs else None
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=factor)[0].numpy()


LENGTHS = [
    (3, 1, 1, 4, 4),  # one query, one key
    (2, 64, 256, 16, 16),  # one block of each
    (2, 65, 257, 3, 5),  # one more
    (1, 130, 600, 20, 33),
    (4, 63, 255, 8, 70),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("masks", ["", "key", "query", "both"])
@pytest.mark.parametrize("heads, m, n, d, e", LENGTHS)
def test_compiled_attention_is_that_of_torch(heads, m, n, d, e, masks, dtype) -> None:
    shapes = [(heads, m, d), (heads, n, d), (heads, n, e)]
    if masks:
        shapes.append((1, 1, m if masks != "key" else 1, n if masks != "query" else 1))
    mod, inputs = fused(decomposed(shapes, dtype)), arrays(shapes, dtype)
    assert has_attention(mod)
    tight = 3e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(compiled(mod, inputs), by_torch(inputs, 0.25), rtol=tight, atol=tight)


def awkward() -> np.ndarray:
    """Rows without a key, whose first keys or first block are not seen, with an infinite score and with no number."""
    mask = np.where(RNG.random((1, 1, 70, 300)) < 0.5, -INF, 0).astype("float32")
    mask[..., 3, :], mask[..., 4, :299], mask[..., 5, :256], mask[..., 6, 256:] = -INF, -INF, -INF, -INF
    mask[..., 7, 9], mask[..., 8, 290] = INF, np.nan
    mask[..., 4, 299] = mask[..., 5, 270] = mask[..., 6, 8] = 0
    return mask


@pytest.mark.parametrize("empty", [False, True])
def test_masks_of_infinities_give_what_the_program_gave(empty) -> None:
    shapes = [(2, 70, 8), (2, 300, 8), (2, 300, 8), (1, 1, 70, 300)]
    mod, inputs = decomposed(shapes, empty=empty), arrays(shapes) | {"mask": awkward()}
    want = interpreted(mod, inputs)
    assert np.isnan(want[0, 3]).all() != empty and np.isfinite(want[:, [4, 5, 6]]).all()
    assert np.isnan(want[0, [7, 8]]).all()
    for got in (compiled(fused(mod), inputs), compiled(mod, inputs), interpreted(fused(mod), inputs)):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("awkward", [None, math.nan, INF, -INF])
@pytest.mark.parametrize("place", ["q", "k", "v"])
def test_keys_that_are_hidden_from_all_queries(place, awkward) -> None:
    """Causal: what no query sees is left out, but a NaN or an infinity there shows as it does in the program."""
    shapes = [(2, 300, 24), (2, 300, 24), (2, 300, 24), (1, 1, 300, 300)]
    mod, inputs = decomposed(shapes), arrays(shapes)
    inputs["mask"] = np.where(np.tri(300, dtype=bool), 0, -INF).astype("float32")[None, None]
    if awkward is not None:
        inputs[place][0, 290, 5] = awkward
    with np.errstate(invalid="ignore"):
        want = interpreted(mod, inputs)
    assert np.isfinite(want[1]).all()
    assert np.isfinite(want[0, :128]).all() == (awkward is None or place == "q")
    for got in (compiled(fused(mod), inputs), interpreted(fused(mod), inputs)):
        np.testing.assert_allclose(got, want, rtol=5e-5, atol=5e-6)


def test_a_window_of_keys_with_nothing_else_to_see() -> None:
    """Queries that see a few keys each, and some that see none, in blocks that nobody sees."""
    shapes = [(1, 130, 8), (1, 700, 8), (1, 700, 8), (1, 1, 130, 700)]
    mod, inputs = decomposed(shapes, empty=True), arrays(shapes)
    apart = np.abs(np.arange(130)[:, None] * 5 - np.arange(700))
    inputs["mask"] = np.where((apart < 9) & (np.arange(130)[:, None] != 77), 0, -INF).astype("float32")[None, None]
    want = interpreted(mod, inputs)
    assert np.isfinite(want).all() and not want[0, 77].any()
    np.testing.assert_allclose(compiled(fused(mod), inputs), want, rtol=5e-5, atol=5e-6)


def test_zeros_that_are_too_large_to_be_folded() -> None:
    """Stable Diffusion's first layer: 8 heads of 4096 x 4096 scores, for which PyTorch exports as many zeros."""
    for fill, expected in ((0.0, True), (1.0, False)):
        q, k, v = (relay.var(name, shape=(8, 4096, 40)) for name in "qkv")
        scores = relay.nn.batch_matmul(q, k)
        seen = relay.any(relay.logical_not(relay.equal(scores, relay.const(-INF, "float32"))), axis=-1, keepdims=True)
        zeros = relay.full(relay.const(fill, "float32"), (8, 4096, 4096), "float32")
        weights = relay.where(relay.logical_not(seen), zeros, relay.nn.softmax(scores))
        mod = IRModule.from_expr(relay.nn.batch_matmul(weights, v, transpose_b=False))
        assert has_attention(fused(mod)) == expected


def test_it_is_as_exact_as_two_passes_over_all_scores() -> None:
    shapes = [(2, 256, 64), (2, 1024, 64), (2, 1024, 64)]
    inputs, mod = arrays(shapes), decomposed(shapes)
    want = by_torch(inputs, 0.25)
    ours, two_passes = (np.abs(compiled(m, inputs) - want).max() for m in (fused(mod), mod))
    assert ours <= 2 * two_passes


def test_scores_far_apart_do_not_overflow() -> None:
    """The largest score grows from block to block; what was summed before fades to nothing."""
    q, k = np.ones((1, 2, 1), "float32"), np.linspace(-3e4, 3e4, 600, dtype="float32").reshape(1, 600, 1)
    inputs = {"q": q, "k": k, "v": RNG.standard_normal((1, 600, 3)).astype("float32")}
    for sign in (1, -1):
        inputs["k"] = k * sign
        mod = fused(decomposed([x.shape for x in inputs.values()]))
        np.testing.assert_allclose(compiled(mod, inputs), by_torch(inputs, 0.25), rtol=1e-6)


def test_the_loop_program_gives_what_machine_code_gives() -> None:
    shapes = [(1, 66, 3), (1, 259, 3), (1, 259, 2), (1, 66, 259)]
    inputs = arrays(shapes)
    record = OPERATORS["nn.attention"].definition(scale=0.5)
    (evaluated,) = perform([OutSpec((1, 66, 2), "float32")], record.procedure, list(inputs.values()))
    call = relay.nn.attention(*(relay.var(n, shape=x.shape) for n, x in inputs.items()), scale=0.5)
    np.testing.assert_allclose(compiled(IRModule.from_expr(call), inputs), evaluated, rtol=1e-6, atol=1e-6)


# ---- what is found


def only(expr: Expr) -> bool:
    mod = fused(IRModule.from_expr(expr))
    return has_attention(mod)


def parts(dtype="float32"):
    q, k, v = (relay.var(n, shape=(2, 5, 4), dtype=dtype) for n in "qkv")
    return q, k, v, relay.nn.batch_matmul(q, k)


def mixed(weights: Expr, v: Expr) -> Expr:
    return relay.nn.batch_matmul(weights, v, transpose_b=False)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_numbers_stay_as_they_are(dtype) -> None:
    *_, v, scores = parts(dtype)
    assert not only(mixed(relay.nn.softmax(scores), v))


def test_only_scores_that_nobody_else_reads() -> None:
    *_, v, scores = parts()
    weights = relay.nn.softmax(scores)
    assert only(mixed(weights, v))
    assert not only(relay.Tuple([mixed(weights, v), weights]))
    assert not only(relay.Tuple([mixed(weights, v), relay.sum(scores)]))


def test_only_what_attention_means() -> None:
    *_, v, scores = parts()
    two, mask = relay.const(2.0), relay.var("mask", shape=(5, 5))
    assert only(mixed(relay.nn.softmax(scores * two + mask), v))
    assert only(mixed(relay.nn.softmax(mask + scores / two), v))
    assert not only(mixed(relay.nn.softmax((scores + mask) * two), v))
    assert not only(mixed(relay.nn.softmax(scores, axis=1), v))
    assert not only(mixed(relay.nn.softmax(relay.tanh(scores)), v))
    assert not only(relay.nn.batch_matmul(relay.nn.softmax(scores), v, transpose_a=True, transpose_b=False))


def test_an_open_length_is_left_alone() -> None:
    n = relay.Any()
    q, k, v = (relay.var(name, shape=(2, n, 4)) for name in "qkv")
    assert not only(mixed(relay.nn.softmax(relay.nn.batch_matmul(q, k)), v))


def test_long_sequences_are_fused_at_the_third_level() -> None:
    def network(length: int) -> IRModule:
        return decomposed([(4, length, 8), (4, length, 8), (4, length, 8)])

    for length, level, found in ((512, 3, True), (512, 2, False), (128, 3, False)):
        with PassContext(opt_level=level):
            final = optimize(network(length))
        assert has_attention(final) == found


def test_the_scores_are_not_in_memory() -> None:
    shapes = [(4, 768, 16)] * 3
    scores = 4 * 768 * 768 * 4
    mod = decomposed(shapes)
    with PassContext(opt_level=3, disabled_pass=["MicroBatch"]):
        few = relay.build(mod, target="llvm")
    with PassContext(opt_level=3, disabled_pass=["FuseAttention", "MicroBatch"]):
        many = relay.build(mod, target="llvm")
    assert few.executable.plan.arena_bytes < scores / 4 < scores <= many.executable.plan.arena_bytes
