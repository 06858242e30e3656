"""How large constants were computed from others: a build frees them once they are packed, and computes them again for
whoever asks for the parameters.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from relaylab.ir.expr import Constant
from relaylab.ir.types import Type
from relaylab.op.base import Operator, OpPattern
from relaylab.op.rounding import evaluated

LEAST = 64 << 10  # bytes of a constant that is worth computing twice


@dataclass(frozen=True, slots=True)
class Recipe:
    """An operator on arrays; calling it gives the same bits each time."""

    record: Operator
    args: tuple[np.ndarray | Recipe, ...]
    type: Type | None
    dtype: np.dtype

    def __call__(self) -> np.ndarray:
        values = [a() if isinstance(a, Recipe) else a for a in self.args]
        with np.errstate(all="ignore"):
            return np.asarray(evaluated(self.record, values, self.type)).astype(self.dtype, copy=False)


Recipes = MutableMapping[Constant, Recipe]
_noted: ContextVar[Recipes | None] = ContextVar("relaylab_recipes", default=None)


@contextmanager
def noting() -> Iterator[Recipes]:
    """Note how constants are computed while the block runs."""
    found: Recipes = WeakKeyDictionary()
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def note_recipe(made: object, record: Operator, args: Sequence[object], out: Type | None) -> None:
    """Note that a constant is `record` of others, if it has memory of its own and only moves or maps elements: sums
    may round otherwise the next time.
    """
    known = _noted.get()
    if known is None or not isinstance(made, Constant) or record.pattern > OpPattern.INJECTIVE:
        return
    if made.data.nbytes < LEAST or not all(isinstance(a, Constant) for a in args):
        return
    found = [known.get(a) or a.data.numpy() for a in args if isinstance(a, Constant)]
    if not any(isinstance(a, np.ndarray) and np.may_share_memory(a, made.data) for a in found):
        known[made] = Recipe(record, tuple(found), out, made.data.dtype)
