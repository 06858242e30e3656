"""The course in Chinese: every paragraph follows its English one, cells and judges are the same."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

import pytest

from relaylab import course
from relaylab.course import judge, translation
from relaylab.lab import lessons
from relaylab.support.errors import RelayError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import course_notebooks  # noqa: E402

UNTRANSLATED: list[str] = []
"""Lessons that have no Chinese yet: a new one may be put here, but the list is to become shorter."""
ENGLISH, CHINESE = course.lessons("en"), course.lessons("zh")
TRANSLATED = [name for name in ENGLISH if translation.translations(name, "zh")]
HOW = (
    "`python docs/generate.py translations`, write what stands as TODO in {}, then `python docs/generate.py course zh`"
)


@pytest.fixture
def chinese(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAYLAB_COURSE_DIR", str(tmp_path))
    monkeypatch.setattr(translation, "_CHOSEN", {})
    course.speak("zh")


def test_lessons_are_translated_or_said_not_to_be() -> None:
    assert sorted([*TRANSLATED, *UNTRANSLATED]) == sorted(ENGLISH), (
        "a lesson is translated, or in UNTRANSLATED, not both"
    )
    assert {p.stem for p in (translation.HERE / "lessons/zh").glob("*.md")} == set(TRANSLATED)


@pytest.mark.parametrize("name", TRANSLATED)
def test_every_paragraph_has_its_translation(name: str) -> None:
    known, said = translation.translations(name, "zh"), translation.units(ENGLISH[name])
    path = f"relaylab/course/lessons/zh/{name}.md"
    stale = [translation.begin(text) for mark, text in said.items() if known.get(mark, "TODO") in ("", "TODO")]
    assert not stale, f"new or changed in English, and not translated: {stale}; {HOW.format(path)}"
    spare = [known[mark][:30] for mark in known if mark not in said]
    assert not spare, f"said no more in English: {spare}; {HOW.format(path)}"
    for mark, text in said.items():
        code, other = (set(re.findall(r"`[^`\n]+`", " ".join(t.split()))) for t in (text, known[mark]))
        assert code == other, f"the code in {translation.begin(text)!r} and in its translation: {code ^ other}"


@pytest.mark.parametrize("name", TRANSLATED)
def test_cells_and_judges_are_those_of_the_english_lesson(name: str) -> None:
    for english, other in zip(ENGLISH[name].cells, CHINESE[name].cells, strict=True):
        assert english.kind == other.kind and (english.kind == "markdown" or english.text == other.text)
        if english.exercise is not None and other.exercise is not None:
            one, two = vars(english.exercise), vars(other.exercise)
            assert {k: v for k, v in one.items() if k not in ("judge", "hints")} == {
                k: v for k, v in two.items() if k not in ("judge", "hints")
            }
            assert shape(one["judge"]) == shape(two["judge"]) and len(one["hints"]) == len(two["hints"])


def shape(code: str) -> str:
    """A judge without its messages; what they show of the answer stays."""
    tree = ast.parse(code)
    said: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "expect":
            said += node.args[1:]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in translation.WORDED:
            said += node.value.values if isinstance(node.value, ast.Dict) else [node.value]
    for node in (n for words in said for n in ast.walk(words)):
        if isinstance(node, ast.JoinedStr):
            node.values = sorted((v for v in node.values if isinstance(v, ast.FormattedValue)), key=ast.dump)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = ""
    return ast.dump(tree)


def test_the_judge_has_a_chinese_word_for_each_of_its_own() -> None:
    """What stands in `told(…)` is in the table, and nothing else."""
    said = [judge.OPEN, judge.CLICK]
    for path in (judge.__file__, lessons.__file__):
        for node in ast.walk(ast.parse(Path(path).read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and ast.unparse(node.func) == "told"
                and isinstance(node.args[0], ast.Constant)
            ):
                said.append(node.args[0].value)
    words = json.loads((translation.HERE / "lessons/zh/words.json").read_text(encoding="utf-8"))
    assert set(said) <= set(words), "add them to relaylab/course/lessons/zh/words.json"
    assert set(words) - set(said) <= {"a program was asked for (a module or an expression), this is a {type}"}
    assert all(sorted(re.findall(r"{\w+}", k)) == sorted(re.findall(r"{\w+}", v)) for k, v in words.items())


@pytest.mark.parametrize("name", TRANSLATED)
def test_the_notebook_is_what_the_lesson_gives(name: str) -> None:
    stored = json.loads((course_notebooks.FOLDER / "zh" / f"{name}.ipynb").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(course_notebooks.in_chinese(name))), "python docs/generate.py course zh"
    english = json.loads((course_notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8"))
    code = lambda book: [c for c in book["cells"] if c["cell_type"] == "code"]
    assert code(stored)[1:] == code(english) and 'speak("zh")' in "".join(code(stored)[0]["source"])


def test_the_judge_speaks_chinese(chinese: None) -> None:
    assert "还没有作答" in str(course.check("count", (..., 6)))
    assert "不是调用" in str(course.check("count", (4, 6))) and "提示" in str(course.check("count", (4, 6)))
    assert "不是所要求的形式" in str(course.check("count", 3))
    assert re.search(r"在第 \d+ 行（`.*`）抛出了 ZeroDivisionError", str(course.check("share", lambda x: 1 / 0)))
    assert str(course.check("count", (3, 6))) == "✓ count: 正确"
    assert course.hint("count").startswith("提示 1/2：")
    assert course.lesson(1).title == "什么是中间表示（IR）"


def test_a_lesson_without_chinese_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    page = course.lesson.__globals__["read_lesson"]("99_new", "# A new one\n\nWords.\n\n```python\n1\n```\n")
    made = translation.translated(page, "zh")
    assert translation.UNTRANSLATED in made.cells[0].text and "Words." in made.cells[0].text
    assert translation.page(page, "zh").count("TODO") == 2
    with pytest.raises(RelayError, match="does not speak `fr`"):
        course.speak("fr")


def test_only_the_changed_paragraph_falls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    read = course.lesson.__globals__["read_lesson"]
    pages = {m: f"译 {m}" for m in translation.units(read("98_x", "# T one\n\nFirst words.\n\nSecond words.\n"))}
    monkeypatch.setattr(translation, "translations", lambda name, language: pages)
    made = translation.translated(read("98_x", "# T one\n\nFirst words.\n\nSecond words, changed.\n"), "zh")
    assert made.cells[0].text.count("译") == 2 and made.cells[0].text.endswith("Second words, changed.")
