"""Figures: the numbers that the nodes and groups of a view have, each declared once.

Queries (`MACs>1e6`), overlays, legends and the explorer's menu know a figure from here. Your own is one declaration:

    viz.declare(viz.Figure("outputs", of=lambda view, part: float(len(view.outgoing.get(part.id, ())))))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayTypeError, shown
from relaylab.support.table import Table
from relaylab.viz.graph.view import Group, Node, View

Part = Node | Group


@dataclass(frozen=True)
class Figure:
    """A number that parts of a view have.

    `of` gives that of a part, None for a part that has none; without it a figure is what the `cost` of parts says
    under its name. A `ratio` has no sum and no shares. A `measured` one is there only when compiled code ran. `offered`
    ones are in the explorer's menu. `also` are other names for it in queries.
    """

    name: str
    unit: str = ""
    of: Callable[[View, Part], float | None] | None = None
    ratio: bool = False
    measured: bool = False
    offered: bool = True
    also: tuple[str, ...] = ()

    @property
    def unit_beside(self) -> str:
        """The unit, where it stands beside the name; empty where the name says it."""
        return "" if self.name.startswith(self.unit) else self.unit

    def value(self, view: View, part: Part) -> float | None:
        """The figure of a part of a view; None where it has none.

        RelayError (`viz.figure`) where `of` raises, or gives what is no number.
        """
        return _costs(part).get(_key(self.name)) if self.of is None else self._computed(self.of, view, part)

    def _computed(self, of: Callable[[View, Part], float | None], view: View, part: Part) -> float | None:
        try:
            value: object = of(view, part)
        except Exception as error:  # of somebody's own function
            message = f"the figure `{self.name}` raised {type(error).__name__} at `{part.id}`: {error}"
            raise RelayError(message, code="viz.figure", help="return None for parts that have no figure") from error
        if value is None or (isinstance(value, Real) and not isinstance(value, bool)):
            return None if value is None else float(value)
        message = f"the figure `{self.name}` is {shown(value)} at `{part.id}`"
        raise RelayTypeError(message, code="viz.figure", help="return a number, or None for parts that have none")


FIGURES: Table[Figure] = Table("figure")
"""All declared figures, by their names."""


@checked
def declare(figure: Figure) -> Figure:
    """Add a figure; it replaces one of the same name, so that a cell can be run again."""
    if figure.of is not None and not callable(figure.of):
        message = f"`of` of the figure `{figure.name}` is {shown(figure.of)}"
        raise RelayTypeError(message, code="viz.figure", help="give a function of a view and a part of it")
    return FIGURES.insert(figure.name, figure, replace=True)


def known(name: str) -> Figure:
    """The figure of a name, as queries may write it; of one that is not declared what `cost` says under that name."""
    key = _key(name)
    return next((f for f in FIGURES.values() if key in map(_key, (f.name, *f.also))), Figure(name))


def names_in(view: View) -> list[str]:
    """The figures that queries over a view may name: the declared ones, and what `cost` of its parts says besides."""
    declared = [name for f in FIGURES.values() for name in (f.name, *f.also)]
    return [*dict.fromkeys([*declared, *(name for part in (*view.nodes, *view.groups) for name, _ in part.cost)])]


def is_named(view: View, name: str) -> bool:
    """Whether a figure of that name is declared, or a part of the view has it."""
    return _key(name) in map(_key, names_in(view))


def figures_of(view: View, part: Part) -> dict[str, float]:
    """All figures that a part has, under every name by which queries know them."""
    found = _costs(part)
    for figure in FIGURES.values():
        value = figure.value(view, part)
        if value is not None:
            found.update((_key(name), value) for name in (figure.name, *figure.also))
    return found


def abbreviated(value: float) -> str:
    """A number as people read it: three digits and k, M, G, T or P."""
    for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * size:  # it would be rounded to 1000 of the next unit
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def macs(part: Part) -> float:
    """The multiply-adds of a part."""
    return _costs(part).get("macs", 0.0)


def moved(part: Part) -> float:
    """The bytes that a part reads and writes."""
    figures = _costs(part)
    return figures.get("bytes_read", 0.0) + figures.get("bytes_written", 0.0)


def _costs(part: Part) -> dict[str, float]:
    return {_key(name): value for name, value in part.cost}


def _key(name: str) -> str:
    """A name as queries compare it: `bytes read` is written `bytes_read`."""
    return name.casefold().replace(" ", "_")


def _intensity(view: View, part: Part) -> float | None:
    return macs(part) / moved(part) if moved(part) else None


declare(Figure("MACs", "MAC", also=("cost",)))
declare(Figure("bytes", "B", lambda view, part: moved(part) or None))
declare(Figure("bytes read", "B", offered=False))
declare(Figure("bytes written", "B", offered=False))
declare(Figure("intensity", "MACs/B", _intensity, ratio=True))
declare(Figure("time", "µs", measured=True))
declare(Figure("inputs", of=lambda view, part: float(len(view.incoming.get(part.id, ()))), offered=False))
declare(Figure("users", of=lambda view, part: float(len(view.outgoing.get(part.id, ()))), offered=False))
