"""Initial parameter values and `create_workload`, drawing as the reference does.

Choices: docs/choices.md, The house.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from relaylab.analysis import infer_module
from relaylab.ir import Function, IRModule, Var
from relaylab.ir.types import AnyDim
from relaylab.runtime.memory import aligned_like
from relaylab.runtime.ndarray import NDArray
from relaylab.support.errors import RelayValueError

PART = 1 << 14  # numbers that are drawn at once: they stay in the caches
Size = int | AnyDim
Sizes = Sequence[Size]
"""The size of a tensor along an axis, and those along several: what networks take."""


class Initializer:
    """Fills an array by the ending of the parameter's name: weight, bias, gamma, beta, mean, var."""

    def __init__(self, **kwargs: object):
        self._kwargs = kwargs

    def __call__(self, desc: str, arr: np.ndarray) -> None:
        """Fill `arr`, the parameter called `desc`, in place."""
        for ending, fill in (
            ("weight", self._init_weight),
            ("bias", self._init_bias),
            ("gamma", self._init_gamma),
            ("beta", self._init_beta),
            ("mean", self._init_mean),
            ("var", self._init_var),
        ):
            if desc.endswith(ending):
                fill(desc, arr)
                return
        self._init_default(desc, arr)

    def _init_bias(self, name: str, arr: np.ndarray) -> None:
        arr[:] = 0.0

    def _init_gamma(self, name: str, arr: np.ndarray) -> None:
        arr[:] = 1.0

    def _init_beta(self, name: str, arr: np.ndarray) -> None:
        arr[:] = 0.0

    def _init_mean(self, name: str, arr: np.ndarray) -> None:
        arr[:] = 0.0

    def _init_var(self, name: str, arr: np.ndarray) -> None:
        arr[:] = 1.0

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        raise RelayValueError(f"this initializer does not say how weights like `{name}` start", code="zoo.init")

    def _init_default(self, name: str, arr: np.ndarray) -> None:
        raise RelayValueError(
            f"Unknown initialization pattern for {name}",
            code="zoo.init",
            help='names that end with "weight", "bias", "gamma", "beta", "mean" or "var" have a default',
        )


class Xavier(Initializer):
    """Weights that keep the variance of activations (Glorot and Bengio, 2010)."""

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3):
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type, self.factor_type, self.magnitude = rnd_type, factor_type, float(magnitude)

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        scale = math.sqrt(self.magnitude / max(self._factor(name, arr.shape), 1))  # 0 of an empty array
        if self.rnd_type == "uniform":
            _draw(arr, lambda shape: np.random.uniform(-scale, scale, size=shape))
        elif self.rnd_type == "gaussian":
            _draw(arr, lambda shape: np.random.normal(0, scale, size=shape))
        else:
            raise RelayValueError(
                f"unknown distribution {self.rnd_type}", code="zoo.init", help="use uniform or gaussian"
            )

    def _factor(self, name: str, shape: tuple[int, ...]) -> float:
        if len(shape) < 2:
            raise RelayValueError(
                f"Xavier cannot be applied to {name}: it needs at least two dimensions, not {len(shape)}",
                code="zoo.init",
            )
        window = math.prod(shape[2:])
        if "depthwise" in name:
            return window
        fan_in, fan_out = shape[1] * window, shape[0] * window
        try:
            return {"avg": (fan_in + fan_out) / 2.0, "in": fan_in, "out": fan_out}[self.factor_type]
        except KeyError:
            raise RelayValueError(
                f"unknown factor type {self.factor_type}", code="zoo.init", help="use avg, in or out"
            ) from None


def _draw(arr: np.ndarray, numbers: Callable[[tuple[int, ...]], np.ndarray]) -> None:
    """Fill an array in its order, a part at a time: doubles for all of it would be twice as large as itself."""
    if not arr.flags.c_contiguous:
        arr[:] = numbers(arr.shape)
        return
    flat = arr.reshape(-1)
    for start in range(0, flat.size, PART):
        part = flat[start : start + PART]
        part[:] = numbers(part.shape)


class Constant(Initializer):
    """Every weight one over the number of elements."""

    def _init_weight(self, name: str, arr: np.ndarray) -> None:
        arr[:] = 1.0 / arr.size


def create_workload(
    net: Function,
    initializer: Initializer | None = None,
    seed: int = 0,
    is_input: Callable[[Var], bool] = lambda param: False,
) -> tuple[IRModule, dict[str, NDArray]]:
    """The typed module of a network and parameters for everything but `data` and further inputs, drawn from `seed`
    (Xavier by default).
    """
    mod = infer_module(IRModule.from_expr(net))
    initializer = initializer if initializer is not None else Xavier()
    np.random.seed(seed)
    params = {}
    for param in mod["main"].params:
        if param.name_hint == "data" or is_input(param):
            continue
        value = aligned_like(param.checked_type.concrete_shape, np.dtype(param.checked_type.dtype))
        initializer(param.name_hint, value)
        params[param.name_hint] = NDArray(value, alone=True)
    return mod, params
