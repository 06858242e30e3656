"""How large constants are computed from others: a build does so when it packs them, frees them once they are packed,
and computes them again for whoever asks for the parameters.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from relaylab.ir.expr import Call, Constant
from relaylab.ir.op import op_name
from relaylab.ir.types import TensorType, Type
from relaylab.op.base import Operator, OpPattern
from relaylab.op.rounding import evaluated
from relaylab.support.order import post_order

LEAST = 64 << 10  # bytes of a constant that is worth computing twice
MOVES = ("layout_transform", "transpose", "reshape", "expand_dims", "squeeze")


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """An operator on arrays; calling it gives the same bits each time."""

    record: Operator
    args: tuple[np.ndarray | Recipe, ...]
    type: Type | None
    dtype: np.dtype

    def __call__(self) -> np.ndarray:
        order = self.in_order()
        readers = Counter(a for recipe in order for a in recipe.args if isinstance(a, Recipe))
        values: dict[Recipe, np.ndarray] = {}
        for recipe in order:
            args = [values[a] if isinstance(a, Recipe) else a for a in recipe.args]
            with np.errstate(all="ignore"):
                found = np.asarray(evaluated(recipe.record, args, recipe.type))
            values[recipe] = found.astype(recipe.dtype, copy=False)
            del args, found
            readers.subtract(a for a in recipe.args if isinstance(a, Recipe))
            for a in recipe.args:
                if isinstance(a, Recipe) and not readers[a]:
                    values.pop(a, None)  # the plain weights may be large
        return values[self]

    def in_order(self) -> list[Recipe]:
        """The recipes that it is made of, each once and before those that read it; itself last."""
        return post_order((self,), lambda recipe: [a for a in recipe.args if isinstance(a, Recipe)])


class Recipes(Mapping[Constant, Recipe]):
    """How constants are computed, as it is noted during a build; a constant that waits holds its recipe itself."""

    def __init__(self) -> None:
        self._noted: WeakKeyDictionary[Constant, Recipe] = WeakKeyDictionary()

    def __getitem__(self, made: Constant) -> Recipe:
        return made.later if isinstance(made.later, Recipe) else self._noted[made]

    def __iter__(self) -> Iterator[Constant]:
        return iter(self._noted)

    def __len__(self) -> int:
        return len(self._noted)

    def note(self, made: Constant, recipe: Recipe) -> None:
        """Keep how a constant is computed, as long as there is the constant."""
        self._noted[made] = recipe

    def recipe(self, record: Operator, args: Sequence[Constant], out: Type | None, dtype: np.dtype) -> Recipe:
        """`record` of constants, by their own recipes where they have some."""
        return Recipe(record, tuple([self.get(a) or a.data.numpy() for a in args]), out, dtype)


_noted: ContextVar[Recipes | None] = ContextVar("relaylab_recipes", default=None)


@contextmanager
def noting() -> Iterator[Recipes]:
    """Note how constants are computed while the block runs."""
    found = Recipes()
    token = _noted.set(found)
    try:
        yield found
    finally:
        _noted.reset(token)


def computed_later(call: Call, record: Operator, out: Type | None) -> Constant | None:
    """In a build, the constant that a large product or sum of constants is, whose elements wait until it is packed:
    then threads compute them, and no other memory is filled. None of what is small, has no memory of its own, or fails.
    """
    known = _noted.get()
    if known is None or type(out) is not TensorType or out.is_dynamic or _bytes(out) < LEAST:
        return None
    args = [a for a in call.args if isinstance(a, Constant)]
    waits = record.pattern <= OpPattern.BROADCAST or (op_name(call) in MOVES and args and args[0].later is not None)
    if not waits or len(args) < len(call.args):
        return None
    return Constant.computed(out, known.recipe(record, args, out, np.dtype(out.dtype)))


def _bytes(t: TensorType) -> int:
    return math.prod(t.concrete_shape) * np.dtype(t.dtype).itemsize


def note_recipe(made: object, record: Operator, args: Sequence[object], out: Type | None) -> None:
    """Note that a constant is `record` of others, if it has memory of its own and only moves or maps elements: sums
    may round otherwise the next time.
    """
    known = _noted.get()
    if known is None or not isinstance(made, Constant) or record.pattern > OpPattern.INJECTIVE:
        return
    if made.data.nbytes < LEAST:
        return
    constants = [a for a in args if isinstance(a, Constant)]
    if len(constants) < len(args):
        return
    recipe = known.recipe(record, constants, out, made.data.dtype)
    if not any(isinstance(a, np.ndarray) and np.may_share_memory(a, made.data) for a in recipe.args):
        known.note(made, recipe)
