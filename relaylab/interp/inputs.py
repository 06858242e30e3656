"""Seeded inputs: values for the parameters of a function, the same for the same seed."""

from __future__ import annotations

import numpy as np

from relaylab.interp.values import RefValue, Value
from relaylab.ir.expr import Function, Var
from relaylab.ir.types import AnyDim, RefType, TensorType, TupleType, Type
from relaylab.support.errors import RelayTypeError

UNKNOWN_EXTENT = 3
"""The extent drawn for a dimension that is known only at run time."""


def random_inputs(func: Function, seed: int = 0, low: float = -1.0, high: float = 1.0) -> list[Value]:
    """A value for each parameter of a typed function.

    Floats are uniform in [low, high), signed integers in [-3, 3], unsigned ones in [0, 6], booleans
    even; unknown dimensions are 3. Raises `RelayTypeError` for parameters that are functions or data types.
    """
    rng = np.random.default_rng(seed)
    return [random_value(_type_of(p), rng, low, high) for p in func.params]


def _type_of(param: Var) -> Type:
    found = param.inferred or param.type_annotation
    if found is None:
        raise RelayTypeError(
            f"%{param.name_hint} has no type",
            code="interp.untyped-parameter",
            help="run relay.transform.InferType() first",
        )
    return found


def random_value(t: Type, rng: np.random.Generator, low: float = -1.0, high: float = 1.0) -> Value:
    """A value of type `t` drawn from `rng`."""
    match t:
        case TensorType():
            return _random_array(
                [UNKNOWN_EXTENT if isinstance(d, AnyDim) else int(d) for d in t.shape], t.dtype, rng, low, high
            )
        case TupleType():
            return tuple(random_value(f, rng, low, high) for f in t.fields)
        case RefType():
            return RefValue(random_value(t.value, rng, low, high))
        case _:
            raise RelayTypeError(
                f"no random value of type {t}", code="interp.no-random-value", help="give the value yourself"
            )


def _random_array(shape: list[int], dtype: str, rng: np.random.Generator, low: float, high: float) -> np.ndarray:
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("uint"):
        return rng.integers(0, 7, shape).astype(dtype)
    if dtype.startswith("int"):
        return rng.integers(-3, 4, shape).astype(dtype)
    return rng.uniform(low, high, shape).astype(dtype)
