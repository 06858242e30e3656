"""Tensors of texts, of which Relay has none: a model may name its classes by them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from relaylab.support.errors import RelayValueError

if TYPE_CHECKING:
    from onnx import TensorProto

STRING = 8
"""TensorProto.STRING."""


@dataclass(frozen=True)
class Texts:
    """A tensor of texts that the model carries."""

    values: tuple[str, ...]
    shape: tuple[int, ...]


def texts_of(tensor: TensorProto, what: str) -> Texts:
    """The texts of a TensorProto; RelayValueError if they are not as many as it says."""
    values, shape = tuple(t.decode("utf-8", "replace") for t in tensor.string_data), tuple(tensor.dims)
    if math.prod(shape) != len(values):
        raise RelayValueError(f"{what} has {len(values)} values for the shape {list(shape)}", code="import.tensor")
    return Texts(values, shape)
