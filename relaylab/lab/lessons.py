"""The course in a notebook: what `%relay_lesson` shows."""

from __future__ import annotations

from dataclasses import dataclass

from relaylab import course
from relaylab.course.translation import told
from relaylab.lab.arguments import one_line
from relaylab.support.errors import RelayError


@dataclass(frozen=True)
class CoursePage:
    """Markdown, and as text itself."""

    markdown: str

    def _repr_markdown_(self) -> str:
        return self.markdown

    def __repr__(self) -> str:
        return self.markdown


def asked(lesson: str | None, hint: str | None, solution: str | None, language: str | None = None) -> CoursePage:
    """A hint, a solution, the page of a lesson, or the list of all lessons; a language is kept."""
    if language:
        course.speak(language)
    try:
        if hint is not None:
            return CoursePage(course.hint(hint))
        if solution is not None:
            return CoursePage(f"```python\n{course.solution(solution)}\n```")
        return CoursePage(_page(course.lesson(lesson)) if lesson is not None else _listed())
    except RelayError as error:
        raise one_line(error) from None


def _listed() -> str:
    """Every lesson with its exercises; those that are solved have a tick."""
    solved = course.progress().solved
    rows = [f"| {x.number} | {x.title} | {_marked(x, solved)} |" for x in course.lessons().values()]
    return "\n".join([f"| | {told('lesson')} | {told('exercises')} |", "|---|---|---|", *rows])


def _marked(lesson: course.CourseLesson, solved: list[str]) -> str:
    return ", ".join(f"{'✓' if e.name in solved else '·'} {e.name}" for e in lesson.exercises)


def _page(lesson: course.CourseLesson) -> str:
    """The words, cells and exercises of a lesson."""
    return "\n\n".join(c.text if c.kind == "markdown" else f"```python\n{c.text}\n```" for c in lesson.cells)
