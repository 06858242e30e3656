"""Programs in one line, run by compiled code and by the interpreter: what tests of faults compare."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylab import relay
from relaylab.interp import Interpreter
from relaylab.ir import IRModule
from relaylab.runtime import cpu, graph_executor
from relaylab.transform import PassContext

TARGETS = ("llvm", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64")


def tensor(values: np.ndarray) -> str:
    """The Relay type of an array, as text."""
    return f"Tensor[({', '.join(map(str, values.shape))}), {values.dtype}]"


def program(body: str, *values: np.ndarray) -> IRModule:
    """The program with this body over inputs %a, %b, ... of the types of `values`."""
    params = ", ".join(f"%{letter}: {tensor(v)}" for letter, v in zip("abcdef", values))
    return relay.transform.InferType()(relay.fromtext(f'#[version = "0.0.5"]\ndef @main({params}) {{ {body} }}'))


def leaves(value: Any) -> list[np.ndarray]:
    """The arrays in nested tuples."""
    return [x for v in value for x in leaves(v)] if isinstance(value, (tuple, list)) else [np.asarray(value)]


def interpreted(mod: IRModule, *values: np.ndarray) -> list[np.ndarray]:
    """What the interpreter gives."""
    with np.errstate(all="ignore"):
        return leaves(Interpreter(mod).evaluate()(*values))


def compiled(
    mod: IRModule, *values: np.ndarray, target: str = "llvm", level: int = 3, built_in: str = ""
) -> list[np.ndarray]:
    """What compiled code gives, at its second run; the inputs of the letters in `built_in` are parameters."""
    given = dict(zip("abcdef", values))
    with PassContext(opt_level=level):
        lib = relay.build(mod, target, params={letter: given.pop(letter) for letter in built_in})
    module = graph_executor.GraphModule(lib["default"](cpu(0)))
    for name, value in given.items():
        module.set_input(name, value)
    module.run()
    module.run()
    return [module.get_output(k).numpy() for k in range(module.get_num_outputs())]


def same(body: str, *values: np.ndarray, target: str = "llvm", level: int = 3) -> None:
    """Compiled code gives exactly what the interpreter gives, NaN for NaN."""
    mod = program(body, *values)
    for got, want in zip(compiled(mod, *values, target=target, level=level), interpreted(mod, *values), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_array_equal(got, want)


def poisoned(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> np.ndarray:
    """Numbers among which NaN, infinities, zeros of both signs and very large ones are strewn."""
    values = np.random.default_rng(seed).uniform(-2, 2, shape)
    flat = values.reshape(-1)
    for k, special in enumerate((np.nan, np.inf, -np.inf, -0.0, 0.0, 1e30, -1e30, 88.8, -104.0, np.nan)):
        flat[(k * 7 + 3) % flat.size] = special
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def alike(
    body: str, *values: np.ndarray, target: str = "llvm", level: int = 3, tolerance: float = 1e-4, built_in: str = ""
) -> None:
    """Compiled code gives NaN and infinities exactly where the interpreter does, and the same finite numbers."""
    mod = program(body, *values)
    results = compiled(mod, *values, target=target, level=level, built_in=built_in)
    for got, want in zip(results, interpreted(mod, *values), strict=True):
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        exact = want.dtype.kind != "f"
        np.testing.assert_allclose(got, want, rtol=0 if exact else tolerance, atol=0 if exact else tolerance)
