"""Insert-once tables of names, with "did you mean" for those that are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from relaylab.support.errors import RelayAttributeError, RelayValueError

V = TypeVar("V")


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """`did you mean `x`?` for the closest candidates, or an empty string."""
    import difflib  # takes longer than all that stands here, for errors only

    known = list(candidates)
    spelled = {candidate.lower(): candidate for candidate in reversed(known)}
    if name.lower() in spelled:
        return f"did you mean `{spelled[name.lower()]}`?"
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    close = close or [spelled[c] for c in difflib.get_close_matches(name.lower(), list(spelled), n=3, cutoff=0.6)]
    return f"did you mean {' or '.join(f'`{c}`' for c in close)}?" if close else ""


def registered(table: dict[str, V], names: Iterable[str]) -> Callable[[V], V]:
    """A decorator that puts what it is given into a table, under some names."""

    def register(value: V) -> V:
        table.update(dict.fromkeys(names, value))
        return value

    return register


class Table(Mapping[str, V], Generic[V]):
    """A mapping from names to things of one `kind`, each inserted once; `listed` says where one finds them all."""

    def __init__(self, kind: str, listed: str = ""):
        self.kind, self._room, self._listed = kind, kind.replace(" ", "-"), listed
        self._items: dict[str, V] = {}

    def insert(self, name: str, value: V, *, replace: bool = False) -> V:
        """Add `value`; a name that is taken raises `RelayValueError` unless `replace`."""
        if name in self._items and not replace:
            raise RelayValueError(f"the {self.kind} `{name}` exists already", code=f"{self._room}.duplicate")
        self._items[name] = value
        return value

    def remove(self, name: str) -> None:
        """Forget a name (for a pass or an operator that a user defines again)."""
        self._items.pop(name, None)

    def lookup(self, name: str) -> V:
        """The value, or a `RelayAttributeError` that offers the closest names."""
        try:
            return self._items[name]
        except KeyError:
            help = did_you_mean(name, self._items) or self._listed
            raise RelayAttributeError(
                f"there is no {self.kind} named `{name}`", code=f"{self._room}.unknown", help=help
            ) from None

    def __getitem__(self, name: str) -> V:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)
