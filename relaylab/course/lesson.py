"""A lesson: a page of Markdown that is read into cells and exercises.

A block `python` is a cell; `python live` is one whose output differs from run to run (times, widgets),
which is not stored.
An exercise is a comment, which pages do not show, before the block that is its solution:

    <!-- exercise NAME
    answer: what the cell gives to `check`, if it is not `answer`
    hint: one line each, the smallest first
    start:
        what the learner finds in the cell
    check:
        Python that judges `answer` (see `judge`)
    wrong: words of the verdict
        a typical wrong answer
    -->

With `program: EXPRESSION` the answer is chosen in the picture of a program, see `predicting`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

from relaylab.course.translation import spoken, translated
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean

HERE = Path(__file__).resolve().parent
PIECE = re.compile(
    r"^<!-- exercise (?P<name>\w+)\n(?P<said>.*?)^-->\n|^```(?P<kind>[\w -]+)\n(?P<code>.*?)^```$", re.M | re.S
)
ENTRY = re.compile(r"^(?P<key>[a-z]+):(?P<rest>.*)\n(?P<block>(?:(?:    .*)?\n)*)", re.M)


class Wrong(NamedTuple):
    """A typical wrong answer, and words that the verdict about it has."""

    words: str
    code: str


@dataclass(frozen=True)
class Exercise:
    """A question with its judge; `code` is the solution, `answer` the expression that is judged."""

    name: str
    start: str
    judge: str
    code: str = ""
    answer: str = "answer"
    hints: tuple[str, ...] = ()
    wrong: tuple[Wrong, ...] = ()
    program: str = ""
    lesson: str = field(default="", compare=False)

    @property
    def cell(self) -> str:
        """What the learner finds in the notebook."""
        if self.program:
            return self.start  # the picture has a button that checks
        checked = f'check("{self.name}", {self.answer})'
        return f"{self.start}\n\n{checked}"


class LessonCell(NamedTuple):
    """A piece of a lesson: `kind` is markdown, python, live or exercise."""

    kind: str
    text: str
    exercise: Exercise | None = None


@dataclass(frozen=True)
class CourseLesson:
    """A page of the course; the file's name begins with its number."""

    name: str
    title: str
    cells: tuple[LessonCell, ...]

    @property
    def number(self) -> int:
        return int(self.name.split("_")[0])

    @property
    def exercises(self) -> tuple[Exercise, ...]:
        return tuple(c.exercise for c in self.cells if c.exercise is not None)


def read_lesson(name: str, text: str) -> CourseLesson:
    """A lesson from the text of its page."""
    title = re.match(r"# (.+)\n", text)
    if title is None:
        raise RelayValueError(f"the lesson {name} does not begin with a title", code="course.lesson")
    return CourseLesson(name, title[1], tuple(_cells(name, text)))


def _cells(name: str, text: str) -> Iterator[LessonCell]:
    at, asked = 0, None
    for piece in PIECE.finditer(text):
        if piece["name"] is None and piece["kind"].split()[0] not in ("python", "output"):
            continue  # a block that is only shown
        yield from _prose(text[at : piece.start()])
        at = piece.end()
        if piece["name"] is not None:
            asked = _exercise(name, piece["name"], piece["said"])
        elif asked is not None:
            whole = Exercise(**{**vars(asked), "code": piece["code"].rstrip("\n")})
            yield LessonCell("exercise", whole.cell, whole)
            asked = None
        elif piece["kind"] != "output":  # what a page shows of a run, the notebook shows itself
            yield LessonCell("live" if "live" in piece["kind"] else "python", piece["code"].rstrip("\n"))
    yield from _prose(text[at:])


def _prose(text: str) -> Iterator[LessonCell]:
    """Markdown, a cell for each section."""
    for part in re.split(r"^(?=## )", text, flags=re.M):
        if part.strip():
            yield LessonCell("markdown", part.strip())


def _exercise(lesson: str, name: str, said: str) -> Exercise:
    entries = [(m["key"], m["rest"].strip(), dedent(m["block"]).strip("\n")) for m in ENTRY.finditer(said)]
    one = {key: rest or block for key, rest, block in entries}
    if unknown := one.keys() - {"answer", "hint", "start", "check", "wrong", "program"}:
        raise RelayValueError(f"the exercise {name} says {', '.join(sorted(unknown))}", code="course.lesson")
    return Exercise(
        name,
        one["start"],
        one["check"],
        answer=one.get("answer", "answer"),
        hints=tuple(rest for key, rest, _ in entries if key == "hint"),
        wrong=tuple(Wrong(rest, block) for key, rest, block in entries if key == "wrong"),
        program=one.get("program", ""),
        lesson=lesson,
    )


def lessons(language: str = "") -> dict[str, CourseLesson]:
    """All lessons by name, in order; in the language of the course, or in another."""
    return _read(language or spoken())


@cache
def _read(language: str) -> dict[str, CourseLesson]:
    pages = sorted(HERE.glob("lessons/[0-9]*.md"))
    return {p.stem: translated(read_lesson(p.stem, p.read_text(encoding="utf-8")), language) for p in pages}


def lesson(which: str | int) -> CourseLesson:
    """A lesson by number, name, or part of its name."""
    known = lessons()
    found = [x for x in known.values() if str(which) in (str(x.number), x.name)]
    found = found or [x for x in known.values() if len(str(which)) > 2 and str(which) in x.name]
    if not found:
        raise RelayValueError(
            f"there is no lesson `{which}`",
            code="course.unknown",
            help=did_you_mean(str(which), known) or f"there are {', '.join(str(x.number) for x in known.values())}",
        )
    return found[0]


def exercise(name: str) -> Exercise:
    """An exercise by name, of any lesson."""
    known = {e.name: e for x in lessons().values() for e in x.exercises}
    if name not in known:
        raise RelayValueError(
            f"there is no exercise `{name}`",
            code="course.unknown",
            help=did_you_mean(name, known) or "%relay_lesson lists them",
        )
    return known[name]
