"""A source of randomness that remembers what it gave, so that whatever was made from it can be made smaller."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np


class Choices(random.Random):
    """A `random.Random` whose draws are whole numbers below a bound, kept in `made`.

        draw = Choices(random.Random(7))        # new draws
        draw = Choices([3, 0, 12])              # these once more; zeros when they are used up

    All of `random.Random` works: `randrange`, `choice`, `sample`, `shuffle`, `random`, `uniform`. A smaller number is a
    simpler case, so put the simple first: `draw.choice(("plain", "odd"))`.
    """

    def __init__(self, source: random.Random | Sequence[int] = ()):
        super().__init__(0)
        self.made: list[int] = []
        self.source = source if isinstance(source, random.Random) else None
        self.given = iter(()) if isinstance(source, random.Random) else iter(source)

    def _randbelow(self, n: int) -> int:
        value = self.source.randrange(n) if self.source else min(next(self.given, 0), n - 1)
        self.made.append(value)
        return value

    def random(self) -> float:
        return self._randbelow(1 << 16) / (1 << 16)

    def getrandbits(self, k: int) -> int:
        return self._randbelow(1 << k)

    def chance(self, p: float) -> bool:
        """True with probability p; False is the simple answer."""
        return self._randbelow(1000) >= 1000 - round(1000 * p)

    def arrays(self) -> np.random.Generator:
        """A numpy generator for bulk data: one choice, whatever is drawn from it."""
        return np.random.default_rng(self._randbelow(1 << 16))

    def generator(self) -> Drawn:
        """What makers that are written for a numpy generator take: single numbers are choices, arrays bulk data."""
        return Drawn(self)


class Drawn:
    """The part of `numpy.random.Generator` that the makers of random programs use."""

    def __init__(self, draw: Choices):
        self.draw = draw

    def integers(self, low: int, high: int | None = None, size: Any = None) -> Any:
        low, high = (0, low) if high is None else (low, high)
        if size is not None:
            return self.draw.arrays().integers(low, high, size)
        return self.draw.randrange(int(low), int(high))

    def random(self) -> float:
        return self.draw.random()

    def uniform(self, low: float, high: float, size: Any = None) -> Any:
        return self.draw.arrays().uniform(low, high, size)

    def choice(self, items: Any, size: Any = None, replace: bool = True) -> Any:
        if size is None:
            return self.draw.choice(range(items) if isinstance(items, int) else items)
        return self.draw.arrays().choice(items, size, replace)

    def permutation(self, n: int) -> np.ndarray:
        return np.array(self.draw.sample(range(n), n), dtype="int64")
