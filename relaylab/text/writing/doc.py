"""Documents: text in pieces, laid out into characters once, at the end.

A piece is a string, one of the marks `NL`, `IN` and `OUT` (new line, deeper, shallower), a list
of pieces, or a pair `(node, piece)`: the characters of the piece belong to the node. Pieces are
never copied into each other, so that printing takes time proportional to the text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeAlias

from relaylab.ir.expr import Constant


class Mark(Enum):
    """What a document holds beside strings."""

    NL = "new line"
    IN = "deeper"
    OUT = "shallower"


NL, IN, OUT = Mark.NL, Mark.IN, Mark.OUT
Doc: TypeAlias = "str | Mark | list[Doc] | tuple[object, Doc]"
"""A piece."""
Range = tuple[int, int, object]
"""The characters from `start` up to, not including, `end` belong to a node."""

DEEPEST = 60
"""Indentation stops growing here, or else the text of deeply nested programs would be of quadratic size."""


class TextLayout:
    """Lays a document out; `ranges` then tells which characters belong to which node, outer before inner.

    `name` says what constants are called that stand in the section of meta data.
    """

    def __init__(self, doc: Doc, name: Callable[[Constant], str] | None = None):
        self.ranges: list[Range] = []
        self._name = name
        self.text = "".join(self._run(doc))

    def _run(self, doc: Doc) -> list[str]:
        """The strings in order. A number on the stack ends the characters of the node whose range it is."""
        stack: list[Doc | int] = [doc]
        out: list[str] = []
        ranges, pop, name, length, depth = self.ranges, stack.pop, self._name, 0, 0
        while stack:
            piece = pop()
            if isinstance(piece, str):
                out.append(piece)
                length += len(piece)
            elif isinstance(piece, list):
                stack += piece[::-1]
            elif isinstance(piece, tuple):
                node, inside = piece
                if isinstance(inside, str):
                    if name is not None and isinstance(node, Constant) and inside.startswith("meta["):
                        inside = name(node)
                    out.append(inside)
                    ranges.append((length, length := length + len(inside), node))
                else:
                    stack += (len(ranges), inside)
                    ranges.append((length, length, node))
            elif isinstance(piece, int):
                start, _, node = ranges[piece]
                ranges[piece] = (start, length, node)
            elif piece is NL:
                out.append("\n" + "  " * min(depth, DEEPEST))
                length += len(out[-1])
            else:
                depth += 1 if piece is IN else -1
        return out


def joined(pieces: Sequence[Doc], separator: Doc = ", ") -> list[Doc]:
    """The pieces with the separator between them."""
    out: list[Doc] = []
    for piece in pieces:
        out.append(piece)
        out.append(separator)
    return out[:-1]


def braces(inside: Doc) -> list[Doc]:
    """`{`, the inside on lines of its own, `}`."""
    return ["{", IN, NL, inside, OUT, NL, "}"]
