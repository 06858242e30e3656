"""Every lesson: its notebook is what its page gives; open cells, wrong answers and solutions get their verdicts."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("IPython")

from relaylab import course
from relaylab.course import predicting
from relaylab.course.progress import Progress, progress
from relaylab.runtime import threads
from relaylab.support.errors import RelayError

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs"))
import course_notebooks  # noqa: E402

pytestmark = pytest.mark.slow
LESSONS = course.lessons()


@pytest.fixture(autouse=True)
def at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is solved here is not the learner's."""
    monkeypatch.setenv("RELAYLAB_COURSE_DIR", str(tmp_path))
    monkeypatch.setattr(threads, "_chosen", None)  # what a lesson chooses ends with it


def substance(notebook: dict) -> list:
    """What a notebook says; of a picture its words, wherever they are drawn."""
    found = []
    for cell in notebook["cells"]:
        shown = []
        for output in cell.get("outputs", ()):
            drawn = "".join(output.get("data", {}).get("image/svg+xml", ()))
            words = sorted(re.findall(r"<text[^>]*>([^<]*)", drawn))
            shown.append(words or output.get("text") or output["data"])
        found.append(("".join(cell["source"]), shown))
    return found


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_runs_and_its_exercises_judge(name: str) -> None:
    """`executed` asks every exercise for its verdict on the open cell, on each wrong answer and on the solution."""
    lesson = LESSONS[name]
    made = course_notebooks.notebook(lesson, {at: shown for at, _, shown in course_notebooks.executed(lesson)})
    path = course_notebooks.FOLDER / f"{name}.ipynb"
    stored = json.loads(path.read_text(encoding="utf-8"))
    assert substance(json.loads(json.dumps(made))) == substance(stored), (
        "python docs/generate.py course, and look at it"
    )
    assert path.stat().st_size < 150_000
    assert set(progress().solved) == {e.name for e in lesson.exercises}


@pytest.mark.parametrize("name", LESSONS)
def test_a_lesson_asks_helps_and_shows(name: str) -> None:
    lesson = LESSONS[name]
    assert len(lesson.exercises) >= 3
    assert all(e.hints and e.wrong and e.code for e in lesson.exercises)
    stored = (course_notebooks.FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert "image/svg+xml" in stored and not [
        e.name for e in lesson.exercises if e.code and json.dumps(e.code) in stored
    ]


@pytest.mark.parametrize("folder", ["", "zh"])
def test_the_way_on_leads_somewhere(folder: str) -> None:
    for path in (course_notebooks.FOLDER / folder).glob("*.ipynb"):
        last = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][-1]["source"])
        links = re.findall(r"\]\(([^)]+)\)", last)
        assert any("/notes" in link for link in links) and any(link.endswith(".ipynb") for link in links), path.name
        assert [link for link in links if not (path.parent / link).exists()] == [], path.name


def test_names_of_exercises_are_unique() -> None:
    names = [e.name for x in LESSONS.values() for e in x.exercises]
    numbers = [x.number for x in LESSONS.values()]
    assert len(names) == len(set(names)) and numbers == sorted(set(numbers))
    assert numbers[0] == 1 and numbers[-1] <= course_notebooks.PLANNED


def test_tables_are_pictures(tmp_path: Path) -> None:
    turns = course.visits(2, 3, [(1, 2), (0, 0), (1, 0)])
    assert turns.tolist() == [[1, 0, 0], [2, 0, 0]]
    shown = course.grids(first_look=turns, a_row=[7, 8])
    drawn = shown._repr_mimebundle_()["image/svg+xml"]
    assert re.findall(r"<text[^>]*>([^<]*)", drawn) == ["first look", *"100200", "a row", *"78"]
    assert shown.save(tmp_path / "t.svg").read_text(encoding="utf-8").startswith("<svg")


def test_progress_is_kept_and_a_broken_file_is_none(tmp_path: Path) -> None:
    assert not course.check("count", (4, 6)) and course.check("count", (3, 6))
    assert json.loads((tmp_path / "course.json").read_text())["solved"] == ["count"]
    assert "still open" in str(course.check("count", (..., 6)))
    assert "not of the form that was asked for" in str(course.check("count", 3))
    blocked = Progress(Path("/proc/none/course.json"))
    blocked.solve("count")
    assert blocked.solved == ["count"] and blocked.path is None


