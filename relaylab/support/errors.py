"""The errors of relaylab: a stable code, what is wrong, where, and what to do.

Every error a user can meet is a `RelayError`. Its message is built in one place, so that all
of them read alike:

    error[parse.unexpected-token]: expected `)`, found `;`
      --> example.relay:3:14
       |
     3 |   add(%x, %y;
       |             ^
      help: close the argument list
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Iterable, Sequence
from types import NoneType
from typing import cast

from relaylab.support.hook import Hook
from relaylab.support.source import AnySpan
from relaylab.support.words import counted

_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """A warning at the line that called relaylab, whatever lies between: what is told is of the caller's making."""
    frame = inspect.currentframe()
    assert frame is not None  # CPython has frames
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    registry = frame.f_globals.setdefault("__warningregistry__", {})
    place = frame.f_code.co_filename, frame.f_lineno
    warnings.warn_explicit(message, category or UserWarning, *place, registry=registry)


class RelayError(RuntimeError):
    """An error with a stable `code`, the `place` it concerns (ready to print) and a `help` line."""

    def __init__(self, message: str, *, code: str = "error", place: str = "", help: str = ""):
        self.code, self.message, self.place, self.help = code, message, place, help
        super().__init__(message)

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        if self.place:
            lines.append(self.place)
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)

    def __reduce__(self):
        return _restore, (type(self), self.message, self.code, self.place, self.help)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: the message is written for the user."""
        return str(self).splitlines()


def _restore(cls: type[RelayError], message: str, code: str, place: str, help: str) -> RelayError:
    return cls(message, code=code, place=place, help=help)


class RelayValueError(RelayError, ValueError):
    """A value that the called function cannot accept."""


class RelayTypeError(RelayError, TypeError):
    """A Python object of the wrong kind."""


class RelayAttributeError(RelayError, AttributeError):
    """A name that does not exist: an operator, an attribute, a configuration key."""


class RelayIndexError(RelayError, IndexError):
    """An index outside a tuple or a list of outputs."""


def named(name: str) -> str:
    """A name with its article: `an int`, `a Tuple`."""
    return f"{'an' if name[:1] in tuple('AEIOaeio') else 'a'} {name}"


def kind_of(value: object) -> str:
    """The kind of a value with its article."""
    return named(type(value).__name__)


def shown(value: object) -> str:
    """A wrong argument in the words of an error: short numbers, texts and lists as they are, others by their kind."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    kind = f"{'an' if kind[0] in 'AEIOUaeio' else 'a'} {kind}"
    if not _plain(value):
        held = cast("Sequence[object]", value)[:100] if isinstance(value, (list, tuple)) else ()
        kinds = list(dict.fromkeys(shown(v) if isinstance(v, type) or _plain(v) else kind_of(v) for v in held))
        return f"{kind} of {', '.join(kinds[:4])}{'…' * (len(kinds) > 4)}" if kinds else kind
    try:
        text = repr(value)
    except ValueError:  # Python writes no numbers of more than 4,300 digits
        return f"{kind} of too many digits"
    return text if len(text) <= 60 else f"{text[:60]}…"


def _plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_plain, cast("Sequence[object]", value)[:20]))
    if isinstance(value, dict):
        items = list(cast("dict[object, object]", value).items())[:20]
        return all(_plain(k) and _plain(v) for k, v in items)
    return isinstance(value, (str, bytes, int, float, complex, NoneType))


def is_a(value: object, *kinds: type) -> bool:
    """Is a value of one of these kinds? For arguments that a caller without a type checker may get wrong."""
    return isinstance(value, kinds)


class DiagnosticError(RelayError):
    """Text or a program that is not valid Relay; `diagnostics` holds every finding; `span` is its place in a text."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "error",
        place: str = "",
        help: str = "",
        diagnostics: Iterable[object] = (),
        span: AnySpan | None = None,
    ):
        super().__init__(message, code=code, place=place, help=help)
        self.diagnostics, self.span = tuple(diagnostics), span

    def __str__(self) -> str:
        if len(self.diagnostics) < 2:
            return super().__str__()
        return "\n\n".join([*(str(d) for d in self.diagnostics), counted(len(self.diagnostics), "error")])


@Hook
def rendered(error: DiagnosticError) -> None:
    """Called with every `DiagnosticError` before it is raised; a renderer of one's own registers here."""
