"""Translations of the course: `python docs/generate.py translations` writes what is missing into their files.

What stands as TODO is to be translated; text that is said no more goes.
"""

from __future__ import annotations

from relaylab.course import lessons, translation


def make(names: list[str]) -> None:
    """The file of every lesson that has one, or of those that are named."""
    for lesson in lessons("en").values():
        path = translation.HERE / "lessons" / "zh" / f"{lesson.name}.md"
        if lesson.name in names or str(lesson.number) in names or (not names and path.is_file()):
            path.parent.mkdir(exist_ok=True)
            path.write_text(translation.page(lesson, "zh"), encoding="utf-8")
            print(path)
