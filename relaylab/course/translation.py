"""The course in another language: the words of a lesson, paragraph by paragraph; cells and judges are the same.

`lessons/zh/NN_….md` holds for every paragraph, hint and message of a judge the translation below a comment with the
mark of the English text and its first words:

    <!-- 5d41402a Somebody writes a network in Python. -->
    有人用 Python 写了一个网络。

The mark is a hash: where the English text changed, the translation is no longer found, the English one is shown, and
a test names it. `python docs/generate.py translations` writes what is missing into the files.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from relaylab.support.errors import RelayValueError
from relaylab.support.language import LANGUAGES, preferred

if TYPE_CHECKING:
    from relaylab.course.lesson import CourseLesson, Exercise, LessonCell

HERE = Path(__file__).resolve().parent
UNTRANSLATED = "这一课还没有中文翻译，以下是英文原文。"
WORDED = ("words", "needs")
"""Names of judges that hold parts of what they say."""
MISSING = "TODO"
"""What stands in a file for a translation that is to be written."""
_UNIT = re.compile(r"^<!-- ([0-9a-f]{8}) .*? -->\n(.*?)(?=^<!-- [0-9a-f]{8} |\Z)", re.M | re.S)
_FENCE = re.compile(r"^(```.*?^```$)", re.M | re.S)
_GAP = re.compile(r"(\n\s*\n)")
_WORDS = re.compile(r"[A-Za-z]{3}")
_CHOSEN: dict[str, str] = {}
Say = Callable[[str], str]
"""Gives the translation of a text, or the text itself."""


def spoken() -> str:
    """The language of the course: the one that was chosen, or that of the environment."""
    return _CHOSEN.get("language") or preferred()


def speak(language: str) -> None:
    """Choose the language of lessons, hints and verdicts: en or zh."""
    if language not in LANGUAGES:
        raise RelayValueError(
            f"the course does not speak `{language}`", code="course.language", help=f"it speaks {', '.join(LANGUAGES)}"
        )
    _CHOSEN["language"] = language


def told(words: str, **places: object) -> str:
    """Words of the judge in the language of the course, with what stands in their places."""
    return _words(spoken()).get(words, words).format(**places)


@cache
def _words(language: str) -> dict[str, str]:
    """What judge and lists say, by the English words."""
    path = HERE / "lessons" / language / "words.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


# -- units ------------------------------------------------------------------------------------------


def mark(text: str) -> str:
    """The mark of an English text, however its lines are broken."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:8]


def units(lesson: CourseLesson) -> dict[str, str]:
    """What is to be translated of a lesson, by its marks, in order."""
    found: dict[str, str] = {}

    def note(text: str) -> str:
        found[mark(text)] = text
        return text

    _said(lesson, note)
    return found


@cache
def translations(name: str, language: str) -> dict[str, str]:
    """The translations that the file of a lesson holds, by their marks; none if there is no file."""
    path = HERE / "lessons" / language / f"{name}.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return {m[1]: m[2].strip() for m in _UNIT.finditer(text)}


def page(lesson: CourseLesson, language: str) -> str:
    """The text of a lesson's file in a language, with what is there, and what is to be written."""
    known = translations(lesson.name, language)
    parts = [f"<!-- {m} {begin(text)} -->\n{known.get(m, MISSING)}\n" for m, text in units(lesson).items()]
    return "\n".join(parts)


def begin(text: str) -> str:
    """The first words of a text, for people who look for it."""
    return " ".join(text.split())[:60].replace("--", "– ").strip()


def translated(lesson: CourseLesson, language: str) -> CourseLesson:
    """A lesson in a language; paragraphs that have no translation stay as they are."""
    if language == LANGUAGES[0]:
        return lesson
    known = {m: text for m, text in translations(lesson.name, language).items() if text != MISSING}
    made = _said(lesson, lambda text: known.get(mark(text), text))
    return made if known else _with_note(made)


def _with_note(lesson: CourseLesson) -> CourseLesson:
    first, *rest = lesson.cells
    title, _, text = first.text.partition("\n")
    return replace(lesson, cells=(first._replace(text=f"{title}\n\n*{UNTRANSLATED}*\n{text}"), *rest))


def _said(lesson: CourseLesson, say: Say) -> CourseLesson:
    """A lesson with other words."""
    cells = tuple(_cell(c, say) for c in lesson.cells)
    return replace(lesson, title=cells[0].text.split("\n")[0].removeprefix("# "), cells=cells)


def _cell(cell: LessonCell, say: Say) -> LessonCell:
    if cell.exercise is not None:
        return cell._replace(exercise=_exercise(cell.exercise, say))
    return cell._replace(text=_markdown(cell.text, say)) if cell.kind == "markdown" else cell


def _markdown(text: str, say: Say) -> str:
    """Paragraphs with other words; blocks that are shown as they are stay."""
    return "".join(_paragraphs(part, say) if k % 2 == 0 else part for k, part in enumerate(_FENCE.split(text)))


def _paragraphs(text: str, say: Say) -> str:
    parts = _GAP.split(text)
    return "".join(_paragraph(part, say) if k % 2 == 0 else part for k, part in enumerate(parts))


def _paragraph(text: str, say: Say) -> str:
    bare = text.strip()
    if not _WORDS.search(bare) or bare.startswith("$$"):
        return text
    return text.replace(bare, say(bare))


def _exercise(asked: Exercise, say: Say) -> Exercise:
    return replace(asked, hints=tuple(map(say, asked.hints)), judge=_judge(asked.judge, say))


def _judge(code: str, say: Say) -> str:
    """The code of a judge with other messages."""
    lines = code.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:k])) for k in range(len(lines))]
    found = code.encode()
    for node in sorted(messages(code), key=lambda n: (n.lineno, n.col_offset), reverse=True):
        assert node.end_lineno is not None and node.end_col_offset is not None
        first, last = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        found = found[:first] + say(found[first:last].decode()).encode() + found[last:]
    return found.decode()


def messages(code: str) -> Iterator[ast.Constant | ast.JoinedStr]:
    """The texts that a judge tells learners: those of the second argument of `expect`, and what is called `words`."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "expect":
            yield from (text for arg in node.args[1:] for text in _texts(arg))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in WORDED:
            yield from _texts(node.value)


def _texts(node: ast.expr) -> Iterator[ast.Constant | ast.JoinedStr]:
    if isinstance(node, ast.JoinedStr):
        yield node
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and _WORDS.search(node.value):
            yield node
    else:
        inner = node.values if isinstance(node, ast.Dict) else ast.iter_child_nodes(node)
        for child in inner:
            if isinstance(child, ast.expr):
                yield from _texts(child)
