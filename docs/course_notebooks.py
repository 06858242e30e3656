"""Makes the notebooks of the course: `python docs/generate.py course [NAME ...]` runs lessons, stores what they show.

Cells run in one IPython shell in this process. A stored picture is its SVG alone, with the styles that it uses; what
exercises and blocks `python live` show differs from run to run and is not stored; the picture of a question is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from relaylab.course import CourseLesson, Exercise, LessonCell, lessons
from relaylab.course.translation import translations

PLANNED = 12
DOCS = Path(__file__).resolve().parent
FOLDER = DOCS.parent / "notebooks" / "course"
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
TOLD = r"## 什么是\s*([^？\n]+)？[^\n]*\n(?:(?!## ).)*?\]\(\.\./notes/(\w+)\.md\)"
"""A note in Chinese: its word, and the name of the English one."""
Output = dict[str, Any]


class Runner:
    """Cells one after another in an empty namespace."""

    def __init__(self) -> None:
        from IPython.core.getipython import get_ipython
        from IPython.testing.globalipapp import start_ipython

        self.shell = start_ipython() or get_ipython()
        own = {n: v for n, v in self.shell.user_ns.items() if n.startswith("_") or n in ("In", "Out", "get_ipython")}
        self.shell.user_ns.clear()
        self.shell.user_ns.update(own)
        if "relaylab" in self.shell.extension_manager.loaded:
            self.shell.extension_manager.unload_extension("relaylab")  # the first cell loads it

    def run(self, code: str) -> list[Output]:
        """What a cell printed and displayed; an error of it is raised."""
        from IPython.core.displayhook import CapturingDisplayHook
        from IPython.utils.capture import capture_output

        formatter, trap, values = self.shell.display_formatter, self.shell.display_trap, []
        before = formatter.active_types, trap.hook
        formatter.active_types, trap.hook = (
            formatter.format_types,
            CapturingDisplayHook(self.shell, values),
        )  # a notebook's
        try:
            with capture_output() as captured:
                result = self.shell.run_cell(code)
        finally:
            formatter.active_types, trap.hook = before
        result.raise_error()
        shown: list[Output] = []
        if captured.stdout:
            shown.append({"name": "stdout", "output_type": "stream", "text": _lines(captured.stdout)})
        for data in [*(output.data for output in captured.outputs), *(value["data"] for value in values)]:
            shown.append({"data": _stored(data), "metadata": {}, "output_type": "display_data"})
        return shown


def _stored(data: dict[str, str]) -> dict[str, list[str]]:
    """One rich form, and the text."""
    rich = next((form for form in ("image/svg+xml", "text/html") if form in data), None)
    kept = {form: data[form] for form in (rich, "text/plain") if form and form in data}
    return {form: _lines(slim(text) if form == "image/svg+xml" else text) for form, text in kept.items()}


def slim(svg: str) -> str:
    """A picture with only the styles that it uses, and those of light pages."""
    sheet = re.search(r"<style>(.*?)</style>", svg, re.S)
    if sheet is None:
        return svg
    light = sheet[1].split("@media")[0]
    words = set(re.findall(r"[\w-]+", " ".join(re.findall(r'class="([^"]*)"', svg))))
    used = [r for r in re.findall(r"[^{}]+\{[^{}]*\}", light) if not r.startswith(".") or r[1:].split("{")[0] in words]
    return svg.replace(sheet[0], f"<style>{''.join(used)}</style>")


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def in_chinese(name: str) -> dict[str, Any]:
    """The notebook of a lesson in Chinese: cells and outputs are those of the English one, which is stored."""
    lesson = lessons("zh")[name]
    stored = json.loads((FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
    made = notebook(lesson, {k: cell.get("outputs", []) for k, cell in enumerate(stored)}, "zh")
    first, *rest = made["cells"]
    spoken = LessonCell("python", 'from relaylab import course\n\ncourse.speak("zh")')
    return made | {"cells": [first, _cell(lesson, "zh", spoken, []), *rest]}


def notebook(lesson: CourseLesson, outputs: dict[int, list[Output]], language: str = "en") -> dict[str, Any]:
    """The notebook of a lesson: its place in the course, the cells, the way on."""
    cells = list(lesson.cells)
    title, rest = cells[0].text.split("\n", 1)
    first = LessonCell("markdown", f"{title}\n\n*{place(lesson, language)}*\n{rest}")
    shown = [_cell(lesson, f"{k:02}", cell, outputs.get(k, [])) for k, cell in enumerate([first, *cells[1:]])]
    last = _cell(lesson, f"{len(cells):02}", LessonCell("markdown", way_on(lesson, language)), [])
    return {"cells": [*shown, last], "metadata": KERNEL, "nbformat": 4, "nbformat_minor": 5}


def _cell(lesson: CourseLesson, at: str, cell: LessonCell, outputs: list[Output]) -> dict[str, Any]:
    head = {"id": f"{lesson.name[:2]}-{at}", "source": _lines(cell.text)}
    if cell.kind == "markdown":
        kind = "slide" if cell.text.startswith("#") else "fragment"
        return {"cell_type": "markdown", "metadata": {"slideshow": {"slide_type": kind}}, **head}
    tags = {"tags": ["exercise"]} if cell.exercise else {"tags": ["live"]} if cell.kind == "live" else {}
    metadata = {"slideshow": {"slide_type": "fragment"}, **tags}
    return {"cell_type": "code", "execution_count": None, "metadata": metadata, "outputs": outputs, **head}


def place(lesson: CourseLesson, language: str) -> str:
    """Where a lesson stands, in words."""
    if language == "zh":
        where = f"第 {lesson.number} 课，共 {PLANNED} 课 · {len(lesson.exercises)} 道由单元格批改的练习"
        return f"{where} · `%relay_lesson` 列出它们，并给出提示和答案"
    where = f"Lesson {lesson.number} of {PLANNED} · {len(lesson.exercises)} exercises that a cell checks"
    return f"{where} · `%relay_lesson` lists them, with hints and solutions"


def way_on(lesson: CourseLesson, language: str) -> str:
    """The end of a lesson: what comes next."""
    known = {x.number: x for x in lessons(language).values()}
    before, after = known.get(lesson.number - 1), known.get(lesson.number + 1)
    if language == "zh":
        back = f"上一课：[{before.title}]({before.name}.ipynb)。" if before else ""
        last = "这是最后一课。" if lesson.number == PLANNED else "下一课还没有写好。"
        on = f"**下一课：[{after.title}]({after.name}.ipynb)。**" if after else last
        return f"---\n{_words(lesson, language)}{back}{on}"
    back = f"Before: [{before.title}]({before.name}.ipynb). " if before else ""
    last = "This is the last lesson." if lesson.number == PLANNED else "The next lesson is not written yet."
    on = f"**Next: [{after.title}]({after.name}.ipynb).**" if after else last
    return f"---\n{_words(lesson, language)}{back}{on}"


def _words(lesson: CourseLesson, language: str) -> str:
    """The notes that send their readers to this lesson; in Chinese all of them are one page."""
    pages = {path.stem: path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("notes/*.md"))}
    found = {name: _asked(text) for name, text in pages.items() if f"/{lesson.name}.md)" in text}
    if language == "zh":
        told = re.findall(TOLD, (DOCS / "zh" / "notes.md").read_text(encoding="utf-8"), re.S)
        words = "、".join(word for word, name in told if name in found)
        return f"一词一段：[{words}](../../../docs/zh/notes.md)。\n\n" if words else ""
    links = [f"[{asked}](../../docs/notes/{name}.md)" for name, asked in found.items()]
    return f"One page each: {', '.join(links)}.\n\n" if links else ""


def _asked(page: str) -> str:
    """What a note is about."""
    return page.split("\n", 1)[0].removeprefix("# What is ").rstrip("?")


def executed(lesson: CourseLesson) -> Iterator[tuple[int, LessonCell, list[Output]]]:
    """Every cell of code with what it shows; of an exercise the solution is run."""
    runner = Runner()
    for at, cell in enumerate(lesson.cells):
        if cell.exercise is not None:
            found = attempt(runner, cell.exercise)
            yield at, cell, found if cell.exercise.program else []
        elif cell.kind != "markdown":
            found = runner.run(cell.text)
            yield at, cell, [] if cell.kind == "live" else found


def attempt(runner: Runner, exercise: Exercise) -> list[Output]:
    """What the learner's cell shows; it is open, typical wrong answers are told so, the solution is right."""
    names = runner.shell.user_ns
    before = dict(names)
    found = runner.run(exercise.cell)
    for code, right, words in [
        ("", False, ""),
        *[(w.code, False, w.words) for w in exercise.wrong],
        (exercise.code, True, ""),
    ]:
        if code or right:
            names.update(before)
            runner.run(code)
        else:
            runner.run(exercise.start)
        runner.run(
            f'from relaylab.course import check as _check\n_verdict = _check("{exercise.name}", {exercise.answer})'
        )
        verdict = names["_verdict"]
        assert "llipsis" not in verdict.words, f"{exercise.name} says of the open cell: {verdict}"
        assert verdict.right == right and words in verdict.words, (
            f"{exercise.name}: {words!r} asked, {verdict} said\n{code}"
        )
    return found


def write(lesson: CourseLesson) -> Path:
    """Run a lesson and write its notebook."""
    path = FOLDER / f"{lesson.name}.ipynb"
    made = notebook(lesson, {at: shown for at, _, shown in executed(lesson)})
    _put(path, made)
    return path


def _put(path: Path, made: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_chinese(name: str) -> Path:
    """Write the Chinese notebook of a lesson beside the English one, which is made first."""
    path = FOLDER / "zh" / f"{name}.ipynb"
    _put(path, in_chinese(name))
    return path


def make(names: list[str]) -> None:
    """All notebooks of the course, or those whose lessons are named; with `zh` only the Chinese ones."""
    os.environ["RELAYLAB_COURSE_DIR"] = ""  # who makes the course has solved nothing
    wanted = [n for n in names if n != "zh"]
    for lesson in lessons("en").values():
        if not wanted or lesson.name in wanted or str(lesson.number) in wanted:
            if "zh" not in names:
                print(write(lesson))
            if translations(lesson.name, "zh"):
                print(write_chinese(lesson.name))
