"""Gradients held against two-sided numeric differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylab.codegen.executors import create_executor
from relaylab.ir import Function, IRModule, TensorType
from relaylab.support.errors import RelayTypeError
from relaylab.transform import gradient
from relaylab.zoo.helpers import run_infer_type

__all__ = ["check_grad"]


def check_grad(
    func: Function,
    inputs: Sequence[np.ndarray] | None = None,
    test_inputs: Sequence[np.ndarray] | None = None,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    scale: float | None = None,
    mean: float = 0,
    mode: str = "higher_order",
    target_devices: Sequence[tuple[Any, Any]] | None = None,
    executor_kind: str = "debug",
) -> None:
    """Compare the gradient of a function's summed outputs with differences; AssertionError with the numbers otherwise.

    Inputs that are not given are drawn around `mean` with deviation `scale` (10 `eps`); `test_inputs` are those of
    `inputs`, the same objects, that are differentiated (all of them). Float64 programs have the digits for small `eps`.
    """
    forward = run_infer_type(func)
    backward = run_infer_type(gradient(forward, mode=mode))
    inputs = _drawn(forward, 10 * eps if scale is None else scale, mean) if inputs is None else list(inputs)
    for target, device in target_devices or [("llvm", None)]:
        run, slopes = (
            create_executor(executor_kind, IRModule.from_expr(f), device=device, target=target).evaluate()
            for f in (forward, backward)
        )
        gradients = [g.numpy() for g in slopes(*inputs)[1]]
        for k, (given, found) in enumerate(zip(inputs, gradients, strict=True)):
            if test_inputs is None or any(given is t for t in test_inputs):
                np.testing.assert_allclose(found, _differences(run, inputs, k, eps), atol=atol, rtol=rtol)


def _drawn(func: Function, scale: float, mean: float) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    types = [t for p in func.params if isinstance(t := p.checked_type, TensorType) and "float" in t.dtype]
    if len(types) < len(func.params):
        raise RelayTypeError("inputs are drawn for tensors of floats only", code="zoo.gradient", help="give inputs=[…]")
    return [rng.normal(mean, scale, t.concrete_shape).astype(t.dtype) for t in types]


def _differences(run: Callable[..., Any], inputs: list[np.ndarray], varied: int, eps: float) -> np.ndarray:
    """The slope of the sum of what `run` gives along each element of one input."""
    slope = np.zeros(inputs[varied].shape)
    for at in np.ndindex(*slope.shape):
        sums = []
        for step in (eps, -eps):
            moved = [x.copy() if k == varied else x for k, x in enumerate(inputs)]
            moved[varied][at] += step
            sums.append(run(*moved).numpy().astype("float64"))
        slope[at] = np.sum(sums[0] - sums[1]) / (2 * eps)
    return slope
