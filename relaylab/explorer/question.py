"""Questions: what the explorer can be asked, each declared once, as a function with typed arguments and a typed answer.

    @question()
    def words(session: Session, frame: Frame) -> Words: ...

A widget, a saved page and the checks of their script know the questions from this table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypedDict, TypeVar, Union, get_args, get_origin, get_type_hints

from relaylab.support.errors import RelayValueError
from relaylab.support.table import Table, did_you_mean

Frame = Annotated[int, "frame"]
"""The program before the first pass (0), or after pass k."""
Index = Annotated[int, "pass"]
"""A pass of the pipeline, from 0 on."""
Arguments = Iterable[Sequence[object]]
HELD: Literal["held"] = "held"
"""A saved page has all answers to a question: its script unfolds them from the stages that it holds."""


AnswerFunction = TypeVar("AnswerFunction", bound=Callable[..., Mapping[str, object]])


class Failure(TypedDict):
    """The answer where there is none, in words."""

    error: str


@dataclass(frozen=True)
class Question:
    """What can be asked: the function that answers, given the session and the arguments.

    `saved` is how a saved page knows the answers: `HELD`, or the arguments with which the question is asked when the
    page is written; None if only a kernel can answer.
    """

    asked: Callable[..., Mapping[str, object]]
    saved: Literal["held"] | Callable[[Any], Arguments] | None = None

    @property
    def name(self) -> str:
        """The name under which it is asked."""
        return self.asked.__name__

    @cached_property
    def hints(self) -> dict[str, object]:
        """The types of the arguments, and that of the answer under `return`."""
        return get_type_hints(self.asked, include_extras=True)

    @cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """The arguments; the session, which is the first of the function, is none."""
        return tuple(inspect.signature(self.asked).parameters.values())[1:]

    def check(self, args: Sequence[object], limits: Mapping[str, int]) -> None:
        """Raise `RelayValueError` for arguments that are not of their types, or that name no frame or pass."""
        least = sum(p.default is p.empty for p in self.parameters)
        if not least <= len(args) <= len(self.parameters):
            raise RelayValueError(
                f"the question `{self.name}` has {len(self.parameters)} arguments, not {len(args)}",
                code="explorer.argument",
                help=f"it is asked with ({', '.join(map(str, self.parameters))})",
            )
        for parameter, value in zip(self.parameters, args):
            kind = self.hints[parameter.name]
            if not accepts(kind, value):
                raise self._refusal(parameter.name, kind, value)
            for limit, given in _limited(kind, value):
                within(limit, given, limits[limit])

    def _refusal(self, name: str, kind: object, value: object) -> RelayValueError:
        choices = [str(c) for c in get_args(kind)] if get_origin(kind) is Literal else []
        help = did_you_mean(str(value), choices) or f"it is one of {', '.join(choices)}" if choices else ""
        message = f"`{name}` of the question `{self.name}` cannot be {value!r}"
        return RelayValueError(message, code="explorer.argument", help=help)


QUESTIONS: Table[Question] = Table("question")
"""All questions, by their names."""


def question(
    saved: Literal["held"] | Callable[[Any], Arguments] | None = None,
) -> Callable[[AnswerFunction], AnswerFunction]:
    """Make a function `(session, ...) -> TypedDict` a question of its name; see `Question` for `saved`."""

    def declare(asked: AnswerFunction) -> AnswerFunction:
        found, old = Question(asked, saved), QUESTIONS.get(asked.__name__)
        # a cell that is run again replaces its own question, and nothing else
        again = old is not None and old.asked.__module__ == asked.__module__
        QUESTIONS.insert(found.name, found, replace=again)
        return asked

    return declare


def answer(session: object, limits: Mapping[str, int], what: object, args: Sequence[object]) -> Mapping[str, object]:
    """The answer to a question; raises `RelayError` for one that is not there, and for wrong arguments."""
    if not isinstance(what, str) or what not in QUESTIONS:
        help = did_you_mean(str(what), QUESTIONS)
        raise RelayValueError(f"there is no question `{what}`", code="explorer.question", help=help)
    asked = QUESTIONS[what]
    asked.check(args, limits)
    return asked.asked(session, *args)


def within(what: str, value: int, count: int) -> None:
    """Raise `RelayValueError` if there is no frame (or pass) of that number."""
    if not 0 <= value < count:
        message = f"there is no {what} {value}; there are 0 to {count - 1}"
        raise RelayValueError(message, code=f"explorer.{what}")


def accepts(kind: object, value: object) -> bool:
    """Whether a value, as JSON brings it, is of a type: numbers, texts, lists of them, choices."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return accepts(inner[0], value)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin in (Union, UnionType):
        return any(accepts(k, value) for k in inner)
    if origin is list:
        return isinstance(value, list) and all(accepts(inner[0], v) for v in value)
    if kind in (None, NoneType):
        return value is None
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value):
        return False  # half of a character: no answer could hold it
    return isinstance(kind, type) and isinstance(value, kind)


def _limited(kind: object, value: Any) -> Iterable[tuple[str, int]]:
    """The numbers of frames and passes in an argument, each with what it counts."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield inner[1], value
    elif origin is list:
        for v in value:
            yield from _limited(inner[0], v)
