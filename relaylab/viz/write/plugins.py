"""Formats of other packages: an entry point of the group `relaylab.plotters`, named after the suffix that it writes.

[project.entry-points."relaylab.plotters"]
mermaid = "my_package:plot"        # plot(views: list[viz.View], title: str) -> str | bytes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from relaylab.support.errors import RelayError, RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz.graph.view import View

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "relaylab.plotters"
Plotter = Callable[[Sequence[View], str], str | bytes]


def entries() -> Sequence[EntryPoint]:
    """The entry points of the group."""
    from importlib.metadata import entry_points  # slow to import and rarely needed

    return tuple(entry_points(group=GROUP))


def formats() -> tuple[str, ...]:
    """The suffixes that installed packages write."""
    return tuple(sorted({entry.name for entry in entries()}))


def plotter(form: str) -> Plotter:
    """The plotter of a suffix; raises `RelayError` where no package has one, or it cannot be loaded."""
    entry = next((e for e in entries() if e.name == form), None)
    if entry is None:
        raise RelayValueError(f"no package writes .{form} files", code="viz.format", help=did_you_mean(form, formats()))
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise RelayError(
            f"the plotter of .{form} files cannot be loaded: {error}", code="viz.plotter", help=f"it is {entry.value}"
        ) from None
