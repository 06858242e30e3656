"""Formats of other packages: an entry point of the group `relaylab.plotters`, named after the suffix that it writes.

[project.entry-points."relaylab.plotters"]
mermaid = "my_package:plot"        # plot(views: list[viz.View], title: str) -> str | bytes

A program, or a cell, enters one by `@plots("mermaid")`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError, is_a, kind_of
from relaylab.support.formats import FORMATS
from relaylab.support.table import did_you_mean, registered
from relaylab.viz.graph.view import View

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "relaylab.plotters"
Plotter = Callable[[Sequence[View], str], str | bytes]
PLOTTERS: dict[str, Plotter] = {}
"""Those of this process, by their suffixes; they come before those of packages."""


@checked
def plots(suffix: str) -> Callable[[Plotter], Plotter]:
    """A decorator: pictures that are saved with `suffix` are what the function makes of their views and the title.

    It returns text or bytes. RelayValueError (`viz.format`) for a suffix that relaylab writes itself.
    """
    form = suffix.removeprefix(".").lower()
    if not form or form in FORMATS:
        why = f"relaylab writes .{form} files itself" if form else "a format needs a suffix"
        raise RelayValueError(why, code="viz.format", help='name another suffix, such as "mermaid"')
    return registered(PLOTTERS, [form])


def entries() -> Sequence[EntryPoint]:
    """The entry points of the group."""
    from importlib.metadata import entry_points  # slow to import and rarely needed

    return tuple(entry_points(group=GROUP))


def formats() -> tuple[str, ...]:
    """The suffixes that others write: programs and installed packages."""
    return tuple(sorted({*PLOTTERS, *(entry.name for entry in entries())}))


def plotter(form: str) -> Plotter:
    """The plotter of a suffix; raises `RelayError` where no package has one, or it cannot be loaded."""
    if form in PLOTTERS:
        return PLOTTERS[form]
    entry = next((e for e in entries() if e.name == form), None)
    if entry is None:
        raise RelayValueError(f"no package writes .{form} files", code="viz.format", help=did_you_mean(form, formats()))
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise RelayError(
            f"the plotter of .{form} files cannot be loaded: {error}", code="viz.plotter", help=f"it is {entry.value}"
        ) from None


def plotted(form: str, views: Sequence[View], title: str) -> str | bytes:
    """What the plotter of a suffix makes of views; `RelayTypeError` (`viz.plotter`) for neither text nor bytes."""
    made = plotter(form)(views, title)
    if not is_a(made, str, bytes):
        message = f"the plotter of .{form} files gave {kind_of(made)}"
        raise RelayTypeError(message, code="viz.plotter", help="return text or bytes")
    return made
