"""Stable ids: the same node has the same id in every picture, and ids follow nodes through passes."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Protocol

from relaylab.ir import Expr
from relaylab.ir.trail import Trail
from relaylab.viz.graph.align import complete
from relaylab.viz.graph.view import View


class Origins(Protocol):
    """What knows what new nodes were made from, and what stands in the place of old ones: a `Stage`, a `History`."""

    def parents(self, node: Expr, /) -> Iterable[Expr]:
        """The nodes that a new one was made from."""
        ...

    def became(self, node: Expr, /) -> Expr | None:
        """What stands in the place of an old node."""
        ...


Parents = Callable[[Expr], Iterable[Expr]]


class Identities:
    """The ids given so far. One object for a sequence of stages keeps ids from stage to stage.

    A first picture names nodes after their function, operator and ordinal (`main/nn.conv2d.3`), so two
    renderings of one program agree. In a later stage a node that is the same object keeps its id, a node
    that stands in the place of another, or is derived from one that is gone, takes over its id, the rest are new.
    """

    def __init__(self) -> None:
        self._ids: dict[Hashable, str] = {}
        self._used: set[str] = set()
        self._stems: dict[str, str] = {}
        self._sources: list[Parents] = []
        self._made: dict[Expr, tuple[int, tuple[Hashable, ...]]] = {}
        self._last: dict[Hashable, str] = {}
        self._became: Callable[[Expr], Expr | None] = lambda node: None
        self._view: View | None = None

    def follow(self, trail: Trail | Origins) -> None:
        """Learn what new nodes were made from: a `Trail`, or a `Stage` or `History` (anything with `parents(node)`)."""
        known = trail.parents
        self._sources.append((lambda node: known.get(node, ())) if isinstance(known, Mapping) else known)
        became = trail.became
        self._became = became.get if isinstance(became, Mapping) else became

    def name(self, keys: Mapping[Hashable, str]) -> dict[Hashable, str]:
        """An id for every key of one picture; the values are the stems of new names."""
        given = {key: self._ids[key] for key in keys if key in self._ids}
        taken = set(given.values())
        self._take_over(keys, given, taken)
        counts: dict[str, int] = {}
        made_from = {key: names for key in keys if key not in given and (names := self.origins(key))}
        for alike in (True, False):
            for key, names in made_from.items():
                if key not in given and (name := self._inherited(names, taken, keys[key] if alike else None)):
                    given[key] = name
                    taken.add(name)
        for key, stem in keys.items():
            if key not in given:
                given[key] = self._fresh(stem, counts)
                self._stems[given[key]] = stem
        self._ids.update(given)
        self._last = given
        self._used |= taken
        return dict(given)

    def _take_over(self, keys: Mapping[Hashable, str], given: dict[Hashable, str], taken: set[str]) -> None:
        """What stands in the place of a node of the last picture gets its id; the nearer replacement first.

        The id of another node that it stands for as well goes to none: what was made beside it is something else.
        """
        for old, name in reversed(self._last.items()):
            if name not in taken and isinstance(old, Expr):
                new = self._replacement(old, keys)
                if new is not None:
                    given.setdefault(new, name)
                    taken.add(name)

    def _replacement(self, node: Expr, keys: Mapping[Hashable, str]) -> Expr | None:
        met = {node}
        new = self._became(node)
        while new is not None and new not in keys and new not in met:
            met.add(new)
            new = self._became(new)
        return new if new in keys else None

    def settle(self, view: View, ids: dict[Hashable, str]) -> View:
        """The picture named by `ids`, with the earlier ids for what no trail explains: see `align.complete`.

        A function built by hand, a new parameter in the place of an old one, a program read again from its text.
        `ids` is brought up to date.
        """
        renamed = complete(self._view, view) if self._view is not None else {}
        for table in (ids, self._last, self._ids) if renamed else ():
            table.update((key, renamed[name]) for key, name in table.items() if name in renamed)
        self._used.update(renamed.values())
        self._view = view.renamed(renamed)
        return self._view

    def expressions(self) -> dict[str, Expr]:
        """The program node behind each id of the last picture."""
        ends = ((key[-1] if isinstance(key, tuple) else key, name) for key, name in self._last.items())
        return {name: key for key, name in ends if isinstance(key, Expr)}

    def origins(self, key: Hashable) -> tuple[str, ...]:
        """The ids of the nodes that a node was made from, nearest known first."""
        if not self._makers(key):
            return ()
        return tuple(dict.fromkeys(self._ids[p] for p in self._ancestors(key) if p in self._ids))

    def _ancestors(self, key: Hashable) -> Iterable[Hashable]:
        """The known makers of a key, of a part of a node those parts of its makers; nearest first."""
        stack = [key]
        seen = {key}
        while stack:
            at = stack.pop()
            if at is not key:
                yield at
                if at in self._ids:
                    continue
            makers = [m for m in self._makers(at) if m not in seen]
            seen.update(makers)
            stack.extend(reversed(makers))

    def _makers(self, key: Hashable) -> tuple[Hashable, ...]:
        if isinstance(key, Expr):
            return self._makers_of(key)
        if isinstance(key, tuple):
            first, second = key
            if isinstance(first, (Expr, tuple)):
                return tuple((p, second) for p in self._makers(first))
            return (*((first, p) for p in self._makers(second)), *self._makers(second))
        return ()

    def _makers_of(self, node: Expr) -> tuple[Hashable, ...]:
        """What a node was made from, by the last trail that says so; no trail is asked twice."""
        asked, found = self._made.get(node, (0, ()))
        if asked < len(self._sources):
            told = (tuple(source(node)) for source in reversed(self._sources[asked:]))
            found = next((makers for makers in told if makers and makers != (node,)), found)
            self._made[node] = len(self._sources), found
        return found

    def _inherited(self, names: Iterable[str], taken: set[str], stem: str | None) -> str | None:
        """The first of the ids that is free, one of the same kind first."""
        free = (name for name in names if name not in taken)
        return next((name for name in free if stem is None or self._stems[name] == stem), None)

    def _fresh(self, stem: str, counts: dict[str, int]) -> str:
        name = stem
        while name in self._used or not name:
            counts[stem] = counts.get(stem, 1) + 1
            name = f"{stem}.{counts[stem]}"
        self._used.add(name)
        return name
