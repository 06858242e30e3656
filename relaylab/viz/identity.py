"""Stable ids: the same node has the same id in every picture, and ids follow nodes through passes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from relaylab.ir import Expr
from relaylab.ir.trail import Trail


class Identities:
    """The ids given so far. One object for a sequence of stages keeps ids from stage to stage.

    A first picture names nodes after their function, operator and ordinal (`main/nn.conv2d.3`), so two
    renderings of one program agree. In a later stage a node that is the same object keeps its id, a node
    that the trail derives from another takes over the id of that one if it is gone, the rest are new.
    """

    def __init__(self) -> None:
        self._ids: dict[Hashable, str] = {}
        self._used: set[str] = set()
        self._parents: dict[Expr, tuple[Expr, ...]] = {}

    def follow(self, trail: Trail) -> None:
        """Learn from the trail of a pass (before the stage after it is drawn)."""
        self._parents.update(trail.parents)

    def name(self, keys: Mapping[Hashable, str]) -> dict[Hashable, str]:
        """An id for every key of one picture; the values are the stems of new names."""
        given = {key: self._ids[key] for key in keys if key in self._ids}
        taken = set(given.values())
        counts: dict[str, int] = {}
        for key, stem in keys.items():
            if key not in given:
                given[key] = self._inherited(key, taken) or self._fresh(stem, counts)
                taken.add(given[key])
        self._ids.update(given)
        self._used |= taken
        return given

    def origins(self, key: Hashable) -> tuple[str, ...]:
        """The ids of the nodes that a node was made from, nearest known first."""
        return tuple(dict.fromkeys(self._ids[p] for p in self.ancestors(key) if p in self._ids))

    def ancestors(self, key: Hashable) -> Iterable[Expr]:
        """The known makers of a node; behind a maker that has an id nothing more is looked for."""
        stack = list(self._parents.get(key, ()))[::-1]  # type: ignore[call-overload]
        seen: set[Expr] = set()
        while stack:
            node = stack.pop()
            if node in seen:
                continue
            seen.add(node)
            yield node
            if node not in self._ids:
                stack.extend(reversed(self._parents.get(node, ())))

    def _inherited(self, key: Hashable, taken: set[str]) -> str | None:
        return next((name for name in self.origins(key) if name not in taken), None)

    def _fresh(self, stem: str, counts: dict[str, int]) -> str:
        name = stem
        while name in self._used or not name:
            counts[stem] = counts.get(stem, 1) + 1
            name = f"{stem}.{counts[stem]}"
        self._used.add(name)
        return name
