"""The parser's view of a text: a position among the tokens, places in the text, and what went wrong so far."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from relaylab.support.errors import DiagnosticError, rendered
from relaylab.support.source import SourceName, Span, caret
from relaylab.support.table import did_you_mean
from relaylab.text.reading.lexer import tokenize

MOST_ERRORS = 50
DEFINES = frozenset(("def", "type", "extern", "end"))
"""The tokens at which a definition ends, whatever brackets are open."""


class Stop(Exception):
    """Parsing cannot go on here; the reason has been reported."""


class TokenReader:
    """Tokens with a position `i`; reports errors and collects them."""

    def __init__(self, text: str, source_name: str):
        self.text, self.source = text, SourceName(source_name)
        self.lines = [0]
        self.error_count = 0
        self._errors: list[tuple[tuple[int, int], DiagnosticError]] = []
        find = text.find
        at = find("\n")
        while at >= 0:
            self.lines.append(at + 1)
            at = find("\n", at + 1)
        tokens = tokenize(text, self._complain)
        self.kinds, self.texts, self.starts = tokens.kinds, tokens.texts, tokens.starts
        self.metadata = tokens.metadata
        self.i = 0

    # ---- places

    def offsets(self, start: int, end: int) -> Span:
        """The span of the characters from `start` up to, not including, `end`."""
        last = max(start, end - 1)
        line = bisect_right(self.lines, start)
        end_line = bisect_right(self.lines, last, line - 1)
        return Span(self.source, line, end_line, start - self.lines[line - 1] + 1, last - self.lines[end_line - 1] + 1)

    def span(self, first: int, last: int | None = None) -> Span:
        """The span from token `first` to token `last`."""
        last = first if last is None else last
        return self.offsets(self.starts[first], self.starts[last] + len(self.texts[last]))

    def since(self, first: int) -> Span:
        """The span from token `first` to the last token read."""
        return self.span(first, max(first, self.i - 1))

    # ---- errors

    def report(self, code: str, message: str, span: Span, help: str = "") -> None:
        """Note an error; parsing goes on."""
        self.error_count += 1
        if len(self._errors) < MOST_ERRORS:
            error = DiagnosticError(message, code=code, place=caret(self.text, span), help=help, span=span)
            self._errors.append(((span.line, span.column), error))

    def near(self, name: str, known: Iterable[str]) -> str:
        """`did you mean …?`, as long as errors are noted: in a long text the search takes long."""
        return did_you_mean(name, known) if self.error_count < MOST_ERRORS else ""

    def _complain(self, code: str, message: str, start: int, end: int, help: str) -> None:
        self.report(code, message, self.offsets(start, end), help)

    def stop(self, code: str, message: str, at: int | None = None, help: str = "") -> Stop:
        """Note an error at a token (the current one); raise what this returns."""
        self.report(code, message, self.span(self.i if at is None else at), help)
        return Stop(code)

    def unexpected(self, wanted: str, opened: int | None = None, help: str = "") -> Stop:
        """The error that the current token is not what is `wanted`."""
        if opened is not None and not help:
            start = self.span(opened)
            help = f"the `{self.texts[opened]}` at {start.line}:{start.column} is still open"
        code = "parse.unexpected-end" if self.kinds[self.i] == "end" else "parse.unexpected-token"
        return self.stop(code, f"expected {wanted}, found {self.found()}", help=help)

    def found(self) -> str:
        """The current token in words."""
        kind, text = self.kinds[self.i], self.texts[self.i]
        return "the end of the text" if kind == "end" else f"the string {text}" if kind == "string" else f"`{text}`"

    def raise_errors(self) -> None:
        """Raise what was reported, if anything: all of it in one `DiagnosticError`, in the order of the text."""
        if not self._errors:
            return
        errors = [error for _, error in sorted(self._errors, key=lambda entry: entry[0])]
        first = errors[0]
        if len(errors) > 1:
            first = DiagnosticError(
                first.message,
                code=first.code,
                place=first.place,
                help=first.help,
                diagnostics=tuple(errors),
                span=first.span,
            )
        rendered(first)
        raise first

    # ---- moving

    def at(self, kind: str) -> bool:
        return self.kinds[self.i] == kind

    def at_new_line(self) -> bool:
        """Whether the current token is on another line than the one before."""
        before = self.i - 1
        return self.text.find("\n", self.starts[before] + len(self.texts[before]), self.starts[self.i]) >= 0

    def accept(self, kind: str) -> bool:
        """Step over a token of that kind if it is next."""
        if self.kinds[self.i] == kind:
            self.i += 1
            return True
        return False

    def expect(self, kind: str, wanted: str = "", opened: int | None = None, help: str = "") -> int:
        """Step over a token that must be next; its index."""
        if self.kinds[self.i] != kind:
            raise self.unexpected(wanted or f"`{kind}`", opened, help)
        self.i += 1
        return self.i - 1

    def more(self, closing: str, opened: int) -> bool:
        """Inside a list: whether another item follows; steps over the comma before it or over `closing`."""
        if self.accept(closing):
            return False
        if not self.accept(","):
            raise self.unexpected(f"`,` or `{closing}`", opened)
        return not self.accept(closing)

    def recover(self, first: int, closing: str) -> bool:
        """After an error in the statement that starts at token `first`: step to its `;` or to `closing` of its block.

        Parentheses are not counted, since one of them is often what is missing. False if the definition ends before.
        """
        kinds = self.kinds
        if kinds[self.i] in DEFINES:
            return False
        depth = sum((kind == "{") - (kind == "}") for kind in kinds[first : self.i])
        while kinds[self.i] not in DEFINES:
            kind = kinds[self.i]
            if depth <= 0 and kind in (";", closing):
                return True
            depth = max(0, depth + (kind == "{") - (kind == "}"))
            self.i += 1
        return False
