"""Source text and places in it: `SourceName`, `Span`, and the one function that draws a caret."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache

CELL = "cell In["


def readable(filename: str) -> str:
    """The name of a file of Python code as people know it: `cell In[5]` for a cell of the running notebook, else as
    it is.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", _nothing)()
    name: tuple[str, str] | None = getattr(getattr(shell, "compile", None), "format_code_name", _nothing)(filename)
    return f"{name[0].lower()} {name[1]}" if name else filename


def _nothing(*args: object) -> None:
    return None


def python_place(filename: str, line: int) -> str:
    """A line of Python code in short: `rules.py:12`, in a notebook `cell In[5], line 4`."""
    name = readable(filename)
    return f"{name}, line {line}" if name.startswith(CELL) else f"{os.path.basename(filename)}:{line}"


@dataclass(frozen=True, slots=True)
class SourceName:
    """The name of a source: a file, a notebook cell, an imported model."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a source; lines and columns count from 1, ends are inclusive of the last character.

    Line 0 stands for the source as a whole: a node of an imported model, which is named by it.
    """

    source_name: SourceName
    line: int
    end_line: int
    column: int
    end_column: int

    def same_as(self, other: object) -> bool:
        """Whether both are one object."""
        return self is other

    def merge(self, other: Span | None) -> Span:
        """The smallest span covering both; `self` if `other` is absent or of another source."""
        if other is None or other.source_name != self.source_name:
            return self
        start = min((self.line, self.column), (other.line, other.column))
        end = max((self.end_line, self.end_column), (other.end_line, other.end_column))
        return Span(self.source_name, start[0], end[0], start[1], end[1])

    def __str__(self) -> str:
        return self.under(str(self.source_name))

    def under(self, name: str) -> str:
        """The place as text, with another name of its source."""
        if not self.line:
            return name
        return f"{name}, line {self.line}" if name.startswith(CELL) else f"{name}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class MergedSpan:
    """The places of a node that was made from several: each of them, in order, without repeats."""

    spans: tuple[Span, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.spans))


AnySpan = Span | MergedSpan


def shown(span: AnySpan | None) -> str:
    """A place as it may be shown to others: `net.py:12:1`, without the folders of whoever built the program.

    Files of this package and below the current folder keep the way to them, cells their names.
    """
    if isinstance(span, MergedSpan):
        return ", ".join(dict.fromkeys(map(_shown, span.spans)))
    return _shown(span) if span is not None else ""


def _shown(span: Span) -> str:
    if not span.line:  # an imported model's node, whose name may begin as a path does
        return str(span)
    name = span.source_name.name
    return span.under(_way(name, os.getcwd()) if os.path.isabs(name) else name)


@cache  # a program has thousands of nodes and a few files
def _way(name: str, folder: str) -> str:
    """The way to a file from the folder of this package or the current one; its name alone if it is elsewhere."""
    from pathlib import PurePath  # 5 ms of an import, and few look at places

    path = PurePath(name)
    known = (PurePath(__file__).parents[2], PurePath(folder))
    root = next((r for r in known if path.is_relative_to(r)), path.parent)
    return path.relative_to(root).as_posix()


def short_place(span: AnySpan | None) -> str:
    """The first place of a node in short: `net.py:12`, `cell In[5], line 4`, the name of an imported node."""
    if isinstance(span, MergedSpan):
        span = span.spans[0]
    if span is None:
        return ""
    name = span.source_name.name
    if not span.line:
        return name
    return f"{name}, line {span.line}" if name.startswith(CELL) else f"{os.path.basename(name)}:{span.line}"


def merge_spans(*spans: AnySpan | None) -> AnySpan | None:
    """All places of a merged node; None if there is none."""
    flat = dict.fromkeys(
        s for span in spans if span is not None for s in (span.spans if isinstance(span, MergedSpan) else (span,))
    )
    if not flat:
        return None
    return next(iter(flat)) if len(flat) == 1 else MergedSpan(tuple(flat))


def caret(text: str, span: Span) -> str:
    """The lines that quote `span` from `text` with carets under it, for an error message."""
    lines = text.split("\n")
    head = f"  --> {span}"
    if not 1 <= span.line <= len(lines):
        return head
    line = lines[span.line - 1].rstrip("\r")
    shown, column = _window(line, span.column)
    end = span.end_column if span.end_line == span.line else len(line)
    width = max(1, min(end - span.column + 1, len(shown) - column + 1))
    pad = "".join("\t" if c == "\t" else " " for c in shown[: column - 1])
    gutter = " " * len(str(span.line))
    return f"{head}\n {gutter} |\n {span.line} | {shown}\n {gutter} | {pad}{'^' * width}"


def _window(line: str, column: int, width: int = 160) -> tuple[str, int]:
    """A part of a long line around `column`, and where the column is in it."""
    if len(line) <= width:
        return line, column
    start = max(0, min(column - width // 2, len(line) - width))
    return line[start : start + width], column - start
