"""Every pass alone over programs of all data types, with axes of length 0, against the interpreter; their gradients."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from support.rare_programs import FLOATS, rare_inputs, rare_program
from support.sequences import EXACT, apply

from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import IRModule, TensorType, post_order
from relaylab.support.errors import RelayError
from relaylab.transform import gradient

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")]
BAR = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-9}
SEEDS = range(40, 48)


@lru_cache(maxsize=64)
def program(seed: int) -> tuple[IRModule, list[np.ndarray], np.ndarray, float]:
    """A module, its inputs, what the interpreter computes of them, and how near that is."""
    mod = rare_program(seed)
    inputs = rare_inputs(mod, seed)
    types = [n.inferred for f in mod.functions.values() for n in post_order(f)]
    bar = max((BAR.get(t.dtype, 0.0) for t in types if isinstance(t, TensorType)), default=0.0)
    return mod, inputs, run(mod, inputs), bar


def run(mod: IRModule, inputs: list[np.ndarray]) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(Interpreter(mod).evaluate()(*inputs))


@pytest.mark.parametrize("name", EXACT)
def test_every_pass_keeps_the_meaning(name: str) -> None:
    for seed in SEEDS:
        mod, inputs, want, bar = program(seed)
        try:
            got = run(apply(mod, [name]), inputs)
        except RelayError as refused:
            assert refused.code == "pass.effects", (seed, refused)
            continue
        assert got.shape == want.shape and got.dtype == want.dtype, seed
        if want.dtype == bool:
            assert np.array_equal(got, want), seed
            continue
        # a float that was rounded may have become another whole number
        near = 1.0 if want.dtype.name not in FLOATS and bar > 1e-4 else bar
        assert np.allclose(got.astype("float64"), want.astype("float64"), rtol=bar, atol=near, equal_nan=True), seed


@pytest.mark.parametrize("seed", range(60, 72))
def test_gradients_have_the_types_of_the_parameters(seed: int) -> None:
    mod, inputs, want, _ = program(seed)
    both = mod.shallow_copy()
    try:
        both["grad"] = gradient(mod["main"], both)
    except RelayError as refused:  # bits and truth values have none
        assert refused.code == "gradient.unknown" and ("bitwise" in str(refused) or "logical" in str(refused))
        return
    both = relay.transform.InferType()(both)
    with np.errstate(all="ignore"):
        value, grads = Interpreter(both).evaluate(both.get_global_var("grad"))(*inputs)
    assert np.array_equal(np.asarray(value).astype("float64"), want.astype("float64"), equal_nan=True)
    for x, grad in zip(inputs, grads, strict=True):
        assert np.asarray(grad).shape == x.shape and np.asarray(grad).dtype == x.dtype
