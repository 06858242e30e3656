"""Relay text while it is being typed: what is wrong where, the last good program, the one before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from relaylab import viz
from relaylab.ir import Constant, IRModule, structural_equal
from relaylab.study.program import Program, load
from relaylab.support.errors import DiagnosticError, RelayError
from relaylab.support.source import Span
from relaylab.text import parse, text_to_edit
from relaylab.transform import InferType
from relaylab.viz.draw.from_ir import ViewOptions
from relaylab.viz.graph.annotate import texts

SOURCE = "live"


@dataclass(frozen=True)
class Fault:
    """What is wrong with a text: lines and columns count from 1, the end is that of the last character."""

    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    help: str = ""

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}"


class LiveText:
    """A program as text that changes: `read` tells what is wrong with a new text, and keeps what was good.

    `mod` is the program of the last good text, `before` that of the good text before it; `faults` are those of the
    last text that was read. `text` is that of the program it began with, without comments; what has no words stands in
    it as `meta[relay.Constant][0]` and stays what it is.
    """

    def __init__(self, what: str | IRModule | Program):
        self.source: IRModule = load(what).mod
        self.mod = self.before = self.source
        self.faults: tuple[Fault, ...] = ()
        self.text, self._tables = text_to_edit(self.source, {})

    def follow(self, source: IRModule) -> None:
        """Begin anew with another program; texts that were written for the one before mean what they meant."""
        self.source = self.mod = self.before = source
        self.text, self._tables = text_to_edit(source, self._tables)

    def read(self, text: str) -> bool:
        """Take a new text; whether it is good. A text that differs in nothing but form changes nothing."""
        try:
            mod = parse(text, SOURCE, init_meta_table=self._tables)
            found = InferType()(mod)
        except RelayError as error:
            self.faults = tuple(_faults(error, text))
            return False
        self.faults = ()
        if not structural_equal(found, self.mod):
            self.before, self.mod = self.mod, found
        return True

    def difference(
        self, since: IRModule | None = None, name: Callable[[Constant], str] | None = None
    ) -> viz.Difference:
        """What the last good text changed since the one before it, or since another program.

        `name` says what constants are called.
        """
        before = self.before if since is None else since
        if name is None:
            return viz.diff(before, self.mod)
        old, new = (viz.view(m, ViewOptions(texts=texts(m, name))) for m in (before, self.mod))
        return viz.diff(old, new)


def _faults(error: RelayError, text: str) -> Iterator[Fault]:
    """The findings of an error; one without a place in the text is about all of it."""
    found = error.diagnostics if isinstance(error, DiagnosticError) and error.diagnostics else (error,)
    for each in found:
        span = getattr(each, "span", None)
        message, help = (each.message, each.help) if isinstance(each, RelayError) else (str(each), "")
        if isinstance(span, Span) and str(span.source_name) == SOURCE:
            yield Fault(span.line, span.column, span.end_line, span.end_column, message, help)
        else:
            yield Fault(1, 1, 1, max(1, len(text.partition("\n")[0])), message, help)
