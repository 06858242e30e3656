"""How programs print and show themselves: the text and the viz rooms say how (ir knows neither)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from relaylab.support.checked import checked
from relaylab.support.hook import Hook

if TYPE_CHECKING:
    from relaylab.ir.expr import Expr


@Hook
def node_text(
    node: object, header: bool = False, meta: bool = False, annotate: Callable[[Expr], str] | None = None
) -> str:
    """The text of a node, or a plain name while the text room is not loaded."""
    return object.__repr__(node)


@Hook
def rich_display(program: object) -> dict[str, str] | None:
    """What a notebook shows of a program that is the last value of a cell: its picture, if the viz room is loaded."""
    return None


class Printed:
    """What has a text of its own: expressions and modules."""

    __slots__ = ()

    @checked
    def astext(self, show_meta_data: bool = True, annotate: Callable[[Expr], str] | None = None) -> str:
        """The text format, with its version header and, if asked, the section of meta data.

        `annotate(expr)` gives the comment behind each expression instead of its type.
        """
        return node_text(self, header=True, meta=show_meta_data, annotate=annotate)


class Shown(Printed):
    """What a notebook shows as a picture: functions and modules."""

    __slots__ = ()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str] | None:
        return rich_display(self)
