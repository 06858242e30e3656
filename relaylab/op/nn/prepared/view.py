"""A tensor of the loop level whose elements are made of those of another one, as an operator reads it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relaylab.op.helpers import Element, Position


@dataclass(frozen=True, eq=False)
class TensorView:
    """It can be read like a tensor: `element` makes the value at an index."""

    shape: tuple[int, ...]
    dtype: str
    element: Callable[..., Element]

    def __call__(self, *indices: Position) -> Element:
        return self.element(*indices)