def test_a_question_about_a_picture_takes_clicks_and_names() -> None:
    asked = course.question("folds")
    assert "sqrt            %" in asked.words and "nn.conv2d" in asked.nodes and "%data" not in asked.words.split()
    assert "nn.batch_flatten  %" in course.question("spreads").words
    right = ["add", "sqrt", "divide", "multiply", "expand_dims"]
    assert course.check("folds", ", ".join(right)) and not course.check("folds", "add")
    assert "still open" in str(course.check("folds", ""))
    assert course.check("folds", right) and course.check("folds", [f"main/{name}" for name in right])
    assert "did you mean" in str(course.check("folds", ["squirt"])) and "still open" in str(course.check("folds", 3))
    with pytest.raises(RelayError, match="asks for no choice in a picture"):
        course.question("count")


@pytest.mark.parametrize("answer", [None, 3, "main", b"x", (), {}, [1], [[]], {1: 2}, object(), [..., 1], lambda: ...])
def test_no_exercise_takes_or_breaks_on_what_is_no_answer(answer: object) -> None:
    for lesson in course.lessons().values():
        assert not any(course.check(e.name, answer) for e in lesson.exercises)


def test_an_answer_may_neither_end_python_nor_talk_without_end() -> None:
    assert "SystemExit: 3" in str(course.check("share", lambda x: sys.exit(3)))
    assert len(str(course.check("channels_last", lambda *place: "z" * 10**6))) < 5000


def test_what_an_answer_raises_is_told_with_its_line() -> None:
    def broken(x: object) -> float:
        return 1 / 0

    def endless(x: object) -> None:
        raise KeyboardInterrupt  # as the interrupt of a notebook does in a loop without an end

    said = str(course.check("share", broken))
    line = broken.__code__.co_firstlineno + 1
    assert f"your answer raised ZeroDivisionError in line {line}, `return 1 / 0`: division by zero" in said
    assert "had not come to an end when it was interrupted in line" in str(course.check("share", endless))
    assert "not of the form that was asked for: parse: `source` must be a text" in str(course.check("lazy", 3))
    assert "your answer raised DiagnosticError: " in str(course.check("lazy", "def @main("))


def test_kernels_are_told_by_the_names_before() -> None:
    asked = course.question("folds")
    kernels = predicting.together(asked, ["FuseOps"])
    assert {"add", "sqrt", "divide", "multiply"} in kernels and sum(map(len, kernels)) == len(asked.nodes)


def test_the_widget_checks_and_hints() -> None:
    widget = pytest.importorskip("relaylab.lab.predict").predict("folds")
    widget.chosen = ["nn.conv2d"]
    widget._asked(widget, "check", [])
    assert not widget.verdict["right"] and "stays" in widget.verdict["words"]
    widget._asked(widget, "hint", [])
    assert "hint 1 of 3" in widget.verdict["words"]
    widget._asked(widget, "zh", [])
    assert widget.words["Check"] == "检查"
    assert "image/svg+xml" in widget._repr_mimebundle_()[0] and "chosen nn.conv2d" in repr(widget)
    assert str(widget) == course.question("folds").words


def test_hints_come_one_after_another_and_again() -> None:
    said = [course.hint("count") for _ in range(3)]
    assert said[0].startswith("hint 1 of 2") and said[1].startswith("hint 2 of 2") and said[2] == said[0]
    with pytest.raises(RelayError, match="there is no exercise `cuont`"):
        course.hint("cuont")


def test_a_page_that_says_what_no_exercise_has_is_refused() -> None:
    page = "# A\n<!-- exercise a\nstart:\n    1\ncheck:\n    1\nhints: x\n-->\n```python\n1\n```\n"
    with pytest.raises(RelayError, match="the exercise a says hints"):
        course.lesson.__globals__["read_lesson"]("01_a", page)


def test_the_judge_hears_what_is_chosen_with_the_question():
    """Choices reach the kernel one after another: the last was on its way still when *Check* was pressed."""
    widget = pytest.importorskip("relaylab.lab.predict").predict("folds")
    right = [n for n in widget.names if n in ("sqrt", "divide")] or widget.names[:1]
    widget._asked(widget, {"what": "check", "chosen": [*right, "no such operator"]}, [])
    assert widget.chosen == right and widget.verdict["words"]
    widget._asked(widget, {"what": "hint", "chosen": []}, [])
    assert widget.chosen == [] and not widget.verdict["right"]
    widget._asked(widget, {"what": "zh"}, [])
    assert widget.words
    widget._asked(widget, ["nonsense"], [])


def test_an_exercise_without_an_answer_is_open():
    assert not course.check("count").right
    with pytest.raises(RelayError) as told:
        course.check("nothing like it", 3)
    assert told.value.help == "%relay_lesson lists them"
