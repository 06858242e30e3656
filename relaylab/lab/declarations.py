"""What the explorer's script has from tables of Python: the types of its questions, the colours of code.

`python -m relaylab.lab.declarations` writes `static/questions.d.ts` and `static/panels/languages.js`; tests hold them
equal to the tables.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from relaylab.explorer.question import HELD, QUESTIONS, Failure, Question
from relaylab.lab.page import STATIC
from relaylab.support.errors import RelayValueError
from relaylab.text.colours import LANGUAGES

PATH = STATIC / "questions.d.ts"
COLOURS = STATIC / "panels" / "languages.js"
HEAD = """// Made from the table of questions by `python -m relaylab.lab.declarations`:
// what the explorer can be asked, and the answers.
// prettier-ignore-start
"""
TAIL = """
/** The name of a question. */
export type Name = keyof Questions;

/** The answer to a question; where there is none, `error` says in words why, and nothing else is there. */
export type Answer<Q extends Name> = Questions[Q]["answer"] & { error?: string };

/** How a host is asked: a kernel answers, or what a saved page holds. */
export type Ask = <Q extends Name>(what: Q, args: Questions[Q]["args"]) => Promise<Answer<Q>>;
// prettier-ignore-end
"""
SIMPLE = {
    int: "number",
    float: "number",
    str: "string",
    bool: "boolean",
    None: "null",
    NoneType: "null",
    object: "unknown",
}


def languages() -> str:
    """The text of `languages.js`: the rules of every language."""
    lines = []
    for name, rules in LANGUAGES.items():
        lines += [f"  {name}: [", *(f"    {json.dumps(rule)}," for rule in rules), "  ],"]
    head = [
        "// @ts-check",
        "// Made from the table of colours by `python -m relaylab.lab.declarations`.",
        "// prettier-ignore",
        "/** @type {Record<string, [kind: string, rule: string][]>} */",
        "export const LANGUAGES = {",
    ]
    return "\n".join([*head, *lines, "};", ""])


def declarations() -> str:
    """The text of `questions.d.ts`: an interface for every answer, then all questions with their arguments."""
    records: dict[str, type] = {}
    asked = [line for q in QUESTIONS.values() for line in _question(q, records)]
    interfaces = [line for record in records.values() for line in _interface(record, records)]
    table = [
        "/** Every question: its arguments in order, and its answer. */",
        "export interface Questions {",
        *asked,
        "}",
    ]
    return f"{HEAD}\n" + "\n".join([*interfaces, *table, *_held()]) + f"\n{TAIL}"


def _held() -> list[str]:
    """The questions whose answers a saved page holds."""
    kinds = {
        "Held": (
            "a saved page unfolds from the stages that it holds",
            [q for q in QUESTIONS.values() if q.saved == HELD],
        ),
        "Saved": ("were asked when a page was saved", [q for q in QUESTIONS.values() if callable(q.saved)]),
    }
    return [
        line
        for name, (what, found) in kinds.items()
        for line in (
            "",
            f"/** Questions whose answers {what}. */" if name == "Held" else f"/** Questions that {what}. */",
            f"export type {name} = {' | '.join(_quoted(q.name) for q in found)};",
        )
    ]


def _question(question: Question, records: dict[str, type]) -> Iterator[str]:
    answer = " | ".join(_type(kind, records) for kind in _answers(question))
    args = ", ".join(_argument(p, question.hints, records) for p in question.parameters)
    yield f"  /** {_words(question.asked.__doc__)} */"
    yield f"  {question.name}: {{ args: [{args}]; answer: {answer} }};"


def _answers(question: Question) -> list[object]:
    """The forms of an answer; that there is none is a form of every answer."""
    found = question.hints["return"]
    parts = get_args(found) if get_origin(found) in (Union, UnionType) else (found,)
    return [kind for kind in parts if kind is not Failure]


def _argument(parameter: inspect.Parameter, hints: Mapping[str, object], records: dict[str, type]) -> str:
    optional = "" if parameter.default is parameter.empty else "?"
    return f"{parameter.name}{optional}: {_type(hints[parameter.name], records)}"


def _interface(record: type, records: dict[str, type]) -> Iterator[str]:
    if (words := _words(record.__doc__)) and not words.startswith("dict("):
        yield f"/** {words} */"
    yield f"export interface {record.__name__} {{"
    for name, kind in get_type_hints(record, include_extras=True).items():
        optional = "?" if get_origin(kind) is NotRequired else ""
        yield f"  {name}{optional}: {_type(kind, records)};"
    yield from ("}", "")


def _type(kind: object, records: dict[str, type]) -> str:
    """A type in TypeScript; what is a TypedDict is put into `records`, with all that it mentions before it."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_typeddict(kind) and isinstance(kind, type):
        if kind.__name__ not in records:
            for mentioned in get_type_hints(kind).values():
                _type(mentioned, records)
        if records.setdefault(kind.__name__, kind) is not kind:
            raise RelayValueError(f"two records of answers are named {kind.__name__}", code="lab.declarations")
        return kind.__name__
    if origin in (Annotated, NotRequired):
        return _type(inner[0], records)
    if origin is Literal:
        return " | ".join(_quoted(v) for v in inner)
    if origin in (Union, UnionType):
        return " | ".join(_type(k, records) for k in inner)
    if origin is list:
        found = _type(inner[0], records)
        return f"({found})[]" if get_origin(inner[0]) in (Literal, Union, UnionType) else f"{found}[]"
    if origin is tuple:
        return f"[{', '.join(_type(k, records) for k in inner)}]"
    if origin is dict:
        return f"Record<{_type(inner[0], records)}, {_type(inner[1], records)}>"
    return next(name for simple, name in SIMPLE.items() if kind is simple)


def _quoted(text: str) -> str:
    return f'"{text}"'


def _words(text: str | None) -> str:
    return " ".join(inspect.cleandoc(text or "").split())


if __name__ == "__main__":
    PATH.write_text(declarations(), encoding="utf-8")
    COLOURS.write_text(languages(), encoding="utf-8")
