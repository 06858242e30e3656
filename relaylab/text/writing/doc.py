"""Documents: text in pieces, laid out into characters once, at the end.

A piece is a string, one of the marks `NL`, `IN` and `OUT` (new line, deeper, shallower), a list
of pieces, or a pair `(node, piece)`: the characters of the piece belong to the node. Pieces are
never copied into each other, so that printing takes time proportional to the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias


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


class _Close:
    """The end of a node's characters, whose range is the one at `index`."""

    __slots__ = ("index",)

    def __init__(self, index: int):
        self.index = index


class TextLayout:
    """Lays a document out; `ranges` then tells which characters belong to which node, outer before inner."""

    def __init__(self, doc: Doc):
        self.out: list[str] = []
        self.ranges: list[Range] = []
        self._length = self._depth = 0
        self._run(doc)
        self.text = "".join(self.out)

    def _run(self, doc: Doc) -> None:
        stack: list[Doc | _Close] = [doc]
        out = self.out
        while stack:
            piece = stack.pop()
            if isinstance(piece, str):
                out.append(piece)
                self._length += len(piece)
            elif isinstance(piece, list):
                stack.extend(reversed(piece))
            elif isinstance(piece, tuple):
                node, inside = piece
                stack.append(_Close(len(self.ranges)))
                stack.append(inside)
                self.ranges.append((self._length, self._length, node))
            elif isinstance(piece, _Close):
                start, _, node = self.ranges[piece.index]
                self.ranges[piece.index] = (start, self._length, node)
            else:
                self._mark(piece)

    def _mark(self, mark: Mark) -> None:
        if mark is NL:
            text = "\n" + "  " * min(self._depth, DEEPEST)
            self.out.append(text)
            self._length += len(text)
        else:
            self._depth += 1 if mark is IN else -1


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
